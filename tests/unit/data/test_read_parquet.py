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
from evenhand.errors import DataError, UsageError
from evenhand.jsontext import dump


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


def test_times_with_a_zone_become_texts(tmp_path: Path) -> None:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    (row,) = rows(_file(tmp_path, {"at": pa.array([at], pa.timestamp("us", tz="Asia/Tokyo"))}))
    assert datetime.datetime.fromisoformat(row.value["at"]) == at


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


def test_without_duckdb_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _file(tmp_path, {"a": [1]})
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UsageError) as caught:
        rows(path)
    assert caught.value.advice == 'pip install "evenhand[sql]"'
    with pytest.raises(UsageError, match="DuckDB"):
        write(tmp_path / "b.parquet", [{"a": 1}])
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]
