"""Results as text for a terminal: tables that align with wide characters, at 80 columns and less.

All judged text is hostile: control characters and direction marks are made visible, and nothing
in it is read as markup.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, cast

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

_BLANKS = re.compile(r" +((?:\x1b\[[\d;]*m)*)(?=\n)")
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)

ADVICE = {"truncated": "the reply was cut off: raise max_tokens under [[judges]]"}
"""Reasons to fail that say what to do about them."""


def console(*, stderr: bool = False) -> Console:
    """A console that asks the terminal for nothing but its width and colours."""
    file = cast("IO[str]", _Trimmed(stderr=stderr))
    return Console(file=file, highlight=False, soft_wrap=False, emoji=False, markup=False)


class _Trimmed:
    """Where a console writes: no line ends with the blanks that tables fill their cells with."""

    def __init__(self, *, stderr: bool) -> None:
        self._is_error = stderr

    @property
    def _file(self) -> IO[str]:
        return sys.stderr if self._is_error else sys.stdout

    def write(self, text: str) -> int:
        return self._file.write(_BLANKS.sub(r"\1", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def safe(text: object) -> str:
    """Text with characters that could steer a terminal shown as escapes."""
    return _UNSAFE.sub(lambda character: f"\\u{ord(character[0]):04x}", str(text))


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


def table(*headers: str, right: Iterable[int] = ()) -> Table:
    """An empty table; columns in `right` hold numbers."""
    empty = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        header_style="bold",
    )
    for index, header in enumerate(headers):
        empty.add_column(
            header, justify="right" if index in set(right) else "left", overflow="fold"
        )
    return empty


def outcome_lines(
    summary: Mapping[str, Any], details: Mapping[str, str] | None = None, width: int = 80
) -> Text:
    """How a run stands: what adds up to what was planned, and what it took. `details` says more of
    a reason to fail, on one line of `width`."""
    failures = sum(summary["failures"].values())
    text = Text()
    text.append(f"{summary['verdicts']}", style="bold")
    text.append(f" verdicts + {failures} failures + {summary['pending']} pending")
    text.append(f" = {summary['planned']} planned\n")
    if summary.get("left_out"):
        text.append(f"  {summary['left_out']} left out: the judge shares a candidate's family\n")
    for reason, number in summary["failures"].items():
        line = _reason_line(f"{number} x {reason}", reason, (details or {}).get(reason), width - 2)
        text.append(f"  {line}\n", style="yellow")
    cost = summary["cost_usd"]
    spent = "price unknown" if cost is None else f"${cost:.6g}"
    text.append(
        f"{summary['calls']} calls sent, {summary['cached']} from the ledger,"
        f" {summary['reasks']} re-asks; {spent} in all"
    )
    return text


def _reason_line(head: str, reason: str, detail: str | None, width: int) -> str:
    """A reason to fail on one line: what to do where code knows, else what the first one says; of a
    judge that broke down its end, where the error itself stands."""
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
