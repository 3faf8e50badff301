"""Rows of files of every kind, and what is said about bad ones."""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand import limits
from evenhand.data import Row, rows, write
from evenhand.errors import DataError, UsageError
from evenhand.jsontext import dump
from tests.sentences import refused

BOM = b"\xef\xbb\xbf"


def file_of(folder, name, content):
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def _refused(path):
    with pytest.raises(DataError) as caught:
        list(rows(path))
    assert caught.value.advice
    return caught.value


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.JSONL", "a.jsonl.gz"])
def test_each_line_is_a_row_with_its_place(tmp_path, name):
    path = file_of(tmp_path, name, b'{"a":1}\n\n  \n{"a":"\xd0\xb9"}')
    assert list(rows(path)) == [Row({"a": 1}, f"{path}:1"), Row({"a": "й"}, f"{path}:4")]


def test_a_relative_path_is_quoted_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file_of(tmp_path, "samples.jsonl", b"{}\n{}\n")
    assert [row.where for row in rows(Path("samples.jsonl"))] == [
        "samples.jsonl:1",
        "samples.jsonl:2",
    ]


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path):
    path = file_of(tmp_path, "a.jsonl", BOM + b'{"a":1}\r\n{"a":2}\r\n')
    assert [row.value for row in rows(path)] == [{"a": 1}, {"a": 2}]
    path = file_of(tmp_path, "a.json", BOM + b'[\r\n{"a":1},\r\n{"a":2}]\r\n')
    assert [row.value for row in rows(path)] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_numbers_keep_their_spelling(tmp_path, name):
    text = '{"a":1.50,"b":1e3,"c":-0,"d":12345678901234567890,"e":1e999,"f":%s,"g":"é"}' % (
        "9" * 5000
    )
    (row,) = rows(file_of(tmp_path, name, text.replace("é", "\\u00e9").encode()))
    assert dump(row.value) == text


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b'{"a":1}\n{"a":}\n', 2, "column 6"),
        (b'{"a":1}\n{"a" 1}\n{"a":2}\n', 2, "':' delimiter"),
        (b'{"a":NaN}\n', 1, "NaN"),
        (b'{"a":-Infinity}\n', 1, "-Infinity"),
        (b'{"a":1,"b":2,"a":3}\n', 1, '"a"'),
        (b'{"x":{"a":1,"a":3}}\n', 1, '"a"'),
        (b'{}\n["a"]\n', 2, '["a"]'),
        (b"null\n", 1, "null"),
        (b'{"a":"\\ud83d"}\n', 1, "\\ud83d"),
        (b'{"\\udc00":1}\n', 1, "\\udc00"),
        (b'{"a":' + b"[" * 70 + b"]" * 70 + b"}\n", 1, "64"),
        (b'{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}\n", 1, "64"),
    ],
)
def test_a_bad_line_is_named_with_its_fault(tmp_path, content, line, says):
    path = file_of(tmp_path, "a.jsonl", content)
    error = _refused(path)
    assert error.where == f"{path}:{line}"
    assert says in error.what


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b'{"a":"\\ud83d\\ude00 \\\\ud83d"}', "😀 \\ud83d"),
        (json.dumps({"a": "[" * 200}).encode(), "[" * 200),
    ],
    ids=["surrogate pair", "brackets in text"],
)
def test_texts_are_read_as_they_are(tmp_path, content, value):
    (row,) = rows(file_of(tmp_path, "a.jsonl", content))
    assert row.value == {"a": value}


def test_a_last_line_that_stops_short_looks_cut_off(tmp_path):
    error = _refused(file_of(tmp_path, "a.jsonl", b'{"a":1}\n{"a":"hal'))
    assert error.where.endswith("a.jsonl:2")
    assert error.advice.key == "data.copy_again"


def test_control_characters_of_a_bad_row_are_shown_not_sent_to_the_terminal(tmp_path):
    error = _refused(file_of(tmp_path, "a.jsonl", b'{"a\\u001b[2J":1,"a\\u001b[2J":2}\n'))
    assert "\x1b" not in str(error)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_a_row_beyond_the_bound_is_refused_before_it_is_read_whole(tmp_path, name, monkeypatch):
    monkeypatch.setattr(limits, "LINE_BYTES", 1024 * 1024)
    content = b'{"a":"' + b"x" * (4 * 1024 * 1024) + b'"}'
    error = _refused(file_of(tmp_path, name, content))
    assert (error.key, error.where[-2:]) == ("data.row_too_long", ":1")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.jsonl.gz"])
