"""Ids of units that a table makes, and which of them are about the same question."""

from __future__ import annotations

import json

import pytest

from evenhand.units import question_hash
from tests.sentences import is_told
from tests.suites import (
    pair_row,
    write_rows,
)
from tests.unit.cli.tables import LONG, SKY, suite, units

RUNS = "".join(
    f"q{question},{model},{run},{model} is worth {worth}\n"
    for question in (1, 2)
    for run in range(10)
    for model, worth in (("old", 1), ("new", 2))
)


def test_runs_of_one_question_are_no_questions_of_their_own(call, tmp_path):
    (tmp_path / "a.csv").write_text("question,model,run_id,answer\n" + RUNS)
    suite(tmp_path, "pairwise", '["a.csv"]')
    pairs = units(call)
    assert len(pairs) == 20 and next(iter(pairs)) == f"0/{question_hash('q1')}#new~old"
    questions = {(pair["topic"], pair["meta"]["question_id"]) for pair in pairs.values()}
    assert questions == {(text, question_hash(text)) for text in ("q1", "q2")}
    compared = call("compare", "latest", "--baseline", "old", "--json").json["rows"]
    assert {(row["n"], row["clusters"]) for row in compared} == {(20, 2)}
    assert {row["outcome"] for row in compared} == {"not enough evidence"}
    board = call("leaderboard", "latest", "--json").json
    assert board["topics"] == 2
    # What `run` and `show` say of the orders is as sure as what the leaderboard does.
    orders = call("show", "latest", "--json").json["pairwise"]["consistency"]
    assert orders["low"] == pytest.approx(board["consistency_low"])
    assert call("gate", "latest", "--candidate", "new", "--baseline", "old", "--better").code == 7


def test_rows_of_one_topic_are_no_questions_of_their_own(call, tmp_path):
    """As where a row holds both answers, also of rows that nothing tells apart."""
    rows = [
        pair_row("", 1, 2, topic=f"q{topic}") | {"meta": {"run_id": run}}
        for topic in (1, 2)
        for run in range(10)
    ]
    for row in rows:
        del row["pair_id"]
    write_rows(tmp_path, rows, "a.jsonl")
    suite(tmp_path, "pairwise", '["a.jsonl"]')
    pairs = units(call)
    assert len(pairs) == 20 and next(iter(pairs)) == f"0/{question_hash('q1')}#c1~c2"
    questions = {(pair["topic"], pair["meta"]["question_id"]) for pair in pairs.values()}
    assert questions == {(text, question_hash(text)) for text in ("q1", "q2")}
    # A run alone is called as it is among others; without runs a topic needs no id beside its own.
    once = [row for row in rows if row["meta"] == {"run_id": 0}]
    write_rows(tmp_path, once, "a.jsonl")
    assert units(call).items() < pairs.items()
    write_rows(tmp_path, [row | {"meta": {}} for row in once], "a.jsonl")
    assert [pair["meta"] for pair in units(call).values()] == [{}] * 2


def test_rows_that_are_alike_are_told_apart_by_their_number(call, tmp_path):
    rows = "question,model,answer\nq one,m,first try\n,,\nq one,m,second try\n"
    (tmp_path / "a.csv").write_text(rows)
    suite(tmp_path, "rubric", '["a.csv"]')
    first, second = units(call)
    assert second == f"{first}#3"


def test_an_id_that_repeats_is_the_id_of_the_question(call, tmp_path):
    (tmp_path / "a.csv").write_text("id,question,model,answer\n1,q,m1,x\n1,q,m2,y\n2,r,m1,z\n")
    suite(tmp_path, "rubric", '["a.csv"]')
    assert list(units(call)) == ["m1/1", "m2/1", "m1/2"]
    suite(tmp_path, "pairwise", '["a.csv"]')
    (tmp_path / "a.csv").write_text("id,question,model,answer\n1,q,m1,worth 1\n1,q,m2,worth 2\n")
    assert list(units(call)) == ["1#m1~m2"]


