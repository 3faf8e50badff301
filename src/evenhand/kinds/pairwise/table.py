"""The verdict table: one line a pair, `pair_id | winner | C1 | ... | notes`, written and read.

A table that was written reads back exactly. Within a cell a backslash begins an escape: `\\|`,
`\\\\`, `\\n`, `\\r`, `\\t`, `\\s` for a space at either end of the cell, and `\\uXXXX` for other
line breaks, control characters, lone surrogates, and other white space at either end. White space
around a cell is no part of it.

A judge's reply is read leniently around the line, and within it in the words that prompts ask for:
`read_reply` is total, takes linear time, and never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast, get_args

from evenhand.errors import quoted
from evenhand.kinds import reply
from evenhand.kinds.kind import TableError, TableLine
from evenhand.kinds.pairwise.cells import DECOR, read_cell
from evenhand.kinds.pairwise.table_rows import (
    Header,
    Row,
    blocks,
    cells_of,
    has_bars,
    has_rule,
    header_of,
    in_order,
    is_by_criterion,
    is_cut_header,
    rows_of,
)
from evenhand.kinds.pairwise.verdict import Mark, Outcome, Winner
from evenhand.kinds.reply import JudgedText
from evenhand.limits import REPLY_BYTES
from evenhand.regexp import regexp


@dataclass(frozen=True, slots=True)
class TableRow:
    """One pair of a verdict table."""

    pair_id: str
    winner: Outcome
    marks: Mapping[str, Mark]
    notes: str
    line_number: int = field(default=0, compare=False)
    """Where it stands in the table it was read from, counted from one."""


@dataclass(frozen=True, slots=True)
class TableReply:
    """What a judge's verdict-table line says; a part that is missing is None."""

    winner: Winner | None
    marks: Mapping[str, Mark | None]
    notes: str | None
    mended: tuple[str, ...] = field(default=(), compare=False)
    """The columns read from other words than the contract's own: `winner`, or a criterion."""
    text: str = field(default="", compare=False)
    """The line as it was written."""
    unknown_header: str = field(default="", compare=False)
    """The header above it, where that does not say which column is which."""

    @property
    def is_whole(self) -> bool:
        return None not in (self.winner, *self.marks.values())


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """A reply with different verdicts, or with one that can be read in two ways."""


@dataclass(frozen=True, slots=True)
class UnknownHeader:
    """A line under a header that does not say which column is which."""

    text: str


class UnreadCell(NamedTuple):
    """A cell without a winner or mark: its column, what stands there if it is not blank, and what
    may."""

    column: str
    text: str
    allowed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Broken:
    """A line that is a verdict but for some cells."""

    cells: tuple[UnreadCell, ...]
    is_rival: bool = field(default=True, compare=False)
    """Whether so much of it can be read that it stands against a whole line beside it."""

    @property
    def unread(self) -> int:
        """How many of the cells hold something."""
        return sum(cell.text != "" for cell in self.cells)


def header(criteria: Sequence[str]) -> str:
    """The first line of a table."""
    if len(set(criteria)) < len(criteria):
        raise ValueError(f"criteria {quoted(', '.join(criteria))}: one stands twice")
    return _joined(["pair_id", "winner", *criteria, "notes"])


def line(pair_id: str, winner: str, marks: Sequence[str], notes: str) -> str:
    """One pair as a line, without its line break."""
    if problem := _wrong(winner, marks):
        raise ValueError(problem)
    return _joined([pair_id, winner, *marks, notes])


def read_table(lines: Iterable[str], criteria: Sequence[str] | None = None) -> Iterator[TableRow]:
    """The rows of a table, whose first line is its header; blank lines are stepped over.

    The header says which column is which, in any order. Raises TableError at a line that is wrong,
    and if the header has other criteria than those given; it may have none, as where votes made
    elsewhere name a winner and no marks.
    """
    columns: list[int] | None = None
    names: list[str] = []
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        cells = _read_cells(text.removeprefix("\ufeff") if columns is None else text, number)
        if columns is None:
            columns = _columns_of(cells, number)
            names = _criteria([cells[at] for at in columns[2:-1]], criteria, number)
        elif len(cells) != len(columns):
            raise TableError(number, f"{len(cells)} columns; the header has {len(columns)}")
        else:
            yield _row([cells[at] for at in columns], names, number)
    if columns is None:
        raise TableError(1, "the table is empty; its first line must be the header")


