"""The verdict table: one line a pair, `pair_id | winner | C1 | ... | notes`, written and read.

A table that was written reads back exactly. Within a cell a backslash begins an escape: `\\|`,
`\\\\`, `\\n`, `\\r`, `\\t`, `\\s` for a space at either end of the cell, and `\\uXXXX` for other
line breaks, control characters, lone surrogates, and other white space at either end. White space
around a cell is no part of it.

A judge's reply must hold exactly one such line, with or without a header. `read_reply` is total,
takes linear time, and never guesses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice, pairwise
from typing import Any, NamedTuple, cast

from evenhand.errors import quote
from evenhand.kinds.kind import TableError, TableLine
from evenhand.kinds.pairwise.verdict import MARKS, OUTCOMES, WINNERS, Mark, Winner
from evenhand.kinds.phrases import any_of
from evenhand.kinds.reply import BAR, without_thinking
from evenhand.limits import REPLY_BYTES
from evenhand.text import INVISIBLE
from evenhand.words import Names, Sentence

_CELL = re.compile(r"(?:[^|\\]++|\\.?)*+", re.DOTALL)


def _split_cells(text: str) -> list[str]:
    """Return the text cut at every `|` that is not escaped."""
    cells: list[str] = []
    at = -1
    while at < len(text):
        cell = cast("re.Match[str]", _CELL.match(text, at + 1))
        cells.append(cell[0])
        at = cell.end()
    return cells


# Tables of verdicts


def header(criteria: Sequence[str]) -> str:
    """Return the first line of a table."""
    if len(set(criteria)) < len(criteria):
        raise ValueError(f"criteria {quote(', '.join(criteria))}: one stands twice")
    return _join_cells(["pair_id", "winner", *criteria, "notes"])


def line(pair_id: str, winner: str, marks: Sequence[str], notes: str) -> str:
    """Return one pair as a line, without its line break."""
    if problem := _find_problem(winner, marks):
        raise ValueError(problem)
    return _join_cells([pair_id, winner, *marks, notes])


def sides(first: str, second: str) -> str:
    """Return the line that says which candidates A and B are from here on. It has no bar."""
    return _join_cells([f"# A = {first}, B = {second}"])


def read_lines(lines: Iterable[str], criteria: Sequence[str] | None = None) -> Iterator[TableLine]:
    """Yield the lines of a table with the output objects that they are; blank lines, and those that
    begin with # and have no bar, are stepped over.

    The first line is the header. Raises TableError at a line that is wrong, and if the header has
    other criteria than those given; it may have none, as where votes from another tool name a
    winner and no marks.
    """
    names: list[str] = []
    for number, text in enumerate(lines, 1):
        if not text.strip() or (text.lstrip()[0] == "#" and len(_split_cells(text)) == 1):
            continue
        cells = _read_cells(text if names else text.removeprefix("\ufeff"), number)
        if not names:
            _check_header(cells, criteria, number)
            names = cells
        elif len(cells) != len(names):
            raise TableError(number, Sentence("kinds.table_columns", n=len(cells), of=len(names)))
        else:
            pair_id, winner, *marks, notes = cells
            if problem := _find_problem(winner, marks):
                raise TableError(number, problem)
            output = {"pair_id": pair_id, "winner": winner, "notes": notes}
            named = dict(zip(names[2:-1], marks, strict=True))
            yield TableLine(number, pair_id, output | {"criteria": named})
    if not names:
        raise TableError(1, Sentence("kinds.table_empty"))


def _check_header(names: list[str], expected: Sequence[str] | None, number: int) -> None:
    if [*names[:2], names[-1]] != ["pair_id", "winner", "notes"]:
        raise TableError(number, Sentence("kinds.table_header"))
    criteria = names[2:-1]
    if len(set(criteria)) < len(criteria):
        raise TableError(number, Sentence("kinds.table_twice"))
    if expected is not None and criteria and set(criteria) != set(expected):
        raise TableError(
            number,
            Sentence("kinds.table_criteria", names=Names(criteria), expected=Names(expected)),
        )


def _find_problem(winner: str, marks: Iterable[str]) -> str:
    """Return what is wrong with a winner or a mark; nothing if all is well."""
    if winner not in OUTCOMES:
        return Sentence("kinds.table_winner", winner=winner)
    wrong = [mark for mark in marks if mark not in MARKS]
    return Sentence("kinds.table_mark", mark=wrong[0]) if wrong else ""


_ESCAPES = {"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r", "\t": "\\t", " ": "\\s"}
_PLAIN = {escape[1]: char for char, escape in _ESCAPES.items()}
_UNSAFE = re.compile(r"\A\s|\s\Z|[\\|\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|(.?))", re.DOTALL)


def _join_cells(cells: Iterable[str]) -> str:
    def escape(match: re.Match[str]) -> str:
        return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}"

    return " | ".join(_UNSAFE.sub(escape, cell) for cell in cells).strip(" ")


def _read_cells(text: str, number: int) -> list[str]:
    def unescape(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] not in _PLAIN:
            raise TableError(number, Sentence("kinds.table_escape", escape=match[0]))
        return _PLAIN[match[2]]

    return [_ESCAPE.sub(unescape, cell.strip()) for cell in _split_cells(text)]


# Cells of a judge

_DECOR = " \t\u00a0\u3000`*_\"'“”„‘’«»「」『』✅🏆⭐"
_UNSEEN = re.compile(f'[`*"“”„«»「」『』{INVISIBLE}]')
_ALONE = "(?![a-zа-яё0-9])"
NOTES_LINES = 20
LONGEST = 300
"""No cell with a winner or a mark is longer, remark included."""


class _Side(NamedTuple):
    """The patterns of one side of a pair: its names, its number, and what a remark calls it."""

    name: str
    number: str
    mention: re.Pattern[str]


def _side(letters: str, article: str, number: int, ordinal: str) -> _Side:
    called = any_of("cell_called") + r"(?:[ #_-]| ?no\.? ?)?"
    by_number = rf"{called}{number}{_ALONE}"
    name = rf"(?:(?:{called})?[{letters}]{_ALONE}|{by_number}|{ordinal})"
    capitals = rf"(?<![A-Za-zА-яЁё])(?:[{letters.upper()}](?![A-Za-zА-яЁё])|{article})"
    mention = re.compile(rf"{capitals}|(?i:{by_number}|(?<!\w){ordinal})")
    return _Side(name, str(number), mention)


# Cyrillic and Greek letters that look like the Latin ones are read as these.
_A = _side("aаα", "a(?= (?:is|wins))", 1, any_of("cell_first"))
_B = _side("bвβ", "b(?![A-Za-z])", 2, any_of("cell_second"))


def _wins(side: _Side, other: _Side) -> str:
    """Return the pattern of what says that one side is the better one."""
    name, better, over = side.name, any_of("cell_better"), any_of("cell_over")
    return (
        rf"{name} ?{any_of('cell_above')} ?{other.name}|{other.name} ?<+ ?{name}"
        rf"|{name}{over.replace('@', other.name)}"
        rf"|{any_of('cell_wins')} ?[:—-]? ?{name}|{name}(?: ?{better})?"
    )


def _met(named: str = "") -> str:
    """Return the pattern of a yes or no for each side, which are named, or with `?` may be."""
    a, b = (rf"(?:{side.name}[ :はー—-]*){named}{any_of('cell_yes')}" for side in (_A, _B))
    return rf"{a} ?[/,;、] ?{b}"


@cache
def _support(word: str) -> re.Pattern[str]:
    """Return the pattern of a remark that says the same again, or what each side meets."""
    wins = _wins(_A, _B) if word == "A" else _wins(_B, _A)
    return re.compile(rf"(?:{wins}|{_met()})[ )]*", re.IGNORECASE)


@cache
def _cell(*, is_mark: bool) -> re.Pattern[str]:
    """Return the pattern of a cell: what each candidate meets, the word, and a remark."""
    a, b = _wins(_A, _B), _wins(_B, _A)
    if is_mark:
        a, b = rf"{_A.name} ?\+|{a}", rf"{_B.name} ?\+|{b}"
    both = "|".join(rf"{x.name} ?(?:=+|≈) ?{y.name}" for x, y in ((_A, _B), (_B, _A)))
    tie = rf"{any_of('cell_tie')}(?!\w)|{both}"
    met = rf"{_met('?')}[ ,:;.、=→>—–-]*"
    start = rf" ?[(:;,.、。—–→]| -|<br ?/?>| (?={any_of('cell_by')} )|(?<=\+) ?(?=\w)"
    word = rf"(?:(?P<tie>{tie})|(?P<a>{a})|(?P<b>{b}))"
    return re.compile(rf"(?:{met})?{word}(?:(?:{start}) ?(?P<remark>.*\w.*))?", re.IGNORECASE)


_CLAUSE = re.compile(r"[,;.、。()—–]")
_NOT_SO = re.compile(
    rf"(?<!\w)(?:{any_of('cell_tie')}|{any_of('cell_not')})(?!\w)|[不差负输劣負]|ない",
    re.IGNORECASE,
)
_NO = re.compile(rf"(?<!\w){any_of('cell_no')}(?!\w)|[没无]|なし", re.IGNORECASE)
_FAULT = re.compile(any_of("cell_fault"), re.IGNORECASE)
_ANSWER = re.compile(rf"{any_of('cell_yes')}(?!\w)(?! ?/)", re.IGNORECASE)


def _turns(remark: str, word: str) -> bool:
    """Return True if a remark may turn the word before it round: it denies something, finds a fault
    with the side that won, or speaks of the other as of anything but one fault."""
    own, other = (_A, _B) if word == "A" else (_B, _A)
    for clause in _CLAUSE.split(remark):
        of_own, of_other = own.mention.search(clause), other.mention.search(clause)
        rest, faults = _FAULT.subn("", clause)
        if word == "tie":
            against: list[object] = [of_own, of_other]
        elif of_other:
            against = [of_own, faults != 1, _NOT_SO.search(rest), _NO.search(rest)]
        else:
            against = [of_own and faults, _NOT_SO.search(clause)]
        if any(against):
            return True
    return False


def read_cell(text: str, allowed: Sequence[str]) -> str | None:
    """Return the one of the allowed words that a cell holds, in the words that prompts ask for;
    None if it holds none, or if its remark may turn it round."""
    bare = text.strip(_DECOR)
    if bare in allowed or len(bare) > LONGEST:
        return bare if bare in allowed else None
    plain = unicodedata.normalize("NFKC", _UNSEEN.sub("", bare)).strip(_DECOR + ".。")
    is_mark = "A+" in allowed
    if not is_mark and plain in (_A.number, _B.number):
        return "A" if plain == _A.number else "B"
    reading = _cell(is_mark=is_mark).fullmatch(" ".join(plain.split()))
    if reading is None:
        return None
    word = "tie" if reading["tie"] else "A" if reading["a"] else "B"
    remark = reading["remark"] or ""
    if word != "tie" and _support(word).fullmatch(remark):
        remark = ""
    # `A: no` says if A meets a criterion.
    is_answer = (
        word != "tie" and _ANSWER.match(remark) and "+" not in reading[0][: reading.start("remark")]
    )
    if is_answer or _turns(remark, word):
        return None
    return word if word == "tie" or not is_mark else f"{word}+"


# The line of a judge's reply


class UnreadCell(NamedTuple):
    """A cell without a winner or mark: its column, its text, which may be blank, and the words
    that may stand there."""

    column: str
    text: str
    allowed: Sequence[str]


class TableReply(NamedTuple):
    """The one verdict line of a reply. Where some cells cannot be read there is no verdict."""

    winner: Winner | None
    marks: Mapping[str, Mark | None]
    notes: str
    text: str
    """The line as it was written."""
    mended: tuple[str, ...] = ()
    """The columns read from other words than the contract's own: `winner`, or a criterion."""
    unread: tuple[UnreadCell, ...] = ()


