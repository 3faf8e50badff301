"""Workbooks are read as the tables that they are."""

from __future__ import annotations

import gzip
import io
import zipfile

import pytest

from evenhand import limits
from evenhand.data.read import rows
from evenhand.errors import DataError, NoRows
from tests.sentences import refused
from tests.unit.data.workbooks import write_workbook

ROWS = [
    ["question", "answer", "meta.round", "exact"],
    ["Почему?", "потому что & <так>", 3, True],
    ["なぜ？", "0.1", 0.5, None],
]


def test_cells_are_the_texts_that_a_csv_file_would_hold(tmp_path):
    path = tmp_path / "a.xlsx"
    write_workbook(path, {"Answers": ROWS})
    first, second = rows(path)
    assert first.value == {
        "question": "Почему?",
        "answer": "потому что & <так>",
        "meta": {"round": "3"},
        "exact": "true",
    }
    assert second.value["meta"] == {"round": "0.5"} and second.value["exact"] == ""
    assert [first.where, second.where] == [f"{path}:2", f"{path}:3"]


def test_a_sheet_is_named_and_a_wrong_name_lists_them(tmp_path):
    path = tmp_path / "a.xlsx"
    write_workbook(path, {"Notes": [["x"], ["y"]], "Answers": ROWS})
    assert [row.value for row in rows(path)] == [{"x": "y"}]
    assert len(list(rows(path, sheet="Answers"))) == 2
    with refused(DataError, "data.no_sheet", "Notes") as caught:
        list(rows(path, sheet="Answer"))
    assert caught.value.advice.values["near"] == "Answers"


def test_a_cover_before_the_rows_is_told_with_the_other_sheets(tmp_path):
    path = tmp_path / "a.xlsx"
    for cover in ([["Results of May"]], [[None]]):
        write_workbook(path, {"Cover": cover, "Data": ROWS, "Old": ROWS})
        with refused(NoRows, "data.first_sheet_without_rows", '"Cover"') as caught:
            list(rows(path))
        assert '{ file = "a.xlsx", sheet = "Data" }' in str(caught.value.advice)
        assert '"Data", "Old"' in str(caught.value.advice)
    write_workbook(path, {"Only": [["question"]]})
    with refused(NoRows, "data.file_without_rows"):
        list(rows(path))


def test_rows_above_the_header_may_be_empty_and_columns_beside_it_too(tmp_path):
    path = tmp_path / "a.xlsx"
    write_workbook(path, {"S": [[None], ["a", "b", None, ""], ["1", "2", None, "stray"]]})
    assert [row.value for row in rows(path)] == [{"a": "1", "b": "2"}]


def test_a_packed_workbook_is_unpacked(tmp_path):
    write_workbook(tmp_path / "a.xlsx", {"S": ROWS})
    path = tmp_path / "b.xlsx.gz"
    path.write_bytes(gzip.compress((tmp_path / "a.xlsx").read_bytes()))
    assert len(list(rows(path))) == 2


@pytest.mark.parametrize("content", [b"", b"question,answer\n", b"PK\x03\x04 cut off"])
def test_what_is_no_workbook_is_told(tmp_path, content):
    path = tmp_path / "a.xlsx"
    path.write_bytes(content)
    with refused(DataError, "data.bad_workbook"):
        list(rows(path))


def test_a_column_without_a_name_is_refused(tmp_path):
    path = tmp_path / "a.xlsx"
    write_workbook(path, {"S": [["a", None, "b"], ["1", "2", "3"]]})
    with refused(DataError, "data.column_without_name", "2"):
        list(rows(path))


@pytest.mark.parametrize("does_lie", [False, True])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch, does_lie):
    monkeypatch.setattr(limits, "WORKBOOK_BYTES", 4_000_000)
    path = tmp_path / "a.xlsx"
    write_workbook(path, {"S": [["a"], ["x" * 8_000_000]]})
    if does_lie:
        path.write_bytes(_with_small_sizes(path.read_bytes()))
    with refused(DataError, "data.workbook_too_large", "3"):
        list(rows(path))


def _with_small_sizes(data):
    """A workbook whose index says that its members are small."""
    changed = bytearray(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        start = archive.start_dir
    while changed[start : start + 4] == b"PK\x01\x02":
        changed[start + 24 : start + 28] = (100).to_bytes(4, "little")
        lengths = [
            int.from_bytes(changed[start + i : start + i + 2], "little") for i in (28, 30, 32)
        ]
        start += 46 + sum(lengths)
    return bytes(changed)
