"""The command `export`: judgments and observations, in every format."""

from __future__ import annotations

import csv
import json
import sqlite3

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
    pair_row,
    pairs,
    samples,
    stored,
    write_answers,
    write_pairs,
    write_suite,
)
from tests.unit.cli.conftest import NEWEST
from tests.unit.kinds.grading import KEYS

UNSURE, STRICT, BAD = ({"model": f"python/judge:{name}"} for name in ("unsure", "strict", "bad"))


MIXED = ({"model": "python/judge:good"}, {"model": "python/judge:bad"})


@pytest.fixture
def run(call, tmp_path):
    """A run of three units by two judges, one of which fails."""
    write_suite(tmp_path, 3, *MIXED)
    found: str = call.json("run")["run"]
    return found


def test_the_contract_s_own_objects_are_exported(call, run):
    rows = [json.loads(line) for line in call(f"export {run} -o -").out.splitlines()]
    assert [list(row) for row in rows] == [["meta", "scores", "failure_tags", "notes"]] * 3
    assert [row["meta"] for row in rows] == [row["meta"] for row in samples(3)]


def test_full_rows_have_the_pinned_keys(call, run):
    rows = [json.loads(line) for line in call("export --full -o -").out.splitlines()]
    pinned = {"unit", "judge", "repeat", "status", "reason", "output", "evidence", "passes"}
    assert all(row.keys() >= pinned | {"fixes", "flags"} for row in rows)
    assert [row["reason"] for row in rows] == [None, "schema"] * 3
    assert rows[0]["evidence"][0].keys() == {"dimension", "start", "end", "match"}


LEANING_JUDGE = """
import json, re
BLOCK = re.compile(r"\\[\\[(\\w+) ([0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1 \\2\\]\\]", re.DOTALL)

async def judge(messages, schema, params):
    "Prefers what it sees first, and says what that is."
    shown = {name: text for name, _, text in BLOCK.findall(messages[-1]["content"])}
    criteria = {
        c: {"first_meets": True, "second_meets": False, "comment": f"{c} says so", "mark": "A+"}
        for c in ("C1", "C2", "C3", "C4", "C5")
    }
    explanation = f"Candidate 1 says {shown['candidate_1']}"
    return json.dumps({"criteria": criteria, "explanation": explanation, "winner": "A"})
"""


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


JUDGE = {"model": "python/judge:judge"}


ROUND = {"max_rounds": 1}


def leaning(folder, number=2):
    rows = [pair_row(f"p{i}", 1, 2, topic=f"Topic {i}?") for i in range(number)]
    write_pairs(folder, rows, JUDGE, judge=LEANING_JUDGE, settings=ROUND)


def exported(call, folder, name, *options):
    call.ok(f"export latest -o {name}", *options)
    text = (folder / name).read_text()
    if name.endswith(".csv"):
        return list(csv.DictReader(text.splitlines()))
    return [json.loads(line) for line in text.splitlines()]


def test_every_pass_says_what_it_said_to_every_criterion(call, tmp_path):
    leaning(tmp_path)
    call("run")
    row = exported(call, tmp_path, "full.jsonl", "--full")[0]
    passes = {one["order"]: one for one in row["passes"]}
    said = {"first_meets": True, "second_meets": False, "comment": "C4 says so", "mark": "A+"}
    assert passes["12"]["criteria"]["C4"] == said
    # Of the candidates of the file, whichever was shown first.
    turned = {"first_meets": False, "second_meets": True, "comment": "C4 says so", "mark": "B+"}
    assert passes["21"]["criteria"]["C4"] == turned
    assert passes["21"]["explanation"].startswith("Candidate 1 says A reply")


def test_tables_have_a_column_for_each(call, tmp_path):
    leaning(tmp_path)
    call("run")
    row = exported(call, tmp_path, "full.csv", "--full")[0]
    assert row["pass.1.12.criteria.C1.first_meets"] == "true"
    assert row["pass.1.21.criteria.C1.first_meets"] == "false"
    assert row["pass.1.21.criteria.C1.mark"] == "B+"
    assert row["pass.1.12.criteria.C5.comment"] == "C5 says so"
    assert row["pass.1.21.winner"] == "B"
    assert row["pass.1.21.explanation"].startswith("Candidate 1 says A reply")
    # The list itself is there too, as JSON.
    assert len(json.loads(row["passes"])) == 2