class UnknownHeader(NamedTuple):
    """A header that does not say which column is which."""

    text: str


class Ambiguous(NamedTuple):
    """Different verdicts in one reply, or a line that can be read in two ways."""


LineReading = TableReply | UnknownHeader | Ambiguous
_WIDE_BAR = re.compile("[｜│]")
_UP_TO_BAR = re.compile(r"([^|]{1,2000})\|\s*?(?:\n|\Z)")
_BREAK = re.compile(r"\s*(?:<br ?/?>|[\r\n])\s*")
_RULE = re.compile(r"\s*+:?[-–—=]++:?\s*+")


def read_reply(text: str, criteria: Sequence[str]) -> LineReading | None:
    """Return the one verdict line of a judge's reply; None if there is nothing like it.

    Prose, fences, alignment rows, outer pipes and emphasis are stepped over. A header says which
    column is which; without one the columns are the contract's, and the pair_id may be left out.
    Several lines with equal winner and marks are one. Beside a verdict, any other line that may be
    meant as one makes the reply ambiguous: one with as many columns, or cut short after a winner
    and a mark.
    """
    columns: Sequence[int] = ()
    unknown, others, found = "", 0, list[TableReply]()
    rows = _split_lines(text) if len(text) <= REPLY_BYTES else []
    for at, row in enumerate(rows):
        cells = _row_cells(row) if BAR.search(row) else []
        if all(map(_RULE.fullmatch, cells)):
            continue
        words = [(read_cell(cell, WINNERS), read_cell(cell, MARKS)) for cell in cells]
        if names := _find_names(cells, criteria):
            columns, unknown = names, ""
        elif not any(map(any, words)):
            unknown = row.strip() if len(cells) > len(criteria) else unknown
        elif readings := _read_row(row, cells, criteria, columns):
            found += [
                _join_notes(reading, islice(rows, at + 1, at + NOTES_LINES)) for reading in readings
            ]
        else:
            # A side alone is no mark here: it heads a column of another table.
            others += any(
                one[0] and other[1] and other[0] in (None, "tie") for one, other in pairwise(words)
            )
    whole = {
        (each.winner, *each.marks.values()): each for each in reversed(found) if not each.unread
    }
    broken = [each for each in found if each.unread]
    if len(whole) > 1 or (whole and (broken or others)):
        return Ambiguous()
    if whole or broken:
        return UnknownHeader(unknown) if unknown else [*whole.values(), *broken][0]
    return None


