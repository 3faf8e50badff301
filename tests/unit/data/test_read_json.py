"""Rows of JSONL and JSON files, and what is said about bad ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from evenhand import limits
from evenhand.data import Row, rows
from evenhand.errors import DataError
from evenhand.jsontext import dump

BOM = b"\xef\xbb\xbf"


def _file(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def _refused(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        list(rows(path))
    assert caught.value.advice
    return caught.value


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.JSONL", "a.jsonl.gz"])
def test_each_line_is_a_row_with_its_place(tmp_path: Path, name: str) -> None:
    path = _file(tmp_path, name, b'{"a":1}\n\n  \n{"a":"\xd0\xb9"}')
    assert list(rows(path)) == [Row({"a": 1}, f"{path}:1"), Row({"a": "й"}, f"{path}:4")]


def test_a_relative_path_is_quoted_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _file(tmp_path, "samples.jsonl", b"{}\n{}\n")
    assert [row.where for row in rows(Path("samples.jsonl"))] == [
        "samples.jsonl:1",
        "samples.jsonl:2",
    ]


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.jsonl", BOM + b'{"a":1}\r\n{"a":2}\r\n')
    assert [row.value for row in rows(path)] == [{"a": 1}, {"a": 2}]
    path = _file(tmp_path, "a.json", BOM + b'[\r\n{"a":1},\r\n{"a":2}]\r\n')
    assert [row.value for row in rows(path)] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_numbers_keep_their_spelling(tmp_path: Path, name: str) -> None:
    text = '{"a":1.50,"b":1e3,"c":-0,"d":12345678901234567890,"e":1e999,"f":%s}' % ("9" * 5000)
    (row,) = rows(_file(tmp_path, name, text.encode()))
    assert dump(row.value) == text


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_an_escape_beside_a_number_beyond_all_floats_is_read(tmp_path: Path, name: str) -> None:
    (row,) = rows(_file(tmp_path, name, b'{"a":"\\u00e9","n":1e999}'))
    assert dump(row.value) == '{"a":"é","n":1e999}'


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b'{"a":1}\n{"a":}\n', 2, "column 6"),
        (b'{"a":1}\n{"a" 1}\n{"a":2}\n', 2, "':' delimiter"),
        (b'{"a":NaN}\n', 1, "NaN"),
        (b'{"a":-Infinity}\n', 1, "-Infinity"),
        (b'{"a":1,"b":2,"a":3}\n', 1, "twice"),
        (b'{"x":{"a":1,"a":3}}\n', 1, "twice"),
        (b'{}\n["a"]\n', 2, "must be an object"),
        (b"null\n", 1, "must be an object"),
        (b'{"a":"\\ud83d"}\n', 1, "\\ud83d"),
        (b'{"\\udc00":1}\n', 1, "\\udc00"),
        (b'{"a":' + b"[" * 70 + b"]" * 70 + b"}\n", 1, "64 deep"),
        (b'{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}\n", 1, "64 deep"),
    ],
)
def test_a_bad_line_is_named_with_its_fault(
    tmp_path: Path, content: bytes, line: int, says: str
) -> None:
    path = _file(tmp_path, "a.jsonl", content)
    error = _refused(path)
    assert error.where == f"{path}:{line}"
    assert says in error.what


def test_both_halves_of_an_escaped_surrogate_pair_are_one_character(tmp_path: Path) -> None:
    (row,) = rows(_file(tmp_path, "a.jsonl", b'{"a":"\\ud83d\\ude00 \\\\ud83d"}'))
    assert row.value == {"a": "😀 \\ud83d"}


def test_brackets_inside_text_are_no_depth(tmp_path: Path) -> None:
    (row,) = rows(_file(tmp_path, "a.jsonl", json.dumps({"a": "[" * 200}).encode()))
    assert row.value == {"a": "[" * 200}


def test_a_last_line_that_stops_short_looks_cut_off(tmp_path: Path) -> None:
    error = _refused(_file(tmp_path, "a.jsonl", b'{"a":1}\n{"a":"hal'))
    assert error.where.endswith("a.jsonl:2")
    assert "cut off" in error.advice


def test_control_characters_of_a_bad_row_are_shown_not_sent_to_the_terminal(tmp_path: Path) -> None:
    error = _refused(_file(tmp_path, "a.jsonl", b'{"a\\u001b[2J":1,"a\\u001b[2J":2}\n'))
    assert "\x1b" not in str(error)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_a_row_beyond_the_bound_is_refused_before_it_is_read_whole(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LINE_BYTES", 1024 * 1024)
    content = b'{"a":"' + b"x" * (4 * 1024 * 1024) + b'"}'
    error = _refused(_file(tmp_path, name, content))
    assert error.where.endswith(":1")
    assert "longer than 1 MB" in error.what


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.jsonl.gz"])
@pytest.mark.parametrize("content", [b"", b"\n\r\n", BOM])
def test_an_empty_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    assert "no rows" in _refused(_file(tmp_path, name, content)).what


def test_an_empty_array_is_refused(tmp_path: Path) -> None:
    assert "no rows" in _refused(_file(tmp_path, "a.json", b" [ ] ")).what


def test_an_array_gives_its_objects_with_the_line_they_start_on(tmp_path: Path) -> None:
    content = b'[ {"a":"]}\\"{["},\n\n {"b":\n [1,{"c":2}]}, {"d":\n4}\n]\n'
    path = _file(tmp_path, "a.json", content)
    assert [(row.value, row.where) for row in rows(path)] == [
        ({"a": ']}"{['}, f"{path}:1"),
        ({"b": [1, {"c": 2}]}, f"{path}:3"),
        ({"d": 4}, f"{path}:4"),
    ]


def test_one_object_in_a_json_file_is_one_row(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.json.gz", b'\n{"data":\n[1]}\n')
    assert list(rows(path)) == [Row({"data": [1]}, f"{path}:2")]


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b'[{"a":1},\n{"a":}]', 2, "column 6"),
        (b'[{"a":1}, {"a":}]', 1, "column 16"),
        (b'[{"a":1},\n{\n"a":}]', 3, "column 5"),
        (b'[{"a":1}\n{"a":2}]', 2, "Expecting ',' or ']'"),
        (b'[{"a":1},\n]', 2, "Expecting value"),
        (b'[{"a":1},\n7]', 2, "must be an object"),
        (b'[{"a":1},', 1, "at its end"),
        (b'[{"a":1}', 1, "at its end"),
        (b'[\n{"a":"b', 2, "Unterminated string"),
        (b'{"a":1}\n{"a":2}\n', 2, "Extra data"),
        (b'"text"', 1, "must be an object"),
        (b'[{"a":NaN}]', 1, "NaN"),
        (b'[{"a":1]]', 1, "column 8"),
        (b'[{},\n{"a":1,"a":1}]', 2, "twice"),
        (b'[{},\n{"a":"\\ud800"}]', 2, "\\ud800"),
    ],
)
def test_a_bad_array_is_named_with_line_and_fault(
    tmp_path: Path, content: bytes, line: int, says: str
) -> None:
    path = _file(tmp_path, "a.json", content)
    error = _refused(path)
    assert error.where == f"{path}:{line}"
    assert says in error.what


def test_damaged_gzip_data_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"a":1}\n' * 5000)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(whole[:-20])
    assert "not sound gzip data" in _refused(path).what
    path.write_bytes(whole[:30] + b"\xff" * 10 + whole[40:])
    assert "not sound gzip data" in _refused(path).what
    path.write_bytes(b'{"a":1}\n')
    assert "not sound gzip data" in _refused(path).what