@pytest.mark.parametrize(
    ("protocol", "key"),
    [
        ("rubric", "data.ids_of_questions"),
        ("pairwise", "kinds.shared_id"),
    ],
)
def test_ids_that_are_taken_for_those_of_questions_are_told(call, tmp_path, protocol, key):
    (tmp_path / "a.csv").write_text("номер,question,model,answer\n1,q,m1,x\n1,q,m2,y\n")
    suite(tmp_path, protocol, '["a.csv"]')
    assert is_told(call("run", "--dry-run").err, key)
    done = call("init", "new", "--data", "a.csv", "--protocol", protocol)
    assert done.code == 0 and is_told(done.out, key)
    (tmp_path / "a.csv").write_text("id,question,model,answer\n1,q,m1,x\n2,q,m2,y\n")
    ran = call("run", "--dry-run")
    assert ran.code == 0 and not is_told(ran.err, key)


def test_numbers_that_repeat_and_name_nothing_are_told(call, tmp_path):
    (tmp_path / "a.csv").write_text("номер,question,answer\n1,q,x\n1,r,y\n")
    suite(tmp_path, "rubric", '["a.csv"]')
    ran = call("run", "--dry-run")
    assert ran.code == 0 and is_told(ran.err, "data.ids_repeat", column="номер", file="a.csv")


def test_ids_that_are_the_rows_own_and_repeat_are_refused(call, tmp_path):
    (tmp_path / "a.csv").write_text("id,question,answer\n1,q,x\n1,r,y\n")
    suite(tmp_path, "rubric", '["a.csv"]')
    ran = call("run")
    assert ran.code == 3 and is_told(ran.err, "store.repeated_ids")
    (tmp_path / "a.csv").write_text("id,question,answer\n1,q,x\n2,q,x\n1,r,y\n")
    suite(tmp_path, "rubric", '["a.csv", "a.csv"]')
    refused = call("run").err
    assert refused.count('"1" (') == refused.count('"2" (') == 1


def test_a_unique_part_of_an_id_is_enough(call, tmp_path):
    (tmp_path / "a.csv").write_text(LONG)
    suite(tmp_path, "rubric", '["a.csv"]')
    assert call("run").code == 0
    unit = call("show", "latest", f"M2/{SKY[:4]}", "--json")
    assert unit.json["unit"]["id"] == f"m2/{SKY}"
    ran = call("show", "latest", SKY)
    assert ran.code == 2 and is_told(ran.err, "cli.several_units", n="2 units", part=SKY)
    assert f'"m1/{SKY}", "m2/{SKY}"' in ran.err
    assert is_told(call("show", "latest", "m3").err, "cli.no_such_unit", part="m3")


def test_a_task_is_called_by_its_name_where_that_is_enough(call, tmp_path):
    rows = [{"task_name": name, "prompt": f"{name}?", "answer": "It is."} for name in ("t", "u")]
    write_rows(tmp_path, rows, "a.jsonl")
    suite(tmp_path, "weighted", '["a.jsonl"]')
    assert list(units(call)) == ["t", "u"]
    write_rows(tmp_path, [row | {"model": "m"} for row in [*rows, rows[0]]], "a.jsonl")
    first, _, third = units(call)
    assert first.startswith("t/m/") and third.endswith("#3"), "alike: the question and the row"


def test_a_run_or_variant_that_is_called_like_its_task_is_part_of_the_id(call, tmp_path):
    ids = [f"{task}/{run}/{variant}" for task in (1, 2) for run in (1, 2) for variant in (1, 2)]
    rows = [ident.replace("/", ",") + f",do {ident[0]},worth 1\n" for ident in ids]
    (tmp_path / "a.csv").write_text("task_name,run_id,variant,prompt,answer\n" + "".join(rows))
    suite(tmp_path, "weighted", '["a.csv"]')
    assert list(units(call)) == ids


