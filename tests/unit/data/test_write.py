"""Files written whole or not at all, and what tables look like."""

from __future__ import annotations

import csv
import json
import os
import stat
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenhand.data import rows, write
from evenhand.data.cells import guard, unguard
from evenhand.errors import DataError, UsageError
from evenhand.jsontext import dump, parse
from tests.cases import cases
from tests.sentences import refused

ENDINGS = ["jsonl", "json", "csv", "parquet"]
ALL_ENDINGS = [*ENDINGS, *(f"{ending}.gz" for ending in ENDINGS)]


def _breaking():
    yield {"a": 1}
    raise RuntimeError("the rows end badly")


@pytest.mark.parametrize("ending", ALL_ENDINGS)
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="end badly"):
        write(path, _breaking())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("ending", ALL_ENDINGS)
def test_rows_are_counted_and_the_same_rows_give_the_same_bytes(tmp_path, ending):
    held = [{"a": "x", "b": {"c": 1}}, {"a": "y"}]
    one, other = tmp_path / f"one.{ending}", tmp_path / f"other.{ending}"
    assert write(one, iter(held)) == write(other, held) == 2
    assert one.read_bytes() == other.read_bytes()
    assert len(list(rows(one))) == 2
    assert sorted(tmp_path.iterdir()) == [one, other]


@pytest.mark.parametrize("ending", ALL_ENDINGS)
def test_no_rows_make_a_file_without_rows(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    assert write(path, []) == 0
    with refused(DataError, "data.file_without_rows"):
        list(rows(path))


def test_a_written_file_has_the_usual_rights_and_a_link_stays_a_link(tmp_path):
    usual, target, link = tmp_path / "usual", tmp_path / "target.jsonl", tmp_path / "a.jsonl"
    usual.touch()
    link.symlink_to(target)
    write(link, [{"a": 1}])
    assert link.is_symlink()
    assert target.read_text() == '{"a":1}\n'
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


def test_a_full_or_closed_disk_is_a_usage_error(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with refused(UsageError, "data.unwritable", "No space left"):
        write(tmp_path / "a.jsonl", [{}])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("value", [float("nan"), "\ud800", [float("inf")]])
def test_what_json_cannot_hold_is_refused_with_the_row(tmp_path, ending, value):
    with pytest.raises(DataError) as caught:
        write(tmp_path / f"a.{ending}", [{"a": "x"}, {"a": value}])
    key = "data.surrogate_in_row" if value == "\ud800" else "data.row_not_json"
    assert (caught.value.key, caught.value.what.values["number"]) == (key, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_table_has_the_columns_of_all_rows(tmp_path):
    path = tmp_path / "a.csv"
    write(path, [{"a": {"b": "x", "e": {}}, "l": [1, {"m": "é"}]}, {"c": True, "n": parse("1.50")}])
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["a.b", "l", "c", "n"],
            ["x", '[1,{"m":"é"}]', "", ""],
            ["", "", "true", "1.50"],
        ]


def test_an_object_that_is_null_in_some_rows_has_no_column_of_its_own(tmp_path):
    path = tmp_path / "a.csv"
    write(path, [{"output": None, "r": None}, {"output": {"score": 1}, "r": None}])
    assert path.read_bytes() == b"r,output.score\r\n,\r\n,1\r\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@cases
def test_rows_that_make_no_table_are_refused(tmp_path, ending, held, key):
    with refused(DataError, key):
        write(tmp_path / f"a.{ending}", held)


FORMULA_STARTS = [
    *("=", "+", "-", "@", "\t", "\r", "\n", "'=", "'\t", "''="),
    *("＝", "＋", "－", "＠", "'＝", "﹦", "﹢", "﹣", "﹫"),
    *(" =", "\u3000＝", "\u00a0+", "\ufeff=", "\u200b=", "' @", "' ="),
]
"""What spreadsheets take for a formula, also of full width, small or after blanks, and such a text
with the guard itself before it."""


@pytest.mark.parametrize("start", FORMULA_STARTS)
def test_no_text_cell_starts_a_formula_but_numbers_stay_numbers(tmp_path, start):
    path = tmp_path / "a.csv"
    write(path, [{f"{start}h": f"{start}1", "n": -5}])
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [[f"'{start}h", "n"], [f"'{start}1", "-5"]]


@pytest.mark.parametrize(
    ("values", "type_name", "stored"),
    [
        ([1, 2, None], "int64", [1, 2, None]),
        ([1, 2.5], "double", [1.0, 2.5]),
        ([parse("1.50"), 3], "double", [1.5, 3.0]),
        ([2**53 + 1, 1], "int64", [2**53 + 1, 1]),
        ([2**70], "string", [str(2**70)]),
        ([True, None], "bool", [True, None]),
        ([True, 1], "string", ["true", "1"]),
        (["x", 1, [1]], "string", ["x", "1", "[1]"]),
        ([None], "string", [None]),
    ],
)
def test_a_parquet_column_is_typed_by_all_its_values(tmp_path, values, type_name, stored):
    path = tmp_path / "a.parquet"
    write(path, [{"a": {"b": value}} for value in values])
    column = pq.read_table(path).column("a.b")
    assert str(column.type) == type_name
    assert column.to_pylist() == stored


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    """So does a device: a file must not take the place of /dev/null."""
    pipe = tmp_path / "rows.jsonl"
    os.mkfifo(pipe)
    with refused(UsageError, "data.pipe_without_reader"):
        write(pipe, [{"a": 1}])
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as source:
        assert write(pipe, [{"a": 1}]) == 1
        assert parse(source.read().decode()) == {"a": 1}
    assert pipe.is_fifo()


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FORMULA = st.text("＝＠ ='+-@\t\r\n\",x", max_size=6) | st.text("'=", max_size=4)
SPELLED = st.sampled_from(["1.50", "1e3", "-0", "0.10", "1E-7"]).map(parse)
SCALAR = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    SCALAR | SPELLED | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ROWS = st.lists(st.dictionaries(TEXT, JSON, max_size=4), min_size=1, max_size=6)
NAME = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters=".;\t\0"), min_size=1)
    .map(str.strip)
    .filter(bool)
)
CELL = TEXT | FORMULA


