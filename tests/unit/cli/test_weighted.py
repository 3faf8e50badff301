"""The commands on graded answers: init, run, show, export, check, settle."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from evenhand.kinds.protocol import LANGUAGES
from tests.suites import GRADE_JUDGE, TASK, answers, stored, write_answers, write_pairs, write_rows
from tests.unit.cli.conftest import CallCommand
from tests.unit.kinds.grading import KEYS

UNSURE, STRICT, BAD = ({"model": f"python/judge:{name}"} for name in ("unsure", "strict", "bad"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_init_makes_a_suite_that_runs(call: CallCommand, tmp_path: Path, language: str) -> None:
    made = call("init", ".", "--protocol", "weighted", "--language", language)
    assert made.code == 0, made.err
    (tmp_path / "judge.py").write_text(GRADE_JUDGE)
    ran = call("run", "--judge", "python/judge:good", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["verdicts"] == ran.json["planned"] >= 5
    assert ran.json["weighted"]["critical_fails"] >= 1
    assert ran.json["calls"] == ran.json["verdicts"] - ran.json["weighted"]["critical_fails"]
    types = {row["output"]["task_type"] for row in stored(tmp_path)}
    assert {"fact", "creative"} <= types
    assert call("init", ".", "--protocol", "weighted").code == 2


def test_run_and_show_count_low_confidence_and_critical_fails(
    call: CallCommand, tmp_path: Path
) -> None:
    write_answers(tmp_path, 7, UNSURE)
    told = call("run", "--json").json
    assert told["weighted"] == {"critical_fails": 2, "low_confidence": 2}
    assert (told["verdicts"], told["calls"]) == (7, 5)
    assert call("show", "--json").json["weighted"] == told["weighted"]
    for said in (call("run"), call("show")):
        text = re.sub(r" +", " ", said.out)
        assert "total 7 15.00 0 to 21" in text
        assert "critical fails: 2" in text
        assert "show --only low-confidence" in text
    shown = re.sub(r" +", " ", call("show").out)
    assert "t0/m 21 of 100 logic_and_fact 7" in shown
    assert "0 of 100 critical fail: Decided by code" in shown
    assert "low_confidence" in shown


def test_nothing_to_list_is_not_advertised(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, 1)
    assert "low-confidence" not in call("run").out


def test_show_a_unit_with_its_prompts_and_reasons(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, 3, UNSURE)
    call("run")
    said = call("show", "latest", "t1/m")
    assert said.code == 0
    text = re.sub(r" +", " ", said.out)
    for part in (
        "It is perhaps so.",
        " 7 60 so it is",
        "Total 21 100",
        "type of task: fact, confidence: low",
        "Raw reply",
    ):
        assert part in text
    failed = re.sub(r"\s+", " ", call("show", "latest", "t2/m").out)
    assert "Critical fail: Decided by code" in failed
    assert "Raw reply" not in failed
    told = call("show", "latest", "t2/m", "--json").json
    assert told["judgments"][0]["exchanges"] == []


def test_export_gives_the_contracts_own_objects(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, 6, UNSURE)
    call("run")
    said = call("export", "latest", "-o", "-")
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert len(rows) == 6
    assert all(list(row) == KEYS for row in rows)
    assert call("export", "latest", "-o", "out.csv").code == 0
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        assert [row["total_score"] for row in csv.DictReader(file)] == ["21", "21", "0"] * 2


@pytest.mark.parametrize("full", [False, True])
def test_export_only_low_confidence(call: CallCommand, tmp_path: Path, full: bool) -> None:
    rows = [*answers(6), *({**row, "task_name": "x", "id": "bad"} for row in answers(1))]
    write_answers(tmp_path, rows, UNSURE)
    call("run")
    options = ("--only", "low-confidence", *(("--full",) if full else ()))
    said = call("export", "latest", "-o", "-", *options)
    assert said.code == 0, said.err
    found = [json.loads(line) for line in said.out.splitlines()]
    outputs = [row["output"] if full else row for row in found]
    assert [row["task_name"] for row in outputs] == ["t1", "t4"]
    assert {row["confidence"] for row in outputs} == {"low"}
    written = call("export", "latest", "-o", "low.jsonl", *options)
    assert "2 rows written to low.jsonl" in written.err


def test_only_low_confidence_is_of_grades(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path / "pairs", 2)
    call("run", "pairs")
    for more in ((), ("--full",)):
        said = call(
            "export", "latest", "--store", "sqlite:pairs/evenhand.db", "-o", "x.jsonl", *more,
            "--only", "low-confidence",
        )  # fmt: skip
        assert (said.code, "which has no confidence" in said.err) == (2, True), said.err
        assert not (tmp_path / "x.jsonl").exists()
    write_answers(tmp_path, 1)
    call("run")
    table = call("export", "latest", "-o", "x.txt")
    assert (table.code, "a verdict table (.txt) is of pairs" in table.err) == (2, True)
    assert call("export", "latest", "-o", "x.jsonl", "--only", "high").code == 2


def test_settle_gives_the_same_grades_without_a_call(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, 6, UNSURE)
    call("run")
    before = stored(tmp_path)
    settled = call("settle", "latest", "--json")
    assert settled.code == 0, settled.err
    assert (settled.json["verdicts"], settled.json["spent_usd"]) == (6, 0)
    assert stored(tmp_path) == before


def test_a_critical_fail_by_the_judge_and_a_failure(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, 3, STRICT, BAD)
    told = call("run", "--json").json
    assert told["failures"] == {"schema": 2}
    assert told["weighted"]["critical_fails"] == 4
    strict = [row for row in stored(tmp_path) if row["judge"] == STRICT["model"]]
    assert [row["output"]["critical_fail_reason"][:8] for row in strict] == [
        "It lies.",
        "It lies.",
        "Decided ",
    ]
    assert [[fix["code"] for fix in row["fixes"]] for row in strict] == [["zeroed"]] * 2 + [[]]


def test_dry_run_counts_no_call_for_what_code_decides(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, 3)
    told = call("run", "--dry-run", "--json").json
    assert (told["planned"], told["calls"]["least"]) == (3, 2)


# check


def check(call: CallCommand, folder: Path, rows: list[Any], *more: str) -> Any:
    write_rows(folder, answers(3), "units.jsonl")
    write_rows(folder, rows, "replies.jsonl")
    files = ("--units", "units.jsonl", "--replies", "replies.jsonl")
    return call("check", "--protocol", "weighted", *files, *more)


def test_check_of_raw_replies(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, 3, UNSURE)
    call("run")
    shown = call("show", "latest", "t0/m", "--json").json
    raw = shown["judgments"][0]["exchanges"][0]["reply"]
    text = raw if isinstance(raw, str) else raw["text"]
    rows: list[Any] = [
        {"unit": "t0/m", "reply": text},
        {"unit": "t1/m", "reply": f"```\n{text}\n```"},
        {"unit": "t0/m", "reply": text.replace("7", '"seven"', 1)},
        {"unit": "t1/m", "reply": "no"},
        {"unit": "t2/m", "reply": text},
    ]
    said = check(call, tmp_path, rows, "--json")
    assert said.code == 1
    told = said.json
    assert (told["units"], told["ok"]) == (5, 3)
    assert [(one["unit"], one["code"]) for one in told["problems"]] == [
        ("t0/m", "schema"),
        ("t1/m", "not_json"),
    ]
    assert [(one["unit"], one["code"], one["path"]) for one in told["fixes"]] == [
        ("t1/m", "unwrapped", ""),
        ("t2/m", "zeroed", "critical_fail"),
        ("t2/m", "zeroed", "score"),
    ]


def test_what_was_exported_passes_the_check(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, 3, UNSURE)
    call("run")
    call("export", "latest", "-o", "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    said = check(call, tmp_path, rows, "--json")
    assert (said.code, said.json["ok"], said.json["fixes"]) == (0, 3, []), said.out
    rows[0]["total_score"] += 3
    rows[1]["weights"] = {}
    told = check(call, tmp_path, rows, "--json").json
    assert [one["code"] for one in told["fixes"]] == ["total", "weights"]
    rows[0]["total_score"] += 1
    told = check(call, tmp_path, rows, "--json").json
    assert [(one["unit"], one["path"]) for one in told["problems"]] == [("t0/m", "total_score")]


def test_an_output_object_of_which_task_is_not_plain(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, 1)
    call("run")
    (row,) = stored(tmp_path)
    said = check(call, tmp_path, [row["output"] | {"task_name": "t9"}])
    assert (said.code, "there is no unit" in said.err) == (3, True)
    said = check(call, tmp_path, [{"score": 1}])
    assert (said.code, "replies.jsonl:1" in said.err) == (3, True)
    twice = [one | {"id": f"{number}"} for number, one in enumerate(answers(1) * 2)]
    write_rows(tmp_path, twice, "units.jsonl")
    write_rows(tmp_path, [row["output"]], "replies.jsonl")
    files = ("--units", "units.jsonl", "--replies", "replies.jsonl")
    said = call("check", "--protocol", "weighted", *files)
    assert (said.code, '2 units are called "t0"' in said.err) == (3, True)


def test_check_a_rubric_shows_what_was_understood(call: CallCommand, tmp_path: Path) -> None:
    facts = "\n## Facts for the grader\n\n- Paris is the capital.\n"
    (tmp_path / "task.md").write_text(TASK + "- max_chars: 90\n" + facts)
    said = call("check", "--rubric", "task.md")
    assert said.code == 0, said.err
    for line in (
        "task_type: fact",
        "critical-fail conditions for the judge: 1",
        "  - It lies.",
        "critical-fail conditions for code: 2",
        "  - must_not_match: /forbidden/i  (line 8)",
        "  - max_chars: 90  (line 9)",
        "facts for the grader:",
        "  - Paris is the capital.",
        "points to add and deduct:",
        "  - +60 if it is right",
    ):
        assert line in said.out.splitlines()
    told = call("check", "--rubric", "task.md", "--json").json
    assert told == {
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


def test_check_a_rubric_of_another_protocol(call: CallCommand, tmp_path: Path) -> None:
    call("protocols", "new", "mine", "--from", "weighted")
    path = tmp_path / "mine" / "protocol.toml"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"fact"', '"recall"'), encoding="utf-8"
    )
    (tmp_path / "task.md").write_text("task_type: recall\n\n- right\n")
    assert call("check", "--protocol", "mine", "--rubric", "task.md").code == 0
    said = call("check", "--rubric", "task.md")
    assert (said.code, "task.md:1: unknown task_type" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "task.md:1: the rubric is empty"),
        ("task_type: fact\ntask_type: creative\n", "task.md:2: task_type is creative here"),
        ("# Critical Fail Conditions\n\n- must_match: /(/\n", "task.md:3: the pattern"),
    ],
)
def test_check_a_rubric_that_cannot_be_read(
    call: CallCommand, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "task.md").write_text(text)
    for more in ((), ("--json",)):
        done = call("check", "--rubric", "task.md", *more)
        assert (done.code, done.out) == (2, "")
        assert said in done.err


def test_export_tells_of_answers_that_share_a_task_name(call: CallCommand, tmp_path: Path) -> None:
    """The contract's own objects are told apart by their task's name alone."""
    write_answers(tmp_path)
    assert call("run").code == 0
    assert "share" not in call("export", "-o", "apart.jsonl").err
    again = [{**row, "meta": {"model": "n"}} for row in answers(2)]
    write_answers(tmp_path, [*answers(3), *again])
    assert call("run").code == 0
    line = "4 units share their task_name with another: --full has the unit ids"
    assert call("export", "-o", "g.jsonl").err.count(line) == 1
    assert "share" not in call("export", "--full", "-o", "full.jsonl").err
