"""The verdict table reads back as it was written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.kinds.kind import TableError
from evenhand.kinds.pairwise.table import header, line, read_lines
from tests.unit.kinds.tables import lines


class TableRow(NamedTuple):
    pair_id: str
    winner: str
    marks: dict[str, str]
    notes: str


CRITERIA = lines("""
C1
C2
C3
C4
C5
""")
HEADER = "pair_id | winner | C1 | C2 | C3 | C4 | C5 | notes"
ODD = "|\\ \t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\u00a0\u3000\ufeff\u200b\x00nrstuA+é語ж😀\ud800"
TEXTS = st.text(st.sampled_from(ODD), max_size=12) | st.text(st.characters(), max_size=12)
MARKS = st.sampled_from(["A+", "B+", "tie"])
WINNERS = st.sampled_from(["A", "B", "tie", "uncertain"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[TableRow]]:
    criteria = draw(st.lists(TEXTS, max_size=4, unique=True))
    marks = st.fixed_dictionaries(dict.fromkeys(criteria, MARKS))
    return criteria, draw(st.lists(st.builds(TableRow, TEXTS, WINNERS, marks, TEXTS), max_size=4))


def written(criteria: list[str], rows: list[TableRow]) -> list[str]:
    lines = (
        line(row.pair_id, row.winner, [row.marks[c] for c in criteria], row.notes) for row in rows
    )
    return [header(criteria), *lines]


def rows_in(lines: Iterable[str], criteria: list[str] | None = None) -> list[TableRow]:
    outputs = [row.output for row in read_lines(lines, criteria)]
    return [TableRow(o["pair_id"], o["winner"], o["criteria"], o["notes"]) for o in outputs]


@given(tables())
@example((["C1"], [TableRow("", "A", {"C1": "tie"}, "")]))
@example((["C1"], [TableRow(" ", "A", {"C1": "tie"}, "\\")]))
@example(([], [TableRow("\ufeffp", "tie", {}, " \u3000")]))
@example((["pair_id", "winner", "notes", ""], []))
def test_a_table_reads_back_exactly(table):
    criteria, rows = table
    lines = written(criteria, rows)
    assert (rows_in(lines)) == (rows_in(lines, criteria)) == rows


@given(tables(), st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_table_survives_a_file_and_any_way_to_split_lines(table, ending):
    criteria, rows = table
    text = "".join(each + ending for each in written(criteria, rows))
    assert len(text.splitlines()) == len(rows) + 1
    stored = text.encode("utf-8-sig").decode()
    assert (rows_in(stored.splitlines(keepends=True))) == rows


@given(TEXTS, TEXTS)
def test_different_texts_are_written_differently(one, other):
    same = line(one, "A", [], "") == line(other, "A", [], "")
    assert same == (one == other)


@pytest.mark.parametrize(
    ("notes", "cell"),
    [
        ("plain, with / and `ticks`", "plain, with / and `ticks`"),
        ("a | b", "a \\| b"),
        ("C:\\new", "C:\\\\new"),
        ("one\ntwo\r\nthree", "one\\ntwo\\r\\nthree"),
        (" x ", "\\sx\\s"),
        ("a\u2028b", "a\\u2028b"),
        ("\u3000словом", "\\u3000словом"),
        ("結論。", "結論。"),
    ],
)
def test_notes_are_written_so(notes, cell):
    assert line("p1", "A", ["A+", "tie"], notes) == f"p1 | A | A+ | tie | {cell}"


def test_the_header_is_that_of_the_contract():
    assert header(CRITERIA) == HEADER


def test_white_space_around_cells_and_blank_lines_are_no_part_of_a_table():
    lines = ["", "\ufeffpair_id|winner|\tC1 |notes\n", "\n", "  p1|A|A+|  x y\t\n", "   "]
    assert (rows_in(lines)) == [TableRow("p1", "A", {"C1": "A+"}, "x y")]


def test_rows_come_as_they_are_read():
    lines = iter([header(["C1"]), "p1 | A | A+ |", "p2 | ? | A+ |"])
    rows = read_lines(lines)
    assert next(rows).unit == "p1"
    with pytest.raises(TableError):
        next(rows)


@pytest.mark.parametrize(
    ("lines", "number", "message"),
    [
        ([], 1, "the table is empty"),
        (["", "\n"], 1, "the table is empty"),
        (["p1 | A | A+ | x"], 1, "no header"),
        (["pair_id | winner"], 1, "no header"),
        (["pair_id | comment | winner"], 1, "no header"),
        (["pair_id | winner | notes | notes | C1"], 1, "no header"),
        (["pair_id | winner | C1 | C1 | notes"], 1, "stands twice"),
        (["pair_id | winner | C1 | notes", "p1 | A | A+"], 2, "3 columns; the header has 4"),
        (["pair_id | winner | C1 | notes", "p1 | A | A+ | a | b"], 2, "5 columns"),
        (["pair_id | winner | C1 | notes", "", "p1 | a | A+ | x"], 3, 'winner "a"; expected A, B'),
        (["pair_id | winner | C1 | notes", "p1 | | A+ | x"], 2, 'winner ""'),
        (["pair_id | winner | C1 | notes", "p1 | A | A | x"], 2, 'mark "A"; expected A+'),
        (["pair_id | winner | C1 | notes", "p1 | A | TIE | x"], 2, 'mark "TIE"'),
        (["pair_id | winner | C1 | notes", "p1 | A | tie | \\q"], 2, '"\\q" is no escape'),
        (["pair_id | winner | C1 | notes", "p1 | A | tie | a\\"], 2, '"\\" is no escape'),
        (["pair_id | winner | C1 | notes", "p1 | A | tie | \\u12"], 2, "is no escape"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(lines, number, message):
    with pytest.raises(TableError) as caught:
        (rows_in(lines))
    assert caught.value.line_number == number
    assert message in caught.value.message
    assert str(caught.value) == f"line {number}: {caught.value.message}"


def test_a_table_of_other_criteria_is_refused():
    with pytest.raises(TableError, match=r'line 1: criteria "C1"; expected "C1, C2"'):
        (rows_in([header(["C1"])], ["C1", "C2"]))


@pytest.mark.parametrize(
    ("winner", "marks"), [("C", ["tie"]), ("A", ["+A"]), ("", []), ("Tie", [])]
)
def test_what_could_not_be_read_back_is_not_written(winner, marks):
    with pytest.raises(ValueError, match="expected"):
        line("p", winner, marks, "")


def test_a_table_is_read_by_its_header():
    head = "pair_id | winner | C5 | C4 | C3 | C2 | C1 | notes"
    rows = rows_in([head, "p | A | B+ | tie | A+ | tie | B+ | n"], CRITERIA)
    marks = dict(
        zip(
            CRITERIA,
            lines("""
B+
tie
A+
tie
B+
"""),
            strict=True,
        )
    )
    assert rows == [TableRow("p", "A", marks, "n")]


def test_a_header_names_each_criterion_once():
    with pytest.raises(ValueError, match="stands twice"):
        header(["C1", "C1"])