def split_prose(text: str) -> str:
    """Return the lines of a reply that have no bars."""
    return "\n".join(row for row in _split_lines(text) if BAR.search(row) is None)


def _split_lines(text: str) -> list[str]:
    return (without_thinking(text) or "").splitlines()


def _join_notes(reading: TableReply, below: Iterable[str]) -> TableReply:
    """Return the reading of a line with its notes on one line. Between outer bars they go on below,
    up to the second bar."""
    row, notes = reading.text.strip(), [reading.notes]
    if row[:1] == "|" != row[-1]:
        more = _UP_TO_BAR.match("\n".join(below))
        notes += [more[1]] if more else []
    joined = _BREAK.sub(" ", "\n".join(notes)).strip()
    if joined == reading.notes:
        return reading
    return reading._replace(notes=joined, mended=(*reading.mended, "notes"))


def _row_cells(row: str) -> list[str]:
    """Return the cells of a line without the outer pipes of Markdown."""
    bare = (row if "|" in row else _WIDE_BAR.sub("|", row)).strip().strip("`*_> ")
    cells = _split_cells(bare.removeprefix("|"))
    return cells if len(cells) == 1 or cells[-1].strip() else cells[:-1]


def _find_names(cells: Sequence[str], criteria: Sequence[str]) -> list[int]:
    """Return the columns of winner, criteria and notes in a header that names each criterion once,
    nothing of another line; the notes are -1 where there are none. A prompt in another language may
    call the winner and the notes by other names, if the columns are in the contract's order."""
    names = [cell.strip(_DECOR).casefold() for cell in cells]
    found = [_find_columns(names, name.casefold()) for name in criteria]
    if any(len(each) != 1 for each in found):
        return []
    columns = [each[0] for each in found]
    notes = names.index("notes") if "notes" in names else -1
    if names.count("winner") == 1:
        return [names.index("winner"), *columns, notes]
    first = columns[0] if columns else 0
    after = first + len(columns)
    if "winner" in names or first not in (1, 2) or columns != list(range(first, after)):
        return []
    return [first - 1, *columns, after if after < len(names) else -1]


