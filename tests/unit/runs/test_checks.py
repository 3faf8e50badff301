"""Checks by code in a run: what they spare, what passes, and what they cost."""

from __future__ import annotations

import json

import pytest

from tests.sentences import is_told
from tests.suites import (
    evenhand_here,
    samples,
    stored,
    write_answers,
    write_checklist,
    write_pairs,
    write_suite,
)
from tests.unit.runs.test_pass import judge, observed, write_rubric

SHORT = {"name": "short", "type": "max_chars", "value": 60}
NUMBER = {"name": "a number", "type": "regex", "value": "number [01]"}
ROWS = [
    row | {"meta": {"prompt_variant": f"v{n % 2}", "question_id": f"q{n // 2}"}}
    for n, row in enumerate(samples(4))
]


def outcomes(folder, run="latest"):
    return {row["unit"]: (row["status"], row["pass"], row["checks"]) for row in stored(folder, run)}


def test_a_check_that_comes_first_spares_the_judge_and_is_no_failure(tmp_path):
    write_suite(tmp_path, ROWS, checks=[NUMBER | {"first": True}, SHORT])
    write_rubric(tmp_path, correct={"pass": 3})
    planned = json.loads(evenhand_here("run", "--dry-run", "--json", cwd=tmp_path).stdout)
    assert (planned["calls"]["least"], planned["left_out"]) == (2, 2)
    ran = judge(tmp_path)
    assert {name: ran[name] for name in ("calls", "verdicts", "left_out", "pending")} == {
        "calls": 2,
        "verdicts": 2,
        "left_out": 2,
        "pending": 0,
    }
    assert not ran["failures"]
    assert outcomes(tmp_path) == {
        "u0": ("verdict", True, {"a number": True, "short": True}),
        "u1": ("verdict", True, {"a number": True, "short": True}),
        "u2": ("left_out", False, {"a number": False, "short": True}),
        "u3": ("left_out", False, {"a number": False, "short": True}),
    }
    assert stored(tmp_path)[2]["detail"].endswith(": a number")
    assert judge(tmp_path)["run"] == ran["run"]
    shown = evenhand_here("show", "latest", "u2", cwd=tmp_path).stdout
    assert is_told(shown, "unit.passing")
    assert is_told(shown, "left_out.failed a check that comes before the judge")
    said = evenhand_here("compare", "latest", "--by", "prompt_variant", "--json", cwd=tmp_path)
    compared = json.loads(said.stdout)
    figures = ("planned", "scored", "failed", "pending", "incomplete")
    counts = {tuple(each[name] for name in figures) for each in compared["missing"].values()}
    assert counts == {(1, 1, 0, 0, 0)}
    assert {(row["n"], *row["bounds"]) for row in compared["rows"]} == {(1, 0, 0)}
    assert {row["n"] for row in compared["passes"]} == {2}
    about = {"variants": '"v0 (1)", "v1 (1)"'}
    assert any(is_told(note, "notes.unscored", **about) for note in compared["notes"])


def test_other_checks_cost_no_call_and_settle_recomputes_them(tmp_path):
    write_suite(tmp_path, ROWS, checks=[NUMBER | {"first": True}])
    first = judge(tmp_path)
    assert (first["calls"], observed(tmp_path)) == (2, [1, 1, 0, 0])
    write_suite(tmp_path, ROWS, checks=[NUMBER | {"value": "number [12]", "must": True}])
    said = evenhand_here("settle", "latest", "--suite", ".", "--json", cwd=tmp_path)
    settled = json.loads(said.stdout)
    assert (settled["calls"], settled["verdicts"], settled["pending"]) == (0, 2, 2)
    assert list(settled["rules"]) == ["checks"]
    assert observed(tmp_path, run=settled["run"]) == [0, 1]
    third = judge(tmp_path)
    assert (third["run"], third["calls"]) == (settled["run"], 2)
    assert observed(tmp_path) == [0, 1, 1, 0]
    assert observed(tmp_path, "check:a number") == [0, 1, 1, 0]
    (flag,) = stored(tmp_path)[0]["flags"]
    assert flag == "check_failed:a number"
    write_suite(tmp_path, ROWS, checks=[SHORT])
    assert judge(tmp_path)["calls"] == 0
    assert observed(tmp_path) == [], "a check that need not be met says nothing of the whole"


def test_every_kind_of_score_takes_checks(tmp_path):
    must = [SHORT | {"value": 40, "must": True}]
    write_checklist(tmp_path / "list", 2, checks=must, settings={"pass_share": 0})
    assert judge(tmp_path / "list")["verdicts"] == 2
    assert observed(tmp_path / "list") == [0, 0], "44 characters each"
    assert [row["output"]["pass"] for row in stored(tmp_path / "list")] == [True, True]
    write_answers(tmp_path / "grades", 3, checks=must)
    judge(tmp_path / "grades")
    assert observed(tmp_path / "grades") == [1, 1, 0], "the last one is a critical fail"


def test_a_schema_is_read_from_a_file_and_kept_with_the_run(tmp_path):
    rows = [ROWS[0] | {"model_output": '{"a": "An answer to be quoted."}'}, ROWS[1]]
    check = {"name": "form", "type": "json_schema", "value": "form.json", "must": True}
    write_suite(tmp_path, rows, checks=[check])
    (tmp_path / "form.json").write_text('{"type": "object", "required": ["a"]}')
    judge(tmp_path)
    assert observed(tmp_path) == [1, 0]
    (tmp_path / "form.json").unlink()
    evenhand_here("settle", "latest", cwd=tmp_path)
    assert observed(tmp_path) == [1, 0]


@pytest.mark.parametrize(
    ("checks", "key"),
    [
        ([SHORT, SHORT], "runs.same_check"),
        ([SHORT | {"name": "clear"}], "runs.check_is_dimension"),
        ([NUMBER | {"value": "("}], "kinds.not_regex"),
        ([SHORT | {"type": "longest"}], "suite.literal_error"),
        ([SHORT | {"name": ""}], "suite.string_pattern_mismatch"),
        ([NUMBER | {"type": "json_schema", "value": "../x.json"}], "suite.outside"),
    ],
)
def test_a_wrong_check_is_an_error_with_its_line(tmp_path, checks, key):
    write_suite(tmp_path, 1, checks=checks)
    said = evenhand_here("run", cwd=tmp_path)
    assert said.returncode == 2
    assert is_told(said.stderr, key), said.stderr
    assert "evenhand.toml:5" in said.stderr


def test_pairs_take_no_checks(tmp_path):
    write_pairs(tmp_path, 1, checks=[SHORT])
    said = evenhand_here("run", cwd=tmp_path)
    assert (said.returncode, is_told(said.stderr, "runs.no_pass")) == (2, True)
