"""Exports for people: workbooks and tables that a spreadsheet opens rightly."""

from __future__ import annotations

import codecs
import csv
import io
from pathlib import Path
from typing import Any

import pytest
from python_calamine import CalamineWorkbook

from evenhand.data import sheet as sheets
from evenhand.data.sheet import CELL_MOST, Sheet, SheetColumn, write_sheet
from evenhand.errors import UsageError
from tests.suites import (
    answers,
    pair_row,
    samples,
    write_answers,
    write_pairs,
    write_suite,
)
from tests.unit.cli.conftest import CallCommand

BAD, UNSURE = {"model": "python/judge:bad"}, {"model": "python/judge:unsure"}
FORMULAS = ("=1+1", "＝1+1", "@SUM(A1)", "https://example.org/x", "-5", "\t=2", "_x0041_", " x ")


def book(path: Path) -> list[dict[str, Any]]:
    """The rows of a workbook, by header."""
    header, *rows = CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).to_python()
    return [dict(zip(header, row, strict=True)) for row in rows]


def spreadsheet(path: Path, separator: str = ",") -> list[dict[str, str]]:
    """The rows of a `.csv` as Excel reads it: by its mark, in its encoding."""
    content = path.read_bytes()
    assert content.startswith(codecs.BOM_UTF8)
    text = content.removeprefix(codecs.BOM_UTF8).decode()
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator))


def test_a_rubric_is_a_row_per_judgment_with_texts_evidence_and_reasons(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 2)
    call("run")
    exported = call("export", "latest", "-o", "verdicts.xlsx")
    assert exported.code == 0
    assert exported.err.splitlines()[1:] == ["2 rows written to verdicts.xlsx"]
    first, second = book(tmp_path / "verdicts.xlsx")
    assert first == {
        "Unit": "u0",
        "Question": "Question 0?",
        "model": "m",
        "n": "0",
        "Answer": "Answer number 0 is long enough to be quoted.",
        "Judge": "python/judge:good",
        "Result": "scored",
        "correct": 3.0,
        "correct: evidence": "“Answer number 0 is l”",
        "correct: reason": "fits",
        "clear": 3.0,
        "clear: evidence": "“Answer number 0 is l”",
        "clear: reason": "fits",
    }
    assert second["Unit"] == "u1"


def test_a_csv_for_people_has_the_same_rows_and_one_for_programs_stays_as_it_was(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 2)
    call("run")
    call("export", "latest", "-o", "a.xlsx")
    assert call("export", "latest", "--people", "-o", "a.csv").code == 0
    call("export", "latest", "-o", "contract.csv")
    in_book = [
        {k: f"{v:g}" if isinstance(v, float) else v for k, v in row.items()}
        for row in book(tmp_path / "a.xlsx")
    ]
    assert spreadsheet(tmp_path / "a.csv") == in_book
    contract = (tmp_path / "contract.csv").read_bytes()
    assert contract.startswith(b"meta.model,")
    # What a spreadsheet is given can be read back as a table, too.
    (tmp_path / "evenhand.toml").write_text(
        (tmp_path / "evenhand.toml").read_text().replace("samples.jsonl", "a.csv")
    )
    assert '"answer"' not in call("run", "--dry-run").err


def test_russian_numbers_and_separators_are_those_of_russian_spreadsheets(
    call: CallCommand, tmp_path: Path
) -> None:
    write_answers(tmp_path, 2, UNSURE, language="ru")
    call("run")
    (tmp_path / "weights.toml").write_text(
        "fact = { logic_and_fact = 50, constraint_adherence = 30, helpfulness_and_creativity = 20 }"
    )
    call("settle", "latest", "--weights", "weights.toml")
    assert call("export", "latest", "--people", "-o", "a.csv").code == 0
    first, second = spreadsheet(tmp_path / "a.csv", ";")
    assert first["Вопрос"] == "Task 0?"
    assert first["Сумма (из 100)"] == "26,83"
    assert second["Уверенность"] == "низкая"
    call("export", "latest", "-o", "a.xlsx")
    assert book(tmp_path / "a.xlsx")[0]["Сумма (из 100)"] == 26.83


def test_pairs_have_both_answers_the_winner_and_every_mark(
    call: CallCommand, tmp_path: Path
) -> None:
    write_pairs(tmp_path, [pair_row("p0", 9, 2, topic="首都はどこ？")], language="ja")
    call("run")
    call("export", "latest", "-o", "a.xlsx")
    (row,) = book(tmp_path / "a.xlsx")
    assert (row["質問"], row["候補 A"], row["候補 B"]) == ("首都はどこ？", "c1", "c2")
    assert (row["回答 A"], row["勝者"]) == ("An answer worth 9.", "c1")
    assert row["C1 · 事実の正確さ"] == "A+"
    assert row["説明"]


def test_the_winner_of_a_tie_is_a_word_and_no_empty_cell(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, [pair_row("p0", 5, 5), pair_row("p1", 9, 2)], language="ru")
    call("run")
    call("export", "latest", "-o", "a.xlsx")
    rows = book(tmp_path / "a.xlsx")
    assert [row["Победитель"] for row in rows] == ["ничья", "c1"]


def test_critical_fails_and_failures_stand_there_in_words(
    call: CallCommand, tmp_path: Path
) -> None:
    write_answers(tmp_path, answers(3), BAD, language="zh")
    call("run")
    exported = call("export", "latest", "-o", "a.xlsx")
    assert exported.err.endswith("\n3 rows written to a.xlsx\n")
    rows = {row["条目"]: row for row in book(tmp_path / "a.xlsx")}
    assert rows["t2/m"]["结果"] == "一票否决"
    assert "Forbidden" in rows["t2/m"]["一票否决"]
    assert (rows["t0/m"]["结果"], rows["t0/m"]["总分（满分 100）"]) == ("失败", "")
    assert rows["t0/m"]["为何没有结论"].startswith("回复格式不符 (")


