"""The console for results, which shows what is hidden and leaves no blanks at the ends of lines,
and what is printed there: tables, legends, paragraphs. Nothing is read as markup.

It takes longer to load than a short command needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, cast

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from evenhand.kinds.blocks import NO_BREAK
from evenhand.report.terminal.stream import raw_stream
from evenhand.report.terminal.tables import (
    ADVICE,
    FailureDetail,
    count_noun,
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
    """A stream for a console: no line ends with the blanks that tables fill their cells with."""

    def __init__(self, *, stderr: bool) -> None:
        self._is_error = stderr

    @property
    def _file(self) -> IO[str]:
        return raw_stream(sys.stderr if self._is_error else sys.stdout)

    def write(self, text: str) -> int:
        return self._file.write(_BLANKS.sub(r"\1", text.replace(NO_BREAK, " ")))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class TextTable(Table):
    """A table that reads no markup and leaves out columns that say nothing in any row."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        texts = (Text(cell) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*texts, **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.rows:
            self.columns = [column for column in self.columns if any(map(str, column.cells))]
        return super().__rich_console__(console, options)


def table(*headers: str, right: Iterable[int] = (), whole: Iterable[int] = ()) -> TextTable:
    """Return an empty table; columns in `right` hold numbers, those in `whole` other figures, which
    stay on one line as well."""
    numbers, figures = set(right), set(whole)
    grid = TextTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for place, header in enumerate(headers):
        grid.add_column(
            Text(safe(header)),
            justify="right" if place in numbers else "left",
            no_wrap=place in numbers or place in figures,
            overflow="fold",
        )
    return grid


def side_by_side(texts: Sequence[Text]) -> Table:
    """Return texts beside each other, each with the same room."""
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False, expand=True)
    for _ in texts:
        grid.add_column(ratio=1, overflow="fold")
    grid.add_row(*texts)
    return grid


def legend(lines: Iterable[tuple[str, str | Text]]) -> Table:
    """Return names with what is said of each beside them."""
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in lines:
        grid.add_row(Text(safe(name)), text if isinstance(text, Text) else Text(safe(text)))
    return grid


def paragraph(text: str, style: str = "") -> Text:
    """Return sentences in which nothing is hidden; the console puts them on lines."""
    return Text(safe(text), style=style)


def wrap(text: str, width: int) -> list[str]:
    """Return a text on lines of at most `width` columns."""
    lines = Text(" ".join(safe(text).split())).wrap(console(), width, overflow="fold")
    return [line.plain.rstrip() for line in lines]


def outcome_lines(
    summary: Mapping[str, Any], details: Mapping[str, FailureDetail] | None = None, width: int = 80
) -> Text:
    """Return the state of a run: the counts that add up to what was planned, and what it took.
    `details` says more of a reason to fail, on one line of `width`."""
    failures = sum(summary["failures"].values())
    text = Text()
    number, noun = count_noun(summary["verdicts"], "verdict").split(" ")
    text.append(number, style="bold")
    text.append(f" {noun} + {count_noun(failures, 'failure')} + {summary['pending']:,} pending")
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
        f"{count_noun(summary['calls'], 'call')} sent, {summary['cached']:,} from the ledger;"
        f" {count_noun(summary['reasks'], 're-ask')} and {_spending(summary)}"
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
