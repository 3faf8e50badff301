"""Results as text for a terminal: tables that align with wide characters, at 80 columns and less.

All judged text is hostile: control characters and direction marks are made visible, and nothing
in it is read as markup.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple, cast

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from evenhand.report.terminal.stream import unguarded
from evenhand.unseen import visible

_BLANKS = re.compile(r"(?<! ) ++((?:\x1b\[[\d;]*m)*)(?=\n)")

ADVICE = {"truncated": "the reply was cut off: raise max_tokens under [[judges]]"}
"""Reasons to fail that say what to do about them."""
WHOLE_DOLLARS = 10


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


def safe(text: object) -> str:
    """Text with characters that could steer a terminal shown as escapes."""
    return visible(text)


def cut(text: object, most: int) -> str:
    """One line of at most so many columns of a terminal."""
    line = " ".join(safe(text).split())
    return line if cell_len(line) <= most else set_cell_size(line, most - 1).rstrip() + "…"


def cut_start(text: object, most: int) -> str:
    """The end of a line, in at most so many columns: what a chain of errors comes to."""
    line = " ".join(safe(text).split())
    if cell_len(line) <= most:
        return line
    start = len(line)
    while start and cell_len(line[start - 1 :]) < most:
        start -= 1
    return f"…{line[start:].lstrip()}"


class FailureDetail(NamedTuple):
    """What a failure says; an instance where others with the same reason say otherwise."""

    text: str
    is_instance: bool


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
    cost = summary["cost_usd"]
    spent = "price unknown" if cost is None else money(cost)
    text.append(
        f"{counted(summary['calls'], 'call')} sent, {summary['cached']:,} from the ledger,"
        f" {counted(summary['reasks'], 're-ask')}; {spent} in all"
    )
    return text


def counted(number: int, noun: str) -> str:
    """So many of something: `1 call`, `1,200 calls`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def money(dollars: float) -> str:
    """Dollars in as many digits as a person reads: whole ones from ten on, cents below."""
    if not dollars:
        return "$0"
    if dollars >= WHOLE_DOLLARS:
        return f"${dollars:,.0f}"
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.2g}"


def failure_line(head: str, reason: str, detail: str | None, width: int) -> str:
    """A reason to fail on one line of `width`: what to do where code knows, else what `detail`
    says; of a judge that broke down its end, where the error itself stands."""
    if reason in ADVICE:
        return cut(f"{head}: {ADVICE[reason]}", width)
    if not detail:
        return head
    if reason == "judge_crash":
        return f"{head}: {cut_start(detail, width - len(head) - 2)}"
    return cut(f"{head}: {detail}", width)


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