@pytest.mark.parametrize("content", [b"", b"\n\r\n", BOM])
def test_an_empty_file_is_refused(tmp_path, name, content):
    assert _refused(file_of(tmp_path, name, content)).key == "data.file_without_rows"
    assert _refused(file_of(tmp_path, "a.json", b" [ ] ")).key == "data.file_without_rows"


def test_an_array_gives_its_objects_with_the_line_they_start_on(tmp_path):
    content = b'[ {"a":"]}\\"{["},\n\n {"b":\n [1,{"c":2}]}, {"d":\n4}\n]\n'
    path = file_of(tmp_path, "a.json", content)
    assert [(row.value, row.where) for row in rows(path)] == [
        ({"a": ']}"{['}, f"{path}:1"),
        ({"b": [1, {"c": 2}]}, f"{path}:3"),
        ({"d": 4}, f"{path}:4"),
    ]


def test_one_object_in_a_json_file_is_one_row(tmp_path):
    path = file_of(tmp_path, "a.json.gz", b'\n{"data":\n[1]}\n')
    assert list(rows(path)) == [Row({"data": [1]}, f"{path}:2")]


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b'[{"a":1},\n{"a":}]', 2, "column 6"),
        (b'[{"a":1}, {"a":}]', 1, "column 16"),
        (b'[{"a":1},\n{\n"a":}]', 3, "column 5"),
        (b'[{"a":1}\n{"a":2}]', 2, "Expecting ',' or ']'"),
        (b'[{"a":1},\n]', 2, "Expecting value"),
        (b'[{"a":1},\n7]', 2, '"7"'),
        (b'[{"a":1},', 1, "column 10"),
        (b'[{"a":1}', 1, "column 9"),
        (b'[\n{"a":"b', 2, "Unterminated string"),
        (b'{"a":1}\n{"a":2}\n', 2, "Extra data"),
        (b'"text"', 1, "text"),
        (b'[{"a":NaN}]', 1, "NaN"),
        (b'[{"a":1]]', 1, "column 8"),
        (b'[{},\n{"a":1,"a":1}]', 2, '"a"'),
        (b'[{},\n{"a":"\\ud800"}]', 2, "\\ud800"),
    ],
)
def test_a_bad_array_is_named_with_line_and_fault(tmp_path, content, line, says):
    path = file_of(tmp_path, "a.json", content)
    error = _refused(path)
    assert error.where == f"{path}:{line}"
    assert says in error.what


def test_damaged_gzip_data_is_refused(tmp_path):
    whole = gzip.compress(b'{"a":1}\n' * 5000)
    path = tmp_path / "a.jsonl.gz"
    for damaged in (whole[:-20], whole[:30] + b"\xff" * 10 + whole[40:], b'{"a":1}\n'):
        path.write_bytes(damaged)
        assert _refused(path).key == "data.bad_gzip"


def csv_file(folder, content, name="a.csv"):
    path = folder / name
    raw = content.encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.CSV"])
def test_cells_are_strings_and_dotted_columns_are_nested(tmp_path, name):
    content = "question,meta.model,meta.run.id,score\nq,m,1,1.50\n,,,\n"
    assert [row.value for row in rows(csv_file(tmp_path, content, name))] == [
        {"question": "q", "meta": {"model": "m", "run": {"id": "1"}}, "score": "1.50"},
        {"question": "", "meta": {"model": "", "run": {"id": ""}}, "score": ""},
    ]


def test_a_table_may_have_a_byte_order_mark_and_windows_line_ends(tmp_path):
    path = csv_file(tmp_path, '\ufeff"a",b\r\n1,"x\r\ny"\r\n')
    assert [row.value for row in rows(path)] == [{"a": "1", "b": "x\r\ny"}]


