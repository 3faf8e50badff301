"""The console for results, which shows what is hidden and leaves no blanks at the ends of lines,
and what is printed there: tables, legends, paragraphs. Nothing is read as markup.

It takes longer to load than a short command needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, cast

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.containers import Lines
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from evenhand.kinds.blocks import NO_BREAK
from evenhand.report.terminal.stream import raw_stream
from evenhand.report.terminal.tables import safe
from evenhand.text import visible
from evenhand.words import Words

_WIDE = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_CLOSING = "\u3001\u3002\u300d\u30fc\uff01\uff05\uff09\uff0c\uff1a\uff1b\uff1f\u201d%)\\]"
_OPENING = "\u300c\uff08\u201c(\\["
_PIECE = re.compile(
    f"[{_OPENING}]*(?:{_WIDE.pattern}|(?:(?!{_WIDE.pattern})[^\\s{_OPENING}])+|.)[{_CLOSING}]*\\s*"
)
"""A wide character or a word, with the marks that stay beside it: lines end after these."""
_BLANKS = re.compile(r"(?<! ) ++((?:\x1b\[[\d;]*m)*)(?=\n)")


def console(*, stderr: bool = False) -> Console:
    """A console that asks the terminal for nothing but its width and colours."""
    file = cast("IO[str]", _Trimmed(stderr=stderr))
    return _VisibleConsole(file=file, highlight=False, soft_wrap=False, emoji=False, markup=False)


class _VisibleConsole(Console):
    """A console whose escape sequences are its own: no text that it prints brings any."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; in a group a paragraph keeps its own way to break lines."""
        super().print(
            *(Group(it) if isinstance(it, Paragraph) else it for it in objects), **options
        )

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


def titles(say: Words, *names: str) -> list[str]:
    """Return the headings of columns."""
    return [say(f"terminal.{name}") for name in names]


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


class Paragraph(Text):
    """Sentences that may be broken between wide characters too, as Chinese and Japanese are."""

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        """Return the lines of at most `width` columns."""
        if not _WIDE.search(self.plain):
            return super().wrap(console, width, **options)
        lines = Lines()
        for line in self.divide(_line_ends(self.plain, width)):
            line.rstrip()
            lines.extend(line.wrap(console, width, **options))
        return lines


def _line_ends(text: str, width: int) -> Iterator[int]:
    """Yield where to begin a new line."""
    start = last = 0
    for place in [*(match.end() for match in _PIECE.finditer(text)), len(text)]:
        if last > start and cell_len(text[start:place].rstrip()) > width:
            yield last
            start = last
        last = place


def paragraph(text: str, style: str = "") -> Text:
    """Return sentences in which nothing is hidden; the console puts them on lines."""
    return Paragraph(safe(text), style=style)


def wrap(text: str, width: int) -> list[str]:
    """Return a text on lines of at most `width` columns."""
    lines = Text(" ".join(safe(text).split())).wrap(console(), width, overflow="fold")
    return [line.plain.rstrip() for line in lines]