CUT_OFF = """
async def cut(messages, schema, params):
    return '{"scores": {"correct": {"evi'

async def crash(messages, schema, params):
    raise RuntimeError("first this, " * 10 + "and in the end no memory")
"""


def test_every_place_says_what_to_do_about_a_failure(call: CallCommand, tmp_path: Path) -> None:
    judges = ({"model": f"python/judge:{name}"} for name in ("cut", "crash"))
    write_suite(tmp_path, 1, *judges, judge=CUT_OFF)
    places = {"run": call("run").out, "show": call("show").out}
    places["show a unit"] = call("show", "latest", "u0").out
    call("export", "latest", "-o", "a.xlsx")
    places["export"] = " ".join(row["Why there is no verdict"] for row in book(tmp_path / "a.xlsx"))
    assert call("report", "latest", "-o", "report.html").code == 0
    places["report"] = (tmp_path / "report.html").read_text()
    for place, text in places.items():
        line = " ".join(text.split())
        assert "the reply was cut off: raise max_tokens under [[judges]]" in line, place
        assert "and in the end no" in line, place


def test_where_and_only_select_rows(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, 6, UNSURE)
    call("run")
    call("export", "latest", "-o", "a.xlsx", "--only", "low-confidence")
    assert {row["Confidence"] for row in book(tmp_path / "a.xlsx")} == {"low"}
    call("export", "latest", "--people", "-o", "a.csv", "--where", "task_name=t3")
    assert [row["Unit"] for row in spreadsheet(tmp_path / "a.csv")] == ["t3/m"]


def test_no_text_is_run_or_linked_and_every_text_comes_back(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = samples(len(FORMULAS))
    for row, text in zip(rows, FORMULAS, strict=True):
        row["question"] = text
    write_suite(tmp_path, rows)
    call("run")
    call("export", "latest", "-o", "a.xlsx")
    assert [row["Question"] for row in book(tmp_path / "a.xlsx")] == list(FORMULAS)
    call("export", "latest", "--people", "-o", "a.csv")
    cells = [row["Question"] for row in spreadsheet(tmp_path / "a.csv")]
    guarded = [text for text in FORMULAS if text.lstrip()[0] in "=＝@-"]
    assert [cell for cell in cells if cell.startswith("'")] == [f"'{text}" for text in guarded]


def test_a_table_takes_the_place_of_an_earlier_one_and_of_nothing_else(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 1, language="zh")
    call("run")
    for name in ("a.xlsx", "a.csv"):
        assert call("export", "latest", "--people", "-o", name).code == 0
        assert call("export", "latest", "--people", "-o", name).code == 0
    (tmp_path / "mine.csv").write_text("question,answer\nWhy?,so\n")
    assert call("export", "latest", "--people", "-o", "mine.csv").code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-o", "a.jsonl", "--people"), "Write .xlsx, or .csv with --people."),
        (("-o", "-", "--people"), "Write .xlsx, or .csv with --people."),
        (("-o", "a.xlsx", "--full"), "exclude each other"),
        (("-o", "a.csv", "--people", "--with-unit"), "exclude each other"),
    ],
)
def test_what_is_no_table_for_people_is_refused(
    call: CallCommand, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    write_suite(tmp_path, 1)
    call("run")
    refused = call("export", "latest", *options)
    assert refused.code == 2
    assert message in refused.err
    assert not list(tmp_path.glob("a.*"))


def test_a_text_longer_than_a_cell_is_cut_and_told(call: CallCommand, tmp_path: Path) -> None:
    (row,) = samples(1)
    write_suite(tmp_path, [row | {"question": "字" * 20_000 + "🙂" * 10_000}])
    call("run")
    exported = call("export", "latest", "-o", "a.xlsx")
    assert "1 texts are longer than a cell of a workbook holds (32,767 characters)" in exported.err
    (cut,) = book(tmp_path / "a.xlsx")
    assert len(cut["Question"].encode("utf-16-le")) // 2 <= CELL_MOST
    assert cut["Question"].endswith("[cut: a cell holds no more]")
    call("export", "latest", "--people", "-o", "a.csv")
    assert len(spreadsheet(tmp_path / "a.csv")[0]["Question"]) == 30_000


def test_more_rows_than_a_sheet_holds_are_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheets, "ROWS_MOST", 3)
    columns = [SheetColumn("a", 10)]
    assert write_sheet(tmp_path / "a.xlsx", Sheet(columns, [["x"]] * 2, "en")).rows == 2
    with pytest.raises(UsageError, match="holds 3 rows"):
        write_sheet(tmp_path / "b.xlsx", Sheet(columns, [["x"]] * 3, "en"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.xlsx"]


def test_the_same_rows_give_the_same_workbook(tmp_path: Path) -> None:
    for name in ("a.xlsx", "b.xlsx"):
        columns = [SheetColumn("a", 10), SheetColumn("b", 20)]
        write_sheet(tmp_path / name, Sheet(columns, [["x", 1.5], ["y", None]], "en"))
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()


def test_full_rows_and_fronts_carry_the_question_that_a_hash_stands_for(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = [pair_row("", 9, 2, 5, topic="Which is best?")]
    del rows[0]["pair_id"]
    write_pairs(tmp_path, rows)
    call("run")
    for options, name in ((("--full",), "question"), (("--fronts",), "topic")):
        call("export", "latest", *options, "-o", "a.jsonl", "--force")
        lines = (tmp_path / "a.jsonl").read_text().splitlines()
        assert all(f'"{name}":"Which is best?"' in line for line in lines)
