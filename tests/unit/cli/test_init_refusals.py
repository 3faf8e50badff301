"""`init` refuses at once what `run` would refuse, with the place, and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.kinds import KINDS
from tests.unit.cli.conftest import CallCommand
from tests.unit.data.workbooks import write_workbook

FIRST = {"question": "How much is 2+2?", "model": "m1", "answer": "worth 4"}
SECOND = {**FIRST, "model": "m2", "answer": "worth 5"}
TASK = {"question": "Why?", "answer": "worth 1"}


def init(call: CallCommand, protocol: str, rows: list[dict[str, Any]]) -> Any:
    Path("a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return call("init", "made", "--data", "a.jsonl", "--protocol", protocol, "--judge", "embedded")


@pytest.mark.parametrize("protocol", ["rubric", "weighted"])
@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"answer": None}, '"answer" must be a text, and is null'),
        ({"answer": ["5"]}, '"answer" must be a text, and is a list'),
        ({"answer": {"text": "5"}}, '"answer" must be a text, and is an object'),
        ({"question": ""}, '"question" is empty'),
        ({"question": 7}, '"question" must be a text, and is a number'),
        ({"id": 1.5}, '"id" must be a text, and is a number'),
        ({"language": "fr"}, 'the protocol speaks ru, zh, ja, en, and "language" is fr'),
    ],
)
def test_a_row_that_a_run_refuses_is_told_with_its_line_and_column(
    call: CallCommand, protocol: str, changes: dict[str, Any], fault: str
) -> None:
    done = init(call, protocol, [FIRST, {**SECOND, **changes}])
    assert done.code == 3 and f"a.jsonl:2: {fault}" in done.err, done.err
    assert not Path("made").exists()


def test_a_row_beyond_those_that_are_looked_at_first_is_told_too(call: CallCommand) -> None:
    rows = [{**TASK, "question": f"q{number}"} for number in range(300)]
    done = init(call, "rubric", [*rows, {**TASK, "answer": None}])
    assert done.code == 3 and "a.jsonl:301: " in done.err and not Path("made").exists()


@pytest.mark.parametrize("protocol", ["rubric", "weighted"])
def test_ids_that_repeat_are_told_with_both_lines_and_what_to_map(
    call: CallCommand, protocol: str
) -> None:
    done = init(call, protocol, [{"id": "q1", **TASK}, {"id": "q1", **TASK, "answer": "worth 2"}])
    assert done.code == 3 and '"q1" at a.jsonl:1 and a.jsonl:2' in done.err
    assert "--map model=COLUMN" in done.err and not Path("made").exists()


def test_pairs_of_one_id_are_told(call: CallCommand) -> None:
    candidates = [{"id": "a", "text": "worth 1"}, {"id": "b", "text": "worth 2"}]
    row = {"pair_id": "p", "topic": "Why?", "candidates": candidates}
    done = init(call, "pairwise", [row, row])
    assert done.code == 3 and '"p" at a.jsonl:1 and a.jsonl:2' in done.err


@pytest.mark.parametrize("protocol", KINDS)
def test_numbers_for_answers_make_a_suite_that_runs(call: CallCommand, protocol: str) -> None:
    rows = [{**FIRST, "answer": 4}, {**SECOND, "answer": 4.50}]
    assert init(call, protocol, rows).code == 0
    ran = call("run", "made", "--dry-run", "--json")
    assert ran.code == 0 and ran.json["planned"] == (1 if protocol == "pairwise" else 2), ran.err


def test_columns_inside_of_objects_are_listed_as_they_are_mapped(call: CallCommand) -> None:
    row = {"inputs": {"text": "Why?"}, "outputs": {"text": "worth 1"}}
    done = init(call, "rubric", [row, {**row, "tags": ["x"]}])
    assert done.code == 3
    assert "The columns are: inputs.text, outputs.text, tags. Say which" in done.err
    moves = ("--map", "question=inputs.text", "--map", "answer=outputs.text")
    assert call("init", "made", "--data", "a.jsonl", *moves).code == 0


def test_that_only_the_first_sheet_is_read_is_told(call: CallCommand, tmp_path: Path) -> None:
    sheets = {"Notes": [["about"], ["mine"]], "Data": [["question", "answer"], ["q", "a"]]}
    write_workbook(tmp_path / "a.xlsx", sheets)
    done = call("init", "made", "--data", "a.xlsx")
    assert (
        done.code == 3 and "Only the first sheet is read; to read another: --sheet NAME" in done.err
    )
    assert "--sheet NAME" in done.err


@pytest.mark.parametrize("first", [[["about"], ["mine"]], []])
def test_a_sheet_that_is_named_becomes_a_suite_that_runs(
    call: CallCommand, tmp_path: Path, first: list[list[str]]
) -> None:
    """Also behind a cover without rows."""
    rows = [["question", "model", "answer"], ["Why?", "m", "worth 1 Because."]]
    write_workbook(tmp_path / "a.xlsx", {"Notes": first, "Ответы": rows})
    made = call("init", "made", "--data", "a.xlsx", "--sheet", "Ответы", "--protocol", "rubric")
    assert made.code == 0 and "Ответы" in made.out
    assert 'data = [{ file = "a.xlsx", sheet = "Ответы" }]' in (
        tmp_path / "made" / "evenhand.toml"
    ).read_text(encoding="utf-8")
    assert call("run", "made", "--dry-run").code == 0


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--data", "a.xlsx", "--sheet", "Dat"), 3, 'did you mean "Data"?'),
        (("--data", "a.csv", "--sheet", "Data"), 2, "--sheet is that of a workbook"),
        (("--sheet", "Data"), 2, "--sheet goes with --data"),
    ],
)
def test_a_sheet_that_cannot_be_meant_is_refused(
    call: CallCommand, tmp_path: Path, options: tuple[str, ...], code: int, said: str
) -> None:
    write_workbook(tmp_path / "a.xlsx", {"Data": [["question", "answer"], ["q", "a"]]})
    (tmp_path / "a.csv").write_text("question,answer\nq,a\n")
    done = call("init", "made", *options)
    assert done.code == code and said in done.err and not (tmp_path / "made").exists()


def test_answers_that_are_left_out_or_empty_are_told(call: CallCommand) -> None:
    lonely = {**FIRST, "question": "Why?"}
    done = init(call, "pairwise", [FIRST, SECOND, {**FIRST, "model": "m3", "answer": None}, lonely])
    assert done.code == 0, done.err
    assert "1 answer is empty and meets no other" in done.out
    assert "1 topic has one answer and makes no pair" in done.out
    assert "Columns of" not in done.out


TASK_RUBRIC = "# Rubric\n\n## Points\n- It says why.\n"


def test_a_rubric_of_a_row_is_read_where_the_run_will_read_it(call: CallCommand) -> None:
    rows = [{**TASK, "rubric": "task.md"}]
    Path("task.md").write_text(TASK_RUBRIC)
    beside = init(call, "weighted", rows)
    assert beside.code == 3 and 'a.jsonl:1: there is no rubric file "made/task.md"' in beside.err
    assert not Path("made").exists()
    Path("made").mkdir()
    Path("task.md").rename("made/task.md")
    done = init(call, "weighted", rows)
    assert done.code == 0, done.err
    assert call("run", "made", "--dry-run").code == 0
