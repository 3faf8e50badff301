"""Tables for a terminal, laid out when they are printed.

What has room stands on one line. Where the columns are wider than the terminal, headers are broken
at blanks first, then texts, the widest first; then names after `/`, `-`, `_` and the like. Inside a
word a text is broken only where no column can give way any more, and figures not before that. No
line ends with blanks, and wide characters count two columns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from evenhand.kinds.blocks import NO_BREAK
from evenhand.report.terminal.prose import line_starts, parts_of, words_of, wrapped
from evenhand.report.terminal.tables import safe

GAP = 2
"""Blanks between columns."""
READABLE = 24
"""What a column of texts is narrowed to before names are broken."""
BROKEN = 6
"""What is left of a column of texts before figures are broken too."""


def table(*headers: str, right: Iterable[int] = (), whole: Iterable[int] = ()) -> TextTable:
    """An empty table; columns in `right` hold numbers, those in `whole` other figures, which stay
    on one line as well."""
    numbers, figures = set(right), set(whole)
    return TextTable(
        Column(
            header=Text(safe(header), style="bold"),
            is_right=place in numbers,
            is_whole=place in numbers or place in figures,
        )
        for place, header in enumerate(headers)
    )


@dataclass(kw_only=True, slots=True)
class Column:
    """A header and the cells below it."""

    header: Text
    is_right: bool
    is_whole: bool
    cells: list[Text] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing in any row."""
        return bool(self.cells) and not any(self.cells)

    def floors(self) -> Floors:
        """How narrow it may become, step by step."""
        header, cells = _lines([self.header]), _lines(self.cells)
        one_line = _widest([*header, *cells])
        header_broken = max(_widest(_words(header)), _widest(cells))
        if self.is_whole:
            return Floors(*[one_line, *[header_broken] * 5, 1])
        words = _widest(_words([*header, *cells]))
        parts = _widest(_parts([*header, *cells]))
        return Floors(
            one_line=one_line,
            header_broken=header_broken,
            readable=min(header_broken, max(words, READABLE)),
            two_lines=_on_two_lines(cells, words, header_broken),
            two_lines_of_parts=_on_two_lines(cells, parts, header_broken),
            parts=parts,
            broken=min(parts, BROKEN),
        )


class Floors(NamedTuple):
    """The widths of a column, each narrower than the one before it."""

    one_line: int
    header_broken: int
    readable: int
    two_lines: int
    """No cell takes more than two lines, and no word is broken."""
    two_lines_of_parts: int
    """The same with names broken between their parts."""
    parts: int
    broken: int


def _on_two_lines(lines: Sequence[str], least: int, most: int) -> int:
    """The narrowest width in which no line becomes more than two."""
    texts = {line for line in lines if cell_len(line) > least}
    # Of two lines one is at least half as long as the text; a wider column never takes more lines.
    half = (max(map(cell_len, texts), default=0) + 1) // 2
    widths = range(max(least, half, 1), most)
    place = bisect_left(widths, True, key=lambda width: _is_on_two_lines(texts, width))
    return widths[place] if place < len(widths) else most


def _is_on_two_lines(texts: Iterable[str], width: int) -> bool:
    return all(len(line_starts(text, width)) < 2 for text in texts)


def _lines(cells: Iterable[Text]) -> list[str]:
    return [line for cell in cells for line in cell.plain.split("\n")]


def _words(lines: Iterable[str]) -> Iterator[str]:
    return (word.of(line) for line in lines for word in words_of(line))


def _parts(lines: Iterable[str]) -> Iterator[str]:
    return (
        part.of(line) for line in lines for word in words_of(line) for part in parts_of(line, word)
    )


def _widest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


class TextTable:
    """A header and rows; columns that say nothing in any row are left out."""

    def __init__(self, columns: Iterable[Column]) -> None:
        self._columns = list(columns)
        self._sections: set[int] = set()
        self.count = 0

    def add_row(self, *cells: str | Text, style: str = "") -> None:
        """Add a row; what is missing at its end is empty."""
        for column, cell in zip_longest(self._columns, cells, fillvalue=""):
            assert isinstance(column, Column), "more cells than columns"
            column.cells.append(Text(cell, style) if isinstance(cell, str) else cell)
        self.count += 1

    def add_section(self) -> None:
        """Leave a line between what stands above and the next row."""
        self._sections.add(self.count)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = [column for column in self._columns if not column.is_empty]
        widths = _widths(columns, options.max_width - GAP * (len(columns) - 1))
        yield from _row([column.header for column in columns], columns, widths)
        rule = "-" if options.ascii_only else "─"
        yield Text(rule * (sum(widths) + GAP * (len(columns) - 1)))
        for number in range(self.count):
            if number in self._sections:
                yield Text()
            yield from _row([column.cells[number] for column in columns], columns, widths)


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """The widths in which the columns have room, as far as they can give way."""
    one_line, *steps = zip(*(column.floors() for column in columns), strict=True)
    widths = list(one_line)
    for floors in steps:
        widths = _narrowed(widths, floors, room)
    return widths


def _narrowed(widths: Sequence[int], floors: Sequence[int], room: int) -> list[int]:
    """The widest columns narrowed, none below its floor, until all have room."""
    narrow = list(widths)
    while sum(narrow) > room:
        wide = [place for place, width in enumerate(narrow) if width > floors[place]]
        if not wide:
            break
        narrow[max(wide, key=narrow.__getitem__)] -= 1
    return narrow


def _row(cells: Sequence[Text], columns: Sequence[Column], widths: Sequence[int]) -> Iterator[Text]:
    """A row on as many lines as its cells take."""
    broken = [_broken(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for texts in zip_longest(*broken, fillvalue=Text()):
        line, edge = Text(), 0
        for text, column, width in zip(texts, columns, widths, strict=True):
            blanks = width - text.cell_len if column.is_right else 0
            line.append(" " * (edge - line.cell_len + blanks))
            line.append_text(text)
            edge += width + GAP
        line.rstrip()
        yield line


def _broken(cell: Text, width: int) -> list[Text]:
    lines: list[Text] = []
    for line in cell.split("\n", allow_blank=True):
        for part in line.divide(line_starts(line.plain, width)):
            part.rstrip()
            part.plain = part.plain.replace(NO_BREAK, " ")
            lines.append(part)
    return lines


class SideBySide:
    """Texts beside each other, each with the same room."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self._texts = texts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        count = len(self._texts)
        width = (options.max_width - GAP * (count - 1)) // count
        columns = [Column(header=text, is_right=False, is_whole=False) for text in self._texts]
        yield from _row(self._texts, columns, [width] * count)


class Legend:
    """Names with what is said of each beside them."""

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        self._lines = list(lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        left = max((cell_len(name) for name, _ in self._lines), default=0) + GAP
        for name, text in self._lines:
            for number, line in enumerate(wrapped(text, max(options.max_width - left, 1)) or [""]):
                opening = "" if number else name
                blanks = " " * (left - cell_len(opening))
                yield Text.assemble((opening, "bold"), f"{blanks}{line}" if line else "")