@pytest.mark.parametrize("write", [leaning, write_suite, write_answers])
def test_rows_from_python_are_plain_json(tmp_path, write):
    write(tmp_path, 2)
    run = evenhand.run(tmp_path)
    rows = run.judgments()
    assert len(rows) == 2
    assert json.loads(json.dumps(rows)) == rows
    archive = open_archive("sqlite:evenhand.db", tmp_path)
    try:
        assert list(full_rows(archive, find_run(archive, run.id))) == rows
    finally:
        archive.close()


def test_an_uncertain_pair_keeps_the_reasons_of_both_sides(call, tmp_path):
    leaning(tmp_path)
    call("run")
    notes = exported(call, tmp_path, "out.jsonl")[0]["notes"]
    both = (
        "A shown first: Candidate 1 says An answer worth 1."
        " B shown first: Candidate 1 says A reply worth 2."
    )
    assert notes == both
    assert both in " ".join(call("show latest p0").out.split())
    assert exported(call, tmp_path, "full.jsonl", "--full")[0]["output"]["notes"] == both
    call("export latest -o verdicts.txt")
    assert both in (tmp_path / "verdicts.txt").read_text()
    call("report latest -o report.html")
    assert (
        "B shown first: Candidate 1 says A reply worth 2." in (tmp_path / "report.html").read_text()
    )


def test_verdicts_with_notes_are_counted_and_listed(call, tmp_path):
    write_suite(tmp_path, samples(5), JUDGE, judge=NOTES_JUDGE)
    assert call.json("run")["rubric"] == {"notes": 2}
    assert call.json("show")["rubric"] == {"notes": 2}
    assert is_told(call("run").out, "unit.noted", n=2)
    rows = exported(call, tmp_path, "notes.jsonl", "--only", "notes")
    assert [row["notes"] for row in rows] == [
        f"Cannot verify: Answer number {i}"[:30] for i in (1, 3)
    ]
    assert len(exported(call, tmp_path, "full.jsonl", "--full", "--only", "notes")) == 2
    listed = call("show latest --only notes").out
    assert "Cannot verify: Answer number 1"[:29] in listed
    assert "u1" in listed and "u3" in listed
    assert "u2" not in listed


