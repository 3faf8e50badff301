"""Tables as data of a suite: columns, shapes and formats, and rows that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.data.recognise import recognise
from evenhand.data.tables import QuestionFile, Tables, TableSource
from evenhand.errors import DataError
from evenhand.kinds import KINDS
from tests.cases import cases
from tests.sentences import is_told, refused
from tests.suites import (
    stored,
    write_pairs,
    write_rows,
)
from tests.unit.cli.conftest import put, values
from tests.unit.cli.tables import LONG, SKY, field, suite, table_suite, units
from tests.unit.data.workbooks import write_workbook

ANSWER = {"rubric": "model_output", "weighted": "answer", "checklist": "model_output"}


@cases
def test_what_cannot_be_read_is_refused_with_its_place(
    call, protocol, rows, more, code, key, says, unsaid
):
    table_suite(protocol, rows, more)
    error = call.refused("run", code=code, key=key, says=says)
    assert not any(part in error for part in unsaid)


def test_one_row_per_answer_becomes_pairs(call):
    table_suite("pairwise", LONG.replace(",", ";"))
    pairs = units(call)
    assert len(pairs) == 2
    sky = pairs[f"{SKY}#m1~m2"]
    assert sky["topic"] == "Why is the sky blue?" and sky["meta"] == {"area": "physics"}
    assert [candidate["id"] for candidate in sky["candidates"]] == ["m1", "m2"]
    board = call.json("leaderboard latest")
    assert {row["candidate"] for row in board["rows"]} == {"m1", "m2"}


@pytest.mark.parametrize(
    ("protocol", "ids"),
    [("rubric", {f"m1/{SKY}", f"m2/{SKY}"}), ("weighted", {f"{SKY}/m1", f"{SKY}/m2"})],
)
def test_one_row_per_answer_becomes_samples_and_answers(call, protocol, ids):
    table_suite(protocol, LONG)
    read = units(call)
    assert len(read) == 4 and ids < read.keys()
    assert all(unit["meta"]["area"] in ("physics", "sums") for unit in read.values())
    compared = call.json("compare latest --by model")
    assert {(row["variant"], row["n"]) for row in compared["rows"]} == {("m2", 2)}


def test_more_than_two_answers_are_all_pairs_and_a_lonely_topic_is_told(call):
    rows = LONG + "Why is the sky blue?,m3,worth 7,physics\nAlone?,m1,worth 1,none\n"
    table_suite("pairwise", rows + "Why is the sky blue?,m4,,physics\n")
    ran = call("run --json")
    assert ran.json["planned"] == 4
    for key in ("kinds.lonely_topics", "kinds.empty_answers"):
        assert is_told(ran.err, key, n=1)
    call.ok(f"show latest {SKY}#m2~m3")


def test_files_that_hold_the_same_questions_must_be_told_apart(call, tmp_path):
    for name in ("v1", "v2"):
        put(f"{name}.csv", "question,answer\nq one,a\nq two,b\n")
    suite(tmp_path, "rubric", '["v1.csv", "v2.csv"]')
    advice = 'data = [{ file = "v1.csv", prompt_variant = "v1" }'
    call.refused("run", code=3, key="store.repeated_ids", says=["(v1.csv:2, ", advice])


def test_patterns_name_many_files(call, tmp_path):
    Path("answers").mkdir()
    for model in "abc":
        put(f"answers/{model}.csv", f"question,model,answer\nq,{model},worth 1\n")
    suite(tmp_path, "pairwise", '["answers/*.csv"]')
    assert call.json("run")["planned"] == 3
    suite(tmp_path, "pairwise", '["answer/*.csv"]')
    error = call.refused("run", says=["evenhand.toml:3: "])
    assert is_told(error, "suite.no_match", pattern="answer/*.csv")


def test_a_pattern_leads_nowhere_else(call, tmp_path):
    folder = tmp_path / "suite"
    folder.mkdir()
    put("secret.csv", "question,answer\nq,a\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    for pattern in ("../*.csv", "*.csv", f"{tmp_path}/*.csv"):
        suite(folder, "rubric", f'["{pattern}"]')
        call.refused("run suite", key="suite.outside")


def test_a_sheet_and_an_encoding_are_named_beside_the_file(call, tmp_path):
    write_workbook(tmp_path / "a.xlsx", {"Notes": [["x"], ["y"]], "Data": [["q"], ["why"]]})
    (tmp_path / "b.csv").write_bytes("вопрос;ответ\nпочему;потому\n".encode("cp1251"))
    suite(tmp_path, "rubric", '["b.csv"]')
    call.refused("run", code=3, says=['encoding = "cp1251"'])
    for encoding in ("cp9999", "ascii", "rot13"):
        suite(tmp_path, "rubric", f'[{{ file = "b.csv", encoding = "{encoding}" }}]')
        ran = call("run")
        assert ran.code in (2, 3) and encoding in ran.err
    suite(tmp_path, "rubric", '[{ file = "b.csv", encoding = "cp1251" }]')
    (unit,) = units(call).values()
    assert values(unit, "question model_output") == ["почему", "потому"]
    data = '[{ file = "a.xlsx", sheet = "Data", model_output = "same" }]'
    suite(tmp_path, "rubric", data, '[columns]\nquestion = "q"\n')
    (unit,) = units(call).values()
    assert values(unit, "question model_output") == ["why", "same"]


def test_an_answer_that_is_empty_or_endless_is_warned_about(call, tmp_path):
    rows = [{"question": f"q{i}", "answer": text} for i, text in enumerate(("", "x" * 100_001))]
    put("a.json", json.dumps(rows))
    suite(tmp_path, "rubric", '["a.json"]')
    remarks = call("run --dry-run").err
    assert is_told(remarks, "data.empty_answers", n="1 answer")
    assert is_told(remarks, "data.long_answers", n="1 answer")


@pytest.mark.parametrize("protocol", KINDS)
@pytest.mark.parametrize("number", ["0", "-1", "true", "6.50", "1e3", "123456789012345678901"])
def test_a_number_for_an_answer_is_judged_as_it_is_written(call, protocol, number):
    answers = zip("abc", (number, 1, 2), strict=True)
    rows = [f'{{"question": "q", "model": "{m}", "answer": {n}}}\n' for m, n in answers]
    table_suite(protocol, "".join(rows))
    unit = next(iter(units(call).values()))
    found = unit["candidates"][0]["text"] if protocol == "pairwise" else unit[ANSWER[protocol]]
    assert found == number


HEADERS = [
    ("question", "answer", "model"),
    ("Prompt", "Response", "LLM"),
    ("user input", "Model Output", "Bot"),
    ("Вопрос", "Ответ", "Нейросеть"),
    ("问题", "回答", "模型"),
    ("質問", "出力", "ボット名"),
]


@pytest.mark.parametrize("protocol", ["rubric", "weighted", "pairwise"])
@pytest.mark.parametrize("names", HEADERS)
def test_columns_are_known_by_their_usual_names_and_it_is_told(call, protocol, names):
    question, answer, model = names
    rows = f"{question};{answer};{model}\nq one;worth 1;m1\nq one;worth 2;m2\n"
    table_suite(protocol, rows)
    ran = call("run --dry-run --json")
    assert ran.json["planned"] == (1 if protocol == "pairwise" else 2), ran.err
    (line,) = [line for line in ran.err.splitlines() if is_told(line, "data.columns")]
    assert f'meta.model = "{model}"' in line
    field = {"rubric": "question", "weighted": "prompt", "pairwise": "topic"}[protocol]
    assert (f'{field} = "{question}"' in line) is (question != field)


@cases
def test_where_two_columns_fit_all_are_listed_and_nothing_is_sent(call, header, field, first):
    width = header.count(",") + 1
    rows = f"{header}\n{','.join('abcd'[:width])}\n"
    table_suite("rubric", rows)
    says = [f'"{name}"' for name in header.split(",")]
    error = call.refused("run", code=3, says=says)
    assert is_told(error, "data.several_fit", field=field)
    table_suite("rubric", rows, f'[columns]\n{field} = "{first}"\n')
    assert call.json("run --dry-run")["planned"] == 1


def test_a_question_beats_a_topic(call):
    table_suite("pairwise", "topic,question,model,answer\nart,q,m1,1\nart,q,m2,2\n")
    assert 'topic = "question"' in call("run").err


def test_a_table_of_the_contract_is_read_without_a_word(call):
    row = {"id": "a", "question": "q", "model_output": "text", "meta": {"model": "m"}}
    table_suite("rubric", json.dumps(row | {"answer": "another", "prompt": "v1"}))
    said = call("run --dry-run").err
    assert "Columns" not in said and "not used" not in said


@cases
def test_a_table_is_understood_as_these_rows(tmp_path, kind, text, key, expected):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    lines = []
    source = TableSource(path=tmp_path / "a.csv")
    tables = Tables([source], {}, KINDS[kind].table_form, lines.append)
    found = [row.value for _, row in tables.rows]
    paths = list(expected[0])
    assert [{path: field(row, path) for path in paths} for row in found] == expected
    assert not key or any(is_told(line, key) for line in lines)


def test_columns_about_an_answer_are_no_answers():
    form = KINDS["rubric"].table_form
    names = ["question", "answer", "answer_length", "reference_answer", "GPT-4o"]
    assert recognise(names, {}, form, "a.csv").answers == []


def test_fields_are_taken_from_paths_and_questions_are_joined(call, tmp_path):
    places = {(week, "m1", variant) for week in ("w1", "w2") for variant in ("old", "new")}
    for *folders, variant in places:
        folder = tmp_path.joinpath("runs", *folders)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [{"question_id": n, "answer": f"{folders} {variant} {n}"} for n in (1, 2)]
        write_rows(folder, rows, f"{variant}.jsonl")
    put("questions.csv", "id,question,area\n1,Why?,a\n2,How?,b\n")
    suite(tmp_path, "rubric", '["runs/{week}/{model}/{variant}.jsonl"]')
    path = tmp_path / "evenhand.toml"
    path.write_text('join = "questions.csv"\n' + path.read_text())
    metas = [unit["meta"] for unit in units(call).values()]
    found = [(m["week"], m["model"], m["prompt_variant"], m["area"]) for m in metas]
    assert sorted(found) == sorted((*place, area) for place in places for area in "ab")


def test_a_question_file_without_a_common_column_is_refused(tmp_path):
    (tmp_path / "q.csv").write_text("number,question\n1,Why?\n")
    (tmp_path / "a.csv").write_text("model,answer\nm,So.\n")
    source = TableSource(path=tmp_path / "a.csv", join=QuestionFile(tmp_path / "q.csv"))
    with refused(DataError, "data.no_shared_column"):
        assert source.sample


def test_a_table_with_other_columns_is_mapped(call, tmp_path):
    columns = {"pair_id": "no", "topic": "question", "meta.set": "split"} | {
        f"candidates.{i}.{name}": f"{column}_{letter}"
        for i, letter in enumerate("ab", 1)
        for name, column in (("text", "answer"), ("id", "model"))
    }
    write_pairs(tmp_path, 1, data=["in.csv"], columns=columns)
    rows = 'q1,Why?,"worth 3, or so",worth 8,alpha,beta,test\n'
    rows += "q2,How?,worth 7,worth 1,alpha,beta,test\n"
    put("in.csv", f"no,question,answer_a,answer_b,model_a,model_b,split\n{rows}")
    call.ok("run")
    outputs = [row["output"] for row in stored(tmp_path)]
    assert [(one["pair_id"], one["winner"], one["candidates"]) for one in outputs] == [
        ("q1", "B", ["alpha", "beta"]),
        ("q2", "A", ["alpha", "beta"]),
    ]
    assert outputs[0]["meta"] == {"set": "test"}
