"""Columns of a table: known by usual names, listed where several fit, told where none fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.tables import suite, units

HEADERS = [
    ("question", "answer", "model"),
    ("Prompt", "Response", "LLM"),
    ("user input", "Model Output", "model_name"),
    ("Вопрос", "Ответ", "Модель"),
    ("问题", "回答", "模型"),
    ("質問", "出力", "モデル名"),
]


@pytest.mark.parametrize("protocol", ["rubric", "weighted", "pairwise"])
@pytest.mark.parametrize("names", HEADERS)
def test_columns_are_known_by_their_usual_names_and_it_is_told(
    call: CallCommand, tmp_path: Path, protocol: str, names: tuple[str, str, str]
) -> None:
    question, answer, model = names
    rows = f"{question};{answer};{model}\nq one;worth 1;m1\nq one;worth 2;m2\n"
    (tmp_path / "a.csv").write_text(rows, encoding="utf-8")
    suite(tmp_path, protocol, '["a.csv"]')
    ran = call("run", "--dry-run", "--json")
    assert ran.json["planned"] == (1 if protocol == "pairwise" else 2), ran.err
    (line,) = [line for line in ran.err.splitlines() if line.startswith("Columns of a.csv: ")]
    assert f'meta.model = "{model}"' in line
    field = {"rubric": "question", "weighted": "prompt", "pairwise": "topic"}[protocol]
    assert (f'{field} = "{question}"' in line) is (question != field)


@pytest.mark.parametrize(
    ("header", "field", "fits"),
    [
        ("prompt,input,answer", "question", '"prompt" and "input"'),
        ("question,answer,response", "model_output", '"answer" and "response"'),
        ("вопрос,ответ,вывод", "model_output", '"ответ" and "вывод"'),
        ("question,answer,model_name,llm", "meta.model", '"model_name" and "llm"'),
    ],
)
def test_where_two_columns_fit_all_are_listed_and_nothing_is_sent(
    call: CallCommand, tmp_path: Path, header: str, field: str, fits: str
) -> None:
    width = header.count(",") + 1
    rows = f"{header}\n{','.join('abcd'[:width])}\n"
    (tmp_path / "a.csv").write_text(rows, encoding="utf-8")
    suite(tmp_path, "rubric", '["a.csv"]')
    ran = call("run")
    assert ran.code == 3 and f'{fits} would each fit as "{field}"' in ran.err
    assert all(f'"{name}"' in ran.err for name in header.split(","))
    first = fits.split('"')[1]
    suite(tmp_path, "rubric", '["a.csv"]', f'[columns]\n{field} = "{first}"\n')
    ran = call("run", "--dry-run", "--json")
    assert ran.json["planned"] == 1, ran.err


def test_a_question_beats_a_topic(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("topic,question,model,answer\nart,q,m1,1\nart,q,m2,2\n")
    suite(tmp_path, "pairwise", '["a.csv"]')
    assert 'topic = "question"' in call("run").err


def test_a_source_that_is_not_there_is_not_answered_with_one_that_is_in_use(
    call: CallCommand, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("text1,note\nwhy,because\n")
    columns = '[columns]\nquestion = "text1"\nmodel_output = "text2"\n'
    suite(tmp_path, "rubric", '["a.csv"]', columns)
    ran = call("run")
    assert ran.code == 3 and 'no row has the column "text2"' in ran.err
    assert "did you mean" not in ran.err and '"text1", "note"' in ran.err


def test_a_table_of_the_contract_is_read_without_a_word(call: CallCommand, tmp_path: Path) -> None:
    row = {"id": "a", "question": "q", "model_output": "text", "meta": {"model": "m"}}
    (tmp_path / "a.jsonl").write_text(json.dumps(row | {"answer": "another", "prompt": "v1"}))
    suite(tmp_path, "rubric", '["a.jsonl"]')
    ran = call("run", "--dry-run")
    assert "Columns" not in ran.err and "not used" not in ran.err


@pytest.mark.parametrize("quote", ["", '"'])
def test_dotted_keys_need_no_quotes_and_one_column_feeds_two_fields(
    call: CallCommand, tmp_path: Path, quote: str
) -> None:
    (tmp_path / "a.csv").write_text("q,a,who\nasked,answered,m1\n")
    columns = f'[columns]\nquestion = "q"\nmodel_output = "a"\n{quote}meta.model{quote} = "who"\n'
    columns += f'reference = "a"\n{quote}meta.question_id{quote} = "q"\n'
    suite(tmp_path, "rubric", '["a.csv"]', columns)
    (unit,) = units(call).values()
    assert unit["id"] == "m1/asked" and unit["reference"] == unit["model_output"] == "answered"
