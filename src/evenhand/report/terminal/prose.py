"""Prose on lines of a terminal: wide characters count two columns, and Chinese and Japanese may be
broken between any two letters, but no line begins with a mark that closes. No line ends at a
no-break space, which is printed as a blank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from evenhand.kinds.blocks import NO_BREAK
from evenhand.report.terminal.tables import safe

_WIDE = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_BLANK = rf"[^\S{NO_BREAK}]"
_PIECE = re.compile(
    rf"[「『（“]*[{_WIDE}][、。，；：！？）」』”ーァィゥェォッャュョぁぃぅぇぉっゃゅょ]*{_BLANK}*"
    rf"|(?:\[[^][]{{1,24}}\]|[^\s{_WIDE}]|{NO_BREAK})+{_BLANK}*"
)
"""A wide letter with the marks around it, or a word; an interval in brackets is one."""
_PART = re.compile(r".+?(?:(?:[/\\_:#@]|(?<!\d)-|-(?!\d))+(?=\w)|$)", re.DOTALL)
"""Where a name may be broken: after what joins its parts, but not inside of a date or a number."""
_CLOSING = "%])}»"


class Stretch(NamedTuple):
    """A stretch of a text, half-open; blanks that follow it belong to it."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Without the blanks."""
        return text[self.start : self.end].rstrip()


def words_of(text: str) -> Iterator[Stretch]:
    """What of a text is not to be broken: its words, with a percent sign or a bracket behind them;
    of Chinese and Japanese every letter."""
    last: Stretch | None = None
    for match in _PIECE.finditer(text):
        if last is not None and text[match.start()] in _CLOSING:
            last = Stretch(last.start, match.end())
            continue
        if last is not None:
            yield last
        last = Stretch(*match.span())
    if last is not None:
        yield last


def parts_of(text: str, word: Stretch) -> Iterator[Stretch]:
    """A word in the parts that `/`, `-`, `_` and the like join."""
    start = word.start
    for match in _PART.finditer(text[word.start : word.end]):
        yield Stretch(start, start := word.start + match.end())


def line_starts(text: str, width: int) -> list[int]:
    """Where lines after the first begin, of at most `width` columns; a word that is wider is broken
    between its parts, or else where it must be."""
    starts, line_start = list[int](), 0
    for stretch in _fitting(text, width):
        if stretch.start > line_start and cell_len(text[line_start : stretch.end].rstrip()) > width:
            line_start = stretch.start
            starts.append(line_start)
    return starts


def _fitting(text: str, width: int) -> Iterator[Stretch]:
    """The stretches that a text is put on lines in."""
    for word in words_of(text):
        if cell_len(word.of(text)) <= width:
            yield word
            continue
        for part in parts_of(text, word):
            yield from [part] if cell_len(part.of(text)) <= width else _letters(part)


def _letters(stretch: Stretch) -> Iterator[Stretch]:
    for place in range(stretch.start, stretch.end):
        yield Stretch(place, place + 1)


def wrapped(text: object, width: int) -> list[str]:
    """The text on lines of at most `width` columns, without blanks at their ends."""
    line = _folded(text)
    starts = [0, *line_starts(line, width), len(line)]
    lines = [line[start:end].strip() for start, end in pairwise(starts)]
    return [line.replace(NO_BREAK, " ") for line in lines if line]


def _folded(text: object) -> str:
    return re.sub(rf"{_BLANK}+", " ", safe(text)).strip(" ")


def beginning(text: object, width: int, lines: int) -> list[str]:
    """The first lines of a text, with an ellipsis where there are more."""
    whole = wrapped(text, width)
    if len(whole) <= lines:
        return whole
    last = whole[lines - 1]
    while cell_len(last) > width - 1:
        last = last[:-1]
    return [*whole[: lines - 1], f"{last.rstrip()}…"]


def ending(text: object, width: int, lines: int) -> list[str]:
    """The last lines of a text, with an ellipsis where there are more."""
    whole = wrapped(text, width)
    if len(whole) <= lines:
        return whole
    rest = " ".join(safe(text).split())[-lines * width :]
    while len(last := wrapped(f"…{rest}", width)) > lines:
        rest = rest[1:].lstrip()
    return last


class Paragraph:
    """Sentences that are put on lines when they are printed."""

    def __init__(self, text: str, style: str = "") -> None:
        self.text, self.style = text, style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in wrapped(self.text, options.max_width):
            yield Text(line, style=self.style)
