"""Ids of units that a table makes, and which of them are about the same question."""

from __future__ import annotations

import pytest

from evenhand.units import question_hash
from tests.cases import cases
from tests.sentences import is_told
from tests.suites import (
    pair_row,
    write_rows,
)
from tests.unit.cli.conftest import put
from tests.unit.cli.tables import LONG, SKY, field, suite, table_suite, units

RUNS = "".join(
    f"q{question},{model},{run},{model} is worth {worth}\n"
    for question in (1, 2)
    for run in range(10)
    for model, worth in (("old", 1), ("new", 2))
)


def test_runs_of_one_question_are_no_questions_of_their_own(call, tmp_path):
    put("a.csv", "question,model,run_id,answer\n" + RUNS)
    suite(tmp_path, "pairwise", '["a.csv"]')
    pairs = units(call)
    assert len(pairs) == 20 and next(iter(pairs)) == f"0/{question_hash('q1')}#new~old"
    questions = {(pair["topic"], pair["meta"]["question_id"]) for pair in pairs.values()}
    assert questions == {(text, question_hash(text)) for text in ("q1", "q2")}
    compared = call.json("compare latest --baseline old")["rows"]
    assert {(row["n"], row["clusters"]) for row in compared} == {(20, 2)}
    assert {row["outcome"] for row in compared} == {"not enough evidence"}
    board = call.json("leaderboard latest")
    assert board["topics"] == 2
    # What `run` and `show` say of the orders is as sure as what the leaderboard does.
    orders = call.json("show latest")["pairwise"]["consistency"]
    assert orders["low"] == pytest.approx(board["consistency_low"])
    assert call("gate latest --candidate new --baseline old --better").code == 7


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


@cases
def test_a_table_becomes_these_units(call, protocol, rows, more, expected, told, untold):
    table_suite(protocol, rows, more)
    said = call.ok("run --dry-run").err
    assert all(is_told(said, key, **given) for key, given in told), said
    assert not any(is_told(said, key) for key in untold), said
    found = units(call)
    assert list(found) == list(expected)
    for unit, fields in expected.items():
        assert {path: field(found[unit], path) for path in fields} == fields


@pytest.mark.parametrize(
    ("protocol", "key"), [("rubric", "data.ids_of_questions"), ("pairwise", "kinds.shared_id")]
)
def test_ids_that_are_taken_for_those_of_questions_are_told_at_the_beginning(call, protocol, key):
    put("a.csv", "номер,question,model,answer\n1,q,m1,x\n1,q,m2,y\n")
    assert is_told(call.ok(f"init new --data a.csv --protocol {protocol}").out, key)


def test_ids_that_are_the_rows_own_and_repeat_are_refused(call, tmp_path):
    put("a.csv", "id,question,answer\n1,q,x\n1,r,y\n")
    suite(tmp_path, "rubric", '["a.csv"]')
    ran = call("run")
    assert ran.code == 3 and is_told(ran.err, "store.repeated_ids")
    put("a.csv", "id,question,answer\n1,q,x\n2,q,x\n1,r,y\n")
    suite(tmp_path, "rubric", '["a.csv", "a.csv"]')
    refused = call("run").err
    assert refused.count('"1" (') == refused.count('"2" (') == 1


def test_a_unique_part_of_an_id_is_enough(call, tmp_path):
    put("a.csv", LONG)
    suite(tmp_path, "rubric", '["a.csv"]')
    call.ok("run")
    unit = call(f"show latest M2/{SKY[:4]} --json")
    assert unit.json["unit"]["id"] == f"m2/{SKY}"
    ran = call(f"show latest {SKY}")
    assert ran.code == 2 and is_told(ran.err, "cli.several_units", n="2 units", part=SKY)
    assert f'"m1/{SKY}", "m2/{SKY}"' in ran.err
    assert is_told(call("show latest m3").err, "cli.no_such_unit", part="m3")
