"""Rows of CSV files, and what is said about bad ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from evenhand.data import rows
from evenhand.errors import DataError


def _file(folder: Path, content: str, name: str = "a.csv") -> Path:
    path = folder / name
    raw = content.encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.CSV"])
def test_cells_are_strings_and_dotted_columns_are_nested(tmp_path: Path, name: str) -> None:
    content = "question,meta.model,meta.run.id,score\nq,m,1,1.50\n,,,\n"
    assert [row.value for row in rows(_file(tmp_path, content, name))] == [
        {"question": "q", "meta": {"model": "m", "run": {"id": "1"}}, "score": "1.50"},
        {"question": "", "meta": {"model": "", "run": {"id": ""}}, "score": ""},
    ]


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = _file(tmp_path, '\ufeff"a",b\r\n1,"x\r\ny"\r\n')
    assert [row.value for row in rows(path)] == [{"a": "1", "b": "x\r\ny"}]


def test_a_row_stands_where_it_starts_though_cells_hold_line_breaks(tmp_path: Path) -> None:
    path = _file(tmp_path, '"a\nb",c\n"1\n2\n3",x\n\n4,y\n')
    assert [row.where for row in rows(path)] == [f"{path}:3", f"{path}:7"]


def test_a_long_answer_fits_a_cell(tmp_path: Path) -> None:
    (row,) = rows(_file(tmp_path, "a\n" + "x" * 500_000 + "\n"))
    assert len(row.value["a"]) == 500_000


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (",question\n0,q\n", 1, "no name for column 1"),
        ("a, ,b\n1,2,3\n", 1, "no name for column 2"),
        ("a,b,a\n1,2,3\n", 1, '"a" stands twice'),
        ("meta,meta.model\n1,2\n", 1, '"meta.model" would stand inside'),
        ('a,b\n"1\n\n",2\n3\n', 5, "a row of 1, where the header has 2"),
        ('a,b\n1,2\n"x\ny",2,3\n', 3, "a row of 3"),
        ('a,b\n1,2\n3,"open\n4,5\n', 3, "never closed"),
        ('a,b\n"x"y,2\n', 2, "not CSV"),
    ],
)
def test_a_bad_table_is_named_with_line_and_fault(
    tmp_path: Path, content: str, line: int, says: str
) -> None:
    path = _file(tmp_path, content)
    with pytest.raises(DataError) as caught:
        list(rows(path))
    assert caught.value.where == f"{path}:{line}"
    assert says in caught.value.what
    assert caught.value.advice


def test_a_header_alone_holds_no_rows(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows"):
        list(rows(_file(tmp_path, "a,b\n")))


def test_the_mark_against_formulas_is_taken_off(tmp_path: Path) -> None:
    path = _file(tmp_path, "a,b,c,d\n'=1+1,''-x,'quoted',''plain\n")
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
def test_the_separator_is_seen(tmp_path: Path, content: str, expected: dict[str, str]) -> None:
    assert [row.value for row in rows(_file(tmp_path, content))] == [expected]


def test_a_tsv_file_has_tabs_and_lines_are_counted_with_the_one_that_names_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a,b\tc\n1,2\t3\n")
    assert [row.value for row in rows(path)] == [{"a,b": "1,2", "c": "3"}]
    assert [row.where[-2:] for row in rows(_file(tmp_path, "sep=;\na;b\n1;2\n"))] == [":3"]


def test_lines_are_counted_with_and_without_quotes(tmp_path: Path) -> None:
    plain = "".join(f"{number},plain é\n" for number in range(400))
    quoted = "".join(f'{number},"two\nlines, é"\n' for number in range(400))
    last = "7,'=end"
    path = _file(tmp_path, "a,b\n" + plain + quoted + plain + last)
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


def test_a_line_beyond_the_bound_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.limits.LINE_BYTES", 1000)
    path = _file(tmp_path, "a,b\n" + "1,2\n" * 500 + f"1,{'x' * 1200}\n")
    with pytest.raises(DataError, match="longer than") as raised:
        list(rows(path))
    assert raised.value.where == f"{path}:502"