def read_lines(lines: Iterable[str], dimensions: Sequence[str]) -> Iterator[TableLine]:
    """Yield the lines of a table with the output objects that they stand for."""
    for row in read_table(lines, dimensions):
        output = {"pair_id": row.pair_id, "winner": row.winner, "notes": row.notes}
        yield TableLine(row.line_number, row.pair_id, output | {"criteria": dict(row.marks)})


_FIXED = ["pair_id", "winner", "notes"]


def _columns_of(header: list[str], number: int) -> list[int]:
    """Return where pair_id, winner, the criteria and the notes stand in a table."""
    # A criterion may be called like one of these; then only the contract's own order is clear.
    if len(header) >= len(_FIXED) and [*header[:2], header[-1]] == _FIXED:
        return list(range(len(header)))
    if any(header.count(name) != 1 for name in _FIXED):
        raise TableError(number, "no header; expected pair_id | winner | criteria | notes")
    pair_id, winner, notes = map(header.index, _FIXED)
    criteria = [at for at, name in enumerate(header) if name not in _FIXED]
    return [pair_id, winner, *criteria, notes]


def _criteria(names: list[str], expected: Sequence[str] | None, number: int) -> list[str]:
    if len(set(names)) < len(names):
        raise TableError(number, "a criterion stands twice in the header")
    if expected is not None and names and set(names) != set(expected):
        listed = quoted(", ".join(names))
        raise TableError(number, f"criteria {listed}; expected {quoted(', '.join(expected))}")
    return names


def _row(cells: list[str], criteria: list[str], number: int) -> TableRow:
    pair_id, winner, *marks, notes = cells
    if problem := _wrong(winner, marks):
        raise TableError(number, problem)
    named = dict(zip(criteria, cast("list[Mark]", marks), strict=True))
    return TableRow(pair_id, cast("Outcome", winner), named, notes, number)


def _wrong(winner: str, marks: Iterable[str]) -> str:
    """What is wrong with a winner or a mark; nothing if all is well."""
    if winner not in get_args(Outcome):
        return f"winner {quoted(winner)}; expected A, B, tie or uncertain"
    for mark in marks:
        if mark not in get_args(Mark):
            return f"mark {quoted(mark)}; expected A+, B+ or tie"
    return ""