def test_a_row_stands_where_it_starts_though_cells_hold_line_breaks(tmp_path):
    path = csv_file(tmp_path, '"a\nb",c\n"1\n2\n3",x\n\n4,y\n')
    assert [row.where for row in rows(path)] == [f"{path}:3", f"{path}:7"]


def test_a_long_answer_fits_a_cell(tmp_path):
    (row,) = rows(csv_file(tmp_path, "a\n" + "x" * 500_000 + "\n"))
    assert len(row.value["a"]) == 500_000


@pytest.mark.parametrize(
    ("content", "line", "key", "says"),
    [
        (",question\n0,q\n", 1, "column_without_name", "1"),
        ("a, ,b\n1,2,3\n", 1, "column_without_name", "2"),
        ("a,b,a\n1,2,3\n", 1, "column_twice", '"a"'),
        ("meta,meta.model\n1,2\n", 1, "column_inside", '"meta.model"'),
        ('a,b\n"1\n\n",2\n3\n', 5, "wrong_width", "1.*2"),
        ('a,b\n1,2\n"x\ny",2,3\n', 3, "wrong_width", "3"),
        ('a,b\n1,2\n3,"open\n4,5\n', 3, "unclosed_quote", ""),
        ('a,b\n"x"y,2\n', 2, "not_csv", ""),
    ],
)
def test_a_bad_table_is_named_with_line_and_fault(tmp_path, content, line, key, says):
    path = csv_file(tmp_path, content)
    error = _refused(path)
    assert (error.where, error.key) == (f"{path}:{line}", f"data.{key}")
    assert re.search(says, error.what)


def test_a_header_alone_holds_no_rows(tmp_path):
    with refused(DataError, "data.file_without_rows"):
        list(rows(csv_file(tmp_path, "a,b\n")))


def test_the_mark_against_formulas_is_taken_off(tmp_path):
    path = csv_file(tmp_path, "a,b,c,d\n'=1+1,''-x,'quoted',''plain\n")
    assert [row.value for row in rows(path)] == [
        {"a": "=1+1", "b": "'-x", "c": "'quoted'", "d": "''plain"}
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a;b\n1;2,5\n", {"a": "1", "b": "2,5"}),
        ("a\tb\n1\t2,5;x\n", {"a": "1", "b": "2,5;x"}),
        ('"a;b",c\n1,2\n', {"a;b": "1", "c": "2"}),
        ("a; in full,b\n1,2\n", {"a; in full": "1", "b": "2"}),
        ('a;b\n"one\n\ntwo; three";2\n', {"a": "one\n\ntwo; three", "b": "2"}),
        ('a;b\n"' + "long, " * 20_000 + '";2\n', {"a": "long, " * 20_000, "b": "2"}),
        ("\ufeffa;b\r\n1;2\r\n", {"a": "1", "b": "2"}),
        ("sep=;\na;b\n1;2\n", {"a": "1", "b": "2"}),
        ("sep=|\na|b\n1|2\n", {"a": "1", "b": "2"}),
        ("вопрос;ответ\nкто, где;да, нет\n", {"вопрос": "кто, где", "ответ": "да, нет"}),
        ("a\n1;2\n", {"a": "1;2"}),
    ],
)
def test_the_separator_is_seen(tmp_path, content, expected):
    assert [row.value for row in rows(csv_file(tmp_path, content))] == [expected]


def test_a_tsv_file_has_tabs_and_lines_are_counted_with_the_one_that_names_them(
    tmp_path,
):
    path = tmp_path / "a.tsv"
    path.write_text("a,b\tc\n1,2\t3\n")
    assert [row.value for row in rows(path)] == [{"a,b": "1,2", "c": "3"}]
    assert [row.where[-2:] for row in rows(csv_file(tmp_path, "sep=;\na;b\n1;2\n"))] == [":3"]


def test_lines_are_counted_with_and_without_quotes(tmp_path):
    plain = "".join(f"{number},plain é\n" for number in range(400))
    quoted = "".join(f'{number},"two\nlines, é"\n' for number in range(400))
    last = "7,'=end"
    path = csv_file(tmp_path, "a,b\n" + plain + quoted + plain + last)
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
    path = csv_file(tmp_path, "a,b\n" + "1,2\n" * 500 + f"1,{'x' * 1200}\n")
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
    columns: dict[str, Any] = {
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
