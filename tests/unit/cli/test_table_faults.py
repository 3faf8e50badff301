"""Rows that cannot be read: told with file, line and the column as the table calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.tables import suite

Rows = list[dict[str, Any]]
FIRST = {"Вопрос": "Сколько будет 2+2?", "Модель": "m1", "Ответ": "worth 4"}
SECOND = {"Вопрос": "Сколько будет 2+2?", "Модель": "m2", "Ответ": "worth 5"}


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def write(path: Path, rows: Rows) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.parametrize("protocol", ["rubric", "weighted"])
def test_a_row_without_the_answer_that_others_have_is_named_with_its_column(
    call: CallCommand, tmp_path: Path, protocol: str
) -> None:
    """To map another column would be wrong advice: the column is known."""
    write(tmp_path / "miss.jsonl", [FIRST, without(SECOND, "Ответ"), FIRST])
    suite(tmp_path, protocol, '["miss.jsonl"]')
    ran = call("run")
    assert ran.code == 3
    assert 'miss.jsonl:2: "Ответ" is missing in this row, and other rows have it' in ran.err
    assert "Write it as one text" in ran.err
    assert "[columns]" not in ran.err


def test_a_row_of_the_contract_without_its_answer_is_not_told_to_map_its_question(
    call: CallCommand, tmp_path: Path
) -> None:
    row = {"question": "Why?", "model_output": "worth 1", "meta": {"model": "m"}}
    write(tmp_path / "a.jsonl", [row, without(row, "model_output")])
    suite(tmp_path, "rubric", '["a.jsonl"]')
    ran = call("run")
    assert ran.code == 3 and 'a.jsonl:2: "model_output" is missing in this row' in ran.err


@pytest.mark.parametrize("protocol", ["rubric", "weighted", "pairwise"])
@pytest.mark.parametrize(
    ("answer", "fault"), [(["x"], "a list"), ([], "a list"), ({"text": "x"}, "an object")]
)
def test_an_answer_that_is_no_text_is_named_with_its_line_and_column(
    call: CallCommand, tmp_path: Path, protocol: str, answer: object, fault: str
) -> None:
    write(tmp_path / "a.jsonl", [FIRST, {**SECOND, "Ответ": answer}])
    suite(tmp_path, protocol, '["a.jsonl"]')
    ran = call("run")
    assert ran.code == 3
    assert f'a.jsonl:2: "Ответ" must be a text, and is {fault}' in ran.err
    assert "candidates" not in ran.err and "Write it as one text" in ran.err


@pytest.mark.parametrize("protocol", ["rubric", "weighted", "pairwise"])
@pytest.mark.parametrize(
    ("question", "fault"), [(" ", "is empty"), (None, "must be a text, and is null")]
)
def test_a_question_that_is_none_is_named_with_its_line_and_column(
    call: CallCommand, tmp_path: Path, protocol: str, question: object, fault: str
) -> None:
    write(tmp_path / "a.jsonl", [FIRST, SECOND, {**FIRST, "Вопрос": question}])
    suite(tmp_path, protocol, '["a.jsonl"]')
    ran = call("run")
    assert ran.code == 3 and f'a.jsonl:3: "Вопрос" {fault}' in ran.err
    assert "(at " not in ran.err


def test_only_columns_of_the_table_are_listed_for_a_field_that_none_holds(
    call: CallCommand, tmp_path: Path
) -> None:
    """The fields that were filled from other columns are no columns."""
    write(tmp_path / "a.jsonl", [{"Вопрос": "Сколько?", "note": "12"}])
    suite(tmp_path, "rubric", '["a.jsonl"]')
    ran = call("run")
    assert ran.code == 3 and '; there are "Вопрос", "note". Map one' in ran.err


def test_a_column_that_is_in_use_is_not_what_was_meant(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [{"model_ouput": "Сколько?", "note": "12"}])
    suite(tmp_path, "rubric", '["a.jsonl"]', '[columns]\nquestion = "model_ouput"\n')
    ran = call("run")
    assert ran.code == 3 and 'there are "model_ouput", "note"' in ran.err
    assert "Map it" not in ran.err
