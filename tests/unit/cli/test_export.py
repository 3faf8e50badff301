"""The command `export`: judgments and observations, in every format."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import evenhand
from evenhand.data.read import read_rows
from evenhand.kinds.pairwise.verdict import measure_judgment as measure_votes
from evenhand.kinds.rubric.verdict import measure_judgment as measure_scores
from evenhand.observation import observe_scores, observe_votes
from evenhand.results.units import full_rows
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests.sentences import is_told
from tests.suites import (
    answers,
    samples,
    stored,
    write_answers,
    write_pairs,
    write_suite,
)
from tests.unit.cli.conftest import NEWEST, leaning, put, values
from tests.unit.kinds.grading import KEYS

NOTES_JUDGE = """
import json, re
ANSWER = re.compile(r"\\[\\[(model_output [0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1\\]\\]", re.DOTALL)

async def judge(messages, schema, params):
    "Has doubts about every answer with an odd number."
    text = ANSWER.search("\\n".join(m["content"] for m in messages))[2]
    given = {"evidence": [text[:20]], "rationale": "fits", "score": 3}
    is_odd = int(re.search(r"\\d+", text)[0]) % 2
    notes = f"Cannot verify: {text[:15]}" if is_odd else ""
    return json.dumps(
        {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": notes}
    )
"""
VOTES = """unit,judge,first,second,winner,area
q1,j,a,b,a,code
q1,j,b,a,a,code
q2,j,a,b,tie,prose
q2,j,b,a,?,prose
"""
SCORES = """unit,judge,model,dimension,score,failure_tags
q1,j,m1,clear,3,B
q1,j,m1,true,4,
q1,j,m2,clear,5,
q1,j,m2,true,,
"""


def table(name):
    with Path(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_contract_s_own_objects_are_exported(call, mixed):
    rows = call.export(mixed)
    assert [list(row) for row in rows] == [["meta", "scores", "failure_tags", "notes"]] * 3
    assert [row["meta"] for row in rows] == [row["meta"] for row in samples(3)]


def test_full_rows_have_the_pinned_keys(call, mixed):
    rows = call.export("--full")
    pinned = "unit judge repeat status reason output evidence passes fixes flags"
    assert all(row.keys() >= set(pinned.split()) for row in rows)
    assert [row["reason"] for row in rows] == [None, "schema"] * 3
    assert rows[0]["evidence"][0].keys() == {"dimension", "start", "end", "match"}


def test_every_pass_says_what_it_said_to_every_criterion(call, tmp_path):
    leaning(tmp_path)
    call("run")
    passes = {one["order"]: one for one in call.export("--full")[0]["passes"]}
    # Of the candidates of the file, whichever was shown first.
    for order, is_first, mark in (("12", True, "A+"), ("21", False, "B+")):
        said = {"first_meets": is_first, "second_meets": not is_first, "comment": "C4 says so"}
        assert passes[order]["criteria"]["C4"] == said | {"mark": mark}
    assert passes["21"]["explanation"].startswith("Candidate 1 says A reply")


def test_tables_have_a_column_for_each(call, tmp_path):
    leaning(tmp_path)
    call("run")
    call.ok("export latest --full -o full.csv")
    row = table("full.csv")[0]
    assert {name: row[f"pass.1.{name}"] for name in PASSES} == PASSES
    assert row["pass.1.21.explanation"].startswith("Candidate 1 says A reply")
    # The list itself is there too, as JSON.
    assert len(json.loads(row["passes"])) == 2


PASSES = {
    **{"12.criteria.C1.first_meets": "true", "21.criteria.C1.first_meets": "false"},
    **{"21.criteria.C1.mark": "B+", "12.criteria.C5.comment": "C5 says so", "21.winner": "B"},
}


@pytest.mark.parametrize("write", [leaning, write_suite, write_answers])
def test_rows_from_python_are_plain_json(tmp_path, write):
    write(tmp_path, 2)
    run = evenhand.run(tmp_path)
    rows = run.judgments()
    assert len(rows) == 2 and json.loads(json.dumps(rows)) == rows
    with closing(open_archive("sqlite:evenhand.db", tmp_path)) as archive:
        assert list(full_rows(archive, find_run(archive, run.id))) == rows


def test_an_uncertain_pair_keeps_the_reasons_of_both_sides(call, tmp_path):
    leaning(tmp_path)
    call("run")
    other = "B shown first: Candidate 1 says A reply worth 2."
    both = f"A shown first: Candidate 1 says An answer worth 1. {other}"
    assert call.export()[0]["notes"] == both
    assert call.export("--full")[0]["output"]["notes"] == both
    assert both in call("show latest p0").text
    call("export latest -o verdicts.txt")
    assert both in Path("verdicts.txt").read_text()
    call("report latest -o report.html")
    assert other in Path("report.html").read_text()


def test_verdicts_with_notes_are_counted_and_listed(call, tmp_path):
    write_suite(tmp_path, samples(5), "judge", judge=NOTES_JUDGE)
    for command in ("run", "show"):
        assert call.json(command)["rubric"] == {"notes": 2}
    assert is_told(call("run").out, "unit.noted", n=2)
    notes = [f"Cannot verify: Answer number {i}"[:30] for i in (1, 3)]
    assert [row["notes"] for row in call.export("--only notes")] == notes
    assert len(call.export("--full --only notes")) == 2
    listed = call("show latest --only notes").out
    assert all(part in listed for part in (notes[0][:29], "u1", "u3")) and "u2" not in listed


def test_export_gives_the_contracts_own_objects(call, tmp_path):
    write_answers(tmp_path, 6, "unsure")
    call("run")
    rows = call.export()
    assert len(rows) == 6 and all(list(row) == KEYS for row in rows)
    call.ok("export latest -o out.csv")
    assert [row["total_score"] for row in table("out.csv")] == ["21", "21", "0"] * 2


@pytest.mark.parametrize("full", ["", "--full"])
def test_export_only_low_confidence(call, tmp_path, full):
    rows = [*answers(6), *({**row, "task_name": "x", "id": "bad"} for row in answers(1))]
    write_answers(tmp_path, rows, "unsure")
    call("run")
    options = f"--only low-confidence {full}"
    outputs = [row["output"] if full else row for row in call.export(options)]
    found = [(row["task_name"], row["confidence"]) for row in outputs]
    assert found == [("t1", "low"), ("t4", "low")]
    said = call(f"export latest -o low.jsonl {options}").err
    assert is_told(said, "cli.rows_written", n="2 rows", path="low.jsonl")


def test_a_critical_fail_by_the_judge_and_a_failure(call, tmp_path):
    write_answers(tmp_path, 3, "strict", "bad")
    found = call("run --json").json
    assert found["failures"] == {"schema": 2} and found["weighted"]["critical_fails"] == 4
    strict = [row for row in stored(tmp_path) if row["judge"] == "python/judge:strict"]
    reasons = [row["output"]["critical_fail_reason"][:8] for row in strict]
    assert reasons == ["It lies.", "It lies.", "Decided "]
    assert [[fix["code"] for fix in row["fixes"]] for row in strict] == [["zeroed"]] * 2 + [[]]


def test_export_tells_of_answers_that_share_a_task_name(call, tmp_path):
    """The contract's own objects are told apart by their task's name alone."""
    write_answers(tmp_path)
    call.ok("run")
    assert not is_told(call("export -o apart.jsonl").err, "cli.namesakes")
    again = [{**row, "meta": {"model": "n"}} for row in answers(2)]
    write_answers(tmp_path, [*answers(3), *again])
    call.ok("run")
    assert is_told(call("export -o g.jsonl").err, "cli.namesakes", n="4 units")
    assert not is_told(call("export --full -o full.jsonl").err, "cli.namesakes")


def view(folder, run, name="observations"):
    """The rows of a view that are about a run."""
    with closing(sqlite3.connect(folder / "evenhand.db")) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute(f"SELECT * FROM {name} WHERE run = ?", [run])
        return [dict(row) for row in rows]


def sorted_rows(rows):
    return sorted(json.dumps(dict(row)) for row in rows)


MEASURED = ("measure", "value", "points", "max_points", "pass_number", "position")


@pytest.mark.parametrize(("kind", "text"), [("votes", VOTES), ("scores", SCORES)])
def test_an_import_stores_what_its_judgments_say_when_they_are_measured_again(
    call, tmp_path, kind, text
):
    put("t.csv", text)
    run = call.json(f"import t.csv --kind {kind}")["run"]
    with closing(open_archive("sqlite:evenhand.db", tmp_path)) as archive:
        recorded = find_run(archive, run)
        for _, kept in archive.judgments(recorded.scope):
            judgment = recorded.judgment(kept)
            if kind == "votes":
                measured = list(observe_votes(measure_votes(judgment)))
            else:
                scored = measure_scores(judgment)
                measured = list(observe_scores(scored, {}, "ABCDE")) if scored else []
            rows = [[getattr(each, name) for name in MEASURED] for each in measured]
            assert json.loads(kept.text.observations) == json.loads(json.dumps(rows))
    assert view(tmp_path, run)


def test_scores_in_the_views(call, tmp_path):
    put("t.csv", SCORES)
    run = call.json("import t.csv --kind scores")["run"]
    rows = {(row["unit"], row["measure"]): row for row in view(tmp_path, run)}
    # Nobody says on which scale: points are kept, and no share.
    assert values(rows["q1/m1", "clear"], "points value") == [3, None]
    assert [rows[f"q1/{model}", "tag:B"]["value"] for model in ("m1", "m2")] == [1, 0]
    assert ("q1/m2", "true") not in rows
    fields = [values(row, "unit field value") for row in view(tmp_path, run, "unit_fields")]
    assert ["q1/m2", "model", "m2"] in fields and ["q1/m2", "unit", "q1"] in fields


@pytest.mark.parametrize("write", [write_pairs, write_suite])
def test_exported_observations_are_those_of_the_view(call, tmp_path, write):
    write(tmp_path, 4)
    run = call.run()
    rows = view(tmp_path, run)
    for name in ("o.jsonl", "o.parquet"):
        call.ok(f"export {run} --observations -o {name}")
        found = [row.value for row in read_rows(tmp_path / name)]
        assert list(found[0]) == list(rows[0]) and len(found) == len(rows)
        sums = [sum(row["value"] or 0 for row in each) for each in (found, rows)]
        assert sums[0] == pytest.approx(sums[1])
    call.ok(f"export {run} --observations -o o.csv")
    assert len(table("o.csv")) == len(rows)
    observations = evenhand.open(run).observations()
    assert sorted_rows(observations) == sorted_rows(rows)
    frame = observations.to_pandas()
    assert len(frame) == len(rows) and "measure" in frame.columns


def test_selected_units_alone_are_exported(call):
    put("t.csv", VOTES)
    call("import t.csv --kind votes")
    rows = call.export(f"{NEWEST} --observations --where area=prose")
    assert {row["unit"] for row in rows} == {"q2"}
    call.refused(f"export {NEWEST} --observations --full -o p.jsonl")


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet", "jsonl.gz"])
def test_export_writes_every_format(call, mixed, ending):
    for number, full in ((3, ""), (6, "--full")):
        said = call.ok(f"export {mixed} -o out.{ending} {full}")
        assert said.out == ""
        assert is_told(said.err, "cli.failures_not_written", n="3 failures") is (not full)
        assert sum(1 for _ in read_rows(Path(f"out.{ending}"))) == number
    call.refused("export -o out.docx")


def test_only_low_confidence_is_of_grades(call, tmp_path):
    write_pairs(tmp_path / "pairs", 2)
    call("run pairs")
    line = "export --store sqlite:pairs/evenhand.db -o x.jsonl --only low-confidence"
    for full in ("", "--full"):
        call.refused(f"{line} {full}", key="results.no_such_mark")
        assert not Path("x.jsonl").exists()
    write_answers(tmp_path, 1)
    call("run")
    call.refused("export latest -o x.txt", key="cli.table_of_pairs")
