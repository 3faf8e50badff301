"""The state of a run in a few lines: what was judged, what failed and why, what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from evenhand.report.terminal.tables import cut, cut_start, safe
from evenhand.words import Words


class FailureDetail(NamedTuple):
    """The text of a failure; an instance if others with the same reason have another."""

    text: str
    is_instance: bool


def outcome_lines(
    say: Words,
    summary: Mapping[str, Any],
    details: Mapping[str, FailureDetail] | None = None,
    width: int = 80,
) -> Text:
    """Return the state of a run: the counts that add up to what was planned, and what it took.
    `details` says more of a reason to fail, on one line of `width`."""
    counts = {name: summary[name] for name in ("verdicts", "pending", "planned")}
    counts["failures"] = sum(summary["failures"].values())
    text = Text()
    for part, name in say.parts("cli.outcome", **counts):
        text.append(part, style="bold" if name == "verdicts" else "")
    if left_out := summary.get("left_out"):
        text.append(f"\n  {say('facts.left_out', n=left_out)}")
    for reason, number in summary["failures"].items():
        detail = (details or {}).get(reason)
        line = failure_line(say, say.counted("failure", number), reason, "", width - 2)
        text.append(f"\n  {line}", style="yellow")
        if detail is not None and reason != "truncated":
            key = "cli.for_instance" if detail.is_instance else "cli.said"
            cut_detail = cut_start if reason == "judge_crash" else cut
            text.append(f"\n    {cut_detail(say(key, text=detail.text), width - 4)}")
    calls = {"sent": summary["calls"], "cached": summary["cached"], "reasks": summary["reasks"]}
    text.append(f"\n{say('cli.calls', **calls)} {_spending(say, summary)}")
    usage = summary.get("usage", {})
    if usage.get("cached_tokens"):
        share = usage["cached_tokens"] / max(1, usage["input_tokens"])
        text.append(f" {say('cli.cached_share', share=share)}")
    return text


def _spending(say: Words, summary: Mapping[str, Any]) -> str:
    """Return what a run has cost; where calls of an earlier command had no price, what this one
    has."""
    cost, now = summary["cost_usd"], summary.get("spent_usd")
    if cost is None:
        return say("cli.cost_now" if now else "cli.cost_unknown", cost=now)
    return say("cli.cost", cost=cost)


def failure_line(say: Words, head: str, reason: str, detail: str | None, width: int) -> str:
    """Return a reason to fail on one line of `width`, with what `detail` says; of a judge that
    broke down its end, where the error itself stands."""
