"""The state of a run in a few lines: what was judged, what failed and why, what it took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from evenhand.report.terminal.tables import cut, cut_start
from evenhand.words import Words

WITHOUT_DETAIL = "truncated"
"""The reason whose meaning says all, and what to do."""


class FailureDetail(NamedTuple):
    """The text of a failure; an instance if others with the same reason have another."""

    text: str
    is_instance: bool


def outcome_lines(
    summary: Mapping[str, Any],
    say: Words,
    details: Mapping[str, FailureDetail] = MappingProxyType({}),
    width: int = 80,
) -> Text:
    """Return the state of a run: the counts that add up to what was planned, and what it took.
    `details` says more of a reason to fail, in lines of `width`."""
    counts = {name: summary[name] for name in ("verdicts", "pending", "planned")}
    counts["failures"] = sum(summary["failures"].values())
    text = Text()
    for part, name in say.parts("cli.outcome", **counts):
        text.append(part, style="bold" if name == "verdicts" else "")
    if left_out := summary.get("left_out"):
        text.append(f"\n  {say('facts.left_out', n=left_out)}")
    for line in reason_lines(summary["failures"], details, say, width):
        text.append("\n").append_text(line)
    calls = {"sent": summary["calls"], "cached": summary["cached"], "reasks": summary["reasks"]}
    text.append(f"\n{say('cli.calls', **calls)} {_spending(summary, say)}")
    usage = summary.get("usage", {})
    if usage.get("cached_tokens"):
        share = usage["cached_tokens"] / max(1, usage["input_tokens"])
        text.append(f" {say('cli.cached_share', share=share)}")
    return text


def answer_lines(summary: Mapping[str, Any], say: Words) -> Text:
    """Return the answers that were made, those that are not complete, and what they took."""
    counts = {name: summary[name] for name in ("verdicts", "pending", "planned")}
    counts["failures"] = sum(summary["failures"].values())
    text = Text(say("cli.answers_outcome", **counts))
    for finish, n in summary["finish"].items():
        if finish != "stop":
            text.append(f"\n  {say('cli.answers_cut', n=n, finish=finish)}", style="yellow")
    for line in reason_lines(summary["failures"], {}, say, 0):
        text.append("\n").append_text(line)
    calls = {"sent": summary["calls"], "cached": summary["cached"], "reasks": summary["reasks"]}
    return text.append(f"\n{say('cli.calls', **calls)} {_spending(summary, say)}")


def reason_lines(
    failures: Mapping[str, int], details: Mapping[str, FailureDetail], say: Words, width: int
) -> Iterator[Text]:
    """Yield how many failed for which reason, and below it what the first of them says."""
    for reason, number in failures.items():
        yield Text(f"  {say('cli.failures', n=number, reason=reason)}", style="yellow")
        if reason in details and reason != WITHOUT_DETAIL:
            detail, is_instance = details[reason]
            said = say("cli.for_instance", text=detail) if is_instance else detail
            yield Text(f"    {_cut_detail(reason, said, width - 4)}")


def _spending(summary: Mapping[str, Any], say: Words) -> str:
    """Return what a run has cost; where calls of an earlier command had no price, what this one
    has."""
    cost, now = summary["cost_usd"], summary.get("spent_usd")
    if cost is None:
        return say("cli.cost_now" if now else "cli.cost_unknown", cost=now)
    return say("cli.cost", cost=cost)


def failure_line(reason: str, detail: str, say: Words, width: int) -> str:
    """Return why there is no verdict, on one line of `width`."""
    head = say("cli.failed", reason=reason)
    if not detail or reason == WITHOUT_DETAIL:
        return cut(head, width)
    return f"{head}: {_cut_detail(reason, detail, width - cell_len(head) - 2)}"


def _cut_detail(reason: str, detail: str, width: int) -> str:
    """Return a detail in `width` columns; of a judge that broke down its end, where the error
    itself stands."""
    return (cut_start if reason == "judge_crash" else cut)(detail, width)


def command_lines(commands: Iterable[tuple[str, str]], say: Words) -> Iterator[str]:
    """Yield commands, each after its label, all in one column."""
    labelled = [(say(key), command) for key, command in commands]
    width = 1 + max(cell_len(label) for label, _ in labelled)
    for label, command in labelled:
        yield f"{set_cell_size(label, width)} evenhand {command}"
