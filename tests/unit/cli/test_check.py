"""The command `check`: replies from elsewhere and rubrics."""

from __future__ import annotations

import json
from pathlib import Path

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
from tests.unit.cli.conftest import put, values


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
    return f"check {named}"


def test_check_finds_problems_and_fixes(call, replies):
    said = call(f"{replies} --json")
    found = said.json
    assert (said.code, *values(found, "units ok")) == (1, 3, 2)
    assert {p["unit"] for p in found["problems"]} == {"u2"}
    assert all(p.keys() == {"unit", "code", "path", "message"} for p in found["problems"])
    assert found["fixes"] == [{"unit": "u1", "code": "unwrapped", "path": ""}]
    assert "u2: schema: scores: missing" in call(replies).out


def test_check_of_a_rubric(call):
    rubric = json.loads(json.dumps(RUBRIC))
    for change, place, key in (
        ({}, "", ""),
        ({"id": "correct"}, "rubric.json:", "kinds.same_value"),
        ({"id": "clear", "definition": "\ud800"}, "rubric.json:23: ", "kinds.no_json_value"),
    ):
        rubric["dimensions"][1] |= change
        put("rubric.json", json.dumps(rubric, indent=1))
        said = call("check --rubric rubric.json --json")
        assert said.code == (2 if change else 0) and place in said.err
        assert is_told(said.err, key) if key else said.json["ok"] is True
    assert call("check").code == 2


GRADES = "check --protocol weighted --units units.jsonl --replies replies.jsonl"


def check_grades(call, rows):
    """How a check of replies about answers ends, and what it says."""
    write_rows(Path(), answers(3), "units.jsonl")
    write_rows(Path(), rows, "replies.jsonl")
    said = call(f"{GRADES} --json")
    return said.code, said.json


def places(found, *names):
    return [tuple(one[name] for name in ("unit", *names)) for one in found]


def test_check_of_raw_replies(call, tmp_path):
    write_answers(tmp_path, 3, "unsure")
    call("run")
    raw = call.json("show latest t0/m")["judgments"][0]["exchanges"][0]["reply"]
    text = raw if isinstance(raw, str) else raw["text"]
    replies = {
        "t0/m": (text, text.replace("7", '"seven"', 1)),
        "t1/m": (f"```\n{text}\n```", "no"),
        "t2/m": (text,),
    }
    rows = [{"unit": unit, "reply": each} for unit, both in replies.items() for each in both]
    code, found = check_grades(call, rows)
    assert (code, *values(found, "units ok")) == (1, 5, 3)
    assert places(found["problems"], "code") == [("t0/m", "schema"), ("t1/m", "not_json")]
    assert places(found["fixes"], "code", "path") == [
        ("t1/m", "unwrapped", ""),
        *(("t2/m", "zeroed", path) for path in ("critical_fail", "score")),
    ]


def test_what_was_exported_passes_the_check(call, tmp_path):
    write_answers(tmp_path, 3, "unsure")
    call("run")
    rows = call.export()
    code, found = check_grades(call, rows)
    assert (code, found["ok"], found["fixes"]) == (0, 3, [])
    rows[0]["total_score"] += 3
    rows[1]["weights"] = {}
    found = check_grades(call, rows)[1]
    assert [one["code"] for one in found["fixes"]] == ["total", "weights"]
    rows[0]["total_score"] += 1
    found = check_grades(call, rows)[1]
    assert places(found["problems"], "path") == [("t0/m", "total_score")]


def test_an_output_object_of_which_task_is_not_plain(call, tmp_path):
    write_answers(tmp_path, 1)
    call("run")
    (row,) = stored(tmp_path)
    twice = [one | {"id": f"{number}"} for number, one in enumerate(answers(1) * 2)]
    for reply, units, key, *says in (
        (row["output"] | {"task_name": "t9"}, answers(3), "files.no_unit", '"t9"'),
        ({"score": 1}, answers(3), "", "replies.jsonl:1"),
        (row["output"], twice, "", '"t0"'),
    ):
        write_rows(tmp_path, units, "units.jsonl")
        write_rows(tmp_path, [reply], "replies.jsonl")
        call.refused(GRADES, code=3, key=key, says=says)


def test_check_a_rubric_shows_what_was_understood(call):
    facts = "\n## Facts for the grader\n\n- Paris is the capital.\n"
    put("task.md", TASK + "- max_chars: 90\n" + facts)
    said = call.ok("check --rubric task.md")
    assert is_told(said.out, "kinds.read_type", type="fact")
    lines = {"  - It lies.", "  - Paris is the capital.", "  - +60 if it is right"}
    assert lines <= set(said.out.splitlines())
    for condition, line in (("must_not_match: /forbidden/i", 8), ("max_chars: 90", 9)):
        assert f"- {condition} (" in said.out
        assert is_told(said.out, "kinds.read_condition", line=line)
    pattern = {"kind": "must_not_match", "pattern": "forbidden", "flags": "i", "line": 8}
    assert call.json("check --rubric task.md") == {
        **{"ok": True, "task_type": "fact", "critical": ["It lies."]},
        "conditions": [pattern, {"kind": "max_chars", "limit": 90, "line": 9}],
        **{"facts": "- Paris is the capital.", "points": "- +60 if it is right"},
    }


def test_check_a_rubric_of_another_protocol(call):
    call("protocols new mine --from weighted")
    path = "mine/protocol.toml"
    put(path, Path(path).read_text("utf-8").replace('"fact"', '"recall"'))
    put("task.md", "task_type: recall\n\n- right\n")
    call.ok("check --protocol mine --rubric task.md")
    error = call.refused("check --rubric task.md", says=["task.md:1: "])
    assert is_told(error, "kinds.unknown_type", name="recall")


def test_check_of_good_replies_is_exit_0_and_of_an_unknown_unit_3(call, replies, tmp_path):
    unit = samples(1)[0]
    del unit["id"]
    write_rows(tmp_path, [unit], "units.jsonl")
    write_rows(tmp_path, [{"meta": unit["meta"], **scores()}], "replies.jsonl")
    assert values(call.json(replies), "ok problems") == [1, []]
    write_rows(tmp_path, [{"unit": "nobody", "reply": "{}"}], "replies.jsonl")
    call.refused(f"{replies} --json", code=3, says=["replies.jsonl:1"])


def test_check_a_rubric_that_cannot_be_read(call):
    put("task.md", "task_type: fact\ntask_type: creative\n")
    for json_ in ("", "--json"):
        line = f"check --rubric task.md {json_}"
        call.refused(line, key="kinds.two_types", says=["task.md:2: "])


def test_replies_made_elsewhere_are_checked_against_any_table(call, tmp_path):
    put("units.csv", "question,model,answer\nWhy?,m1,Answer number 0.\n")
    put("rubric.json", json.dumps(RUBRIC))
    line = {"unit": f"m1/{question_hash('Why?')}", "reply": json.dumps(scores())}
    write_rows(tmp_path, [line], "replies.jsonl")
    files = "--units units.csv --replies replies.jsonl --rubric rubric.json"
    checked = call.json(f"check --protocol rubric {files}")
    assert values(checked, "ok problems") == [1, []]
