"""The command `check`: replies from elsewhere and rubrics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenhand.units import question_hash
from tests.sentences import is_told
from tests.suites import (
    RUBRIC,
    TASK,
    answers,
    samples,
    stored,
    write_answers,
    write_rows,
)

UNSURE = {"model": "python/judge:unsure"}


def scores(**changed):
    given = {"evidence": ["Answer number 0"], "rationale": "fits", "score": 3} | changed
    return {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}


@pytest.fixture
def replies(tmp_path):
    """The arguments of a check of three replies: in order, fenced, and wrong."""
    write_rows(tmp_path, samples(3), "units.jsonl")
    (tmp_path / "rubric.json").write_text(json.dumps(RUBRIC))
    fenced = f"```json\n{json.dumps(scores(evidence=['Answer number 1']))}\n```"
    given = {"u0": scores(), "u1": fenced, "u2": "{}"}
    rows = [{"unit": unit, "reply": reply} for unit, reply in given.items()]
    write_rows(tmp_path, rows, "replies.jsonl")
    named = "--units units.jsonl --replies replies.jsonl --rubric rubric.json"
    return ["check", *named.split()]


def test_check_finds_problems_and_fixes(call, replies):
    said = call(*replies, "--json")
    assert said.code == 1
    assert (said.json["units"], said.json["ok"]) == (3, 2)
    assert {p["unit"] for p in said.json["problems"]} == {"u2"}
    assert all(p.keys() == {"unit", "code", "path", "message"} for p in said.json["problems"])
    assert said.json["fixes"] == [{"unit": "u1", "code": "unwrapped", "path": ""}]
    assert "u2: schema: scores: missing" in call(*replies).out


def test_check_of_a_rubric(call, tmp_path):
    rubric = json.loads(json.dumps(RUBRIC))
    for change, place, key in (
        ({}, "", ""),
        ({"id": "correct"}, "rubric.json:", "kinds.same_value"),
        ({"id": "clear", "definition": "\ud800"}, "rubric.json:23: ", "kinds.no_json_value"),
    ):
        rubric["dimensions"][1] |= change
        (tmp_path / "rubric.json").write_text(json.dumps(rubric, indent=1))
        said = call("check --rubric rubric.json --json")
        assert said.code == (2 if change else 0) and place in said.err
        assert is_told(said.err, key) if key else said.json["ok"] is True
    assert call("check").code == 2


def check_grades(call, folder, rows, *more):
    write_rows(folder, answers(3), "units.jsonl")
    write_rows(folder, rows, "replies.jsonl")
    files = ("--units", "units.jsonl", "--replies", "replies.jsonl")
    return call("check --protocol weighted", *files, *more)


def test_check_of_raw_replies(call, tmp_path):
    write_answers(tmp_path, 3, UNSURE)
    call("run")
    shown = call.json("show latest t0/m")
    raw = shown["judgments"][0]["exchanges"][0]["reply"]
    text = raw if isinstance(raw, str) else raw["text"]
    rows: list[Any] = [
        {"unit": "t0/m", "reply": text},
        {"unit": "t1/m", "reply": f"```\n{text}\n```"},
        {"unit": "t0/m", "reply": text.replace("7", '"seven"', 1)},
        {"unit": "t1/m", "reply": "no"},
        {"unit": "t2/m", "reply": text},
    ]
    said = check_grades(call, tmp_path, rows, "--json")
    assert said.code == 1
    found = said.json
    assert (found["units"], found["ok"]) == (5, 3)
    assert [(one["unit"], one["code"]) for one in found["problems"]] == [
        ("t0/m", "schema"),
        ("t1/m", "not_json"),
    ]
    assert [(one["unit"], one["code"], one["path"]) for one in found["fixes"]] == [
        ("t1/m", "unwrapped", ""),
        ("t2/m", "zeroed", "critical_fail"),
        ("t2/m", "zeroed", "score"),
    ]


def test_what_was_exported_passes_the_check(call, tmp_path):
    write_answers(tmp_path, 3, UNSURE)
    call("run")
    call("export latest -o out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    said = check_grades(call, tmp_path, rows, "--json")
    assert (said.code, said.json["ok"], said.json["fixes"]) == (0, 3, []), said.out
    rows[0]["total_score"] += 3
    rows[1]["weights"] = {}
    found = check_grades(call, tmp_path, rows, "--json").json
    assert [one["code"] for one in found["fixes"]] == ["total", "weights"]
    rows[0]["total_score"] += 1
    found = check_grades(call, tmp_path, rows, "--json").json
    assert [(one["unit"], one["path"]) for one in found["problems"]] == [("t0/m", "total_score")]


def test_an_output_object_of_which_task_is_not_plain(call, tmp_path):
    write_answers(tmp_path, 1)
    call("run")
    (row,) = stored(tmp_path)
    said = check_grades(call, tmp_path, [row["output"] | {"task_name": "t9"}])
    assert said.code == 3 and is_told(said.err, "files.no_unit", id="t9")
    said = check_grades(call, tmp_path, [{"score": 1}])
    assert (said.code, "replies.jsonl:1" in said.err) == (3, True)
    twice = [one | {"id": f"{number}"} for number, one in enumerate(answers(1) * 2)]
    write_rows(tmp_path, twice, "units.jsonl")
    write_rows(tmp_path, [row["output"]], "replies.jsonl")
    files = ("--units", "units.jsonl", "--replies", "replies.jsonl")
    said = call("check --protocol weighted", *files)
    assert said.code == 3 and '"t0"' in said.err


def test_check_a_rubric_shows_what_was_understood(call, tmp_path):
    facts = "\n## Facts for the grader\n\n- Paris is the capital.\n"
    (tmp_path / "task.md").write_text(TASK + "- max_chars: 90\n" + facts)
    said = call.ok("check --rubric task.md")
    assert is_told(said.out, "kinds.read_type", type="fact")
    lines = {"  - It lies.", "  - Paris is the capital.", "  - +60 if it is right"}
    assert lines <= set(said.out.splitlines())
    for condition, line in (("must_not_match: /forbidden/i", 8), ("max_chars: 90", 9)):
        assert f"- {condition} (" in said.out and is_told(
            said.out, "kinds.read_condition", line=line
        )
    assert call.json("check --rubric task.md") == {
        "ok": True,
        "task_type": "fact",
        "critical": ["It lies."],
        "conditions": [
            {"kind": "must_not_match", "pattern": "forbidden", "flags": "i", "line": 8},
            {"kind": "max_chars", "limit": 90, "line": 9},
        ],
        "facts": "- Paris is the capital.",
        "points": "- +60 if it is right",
    }


def test_check_a_rubric_of_another_protocol(call, tmp_path):
    call("protocols new mine --from weighted")
    path = tmp_path / "mine" / "protocol.toml"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"fact"', '"recall"'), encoding="utf-8"
    )
    (tmp_path / "task.md").write_text("task_type: recall\n\n- right\n")
    call.ok("check --protocol mine --rubric task.md")
    said = call("check --rubric task.md")
    assert said.code == 2 and "task.md:1: " in said.err
    assert is_told(said.err, "kinds.unknown_type", name="recall")


def test_check_of_good_replies_is_exit_0_and_of_an_unknown_unit_3(call, replies, tmp_path):
    unit = samples(1)[0]
    del unit["id"]
    write_rows(tmp_path, [unit], "units.jsonl")
    write_rows(tmp_path, [{"meta": unit["meta"], **scores()}], "replies.jsonl")
    said = call(*replies, "--json")
    assert (said.code, said.json["ok"], said.json["problems"]) == (0, 1, [])
    write_rows(tmp_path, [{"unit": "nobody", "reply": "{}"}], "replies.jsonl")
    said = call(*replies, "--json")
    assert (said.code, said.out) == (3, "") and "replies.jsonl:1" in said.err


def test_check_a_rubric_that_cannot_be_read(call, tmp_path):
    (tmp_path / "task.md").write_text("task_type: fact\ntask_type: creative\n")
    for more in ((), ("--json",)):
        done = call("check --rubric task.md", *more)
        assert (done.code, done.out) == (2, "")
        assert "task.md:2: " in done.err and is_told(done.err, "kinds.two_types")


def test_replies_made_elsewhere_are_checked_against_any_table(call, tmp_path):
    (tmp_path / "units.csv").write_text("question,model,answer\nWhy?,m1,Answer number 0.\n")
    (tmp_path / "rubric.json").write_text(json.dumps(RUBRIC))
    line = {"unit": f"m1/{question_hash('Why?')}", "reply": json.dumps(scores())}
    write_rows(tmp_path, [line], "replies.jsonl")
    files = ("--units", "units.csv", "--replies", "replies.jsonl", "--rubric", "rubric.json")
    checked = call("check --protocol rubric", *files, "--json")
    assert checked.json["ok"] == 1 and not checked.json["problems"]