_NAMED = {"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN = {escape[1]: char for char, escape in _NAMED.items()} | {"s": " "}
_UNSAFE = regexp(r"[\\|\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ESCAPE = regexp(r"\\(?:u([0-9a-f]{4})|(.?))", re.DOTALL)


def _joined(cells: Iterable[str]) -> str:
    return " | ".join(map(_escaped, cells)).strip(" ")


def _escaped(text: str) -> str:
    safe = _UNSAFE.sub(lambda match: _escape(match[0]), text)
    if safe[:1].isspace():
        safe = _escape(safe[0]) + safe[1:]
    if safe[-1:].isspace():
        safe = safe[:-1] + _escape(safe[-1])
    return safe


def _escape(char: str) -> str:
    return "\\s" if char == " " else _NAMED.get(char) or f"\\u{ord(char):04x}"


def _read_cells(text: str, number: int) -> list[str]:
    def plain(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] not in _PLAIN:
            raise TableError(number, f"{quoted(match[0])} is no escape; write a backslash as \\\\")
        return _PLAIN[match[2]]

    return [_ESCAPE.sub(plain, cell.strip()) for cell in cells_of(text)]


_NOTHING = JudgedText()
LineReading = TableReply | Ambiguous | Broken | UnknownHeader


def read_reply(
    text: str, criteria: Sequence[str], judged: JudgedText = _NOTHING
) -> LineReading | None:
    """The one verdict-table line of a judge's reply; None if there is nothing like it.

    Prose, fences, alignment rows, outer pipes and bold are stepped over, as are tables of something
    else. A header says which column is which; without one the columns are the contract's, and a
    pair_id may stand in front. Several lines with equal winner and marks are
    one. A line with as many columns as a verdict and some of its words that holds anything else
    where a winner or a mark belongs is broken, and beside one that is whole, ambiguous. Of several,
    those that a candidate wrote do not count.
    """
    rows = _rows(text, criteria)
    verdicts, broken = _gathered(rows, criteria)
    has_verdict = False
    if broken or any(not line.is_whole for line in verdicts) or len(verdicts) > 1:
        whole = _own_whole(verdicts, judged)
        has_verdict = whole is not None
        rows = _of_verdicts(rows, criteria, whole, has_verdict=has_verdict)
        verdicts, broken = _gathered(rows, criteria)
    if len(verdicts) > 1:
        verdicts = [line for line in verdicts if not judged.holds_line(line.text)] or verdicts
    rivals = [line for line in broken if line.is_rival or not has_verdict]
    if len(verdicts) > 1 or (verdicts and rivals):
        return Ambiguous()
    if verdicts:
        unknown = verdicts[0].unknown_header
        return UnknownHeader(unknown) if unknown else verdicts[0]
    return max(broken, key=lambda line: line.is_rival, default=None)


def _own_whole(verdicts: Iterable[TableReply], judged: JudgedText) -> TableReply | None:
    """The first whole verdict that is no candidate's: beside one of those nothing that the judge
    may have meant as its own is stepped over."""
    whole = (verdict for verdict in verdicts if verdict.is_whole)
    return next((verdict for verdict in whole if not judged.holds_line(verdict.text)), None)


def _rows(text: str, criteria: Sequence[str]) -> list[Row]:
    spoken = reply.without_thinking(text) if len(text) <= REPLY_BYTES else None
    return list(in_order(rows_of(spoken or ""), criteria, _is_word))


def _is_word(cell: str) -> bool:
    return any(read_cell(cell, get_args(words)) for words in (Winner, Mark))


def _gathered(
    rows: Iterable[Row], criteria: Sequence[str]
) -> tuple[list[TableReply], list[Broken]]:
    """The different verdicts among some lines, and those that are broken."""
    verdicts: list[TableReply] = []
    broken: list[Broken] = []
    for row in rows:
        readings = [
            replace(reading, text=row.text, unknown_header=row.unknown_header)
            for reading in _readings(row.cells, criteria)
        ]
        verdicts.extend(reading for reading in readings if not _same(reading, verdicts[:1]))
        if not readings and (unread := _unread(row.cells, criteria)):
            broken.append(unread)
    return verdicts, broken


def _of_verdicts(
    rows: Sequence[Row], criteria: Sequence[str], whole: TableReply | None, *, has_verdict: bool
) -> list[Row]:
    """The lines without the tables of something else; beside a verdict also without lines that can
    only be told from others by it."""
    kept: list[Row] = []
    for block in blocks(rows, 1 + len(criteria)):
        if _is_of_something_else(block, criteria, has_verdict=has_verdict):
            continue
        head = next(filter(None, (header_of(row, criteria) for row in block)), None)
        kept += [row for row in block if not _repeats(row, head, whole)]
    return kept


def _is_of_something_else(
    block: Sequence[Row], criteria: Sequence[str], *, has_verdict: bool
) -> bool:
    """Whether neighbouring lines are a table with too few columns for a verdict, or one with a line
    for each criterion. A line cut short stands alone, under no alignment row of its own, or under
    a header that is cut too."""
    if len(block[0].cells) <= len(criteria):
        if any(is_cut_header(row, criteria) for row in block):
            return False
        return has_rule(block) or (has_verdict and len({row.text for row in block}) > 1)
    if not is_by_criterion(block, criteria):
        return False
    return not any(line.is_whole for line in _gathered(block, criteria)[0])


def _repeats(row: Row, head: Header | None, whole: TableReply | None) -> bool:
    """Whether a line gives the marks of a verdict, under a header that has no winner."""
    if whole is None or head is None or head.has_winner:
        return False
    cells = row.words[head.first_mark : head.first_mark + len(whole.marks)]
    marks = [_word(cell, get_args(Mark)) for cell in cells]
    return marks == list(whole.marks.values()) and not _readings(row.cells, list(whole.marks))


def nearest_line(text: str, criteria: Sequence[str]) -> Broken | None:
    """The line of a reply without a verdict that is most likely meant as one, by the header above
    it, or by its columns and a word of a verdict among them; None if that is not sure."""
    head: Header | None = None
    under_header: list[Broken] = []
    others: list[Broken] = []
    for row in _of_verdicts(_rows(text, criteria), criteria, None, has_verdict=False):
        head_here = header_of(row, criteria)
        if head_here or has_rule([row]):
            head = head_here or head
        elif head and head.has_winner:
            broken = _broken_from(row.cells[head.first_mark - 1 :], criteria)
            under_header += [broken] if broken else []
        else:
            others += _meant(row, criteria)
    if under_header:
        return under_header[0]
    return others[0] if len(set(others)) == 1 else None


def _meant(row: Row, criteria: Sequence[str]) -> list[Broken]:
    """A line that has the columns of a verdict and no more, and a winner or a tie in its place. One
    that is as near to a verdict with a pair_id as without may be either."""
    readings: list[Broken] = []
    for at in (1, 0):
        words = row.words[at:]
        if len(words) - len(criteria) not in (1, 2):
            continue
        broken = _broken_from(row.cells[at:], criteria)
        if broken and len(broken.cells) <= len(criteria):
            readings.append(broken)
    fewest = min((broken.unread for broken in readings), default=0)
    nearest = [broken for broken in readings if broken.unread == fewest]
    return nearest if len(nearest) == 1 else []


def prose_of(text: str) -> str:
    """What a reply says beside the lines of its table."""
    spoken = reply.without_thinking(text) or ""
    return "\n".join(row for row in spoken.splitlines() if not has_bars(row))


def _same(reading: TableReply, first: Sequence[TableReply]) -> bool:
    return any((it.winner, it.marks) == (reading.winner, reading.marks) for it in first)


def _readings(cells: Sequence[str], criteria: Sequence[str]) -> list[TableReply]:
    """How a line can be read, with and without a pair_id; incomplete only if none is complete."""
    both = (_reading(cells, criteria, at) for at in (0, 1))
    readings = [reading for reading in both if reading]
    complete = [reading for reading in readings if None not in reading.marks.values()]
    return complete or readings


def _reading(cells: Sequence[str], criteria: Sequence[str], at: int) -> TableReply | None:
    """The line with its winner in column `at`; None if it is no verdict so."""
    end = at + 1 + len(criteria)
    tidy = [cell.strip(DECOR) for cell in cells[:end]]
    # Without a pair_id the winner cannot be missing: nothing would tell the line from others.
    if len(tidy) <= at or not (tidy[at] or at):
        return None
    words = [_word(cell, allowed) for cell, allowed in _columns(tidy, at)]
    if "" in words or not _is_verdict(tidy, words[0], words[1:], criteria):
        return None
    marks = cast("list[Mark | None]", words[1:] + [None] * (1 + len(criteria) - len(words)))
    notes = "|".join(cells[end:]).strip().replace("\\|", "|")
    named = dict(zip(criteria, marks, strict=True))
    columns = zip(("winner", *criteria), words, tidy[at:], strict=False)
    mended = tuple(name for name, word, cell in columns if (word or "") != cell)
    return TableReply(cast("Winner | None", words[0]), named, notes or None, mended)


def _columns(tidy: Sequence[str], at: int) -> Iterator[tuple[str, Sequence[str]]]:
    """The cells of winner and marks, each with the words that may stand in it."""
    for number, cell in enumerate(tidy[at:]):
        yield cell, get_args(Mark) if number else get_args(Winner)


def _is_verdict(
    tidy: Sequence[str], winner: str | None, marks: Sequence[str | None], criteria: Sequence[str]
) -> bool:
    """Whether enough of a line is there. A cut one must hold a mark, and not begin like a line
    about one criterion."""
    if len(marks) == len(criteria):
        return bool(winner or any(marks))
    return any(marks) and not tidy[0].startswith(tuple(criteria))


def _word(cell: str, allowed: Sequence[str]) -> str | None:
    """The word in a cell: None if the cell is empty, nothing if it holds anything else."""
    if not cell:
        return None
    reading = read_cell(cell, allowed)
    return reading.word if reading else ""


def _unread(cells: Sequence[str], criteria: Sequence[str]) -> Broken | None:
    """The cells of a line that keep it from being a verdict; None if it has nothing of one: too
    few columns, or no side's mark."""
    fewest, best = 0, None
    for at in (1, 0):
        words = [cell.strip(DECOR) for cell in cells[at : at + 1 + len(criteria)]]
        marks = [_word(cell, get_args(Mark)) for cell in words[1:]]
        if len(marks) < len(criteria) or not {"A+", "B+"} & set(marks):
            continue
        broken = _broken_from(cells[at:], criteria)
        if broken and (best is None or broken.unread < fewest):
            is_rival = bool(_word(words[0], get_args(Winner))) or 2 * marks.count("") < len(marks)
            fewest, best = broken.unread, replace(broken, is_rival=is_rival)
    return best


def _broken_from(cells: Sequence[str], criteria: Sequence[str]) -> Broken | None:
    """A line with its winner in the first cell, and the cells that hold no word of their column;
    None if there are too few, or nothing but blanks among those."""
    words = [cell.strip(DECOR) for cell in cells[: 1 + len(criteria)]]
    if len(words) <= len(criteria):
        return None
    columns = zip(("winner", *criteria), _columns(words, 0), strict=True)
    faults = [
        UnreadCell(name, cell, allowed)
        for name, (cell, allowed) in columns
        if not _word(cell, allowed)
    ]
    broken = Broken(tuple(faults))
    return broken if broken.unread else None