def test_export_gives_the_contracts_own_objects(call, tmp_path):
    write_answers(tmp_path, 6, UNSURE)
    call("run")
    said = call("export latest -o -")
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert len(rows) == 6
    assert all(list(row) == KEYS for row in rows)
    call.ok("export latest -o out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        assert [row["total_score"] for row in csv.DictReader(file)] == ["21", "21", "0"] * 2


@pytest.mark.parametrize("full", [False, True])
def test_export_only_low_confidence(call, tmp_path, full):
    rows = [*answers(6), *({**row, "task_name": "x", "id": "bad"} for row in answers(1))]
    write_answers(tmp_path, rows, UNSURE)
    call("run")
    options = ("--only", "low-confidence", *(("--full",) if full else ()))
    said = call.ok("export latest -o -", *options)
    found = [json.loads(line) for line in said.out.splitlines()]
    outputs = [row["output"] if full else row for row in found]
    assert [row["task_name"] for row in outputs] == ["t1", "t4"]
    assert {row["confidence"] for row in outputs} == {"low"}
    written = call("export latest -o low.jsonl", *options)
    assert is_told(written.err, "cli.rows_written", n="2 rows", path="low.jsonl")


def test_a_critical_fail_by_the_judge_and_a_failure(call, tmp_path):
    write_answers(tmp_path, 3, STRICT, BAD)
    found = call.json("run")
    assert found["failures"] == {"schema": 2}
    assert found["weighted"]["critical_fails"] == 4
    strict = [row for row in stored(tmp_path) if row["judge"] == STRICT["model"]]
    assert [row["output"]["critical_fail_reason"][:8] for row in strict] == [
        "It lies.",
        "It lies.",
        "Decided ",
    ]
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


def view(folder, run, name="observations"):
    """The rows of a view that are about a run."""
    connection = sqlite3.connect(folder / "evenhand.db")
    connection.row_factory = sqlite3.Row
    rows = connection.execute(f"SELECT * FROM {name} WHERE run = ?", [run]).fetchall()
    connection.close()
    return [dict(row) for row in rows]


def sorted_rows(rows):
    return sorted(json.dumps(dict(row)) for row in rows)


@pytest.mark.parametrize(("kind", "text"), [("votes", VOTES), ("scores", SCORES)])
def test_an_import_stores_what_its_judgments_say_when_they_are_measured_again(
    call, tmp_path, kind, text
):
    (tmp_path / "t.csv").write_text(text)
    run = call.json(f"import t.csv --kind {kind}")["run"]
    archive = open_archive("sqlite:evenhand.db", tmp_path)
    recorded = find_run(archive, run)
    for _, kept in archive.judgments(recorded.scope):
        judgment = recorded.judgment(kept)
        if kind == "votes":
            measured = list(observe_votes(measure_votes(judgment)))
        else:
            scored = measure_scores(judgment)
            measured = list(observe_scores(scored, {}, "ABCDE")) if scored else []
        assert json.loads(kept.text.observations) == json.loads(
            json.dumps([list(_fields(each)) for each in measured])
        )
    archive.close()
    assert view(tmp_path, run)


def _fields(observation):
    names = ("measure", "value", "points", "max_points", "pass_number", "position")
    return tuple(getattr(observation, name) for name in names)


def test_scores_in_the_views(call, tmp_path):
    (tmp_path / "t.csv").write_text(SCORES)
    run = call.json("import t.csv --kind scores")["run"]
    rows = {(row["unit"], row["measure"]): row for row in view(tmp_path, run)}
    # Nobody says on which scale: points are kept, and no share.
    assert rows["q1/m1", "clear"]["points"] == 3 and rows["q1/m1", "clear"]["value"] is None
    assert rows["q1/m1", "tag:B"]["value"] == 1 and rows["q1/m2", "tag:B"]["value"] == 0
    assert ("q1/m2", "true") not in rows
    fields = {
        (row["unit"], row["field"]): row["value"] for row in view(tmp_path, run, "unit_fields")
    }
    assert fields["q1/m2", "model"] == "m2" and fields["q1/m2", "unit"] == "q1"


@pytest.mark.parametrize("is_pairs", [True, False])
def test_exported_observations_are_those_of_the_view(call, tmp_path, is_pairs):
    if is_pairs:
        write_pairs(tmp_path, pairs(4))
    else:
        write_suite(tmp_path, 4)
    run = call.json("run")["run"]
    expected = sorted_rows(view(tmp_path, run))
    for name in ("o.jsonl", "o.parquet"):
        call.ok(f"export {run} --observations -o {name}")
        found = [row.value for row in read_rows(tmp_path / name)]
        assert [list(row) for row in found[:1]] == [list(json.loads(expected[0]))]
        assert len(found) == len(expected)
        assert sum(row["value"] or 0 for row in found) == pytest.approx(
            sum(json.loads(row)["value"] or 0 for row in expected)
        )
    call.ok(f"export {run} --observations -o o.csv")
    with (tmp_path / "o.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(expected)
    assert sorted_rows(evenhand.open(run).observations()) == expected
    frame = evenhand.open(run).observations().to_pandas()
    assert len(frame) == len(expected) and "measure" in frame.columns


def test_selected_units_alone_are_exported(call, tmp_path):
    (tmp_path / "t.csv").write_text(VOTES)
    call("import t.csv --kind votes")
    call(f"export {NEWEST} --observations --where area=prose -o o.jsonl")
    lines = (tmp_path / "o.jsonl").read_text().splitlines()
    assert {json.loads(line)["unit"] for line in lines} == {"q2"}
    refused = call(f"export {NEWEST} --observations --full -o p.jsonl")
    assert refused.code == 2


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet", "jsonl.gz"])
def test_export_writes_every_format(call, run, tmp_path, ending):
    out = tmp_path / f"out.{ending}"
    for number, more in ((3, ()), (6, ("--full",))):
        said = call(f"export {run} -o {out.name}", *more)
        assert (said.code, said.out) == (0, "")
        assert is_told(said.err, "cli.failures_not_written", n="3 failures") is (not more)
        assert sum(1 for _ in read_rows(out)) == number
    assert call("export -o out.docx").code == 2


def test_only_low_confidence_is_of_grades(call, tmp_path):
    write_pairs(tmp_path / "pairs", 2)
    call("run pairs")
    store = ("--store", "sqlite:pairs/evenhand.db")
    for more in ((), ("--full",)):
        said = call("export", *store, "-o", "x.jsonl", *more, "--only", "low-confidence")
        assert said.code == 2 and is_told(said.err, "results.no_such_mark"), said.err
        assert not (tmp_path / "x.jsonl").exists()
    write_answers(tmp_path, 1)
    call("run")
    table = call("export latest -o x.txt")
    assert table.code == 2 and is_told(table.err, "cli.table_of_pairs")
    assert call("export latest -o x.jsonl --only high").code == 2
