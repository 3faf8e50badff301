"""Tables in the shapes that people have them: a column per model, a row per pair, a title above the
header, fields in paths, questions in a file of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.data.recognise import recognise
from evenhand.data.tables import Tables, TableSource
from evenhand.errors import DataError
from evenhand.kinds import KINDS
from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.tables import suite


def understood(kind: str, path: Path, text: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of a table, and what is said about it."""
    lines: list[str] = []
    path.write_text(text, encoding="utf-8")
    tables = Tables([TableSource(path=path)], {}, KINDS[kind].table_form, lines.append)
    return [row.value for _, row in tables.rows], lines


@pytest.mark.parametrize(
    ("header", "field", "names"),
    [
        ("Question,GPT-4o,Claude 3", "model", ["GPT-4o", "Claude 3"]),
        ("question,v1_answer,v2_answer", "prompt_variant", ["v1", "v2"]),
        ("question,gpt-4o answer,claude answer", "model", ["gpt-4o", "claude"]),
        ("Вопрос,Ответ новый,Ответ старый", "prompt_variant", ["новый", "старый"]),
        ("问题,旧版回答,新版回答", "prompt_variant", ["旧版", "新版"]),
        (" question , answer_old, answer_new ", "prompt_variant", ["old", "new"]),
    ],
)
def test_a_column_per_model_is_a_row_per_answer(
    tmp_path: Path, header: str, field: str, names: list[str]
) -> None:
    rows, lines = understood("rubric", tmp_path / "a.csv", f"{header}\nWhy?,So.,Because.\n")
    assert [row["model_output"] for row in rows] == ["So.", "Because."]
    assert [row["meta"][field] for row in rows] == names
    assert len({row["meta"]["question_id"] for row in rows}) == 1
    assert "an answer each" in lines[0]


def test_the_answers_of_a_row_are_the_candidates_of_a_topic(tmp_path: Path) -> None:
    text = "Question,GPT-4o,Claude,Gemini\nWhy?,a,b,c\n"
    (row,), _ = understood("pairwise", tmp_path / "a.csv", text)
    assert {one["id"]: one["text"] for one in row["candidates"]} == {
        "GPT-4o": "a",
        "Claude": "b",
        "Gemini": "c",
    }


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("topic,candidate_1,candidate_2,area", ["1", "2"]),
        ("question,A,B,area", ["a", "b"]),
        ("prompt,answer_a,answer_b,area", ["a", "b"]),
        ("вопрос,ответ 1,ответ 2,area", ["1", "2"]),
    ],
)
def test_a_row_per_pair_is_a_pair(tmp_path: Path, header: str, names: list[str]) -> None:
    text = f"id,{header}\np7,Why?,one,two,code\n"
    (row,), lines = understood("pairwise", tmp_path / "a.csv", text)
    assert [one["text"] for one in row["candidates"]] == ["one", "two"]
    assert [one["id"].lower() for one in row["candidates"]] == names
    assert (row["id"], row["topic"], row["meta"]["area"]) == ("p7", "Why?", "code")
    assert "a row per pair" in lines[0]


def test_the_models_of_a_pair_are_named_beside_its_answers(tmp_path: Path) -> None:
    text = "question,model_a,answer_a,model_b,answer_b\nWhy?,m1,one,m2,two\n"
    (row,), _ = understood("pairwise", tmp_path / "a.csv", text)
    assert [one["id"] for one in row["candidates"]] == ["m1", "m2"]
    rows, _ = understood("rubric", tmp_path / "a.csv", text)
    assert [row["meta"]["model"] for row in rows] == ["m1", "m2"]


def test_columns_about_an_answer_are_no_answers() -> None:
    form = KINDS["rubric"].table_form
    names = ["question", "answer", "answer_length", "reference_answer", "GPT-4o"]
    assert recognise(names, {}, form, "a.csv").answers == []


@pytest.mark.parametrize("title", ["Results of March\n", "Results\n\nas of May\n", '"A",,\n'])
def test_a_title_above_the_header_is_stepped_over(tmp_path: Path, title: str) -> None:
    text = f"{title}question,model,answer\nq,m1,a\nq,m2,b\n"
    rows, _ = understood("rubric", tmp_path / "a.csv", text)
    assert [row["model_output"] for row in rows] == ["a", "b"]


def test_fields_are_taken_from_paths_and_questions_are_joined(
    call: CallCommand, tmp_path: Path
) -> None:
    for week in ("w1", "w2"):
        for variant in ("old", "new"):
            folder = tmp_path / "runs" / week / "m1"
            folder.mkdir(parents=True, exist_ok=True)
            rows = [{"question_id": n, "answer": f"{week} {variant} {n}"} for n in (1, 2)]
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"{variant}.jsonl").write_text(lines)
    (tmp_path / "questions.csv").write_text("id,question,area\n1,Why?,a\n2,How?,b\n")
    suite(tmp_path, "rubric", '["runs/{week}/{model}/{variant}.jsonl"]')
    path = tmp_path / "evenhand.toml"
    path.write_text('join = "questions.csv"\n' + path.read_text())
    done = call("run", "--json")
    assert done.code == 0 and done.json["planned"] == 8, done.err
    out = call("export", "latest", "-o", "-", "--full")
    metas = [json.loads(line)["output"]["meta"] for line in out.out.splitlines()]
    found = {(m["week"], m["model"], m["prompt_variant"], m["area"]) for m in metas}
    assert found == {
        (w, "m1", v, a) for w in ("w1", "w2") for v in ("old", "new") for a in ("a", "b")
    }


def test_a_question_file_without_a_common_column_is_refused(tmp_path: Path) -> None:
    from evenhand.data.tables import QuestionFile

    (tmp_path / "q.csv").write_text("number,question\n1,Why?\n")
    (tmp_path / "a.csv").write_text("model,answer\nm,So.\n")
    source = TableSource(path=tmp_path / "a.csv", join=QuestionFile(tmp_path / "q.csv"))
    with pytest.raises(DataError, match="no column in common"):
        assert source.sample
