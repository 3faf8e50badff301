"""The lines of a judge's reply that have bars, cut into cells, and the tables that they make up.

A reply may hold other tables than the one asked for: a legend of the marks, an assessment of each
criterion. What can be told of them by their form alone is told here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

from evenhand.kinds.pairwise.cells import DECOR
from evenhand.kinds.reply import BAR
from evenhand.regexp import regexp

_CELL = regexp(r"(?:[^|\\]++|\\.?)*+", re.DOTALL)
_WIDE_BAR = regexp("[｜│]")
_BULLET = regexp(r"(?:>\s*+|[-*+•]\s++|\d{1,3}[.)]\s++)*+")
_WRAPPED = regexp(r"(`{1,3}|\*{1,3}|_{1,3})(.*)\1")
_RULE = regexp(r"\s*+:?[-–—=]++:?\s*+")


class Row(NamedTuple):
    """A line with bars: where it stands, as it was written, and its cells."""

    number: int
    text: str
    cells: Sequence[str]
    unknown_header: str = ""
    """The header above it, where that does not say which column is which."""

    @property
    def words(self) -> list[str]:
        """The cells without what stands around their words."""
        return [cell.strip(DECOR) for cell in self.cells]


def rows_of(text: str) -> list[Row]:
    """The lines of a text that have bars."""
    lines = enumerate(text.splitlines())
    return [Row(number, line, _row_cells(line)) for number, line in lines if has_bars(line)]


def has_bars(line: str) -> bool:
    return BAR.search(line) is not None


def cells_of(text: str) -> list[str]:
    """The text cut at every `|` that is not escaped."""
    cells: list[str] = []
    at = -1
    while at < len(text):
        cell = cast("re.Match[str]", _CELL.match(text, at + 1))
        cells.append(cell[0])
        at = cell.end()
    return cells


def _row_cells(line: str) -> list[str]:
    """The cells of a line without what Markdown puts around it."""
    bare = (line if "|" in line else _WIDE_BAR.sub("|", line)).strip()
    bare = bare[cast("re.Match[str]", _BULLET.match(bare)).end() :].strip()
    if wrapped := _WRAPPED.fullmatch(bare):
        bare = wrapped[2].strip()
    cells = cells_of(bare.removeprefix("|"))
    return cells if cells[-1].strip() else cells[:-1]


def blocks(rows: Sequence[Row], columns: int) -> Iterator[list[Row]]:
    """Neighbouring lines together, those with so many columns apart from those with fewer."""
    block: list[Row] = []
    for row in rows:
        if block and not (
            row.number == block[-1].number + 1
            and (len(row.cells) < columns) == (len(block[-1].cells) < columns)
        ):
            yield block
            block = []
        block.append(row)
    if block:
        yield block


def has_rule(block: Sequence[Row]) -> bool:
    """Whether there is an alignment row among some lines, as Markdown has it under a header."""
    return any(row.cells and all(map(_RULE.fullmatch, row.cells)) for row in block)


def is_by_criterion(block: Sequence[Row], criteria: Sequence[str]) -> bool:
    """Whether the lines of a table begin with different criteria."""
    begun = {
        name
        for row in block
        for name in criteria
        if row.words[:1] and row.words[0].startswith(name)
    }
    return len(begun) > 1


class Header(NamedTuple):
    """What a header says of the columns: where the marks begin, and whether a winner precedes."""

    first_mark: int
    has_winner: bool


def header_of(row: Row, criteria: Sequence[str]) -> Header | None:
    """The header that a line is, by its names of the criteria; None if it is no such line."""
    names, words = [[name.casefold() for name in texts] for texts in (criteria, row.words)]
    for at in (0, 1, 2):
        if names and words[at : at + len(names)] == names:
            return Header(at, at > 0 and words[at - 1] == "winner")
    return None


def is_cut_header(row: Row, criteria: Sequence[str]) -> bool:
    """Whether a line is the header of a verdict with some criteria left out: a table under it is of
    the verdict, however few its columns are."""
    names, words = [[name.casefold() for name in texts] for texts in (criteria, row.words)]
    if "winner" not in words[:2]:
        return False
    marked = words[words.index("winner") + 1 :]
    return bool(marked) and marked[0] in names and {*marked} <= {*names, "notes"}


WINNER_NAMES = frozenset({"winner", "победитель", "胜者", "获胜者", "胜出者", "勝者"})


class _Columns(NamedTuple):
    """Which columns hold the winner, each criterion, and the notes: these may be all the rest."""

    verdict: Sequence[int]
    notes: int | None

    def in_order(self, row: Row) -> Row:
        """Return a row with its cells in the contract's order, behind a blank pair_id."""
        cells = [*row.cells, *[""] * (1 + max(self.verdict) - len(row.cells))]
        notes = cells[1 + max(self.verdict) :] if self.notes is None else [cells[self.notes]]
        return row._replace(cells=["", *(cells[at] for at in self.verdict), *notes])