def _back(ending, held):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{ending}"
        assert write(path, held) == len(held)
        return [row.value for row in rows(path)]


@pytest.mark.parametrize("ending", ["jsonl", "json", "jsonl.gz"])
@settings(deadline=None)
@given(held=ROWS)
def test_json_comes_back_byte_for_byte(ending, held):
    assert list(map(dump, _back(ending, held))) == list(map(dump, held))


@settings(deadline=None)
@given(held=ROWS, indent=st.none() | st.integers(0, 3), ascii_only=st.booleans())
def test_an_array_from_another_tool_is_read_as_that_tool_reads_it(held, indent, ascii_only):
    text = json.dumps(held, indent=indent, ensure_ascii=ascii_only)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        path.write_text(text, encoding="utf-8", newline="")
        assert [row.value for row in rows(path)] == json.loads(text)


@st.composite
def _tables(draw):
    """Rows of one shape: some columns plain, some inside an object."""
    names = draw(st.lists(NAME.filter(str.strip), min_size=2, max_size=5, unique=True))
    inside = draw(st.integers(0, len(names) - 2))
    outer, plain, inner = names[0], names[1 + inside :], names[1 : 1 + inside]
    count = draw(st.integers(1, 4))
    made = []
    for _ in range(count):
        row = {outer: {name: draw(CELL) for name in inner}} if inner else {}
        made.append(row | {name: draw(CELL) for name in plain})
    return made


@settings(deadline=None)
@given(held=_tables())
def test_text_comes_back_from_csv_formulas_included(held):
    assert _back("csv", held) == held


@settings(deadline=None, max_examples=25)
@given(held=_tables())
def test_text_comes_back_from_parquet(held):
    assert _back("parquet", held) == held


@settings(deadline=None, max_examples=25)
@given(
    column=st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=1)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.none(), min_size=1)
    | st.lists(st.booleans() | st.none(), min_size=1)
)
def test_typed_columns_come_back_from_parquet(column):
    assume(any(value is not None for value in column))
    held = [{"a": {"n": value}} for value in column]
    back = _back("parquet", held)
    assert back == held
    assert [type(row["a"]["n"]) for row in back] == [type(value) for value in column]


@given(text=CELL)
def test_the_mark_against_formulas_comes_off_exactly(text):
    cell = guard(text)
    assert unguard(cell) == text
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))
    assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))
