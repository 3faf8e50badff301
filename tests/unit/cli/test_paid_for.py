"""What a judge was paid to write comes out: in exports, on the terminal, from Python."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.results.units import full_rows
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests.suites import answers, pair_row, samples, write_answers, write_pairs, write_suite
from tests.unit.cli.conftest import CallCommand

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


def leaning(folder: Path, number: int = 2) -> None:
    rows = [pair_row(f"p{i}", 1, 2, topic=f"Topic {i}?") for i in range(number)]
    write_pairs(folder, rows, JUDGE, judge=LEANING_JUDGE, settings=ROUND)


def exported(call: CallCommand, folder: Path, name: str, *options: str) -> list[dict[str, Any]]:
    assert call("export", "latest", "-o", name, *options).code == 0
    text = (folder / name).read_text()
    if name.endswith(".csv"):
        return list(csv.DictReader(text.splitlines()))
    return [json.loads(line) for line in text.splitlines()]


def test_every_pass_says_what_it_said_to_every_criterion(call: CallCommand, tmp_path: Path) -> None:
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


def test_tables_have_a_column_for_each(call: CallCommand, tmp_path: Path) -> None:
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
def test_rows_from_python_are_plain_json(tmp_path: Path, write: Any) -> None:
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


def test_an_uncertain_pair_keeps_the_reasons_of_both_sides(
    call: CallCommand, tmp_path: Path
) -> None:
    leaning(tmp_path)
    call("run")
    notes = exported(call, tmp_path, "out.jsonl")[0]["notes"]
    both = (
        "A shown first: Candidate 1 says An answer worth 1."
        " B shown first: Candidate 1 says A reply worth 2."
    )
    assert notes == both
    assert both in " ".join(call("show", "latest", "p0").out.split())
    assert exported(call, tmp_path, "full.jsonl", "--full")[0]["output"]["notes"] == both
    call("export", "latest", "-o", "verdicts.txt")
    assert both in (tmp_path / "verdicts.txt").read_text()
    call("report", "latest", "-o", "report.html")
    assert (
        "B shown first: Candidate 1 says A reply worth 2." in (tmp_path / "report.html").read_text()
    )


def test_verdicts_with_notes_are_counted_and_listed(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, samples(5), JUDGE, judge=NOTES_JUDGE)
    assert call("run", "--json").json["rubric"] == {"notes": 2}
    assert call("show", "--json").json["rubric"] == {"notes": 2}
    assert "verdicts with notes (list them with show --only notes): 2" in call("run").out
    rows = exported(call, tmp_path, "notes.jsonl", "--only", "notes")
    assert [row["notes"] for row in rows] == [
        f"Cannot verify: Answer number {i}"[:30] for i in (1, 3)
    ]
    assert len(exported(call, tmp_path, "full.jsonl", "--full", "--only", "notes")) == 2
    listed = call("show", "latest", "--only", "notes").out
    assert "Cannot verify: Answer number 1"[:29] in listed
    assert "u1" in listed and "u3" in listed
    assert "u2" not in listed


def test_low_confidence_is_listed_by_show_too(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, answers(6), {"model": "python/judge:unsure"})
    call("run")
    listed = call("show", "latest", "--only", "low-confidence").out
    assert "t1/m" in listed and "t4/m" in listed
    assert "t0/m" not in listed
    assert call("show", "latest", "--only", "notes").code == 2
    assert call("export", "latest", "--only", "notes", "-o", "x.jsonl").code == 2


def test_topics_of_two_candidates_have_fronts(call: CallCommand, tmp_path: Path) -> None:
    rows = [pair_row("won", 5, 2), pair_row("tied", 3, 3), pair_row("three", 3, 2, 1)]
    write_pairs(tmp_path, rows)
    fronts = call("run", "--json").json["pairwise"]["fronts"]
    assert {topic: sets["front"] for topic, sets in fronts.items()} == {
        "won": ["c1"],
        "tied": ["c1", "c2"],
        "three": ["c1"],
    }
    assert fronts["won"]["pareto"] == ["c1"]
    assert fronts["tied"]["pareto"] == ["c1", "c2"]
    assert call("leaderboard", "--json").json["fronts"] == fronts
    assert call("show", "--json").json["pairwise"]["fronts"] == fronts


def test_an_uncertain_pair_keeps_both_candidates(call: CallCommand, tmp_path: Path) -> None:
    leaning(tmp_path)
    fronts = call("run", "--json").json["pairwise"]["fronts"]
    assert [sets["front"] for sets in fronts.values()] == [["c1", "c2"]] * 2
    text = call("show").out
    assert "kept" in text
    assert "both candidates on 2 of 2 topics of two" in " ".join(text.split())


LONG_JUDGE = """
import json

async def judge(messages, schema, params):
    dimensions = list(schema["properties"]["score"]["properties"])
    reason = "The capital is right, and so is all else that was said of it. " * 5 + "It is brief."
    return json.dumps(
        {
            "inferred_task_type": None,
            "critical_fail": False,
            "critical_fail_reason": None,
            "reasoning": dict.fromkeys(dimensions, reason),
            "score": dict.fromkeys(dimensions, 7),
            "confidence": "high",
        }
    )
"""


def test_what_was_cut_of_a_reasoning_can_still_be_read(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, answers(1), JUDGE, judge=LONG_JUDGE)
    call("run")
    (row,) = exported(call, tmp_path, "full.jsonl", "--full")
    cut = row["output"]["reasoning"]["logic_and_fact"]
    assert len(cut) <= 200
    assert cut.endswith("…")
    assert row["passes"][0]["uncut"]["reasoning.logic_and_fact"].endswith("It is brief.")
    assert " ".join(call("show", "latest", "t0/m").out.split()).count("It is brief.") >= 4
    call("report", "latest", "-o", "report.html")
    assert "It is brief." in (tmp_path / "report.html").read_text()