def in_order(
    rows: Sequence[Row], criteria: Sequence[str], is_word: Callable[[str], bool]
) -> Iterator[Row]:
    """Yield rows with their cells in the contract's order: the header above them says which column
    is which. One under a header that does not say it carries that header. `is_word` tells a cell
    that holds a winner or a mark."""
    columns: _Columns | None = None
    header, has_names, last = Row(0, "", ()), True, -2
    for row in rows:
        is_first, last = row.number != last + 1, row.number
        names = [_name_in(word.casefold(), criteria) for word in row.words]
        if sum(name in criteria for name in names) >= max(1, min(2, len(criteria))):
            columns, has_names = _columns(row, names, criteria), True
            is_clear = columns is not None or _is_usual(row, names, criteria)
            header = row._replace(unknown_header="" if is_clear else row.text)
            yield row
        elif is_first and len(row.cells) > len(criteria) and not any(map(is_word, row.words)):
            columns, has_names, header = None, False, row._replace(unknown_header=row.text)
            yield row
        else:
            # A header without the contract's names counts for the lines of its own table.
            is_under = not is_first and abs(len(row.cells) - len(header.cells)) <= 1
            unknown = header.unknown_header if has_names or is_under else ""
            yield (columns.in_order(row) if columns else row)._replace(unknown_header=unknown)


def _name_in(word: str, criteria: Sequence[str]) -> str:
    """Return what a cell of a header names: a criterion, which may be explained as in `C1 (facts)`,
    the winner, or nothing that is known."""
    for name in criteria:
        if word.startswith(name.casefold()) and not word[len(name) : len(name) + 1].isalnum():
            return name
    return "winner" if word in WINNER_NAMES else ""


def _columns(row: Row, names: Sequence[str], criteria: Sequence[str]) -> _Columns | None:
    """Return the columns of a header that names winner and criteria once each, in another order
    than the contract's; None for any other."""
    sought = ["winner", *criteria]
    if any(names.count(name) != 1 for name in sought):
        return None
    verdict = [names.index(name) for name in sought]
    if verdict[0] < 2 and verdict == [*range(verdict[0], verdict[0] + len(sought))]:
        return None
    words = [word.casefold() for word in row.words]
    notes = words.index("notes") if "notes" in words else None
    return _Columns(verdict, notes if notes is not None and notes < max(verdict) else None)


def _is_usual(row: Row, names: Sequence[str], criteria: Sequence[str]) -> bool:
    """Return True if a header may be in the contract's order: its criteria are, each once, and the
    winner before them may be called otherwise; or some criteria are left out."""
    first = next(at for at, name in enumerate(names) if name in criteria)
    end = first + len(criteria)
    if list(names[first:end]) == list(criteria):
        return not any(name == "winner" or name in criteria for name in names[end:])
    named = [name for name in names if name]
    return len(set(named)) == len(named) and is_cut_header(row, criteria)
