"""Rows of Parquet files, and what is said about bad ones."""

from __future__ import annotations

import datetime
import decimal
import gzip
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.data import Row, rows, write
from evenhand.data.read import column_table
from evenhand.errors import DataError, UsageError
from evenhand.jsontext import dump, parse_lenient


def _file(folder: Path, columns: dict[str, Any], name: str = "a.parquet") -> Path:
    path = folder / name
    pq.write_table(pa.table(columns), path)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.parquet.gz"])
def test_values_keep_their_types_and_dotted_columns_are_nested(tmp_path: Path, name: str) -> None:
    columns = {"meta.model": ["m", None], "score": [1, 2], "rubric": [{"a": [1.5]}, None]}
    path = _file(tmp_path, columns, name)
    assert list(rows(path)) == [
        Row({"meta": {"model": "m"}, "score": 1, "rubric": {"a": [1.5]}}, f"{path}:1"),
        Row({"meta": {"model": None}, "score": 2, "rubric": None}, f"{path}:2"),
    ]


def test_many_groups_of_rows_are_numbered_through(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": list(range(3000))}), path, row_group_size=700)
    assert [(row.value["n"], row.where) for row in rows(path)] == [
        (n, f"{path}:{n + 1}") for n in range(3000)
    ]


def test_dates_and_decimals_become_json_values(tmp_path: Path) -> None:
    columns = {"day": [datetime.date(2026, 1, 2)], "price": [decimal.Decimal("1.50")]}
    (row,) = rows(_file(tmp_path, columns))
    assert dump(row.value) == '{"day":"2026-01-02","price":1.50}'


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), b"bytes", [float("inf")]])
def test_a_value_without_a_json_form_is_refused_with_its_row(tmp_path: Path, value: Any) -> None:
    path = _file(tmp_path, {"a": [None, value]})
    with pytest.raises(DataError, match="no JSON form") as caught:
        list(rows(path))
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize("name", ["a.parquet", "a.parquet.gz"])
def test_a_damaged_file_is_refused(tmp_path: Path, name: str) -> None:
    path = _file(tmp_path, {"a": ["x" * 50, "y"]})
    whole = path.read_bytes()
    for damaged in (b"", b"no parquet", whole[:-10], whole[:4] + b"\xff" * 60 + whole[64:]):
        broken = tmp_path / name
        broken.write_bytes(gzip.compress(damaged) if name.endswith(".gz") else damaged)
        with pytest.raises(DataError) as caught:
            list(rows(broken))
        assert caught.value.where == str(broken)
        assert "damaged" in caught.value.advice


def test_columns_that_share_a_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), path)
    with pytest.raises(DataError, match="stands twice"):
        list(rows(path))


def test_without_pyarrow_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _file(tmp_path, {"a": [1]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError) as caught:
        rows(path)
    assert caught.value.advice == 'pip install "evenhand[parquet]"'
    with pytest.raises(UsageError, match="pyarrow"):
        write(tmp_path / "b.parquet", [{"a": 1}])
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("name", ["a.parquet", "a.parquet.gz"])
def test_columns_hold_what_rows_hold(tmp_path: Path, name: str) -> None:
    columns = {
        "text": ["a", None, ""] * 400,
        "number": [1.5, None, float("nan")] * 400,
        "day": [datetime.date(2026, 1, 2), None, None] * 400,
        "list": [[1.0, float("inf")], None, []] * 400,
    }
    path = _file(tmp_path, columns, name)
    with column_table(path, parse_lenient) as table:
        assert table.header == list(columns)
        cells = [
            (dict(zip(table.header, row, strict=True)), f"{path}:{number}")
            for whole, numbers in table.columns()
            for row, number in zip(zip(*whole, strict=True), numbers, strict=True)
        ]
    assert [Row(*row) for row in cells] == list(rows(path, read=parse_lenient))
    assert len(cells) == 1200 and cells[0][0]["list"] == [1.0, None]


@pytest.mark.parametrize("bad", [0, 1, 700, 1199])
def test_columns_come_as_far_as_the_first_row_that_cannot_be_read(tmp_path: Path, bad: int) -> None:
    """Though a column before has one that is worse, further down."""
    first, second = [[b"" if at > bad else None for at in range(1200)] for _ in range(2)]
    second[bad] = b"bytes"
    path = _file(tmp_path, {"a": pa.array(first, pa.binary()), "b": pa.array(second, pa.binary())})
    number = 0
    with pytest.raises(DataError, match="no JSON form") as caught, column_table(path) as table:
        for _, numbers in table.columns():
            number += len(numbers)
    assert (caught.value.where, number) == (f"{path}:{bad + 1}", bad)
