"""`evenhand gate`: conditions from flags and suite, exit codes, and what CI is told."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from tests.suites import answers, write_answers, write_pairs, write_suite
from tests.unit.cli.conftest import NEWEST, CallCommand
from tests.unit.cli.gates import AGAINST, JUDGE, judged, pairs, samples

CONDITION = {
    "name",
    "clusters",
    "outcome",
    "reason",
    "value",
    "low",
    "high",
    "threshold",
    "dimension",
    "variant",
    "n",
    "more",
}


pytestmark = pytest.mark.usefixtures("no_ci")
FAIR, GOOD = "3135331353" * 2, "5355535553" * 2


@pytest.mark.parametrize(
    ("new", "asked", "code", "outcome"),
    [
        (GOOD, ["--better"], 0, "better"),
        (GOOD, ["--no-worse-than", "0"], 0, "better"),
        (FAIR, ["--no-worse-than", "0.3"], 0, "better"),
        ("1" * 20, ["--no-worse-than", "0.1"], 1, "worse"),
        ("1" * 20, ["--better"], 1, "worse"),
        ("1355335131" * 2, ["--no-worse-than", "0.01"], 7, "not enough evidence"),
        ("3" * 20, ["--better"], 7, "not enough evidence"),
    ],
)
def test_the_exit_code_is_the_outcome(
    call: CallCommand, tmp_path: Path, new: str, asked: list[str], code: int, outcome: str
) -> None:
    judged(call, tmp_path, v1=FAIR, v2=new)
    said = call("gate", *AGAINST, *asked, "--json")
    assert (said.code, said.json["outcome"]) == (code, outcome), said
    (condition,) = said.json["conditions"]
    assert condition.keys() == CONDITION
    assert (condition["variant"], condition["n"]) == ("v2", 20)
    assert said.json["reasons"] == [condition["reason"]]
    assert call("gate", *AGAINST, *asked, "--json").out == said.out


def test_people_read_sentences(call: CallCommand, tmp_path: Path) -> None:
    judged(call, tmp_path, v1=FAIR, v2=GOOD)
    asked = ("--better", "--min-mean", "4.9", "--dimension", "correct", "--max-failure-rate", "0")
    said = call("gate", *AGAINST, *asked)
    assert said.code == 1
    text = " ".join(said.answer.split())
    assert text.startswith("failed: 1 of 3 conditions is not met")
    assert 'met "v2" is better than "v1" on "correct": the difference is +1.40 [' in text
    assert 'not met The mean of "v2" on "correct" is below 4.9: it is 4.40 [' in text
    assert "met The share of failed judgments is at most 0: it is 0 over 40 judgments" in text


def test_a_condition_is_needed(call: CallCommand, tmp_path: Path) -> None:
    judged(call, tmp_path, v1=FAIR, v2=GOOD)
    said = call("gate", *AGAINST)
    assert said.code == 2
    for flag in ("--better", "--no-worse-than", "--min-mean", "--min-win-rate", "--max-"):
        assert flag in said.err


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--better"], "--baseline V"),
        (["--better", "--baseline", "v1"], "--by FIELD"),
        (["--better", "--by", "prompt_varient", "--baseline", "v1"], 'mean "prompt_variant"'),
        (["--better", "--by", "prompt_variant", "--baseline", "v3"], 'no variant is called "v3"'),
        ([*AGAINST, "--better", "--variant", "v22"], 'Did you mean "v2"'),
        ([*AGAINST, "--better", "--dimension", "corect"], 'Did you mean "correct"'),
        (["--min-mean", "1", "--judge", "python/judge:god"], 'Did you mean "python/judge:good"'),
        (["--min-win-rate", "0.5"], "only pairs have a win rate"),
        (["--max-critical-fails", "0"], "weighted protocol"),
        (["--min-mean", "0.1", "--baseline", "nobody"], "--baseline needs --by"),
        (["--min-mean", "0.5", "--variant", "nobody"], "--variant needs --by"),
        (["--min-mean", "0.5", "--pair-by", "question_id"], "--pair-by needs --by"),
        ([*AGAINST[:2], "--min-mean", "0.1", "--baseline", "nobody"], "no variant is called"),
        (["--min-mean", "nan"], "--min-mean is nan"),
        (["--min-mean", "1", "--level", "95"], "level"),
        (["--no-worse-than", "-1"], "x>=0"),
        (["--max-failure-rate", "2"], "0<=x<=1"),
    ],
)
def test_what_cannot_be_asked_is_told(
    call: CallCommand, tmp_path: Path, asked: list[str], told: str
) -> None:
    judged(call, tmp_path, v1="35", v2="53")
    said = call("gate", *asked)
    assert said.code == 2, said
    assert told in said.err


def test_conditions_stand_in_the_suite_and_flags_beat_them(
    call: CallCommand, tmp_path: Path
) -> None:
    rest = {
        "compare": {"by": "prompt_variant", "baseline": "v1"},
        "gate": {"no_worse_than": 0.1, "min_mean": 4.9, "dimension": "correct"},
    }
    judged(call, tmp_path, rest, v1=FAIR, v2=GOOD)
    said = call("gate", "--json")
    assert said.code == 1
    names = [(one["name"], one["outcome"]) for one in said.json["conditions"]]
    assert names == [("no_worse_than", "better"), ("min_mean", "worse")]
    assert call("gate", "--min-mean", "3.5").code == 0
    assert call("gate", "--min-mean", "0", "--dimension", "overall").code == 0


@pytest.mark.parametrize("by", [[], ["--by", "prompt_variant"], ["--by", " prompt_variant,"]])
def test_the_suites_baseline_holds_for_its_own_field(
    call: CallCommand, tmp_path: Path, by: list[str]
) -> None:
    rest = {"compare": {"by": "prompt_variant", "baseline": "v1"}}
    judged(call, tmp_path, rest, v1=FAIR, v2=GOOD)
    said = call("gate", *by, "--better", "--json")
    assert (said.code, [one["variant"] for one in said.json["conditions"]]) == (0, ["v2"])
    assert "--baseline V" in call("gate", "--by", "question_id", "--better").err


def test_lines_end_without_blanks(call: CallCommand, tmp_path: Path) -> None:
    judged(call, tmp_path, v1=FAIR, v2=GOOD)
    said = call("gate", *AGAINST, "--better", "--min-mean", "0.8", "--max-failure-rate", "0")
    lines = said.out.splitlines()
    assert all(line == line.rstrip() for line in lines)
    reasons = [line for line in lines if line.startswith(" " * 21)]
    assert reasons, "long reasons go on below their start"


def test_intervals_wider_than_those_of_compare_are_explained(
    call: CallCommand, tmp_path: Path
) -> None:
    judged(call, tmp_path, v1="31" * 10, v2="53" * 10)
    for flags, is_told in ((["--no-worse-than", "0.1"], True), (["--min-mean", "0.2"], False)):
        text = " ".join(call("gate", *AGAINST, *flags).out.split())
        assert ("those of compare are narrower" in text) is is_told, text


def test_one_unit_is_not_enough(call: CallCommand, tmp_path: Path) -> None:
    judged(call, tmp_path, v1="3", v2="5")
    said = call("gate", *AGAINST, "--better", "--no-worse-than", "0.1", "--min-mean", "0.2")
    assert said.code == 7, said.out
    assert "nan" not in said.out.lower()


def test_a_run_without_a_verdict_is_open(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, samples(v1="35", v2="53"), {"model": "python/judge:bad"})
    assert call("run").code == 1
    said = call("gate", *AGAINST, "--better", "--min-mean", "0.2", "--json")
    assert said.code == 7
    assert "no judgment has a verdict (4 failed, 0 pending)" in said.json["reasons"][0]
    assert call("gate", "--max-failure-rate", "0.5").code == 1


def test_what_is_pending_keeps_a_share_open(call: CallCommand, tmp_path: Path) -> None:
    rows = [{"id": f"u{i}", "question": "Q?", "model_output": "worth 5"} for i in range(4)]
    given = {"evidence": [], "rationale": "no evidence found", "score": 5}
    reply = {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}
    replies = [{"unit": f"u{i}", "reply": json.dumps(reply)} for i in range(3)]
    write_suite(tmp_path, rows, {"model": "replay/replies.jsonl"})
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(one) + "\n" for one in replies))
    assert call("run", "--json").json["pending"] == 1
    said = call("gate", "--max-failure-rate", "0.1", "--json")
    assert said.code == 7
    assert "1 judgment is pending: evenhand run" in said.json["reasons"][0]
    assert call("gate", "--max-failure-rate", "0.25").code == 0
    assert call("gate", "--min-mean", "0.8").code == 7


def test_critical_fails_are_counted(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, answers(9))
    assert call("run").code == 0
    assert call("gate", "--max-critical-fails", "3").code == 0
    said = call("gate", "--max-critical-fails", "2", "--json")
    assert said.code == 1
    assert said.json["conditions"][0]["value"] == 3
    assert said.json["reasons"] == ["The critical fails are more than 2: there are 3."]


def test_candidates_are_held_to_their_win_rate(call: CallCommand, tmp_path: Path) -> None:
    pairs(call, tmp_path)
    said = call("gate", "--candidate", "c2", "--min-win-rate", "0.55", "--json")
    assert (said.code, said.json["conditions"][0]["value"]) == (0, 15.5 / 20)
    assert call("gate", "--candidate", "c1", "--min-win-rate", "0.5").code == 1
    assert call("gate", "--candidate", "c2", "--min-win-rate", "0.75").code == 7
    assert call("gate", "--baseline", "c1", "--better").code == 0
    assert call("gate", "--baseline", "c2", "--no-worse-than", "0.1").code == 1
    assert call("gate", "--min-mean", "3").code == 2
    assert "--candidate C" in call("gate", "--min-win-rate", "0.5").err


def test_the_rule_for_conflicts_can_be_chosen(call: CallCommand, tmp_path: Path) -> None:
    pairs(call, tmp_path, {"model": "python/judge:first"})
    asked = ("gate", "--candidate", "c2", "--min-win-rate", "0.5", "--json")
    assert call(*asked).json["conditions"][0]["n"] == 20
    dropped = call(*asked, "--on-conflict", "drop")
    assert (dropped.code, dropped.json["conditions"][0]["n"]) == (7, 0)


def ci(call: CallCommand, folder: Path) -> tuple[str, ...]:
    judged(call, folder, v1=FAIR, v2=GOOD)
    return ("gate", *AGAINST, "--better", "--min-mean", "0.99")


def test_junit_is_written_whatever_the_outcome(call: CallCommand, tmp_path: Path) -> None:
    asked = ci(call, tmp_path)
    assert call(*asked, "--junit", "gate.xml").code == 1
    first = (tmp_path / "gate.xml").read_bytes()
    (suite,) = Xml.fromstring(first)
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    call(*asked, "--junit", "gate.xml", "--json")
    assert (tmp_path / "gate.xml").read_bytes() == first
    assert call(*asked, "--junit", "a/new/folder/gate.xml").code == 1
    assert (tmp_path / "a/new/folder/gate.xml").read_bytes() == first


def test_a_report_that_cannot_be_written_hides_no_verdict(
    call: CallCommand, tmp_path: Path
) -> None:
    said = call(*ci(call, tmp_path), "--junit", "judge.py/gate.xml", "--json")
    assert said.code == 2
    assert said.json["outcome"] == "worse"
    assert "judge.py/gate.xml" in said.err


def commands(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("::")]


@pytest.mark.parametrize("variable", ["GITHUB_ACTIONS", "CI"])
def test_github_is_told_where_ci_says_so(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    asked = ci(call, tmp_path)
    assert not commands("".join(call(*asked)[1:]))
    monkeypatch.setenv(variable, "true")
    plain, as_json = call(*asked), call(*asked, "--json")
    assert [line.split(" ")[0] for line in commands(plain.out)] == ["::error", "::error"]
    assert as_json.json["outcome"] == "worse"
    assert commands(as_json.err) == commands(plain.out)


def test_the_summary_of_a_job_is_added_to(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ci(call, tmp_path)
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert call(*asked).code == 1
    text = summary.read_text()
    assert text.startswith("before\n### evenhand gate: failed: 1 of 2")
    assert "| min\\_mean v2 overall | not met | " in text
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    said = call(*asked)
    assert said.code == 1
    assert "summary of the job cannot be written" in said.err


def test_hostile_names_reach_neither_terminal_nor_log(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "1")
    name = "v2\n::error::\x1b[31m\u202e<b>|"
    judged(call, tmp_path, v1=FAIR, **{name: "1" * 20})
    said = call("gate", *AGAINST, "--better", "--junit", "gate.xml")
    assert said.code == 1
    assert "\x1b[31m" not in said.out
    assert "\u202e" not in said.out
    assert len(commands(said.out)) == 2
    Xml.fromstring((tmp_path / "gate.xml").read_bytes())


def test_the_difference_is_that_of_compare_with_room_for_what_was_not_seen(
    call: CallCommand, tmp_path: Path
) -> None:
    judged(call, tmp_path, v1=FAIR, v2=GOOD)
    (row,) = [
        one
        for one in call("compare", *AGAINST, "--json").json["rows"]
        if one["dimension"] == "correct"
    ]
    asked = ("gate", *AGAINST, "--no-worse-than", "1", "--dimension", "correct", "--json")
    (condition,) = call(*asked).json["conditions"]
    assert (condition["value"], condition["n"]) == (pytest.approx(row["difference"]), row["n"])
    assert condition["low"] < row["low"] < row["high"] < condition["high"]


def test_the_win_rate_is_that_of_the_leaderboard(call: CallCommand, tmp_path: Path) -> None:
    pairs(call, tmp_path)
    rows = {row["candidate"]: row for row in call("leaderboard", "--json").json["rows"]}
    asked = ("gate", "--candidate", "c2", "--min-win-rate", "0.5", "--json")
    (condition,) = call(*asked).json["conditions"]
    assert condition["value"] == pytest.approx(rows["c2"]["win_rate"])
    assert condition["low"] == pytest.approx(rows["c2"]["low"], abs=0.01)
    assert condition["n"] == rows["c2"]["n"]


def test_one_judge_of_several_can_be_asked(call: CallCommand, tmp_path: Path) -> None:
    other = JUDGE + "\nasync def one(messages, schema, params):\n"
    other += "    return reply(messages).replace('\"score\": 5', '\"score\": 1')\n"
    judges = [{"model": f"python/judge:{name}"} for name in ("good", "one")]
    write_suite(tmp_path, samples(v1="5" * 12), *judges, judge=other)
    assert call("run").code == 0
    asked = ("gate", "--min-mean", "0.6", "--json")
    both = call(*asked).json["conditions"][0]
    assert (both["value"], both["outcome"]) == (0.5, "not enough evidence")
    assert call(*asked, "--judge", "python/judge:good").code == 0
    assert call(*asked, "--judge", "python/judge:one").code == 1
    assert call("gate", "--max-failure-rate", "0", "--judge", "python/judge:one").code == 0


def test_judgments_made_elsewhere_are_held_to_the_same(call: CallCommand, tmp_path: Path) -> None:
    lines = ["unit,judge,dimension,score,variant,question_id"]
    for place in range(30):
        lines += [f"a{place},j,correct,{place % 3},old,q{place}"]
        lines += [f"b{place},j,correct,{2 + place % 3},new,q{place}"]
    (tmp_path / "scores.csv").write_text("\n".join([*lines, "b30,j,correct,,new,q30"]) + "\n")
    made = call("import", "scores.csv", "--kind", "scores", "--store", "sqlite:evenhand.db")
    assert made.code == 0, made.err
    against = ("--by", "variant", "--baseline", "old", "--pair-by", "question_id")
    assert call("gate", NEWEST, *against, "--better", "--no-worse-than", "0.1").code == 0
    assert call("gate", NEWEST, "--max-failure-rate", "0").code == 1
    assert call("gate", NEWEST, "--max-failure-rate", "0.05").code == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--min-mean", "3.5"), "overall runs from 0 to 1"),
        (("--dimension", "correct", "--min-mean", "0.7"), "correct runs from 1 to 5"),
        (("--min-mean", "-1"), "overall runs from 0 to 1"),
        ((*AGAINST, "--no-worse-than", "2"), "overall runs from 0 to 1"),
        ((*AGAINST, "--dimension", "clear", "--no-worse-than", "4"), "clear runs from 1 to 5"),
    ],
)
def test_a_threshold_off_the_scale_is_refused(
    call: CallCommand, tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    """It could never be missed, or never be met."""
    write_suite(tmp_path, samples(v1="1335", v2="3355"), judge=JUDGE)
    call("run")
    told = call("gate", *flags)
    assert (told.code, told.out) == (2, "")
    assert said in " ".join(told.err.split())


def test_the_run_is_named(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, samples(v1="1335"), judge=JUDGE)
    run = call("run", "--json").json["run"]
    assert call("gate", "--min-mean", "0.1").out.startswith(f"run {run}  test\n")


def test_a_margin_that_no_win_rate_can_miss_is_refused(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, 3)
    call("run")
    told = call("gate", "--baseline", "c1", "--no-worse-than", "1")
    assert (told.code, told.out) == (2, "")
    assert "runs from 0 to 1" in told.err
