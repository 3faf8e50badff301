"""What is written comes back as it was, in every format as far as the format can hold it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenhand.data import rows, write
from evenhand.data.cells import guard, unguard
from evenhand.jsontext import dump, parse

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


def _back(ending: str, held: list[dict[str, Any]]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{ending}"
        assert write(path, held) == len(held)
        return [row.value for row in rows(path)]


@pytest.mark.parametrize("ending", ["jsonl", "json", "jsonl.gz"])
@settings(deadline=None)
@given(held=ROWS)
def test_json_comes_back_byte_for_byte(ending: str, held: list[dict[str, Any]]) -> None:
    assert list(map(dump, _back(ending, held))) == list(map(dump, held))


@settings(deadline=None)
@given(held=ROWS, indent=st.none() | st.integers(0, 3), ascii_only=st.booleans())
def test_an_array_from_another_tool_is_read_as_that_tool_reads_it(
    held: list[dict[str, Any]], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(held, indent=indent, ensure_ascii=ascii_only)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        path.write_text(text, encoding="utf-8", newline="")
        assert [row.value for row in rows(path)] == json.loads(text)


@st.composite
def _tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of one shape: some columns plain, some inside an object."""
    names = draw(st.lists(NAME.filter(str.strip), min_size=2, max_size=5, unique=True))
    inside = draw(st.integers(0, len(names) - 2))
    outer, plain, inner = names[0], names[1 + inside :], names[1 : 1 + inside]
    count = draw(st.integers(1, 4))
    made: list[dict[str, Any]] = []
    for _ in range(count):
        row: dict[str, Any] = {outer: {name: draw(CELL) for name in inner}} if inner else {}
        made.append(row | {name: draw(CELL) for name in plain})
    return made


@settings(deadline=None)
@given(held=_tables())
def test_text_comes_back_from_csv_formulas_included(held: list[dict[str, Any]]) -> None:
    assert _back("csv", held) == held


@settings(deadline=None, max_examples=50)
@given(held=_tables())
def test_text_comes_back_from_parquet(held: list[dict[str, Any]]) -> None:
    assert _back("parquet", held) == held


@settings(deadline=None, max_examples=50)
@given(
    column=st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=1)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.none(), min_size=1)
    | st.lists(st.booleans() | st.none(), min_size=1)
)
def test_typed_columns_come_back_from_parquet(column: list[Any]) -> None:
    assume(any(value is not None for value in column))
    held = [{"a": {"n": value}} for value in column]
    back = _back("parquet", held)
    assert back == held
    assert [type(row["a"]["n"]) for row in back] == [type(value) for value in column]


@given(text=CELL)
def test_the_mark_against_formulas_comes_off_exactly(text: str) -> None:
    cell = guard(text)
    assert unguard(cell) == text
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))
    assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))