def _find_columns(names: Sequence[str], criterion: str) -> list[int]:
    """Return the columns called by a criterion; where none is, those whose name begins with it."""
    return [at for at, name in enumerate(names) if name == criterion] or [
        at
        for at, name in enumerate(names)
        if name.startswith(criterion) and not name[len(criterion)].isalnum()
    ]


def _read_row(
    row: str, cells: Sequence[str], criteria: Sequence[str], columns: Sequence[int]
) -> list[TableReply]:
    """Return the readings of a line with bars: by its header, else with and without a pair_id; if
    none is whole, the one with the fewest cells that cannot be read. None of a line too short."""
    bare = [range(at, at + len(criteria) + 2) for at in (1, 0)]
    ways = [way for way in ([columns] if columns else bare) if len(cells) >= max(way)]
    readings = [_read_way(row, cells, criteria, way) for way in ways]
    whole = [reading for reading in readings if not reading.unread]
    # A number before a winner is the pair's id.
    if len(whole) > 1 and cells[0].strip(_DECOR) in (_A.number, _B.number):
        return whole[:1]
    return whole or sorted(readings, key=lambda reading: len(reading.unread))[:1]


def _read_way(
    row: str, cells: Sequence[str], criteria: Sequence[str], way: Sequence[int]
) -> TableReply:
    """Return the reading of a line whose columns of winner, criteria and notes these are."""
    last = max(way)
    # The last column takes the rest: notes may have bars.
    given = dict(enumerate([*cells[:last], "|".join(cells[last:])]))
    *judged, notes = (given.get(at, "").strip() for at in way)
    words: list[Any] = []
    mended, unread = list[str](), list[UnreadCell]()
    for name, cell in zip(("winner", *criteria), judged, strict=True):
        allowed: Sequence[str] = MARKS if words else WINNERS
        words.append(read_cell(cell, allowed))
        if words[-1] is None:
            unread.append(UnreadCell(name, cell, allowed))
        elif words[-1] != cell.strip("`*_ "):
            mended.append(name)
    marks = dict(zip(criteria, words[1:], strict=True))
    return TableReply(words[0], marks, notes.replace("\\|", "|"), row, tuple(mended), tuple(unread))