@pytest.mark.parametrize("question", [1, "1"])
def test_a_question_that_a_task_is_named_after_is_named_once(call, tmp_path, question):
    rows = [
        {"question_id": question, "prompt": "q", "model": model, "answer": "worth 1"}
        for model in ("1", "m")
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    suite(tmp_path, "weighted", '["a.json"]')
    assert list(units(call)) == ["1/1", "1/m"]


def write_variants(folder, header, *tables):
    """A file per variant, v1 first, and the entry `data` for them."""
    for number, rows in enumerate(tables, 1):
        (folder / f"v{number}.csv").write_text(f"{header}\n{rows}", encoding="utf-8")
    names = [f"v{number}" for number in range(1, len(tables) + 1)]
    entries = [f'{{ file = "{name}.csv", prompt_variant = "{name}" }}' for name in names]
    return f"[{', '.join(entries)}]"


@pytest.mark.parametrize(
    ("protocol", "ids"),
    [("rubric", ["v1/1", "v1/2", "v2/1", "v2/2"]), ("weighted", ["1/v1", "2/v1", "1/v2", "2/v2"])],
)
def test_ids_that_repeat_from_variant_to_variant_are_those_of_questions(
    call, tmp_path, protocol, ids
):
    header, tables = "номер,question,answer", [f"1,q,worth {n}\n2,r,worth 3\n" for n in (1, 2)]
    suite(tmp_path, protocol, write_variants(tmp_path, header, *tables))
    (line,) = [line for line in call("run", "--dry-run").err.splitlines() if "question_id" in line]
    assert is_told(line, "data.ids_of_questions", files='"v1.csv" and 1 more')
    assert list(units(call)) == ids
    rows = call("compare", "latest", "--by", "prompt_variant", "--json").json["rows"]
    assert {(row["variant"], row["n"]) for row in rows} == {("v2", 2)}


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1, "model_output": "worth 1", "meta": {"area": "sums"}},
        {"id": 0, "answer": "worth 1"},
    ],
    ids=["with meta", "0"],
)
def test_ids_of_rows_that_a_file_lays_out_with_meta_may_be_those_of_questions(call, tmp_path, row):
    for name in ("v1", "v2"):
        write_rows(tmp_path, [{"question": "q", **row}], f"{name}.jsonl")
    entries = [f'{{ file = "{name}.jsonl", prompt_variant = "{name}" }}' for name in ("v1", "v2")]
    suite(tmp_path, "rubric", f"[{', '.join(entries)}]")
    assert list(units(call)) == [f"v1/{row['id']}", f"v2/{row['id']}"]


def test_ids_that_are_unique_over_all_files_stay(call, tmp_path):
    data = write_variants(tmp_path, "id,question,answer", "1,q,x\n2,r,y\n", "3,q,x\n4,r,y\n")
    suite(tmp_path, "rubric", data)
    assert list(units(call)) == ["1", "2", "3", "4"]
    assert "question_id" not in call("run", "--dry-run").err


def test_numbers_of_rows_in_files_that_differ_in_length_are_not_those_of_questions(call, tmp_path):
    """As v2 leaves a question out, its later numbers are those of other questions in v1."""
    data = write_variants(
        tmp_path, "№,question,answer", "1,q,worth 1\n2,r,worth 2\n3,s,worth 3\n", "1,q,x\n2,s,y\n"
    )
    suite(tmp_path, "rubric", data)
    ran = call("run", "--dry-run")
    assert is_told(ran.err, "data.ids_of_rows", files='"v1.csv" and 1 more')
    read = units(call)
    questions: dict[str, set[str]] = {}
    for unit in read.values():
        questions.setdefault(unit["question"], set()).add(unit["meta"]["question_id"])
    assert len(read) == 5 and {len(ids) for ids in questions.values()} == {1}


def test_questions_of_one_id_that_are_worded_differently_are_told(call, tmp_path):
    data = write_variants(tmp_path, "id,prompt,answer", "1,Be brief: q,x\n", "1,Be long: q,y\n")
    suite(tmp_path, "rubric", data)
    ran = call("run", "--dry-run")
    assert ran.code == 0 and is_told(ran.err, "data.ids_reworded", n="1 question", total=1)


@pytest.mark.parametrize("numbers", [(0, 1), ("0", "1")])
@pytest.mark.parametrize("name", ["question_id", "id"])
def test_the_number_0_is_an_id_like_any_other(call, tmp_path, name, numbers):
    rows = [
        {name: number, "question": f"q {number}", "model": model, "answer": f"worth {worth}"}
        for number in numbers
        for worth, model in enumerate(("old", "new"))
    ]
    if name == "question_id":  # which says alone that these are one question
        rows = [row | {"question": f"{row['question']} of {row['model']}"} for row in rows]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    suite(tmp_path, "pairwise", '["a.jsonl"]')
    assert list(units(call)) == ["0#new~old", "1#new~old"]
