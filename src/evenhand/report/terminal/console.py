"""Where results are printed: a console that shows what is hidden and leaves no blanks at the ends
of lines. It takes longer to load than a short command needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from evenhand.report.terminal.stream import unguarded
from evenhand.report.terminal.tables import (
    ADVICE,
    FailureDetail,
    counted,
    failure_line,
    money,
    safe,
)
from evenhand.text import visible

_BLANKS = re.compile(r"(?<! ) ++((?:\x1b\[[\d;]*m)*)(?=\n)")


def console(*, stderr: bool = False) -> Console:
    """A console that asks the terminal for nothing but its width and colours."""
    file = cast("IO[str]", _Trimmed(stderr=stderr))
    return _VisibleConsole(file=file, highlight=False, soft_wrap=False, emoji=False, markup=False)


class _VisibleConsole(Console):
    """A console whose escape sequences are its own: no text that it prints brings any."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


class _Trimmed:
    """Where a console writes: no line ends with the blanks that tables fill their cells with."""

    def __init__(self, *, stderr: bool) -> None:
        self._is_error = stderr

    @property
    def _file(self) -> IO[str]:
        return unguarded(sys.stderr if self._is_error else sys.stdout)

    def write(self, text: str) -> int:
        return self._file.write(_BLANKS.sub(r"\1", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def marked(output: str, spots: Sequence[tuple[int, int]]) -> Text:
    """The judged text with its quoted evidence marked."""
    text, at = Text(), 0
    for start, end in sorted(spots):
        if start < at:
            continue
        text.append(safe(output[at:start]))
        text.append(safe(output[start:end]), style="black on yellow")
        at = end
    text.append(safe(output[at:]))
    return text


def outcome_lines(
    summary: Mapping[str, Any], details: Mapping[str, FailureDetail] | None = None, width: int = 80
) -> Text:
    """How a run stands: what adds up to what was planned, and what it took. `details` says more of
    a reason to fail, on one line of `width`."""
    failures = sum(summary["failures"].values())
    text = Text()
    number, noun = counted(summary["verdicts"], "verdict").split(" ")
    text.append(number, style="bold")
    text.append(f" {noun} + {counted(failures, 'failure')} + {summary['pending']:,} pending")
    text.append(f" = {summary['planned']:,} planned\n")
    if summary.get("left_out"):
        text.append(f"  {summary['left_out']} left out: the judge shares a candidate's family\n")
    for reason, number in summary["failures"].items():
        detail = (details or {}).get(reason)
        is_instance = detail is not None and detail.is_instance and reason not in ADVICE
        head = f"{number} x {reason}{', for instance' if is_instance else ''}"
        line = failure_line(head, reason, detail.text if detail else None, width - 2)
        text.append(f"  {line}\n", style="yellow")
    text.append(
        f"{counted(summary['calls'], 'call')} sent, {summary['cached']:,} from the ledger;"
        f" {counted(summary['reasks'], 're-ask')} and {_spending(summary)}"
    )
    usage = summary.get("usage", {})
    if usage.get("cached_tokens"):
        share = usage["cached_tokens"] / max(1, usage["input_tokens"])
        text.append(f"; {share:.0%} of the input from the provider's cache")
    return text


def _spending(summary: Mapping[str, Any]) -> str:
    """Return what a run has cost; where calls of an earlier command had no price, what this one
    has."""
    cost, now = summary["cost_usd"], summary.get("spent_usd")
    if cost is not None:
        return f"{money(cost)} in all"
    return f"{money(now)} now, earlier calls at unknown prices" if now else "price unknown in all"
