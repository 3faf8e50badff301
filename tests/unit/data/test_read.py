"""Rows of files of every kind, and what is said about bad ones."""

from __future__ import annotations

import datetime
import decimal
import gzip
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand import limits
from evenhand.data import Row, rows, write
from evenhand.errors import DataError, UsageError
from evenhand.jsontext import dump
from tests.cases import cases
from tests.sentences import refused


def file_of(folder, name, content):
    path = folder / name
    content = content.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def _refused(path):
    with pytest.raises(DataError) as caught:
        list(rows(path))
    assert caught.value.advice
    return caught.value


@cases
def test_a_file_is_read_as_these_rows(tmp_path, name, content, values, lines):
    path = file_of(tmp_path, name, content)
    found = list(rows(path))
    assert [row.value for row in found] == values
    assert lines is None or [row.where for row in found] == [f"{path}:{line}" for line in lines]


@cases
def test_what_is_wrong_is_told_with_its_line(tmp_path, name, content, line, key, says):
    path = file_of(tmp_path, name, content)
    error = _refused(path)
    assert not line or error.where == f"{path}:{line}"
    assert not key or error.key == key
    assert re.search(says if key else re.escape(says), error.what)
    assert "\x1b" not in str(error)


def test_a_relative_path_is_quoted_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file_of(tmp_path, "samples.jsonl", "{}\n{}\n")
    assert [row.where for row in rows(Path("samples.jsonl"))] == [
        "samples.jsonl:1",
        "samples.jsonl:2",
    ]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_numbers_keep_their_spelling(tmp_path, name):
    text = '{"a":1.50,"b":1e3,"c":-0,"d":12345678901234567890,"e":1e999,"f":%s,"g":"é"}' % (
        "9" * 5000
    )
    (row,) = rows(file_of(tmp_path, name, text.replace("é", "\\u00e9")))
    assert dump(row.value) == text


def test_a_row_that_nests_without_end_is_refused(tmp_path):
    assert "64" in _refused(file_of(tmp_path, "a.jsonl", f'{{"a":{"[" * 10**5}}}')).what


def test_a_last_line_that_stops_short_looks_cut_off(tmp_path):
    error = _refused(file_of(tmp_path, "a.jsonl", '{"a":1}\n{"a":"hal'))
    assert error.where.endswith("a.jsonl:2")
    assert error.advice.key == "data.copy_again"


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_a_row_beyond_the_bound_is_refused_before_it_is_read_whole(tmp_path, name, monkeypatch):
    monkeypatch.setattr(limits, "LINE_BYTES", 1024 * 1024)
    content = '{"a":"' + "x" * (4 * 1024 * 1024) + '"}'
    error = _refused(file_of(tmp_path, name, content))
    assert (error.key, error.where[-2:]) == ("data.row_too_long", ":1")


def test_damaged_gzip_data_is_refused(tmp_path):
    whole = gzip.compress(b'{"a":1}\n' * 5000)
    path = tmp_path / "a.jsonl.gz"
    for damaged in (whole[:-20], whole[:30] + b"\xff" * 10 + whole[40:], b'{"a":1}\n'):
        path.write_bytes(damaged)
        assert _refused(path).key == "data.bad_gzip"


def test_a_long_answer_fits_a_cell(tmp_path):
    for content, cell in (("a\n{}\n", "x" * 500_000), ('a;b\n"{}";2\n', "long, " * 20_000)):
        (row,) = rows(file_of(tmp_path, "a.csv", content.format(cell)))
        assert row.value["a"] == cell


def test_lines_are_counted_with_and_without_quotes(tmp_path):
    plain = "".join(f"{number},plain é\n" for number in range(400))
    quoted = "".join(f'{number},"two\nlines, é"\n' for number in range(400))
    last = "7,'=end"
    path = file_of(tmp_path, "a.csv", "a,b\n" + plain + quoted + plain + last)
    found = list(rows(path))
    assert len(found) == 1_201
    lines = [int(row.where.rpartition(":")[2]) for row in found]
    assert lines[:400] == list(range(2, 402))
    assert lines[400:800] == list(range(402, 1_202, 2))
    assert lines[800:] == list(range(1_202, 1_603))
    assert [found[k].value["b"] for k in (0, 400, 800)] == [
        "plain é",
        "two\nlines, é",
        "plain é",
    ]
    assert found[-1].value == {"a": "7", "b": "=end"}


def test_a_line_beyond_the_bound_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.limits.LINE_BYTES", 1000)
    path = file_of(tmp_path, "a.csv", "a,b\n" + "1,2\n" * 500 + f"1,{'x' * 1200}\n")
    with refused(DataError, "data.row_too_long") as raised:
        list(rows(path))
    assert raised.value.where == f"{path}:502"


def parquet_file(folder, columns, name="a.parquet"):
    path = folder / name
    pq.write_table(pa.table(columns), path)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.parquet.gz"])
def test_values_keep_their_types_and_dotted_columns_are_nested(tmp_path, name):
    columns = {"meta.model": ["m", None], "score": [1, 2], "rubric": [{"a": [1.5]}, None]}
    path = parquet_file(tmp_path, columns, name)
    assert list(rows(path)) == [
        Row({"meta": {"model": "m"}, "score": 1, "rubric": {"a": [1.5]}}, f"{path}:1"),
        Row({"meta": {"model": None}, "score": 2, "rubric": None}, f"{path}:2"),
    ]


def test_many_groups_of_rows_are_numbered_through(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": list(range(3000))}), path, row_group_size=700)
    assert [(row.value["n"], row.where) for row in rows(path)] == [
        (n, f"{path}:{n + 1}") for n in range(3000)
    ]


def test_dates_decimals_and_times_with_a_zone_become_json_values(tmp_path):
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    columns = {
        "day": [datetime.date(2026, 1, 2)],
        "price": [decimal.Decimal("1.50")],
    }
    columns["at"] = pa.array([at], pa.timestamp("us", tz="Asia/Tokyo"))
    (row,) = rows(parquet_file(tmp_path, columns))
    assert datetime.datetime.fromisoformat(row.value.pop("at")) == at
    assert dump(row.value) == '{"day":"2026-01-02","price":1.50}'


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), b"bytes", [float("inf")]])
def test_a_value_without_a_json_form_is_refused_with_its_row(tmp_path, value):
    path = parquet_file(tmp_path, {"a": [None, value]})
    with refused(DataError, "data.no_json_form") as caught:
        list(rows(path))
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize("name", ["a.parquet", "a.parquet.gz"])
def test_a_damaged_parquet_file_is_refused(tmp_path, name):
    path = parquet_file(tmp_path, {"a": ["x" * 50, "y"]})
    whole = path.read_bytes()
    for damaged in (b"", b"no parquet", whole[:-10], whole[:4] + b"\xff" * 60 + whole[64:]):
        broken = tmp_path / name
        broken.write_bytes(gzip.compress(damaged) if name.endswith(".gz") else damaged)
        error = _refused(broken)
        assert (error.key, error.where) == ("data.bad_parquet", str(broken))


def test_without_duckdb_it_is_said_what_to_install(tmp_path, monkeypatch):
    path = parquet_file(tmp_path, {"a": [1]})
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with refused(UsageError, "data.missing_for_parquet", r"evenhand\[sql\]"):
        rows(path)
    with refused(UsageError, "data.missing_for_parquet"):
        write(tmp_path / "b.parquet", [{"a": 1}])
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]
