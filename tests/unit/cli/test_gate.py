"""`evenhand gate`: conditions from flags and suite, exit codes, and what CI is told."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from tests.cases import cases, table_rows
from tests.sentences import is_told
from tests.suites import (
    answers,
    pair_row,
    passing,
    write_answers,
    write_checklist,
    write_pairs,
    write_suite,
)
from tests.unit.cli.conftest import values

JUDGE = """
import json, re

def reply(messages):
    text = re.search(r"worth (\\\\d)", messages[-1]["content"])
    given = {"evidence": [], "rationale": "no evidence found", "score": int(text[1])}
    said = {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}
    return json.dumps(said)

async def good(messages, schema, params):
    return reply(messages)
""".replace("\\\\", "\\")
AGAINST = "--by prompt_variant --baseline v1"
CONDITION = {
    *("name", "clusters", "outcome", "reason", "value", "low", "high", "threshold"),
    *("dimension", "variant", "n", "more", "units", "points"),
}
FAIR, GOOD = "3135331353" * 2, "5355535553" * 2
COMPARE = {"by": "prompt_variant", "baseline": "v1"}
STOP = {"until_decided": True}
OPEN = "not enough evidence"
pytestmark = pytest.mark.usefixtures("no_ci")


def samples(**variants):
    """A row a question and variant; `x` is worth nothing that a judge may give."""
    return [
        {
            "meta": {"prompt_variant": variant, "question_id": f"q{place}"},
            "question": f"Question {place}?",
            "model_output": f"An answer worth {worth}.",
        }
        for variant, worths in variants.items()
        for place, worth in enumerate(worths)
    ]


def judged(call, folder, rest=None, **v):
    write_suite(folder, samples(**v), judge=JUDGE, **rest or {})
    call.ok("run --json")


def pairs(call, folder, *judges):
    worths = [(2, 9)] * 14 + [(9, 2)] * 3 + [(4, 4)] * 3
    rows = [pair_row(f"p{i}", *one, topic=f"T{i}?") for i, one in enumerate(worths)]
    write_pairs(folder, rows, *judges)
    call.ok("run")


def gate(call, flags="", code=0):
    """What a gate says in JSON that ends with this code."""
    said = call(f"gate {flags} --json")
    assert said.code == code, said
    return said.json


def write_replies(folder, units, score):
    """Replies to these units, and the judge that replays them."""
    given = {"evidence": [], "rationale": "no evidence found", "score": score}
    reply = {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}
    lines = [json.dumps({"unit": unit, "reply": json.dumps(reply)}) for unit in units]
    (folder / "replies.jsonl").write_text("\n".join(lines))
    return {"model": "replay/replies.jsonl"}


@cases
def test_the_exit_code_is_the_outcome(call, tmp_path, new, flags, code, outcome):
    judged(call, tmp_path, v1=FAIR, v2=new)
    said = gate(call, f"{AGAINST} {flags}", code=code)
    assert said["outcome"] == outcome
    (condition,) = said["conditions"]
    assert condition.keys() == CONDITION
    assert values(condition, "variant n") == ["v2", 20]
    assert said["reasons"] == [condition["reason"]]
    assert gate(call, f"{AGAINST} {flags}", code=code) == said


def test_people_read_sentences(call, tmp_path):
    judged(call, tmp_path, v1=FAIR, v2=GOOD)
    flags = "--better --min-mean 4.9 --dimension correct --max-failure-rate 0"
    call.narrow()
    said = call(f"gate {AGAINST} {flags}")
    assert said.code == 1
    run = call.json("runs")["runs"][0]["run"]
    assert said.out.startswith(f"run {run}  test\n")
    assert is_told(said.text, "gate.failed", n=1, of=3)
    assert is_told(said.text, "gate.better_better", who='"v2" (correct)', baseline="v1")
    assert is_told(said.text, "gate.difference_points", value=1.4)
    assert is_told(said.text, "gate.of_units", n=20)
    lines = said.out.splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert said.width <= 80


def test_what_cannot_be_asked_is_told(call, tmp_path):
    judged(call, tmp_path, v1="1335", v2="3355")
    for flags, key, *told in table_rows(__file__, "what_cannot_be_asked_is_told"):
        call.refused(f"gate {flags}", key=f"gate.{key}", says=told)
    for flags, told in table_rows(__file__, "what_cannot_be_asked_is_told_2"):
        call.refused(f"gate {flags}", says=[told])


def test_conditions_and_baseline_stand_in_the_suite_and_flags_beat_them(call, tmp_path):
    limits = {"no_worse_than": 0.1, "min_mean": 4.9, "dimension": "correct"}
    judged(call, tmp_path, {"compare": COMPARE, "gate": limits}, v1=FAIR, v2=GOOD)
    names = [(one["name"], one["outcome"]) for one in gate(call, code=1)["conditions"]]
    assert names == [("no_worse_than", "better"), ("min_mean", "worse")]
    gate(call, "--min-mean 3.5")
    gate(call, "--min-mean 0 --dimension overall")
    # The baseline of the suite holds for its own field, and that alone.
    for by in ("prompt_variant", "' prompt_variant,'"):
        found = gate(call, f"--by {by} --better --min-mean 3.5")
        assert {one["variant"] for one in found["conditions"]} == {"v2"}
    call.refused("gate --by question_id --better", key="gate.needs_baseline")
    # The suite file is read as it stands now.
    suite = tmp_path / "evenhand.toml"
    suite.write_text(suite.read_text().replace("4.9", "3.5"))
    gate(call)


def test_intervals_wider_than_those_of_compare_are_explained(call, tmp_path):
    """Where compare decides and the gate does not."""
    judged(call, tmp_path, v1="3" * 20, v2="3" * 14 + "555551")
    for flags, code, told in (
        ("--no-worse-than 0.1", 0, False),
        ("--no-worse-than 0.06", 7, True),
        ("--no-worse-than 0.02", 7, False),
        ("--min-mean 0.6", 7, False),
    ):
        said = call(f"gate {AGAINST} {flags}")
        assert (said.code, is_told(said.text, "gate.wider")) == (code, told), said.out


def test_one_unit_is_not_enough(call, tmp_path):
    judged(call, tmp_path, v1="3", v2="5")
    said = call(f"gate {AGAINST} --better --no-worse-than 0.1 --min-mean 0.2")
    assert said.code == 7 and "nan" not in said.out.lower()


def test_a_run_without_a_verdict_is_open(call, tmp_path):
    write_suite(tmp_path, samples(v1="35", v2="53"), "bad")
    assert call("run").code == 1
    said = gate(call, f"{AGAINST} --better --min-mean 0.2", code=7)
    assert is_told(said["reasons"][0], "gate.no_verdict", failed=4, pending=0)
    gate(call, "--max-failure-rate 0.5", code=1)


def test_what_is_pending_keeps_a_share_open(call, tmp_path):
    rows = [{"id": f"u{i}", "question": "Q?", "model_output": "worth 5"} for i in range(4)]
    write_suite(tmp_path, rows, write_replies(tmp_path, ["u0", "u1", "u2"], 5))
    assert call.json("run")["pending"] == 1
    reason = gate(call, "--max-failure-rate 0.1", code=7)["reasons"][0]
    assert is_told(reason, "gate.pending", n=1)
    gate(call, "--max-failure-rate 0.25")
    gate(call, "--min-mean 0.8", code=7)


def test_critical_fails_are_counted(call, tmp_path):
    write_answers(tmp_path, answers(9))
    call.run()
    gate(call, "--max-critical-fails 3")
    said = gate(call, "--max-critical-fails 2", code=1)
    assert said["conditions"][0]["value"] == 3


@cases
def test_answers_are_held_to_a_pass_rate_or_each_to_pass(
    call, tmp_path, marks, flags, code, failing
):
    write_checklist(tmp_path, passing(v1=marks), "picky")
    call("run")
    condition = gate(call, flags, code=code)["conditions"][0]
    assert values(condition, "units dimension") == [failing, "pass"]
    said = call(f"gate {flags}")
    assert said.code == code and all(unit in said.out for unit in failing)
    assert is_told(said.text, "gate.measured_rate") == ("--every" not in flags)
    if "?" in marks and code == 7:
        assert is_told(said.text, "gate.judge_missing")
    if failing:
        assert is_told(said.text, "gate.next_fail")
        listed = call.json("show --only fail")["judgments"]
        assert [row["unit"] for row in listed] == failing


def test_each_case_is_held_to_its_baseline(call, tmp_path):
    rows = passing(v1="+++-+-", v2="+++--+")
    conditions = {"no_case_worse_than": 0.9, "every": True, "min_pass_rate": 0.01}
    write_checklist(
        tmp_path, rows, {"model": "python/judge:picky"}, compare=COMPARE, gate=conditions
    )
    call.run()
    found = gate(call, code=1)["conditions"]
    failing = {one["name"]: one["units"] for one in found}
    assert failing == {
        "min_pass_rate": [],
        "every": ["v2-3", "v2-4"],
        "no_case_worse_than": ["v2-4"],
    }
    assert call("gate --junit gate.xml").code == 1
    failed = Xml.parse(tmp_path / "gate.xml").findall(".//failure")
    assert ["v2-4" in one.get("message") for one in failed] == [True, True]


def test_a_case_falls_beyond_the_noise_of_the_judge_where_repeats_tell_it(call):
    noise = (0, 1, -1), (-1, 0, 0), (1, 0, -1), (0, 0, 1)
    rows = [
        {"unit": f"{v}{q}", "judge": "j", "dimension": name, "repeat": n, "score": score}
        | {"variant": v, "question_id": f"q{q}"}
        for q in range(20)
        for v, base in (("old", 6), ("new", 1 if q == 7 else 6))
        for n, off in enumerate(noise[(q + (v == "new")) % 4])
        for name, score in (("worth", base + off), ("pass", int(base + off > 5)))
    ]
    call.take("scores", rows)
    flags = "--by variant --baseline old --pair-by question_id"
    flags = f"{flags} --dimension worth --no-case-worse-than 0.5"
    found = gate(call, f"rows {flags}", code=1)
    assert found["conditions"][0]["units"] == ["new7"]
    assert not any(is_told(note, "notes.judged_once") for note in found["notes"])
    call.take("scores", [row for row in rows if row["repeat"] == 1], "once")
    found = gate(call, f"once {flags}", code=1)
    assert len(found["conditions"][0]["units"]) > 1
    assert any(is_told(note, "notes.judged_once") for note in found["notes"])


def test_grades_are_told_out_of_100(call, tmp_path):
    rows = [row | {"meta": {"model": m}} for m in ("old", "new") for row in answers(12)]
    write_answers(tmp_path, rows)
    call.run()
    flags = "--by model --baseline old --min-mean 0.9 --no-worse-than 0.5"
    found = gate(call, flags, code=1)
    said = call(f"gate {flags}")
    for value in (90, 50):
        assert is_told(said.text, "gate.points", value=value, most=100)
    assert is_told(said.text, "gate.measured_hundred")
    assert is_told(said.text, "gate.difference_hundred")
    assert all(one["points"] == 100 and abs(one["value"]) <= 1 for one in found["conditions"])


def test_candidates_are_held_to_their_win_rate(call, tmp_path):
    pairs(call, tmp_path)
    (condition,) = gate(call, "--candidate c2 --min-win-rate 0.55")["conditions"]
    rows = {row["candidate"]: row for row in call.json("leaderboard")["rows"]}
    assert condition["value"] == pytest.approx(rows["c2"]["win_rate"]) == 15.5 / 20
    assert condition["low"] == pytest.approx(rows["c2"]["low"], abs=0.01)
    assert condition["n"] == rows["c2"]["n"]
    for code, flags in (
        (1, "--candidate c1 --min-win-rate 0.5"),
        (7, "--candidate c2 --min-win-rate 0.75"),
        (0, "--baseline c1 --better"),
        (1, "--baseline c2 --no-worse-than 0.05"),
        (7, "--baseline c2 --no-worse-than 0.25"),
        (0, "--baseline c1 --no-worse-than 0.05"),
    ):
        gate(call, flags, code=code)
    (condition,) = gate(call, "--baseline c1 --no-worse-than 0.05")["conditions"]
    assert values(condition, "value threshold") == [15.5 / 20, 0.45]
    assert is_told(condition["reason"], "gate.win_rate", value=77.5)
    assert is_told(condition["reason"], "gate.rate_points", value=5)
    same = call.json("compare --baseline c1 --margin 0.45")["rows"][-1]
    assert same["outcome"] == "same" and same["high"] < 0.9
    call.refused("compare --baseline c1 --margin 0.5", key="compare.wide_margin_of_pairs")
    for key, flags in table_rows(__file__, "candidates_are_held_to_their_win_rate"):
        call.refused(f"gate {flags}", key=f"gate.{key}")


def test_the_rule_for_conflicts_can_be_chosen(call, tmp_path):
    pairs(call, tmp_path, {"model": "python/judge:first"})
    flags = "--candidate c2 --min-win-rate 0.5"
    assert gate(call, flags, code=7)["conditions"][0]["n"] == 20
    assert gate(call, f"{flags} --on-conflict drop", code=7)["conditions"][0]["n"] == 0


def test_the_difference_is_that_of_compare_with_room_for_what_was_not_seen(call, tmp_path):
    judged(call, tmp_path, v1=FAIR, v2=GOOD)
    row = call.json(f"compare {AGAINST}")["rows"][0]
    flags = "--no-worse-than 1 --dimension correct"
    (condition,) = gate(call, f"{AGAINST} {flags}")["conditions"]
    assert values(condition, "value n") == [pytest.approx(row["difference"]), row["n"]]
    assert condition["low"] < row["low"] < row["high"] < condition["high"]


def test_one_judge_of_several_can_be_asked(call, tmp_path):
    other = JUDGE + "\nasync def one(messages, schema, params):\n"
    other += "    return reply(messages).replace('\"score\": 5', '\"score\": 1')\n"
    judges = [{"model": f"python/judge:{name}"} for name in ("good", "one")]
    write_suite(tmp_path, samples(v1="5" * 12), *judges, judge=other)
    call.run()
    flags = "--min-mean 0.6"
    both = gate(call, flags, code=7)["conditions"][0]
    assert values(both, "value outcome") == [0.5, OPEN]
    gate(call, f"{flags} --judge python/judge:good")
    gate(call, f"{flags} --judge python/judge:one", code=1)
    gate(call, "--max-failure-rate 0 --judge python/judge:one")


def test_imported_judgments_are_held_to_the_same(call):
    rows = [
        {"unit": f"{v}{q}", "judge": "j", "variant": v, "question_id": f"q{q}"}
        | {"score": q % 3 + 2 * (v == "new")}
        for q in range(30)
        for v in ("old", "new")
    ]
    call.take("scores", [*rows, rows[1] | {"unit": "new30", "question_id": "q30", "score": None}])
    against = "--by variant --baseline old --pair-by question_id"
    gate(call, f"rows {against} --better --no-worse-than 0.1")
    gate(call, "rows --max-failure-rate 0", code=1)
    gate(call, "rows --max-failure-rate 0.05")


# CI


def commands(text):
    return [line for line in text.splitlines() if line.startswith("::")]


@pytest.fixture
def asked(call, tmp_path):
    """A gate of two conditions of which one is met."""
    judged(call, tmp_path, v1=FAIR, v2=GOOD)
    return f"gate {AGAINST} --better --min-mean 0.99"


def test_junit_is_written_whatever_the_outcome(call, tmp_path, asked):
    texts = set()
    for file in ("gate.xml", "a/new/folder/gate.xml"):
        for json_ in ("", "--json"):
            assert call(f"{asked} --junit {file} {json_}").code == 1
            texts.add(Path(file).read_bytes())
    ((suite,),) = map(Xml.fromstring, texts)
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    # A report that cannot be written hides no verdict.
    said = call(f"{asked} --junit judge.py/gate.xml --json")
    assert (said.code, said.json["outcome"]) == (2, "worse")
    assert "judge.py/gate.xml" in said.err


def test_github_is_told_where_ci_says_so(call, asked, monkeypatch):
    assert not commands("".join(call(asked)[1:]))
    for variable in ("GITHUB_ACTIONS", "CI"):
        with monkeypatch.context() as patch:
            patch.setenv(variable, "true")
            plain, as_json = call(asked), call(f"{asked} --json")
        assert [line.split(" ")[0] for line in commands(plain.out)] == ["::error", "::error"]
        assert as_json.json["outcome"] == "worse"
        assert commands(as_json.err) == commands(plain.out)


def test_the_summary_of_a_job_is_added_to(call, tmp_path, asked, monkeypatch):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert call(asked).code == 1
    text = summary.read_text()
    assert text.startswith("before\n### evenhand gate: ")
    assert is_told(text, "gate.failed", n=1, of=2)
    assert "| min\\_mean v2 overall | not met | " in text
    assert is_told(text.replace("\\", ""), "notes.trust_judges", judges='"python/judge:good"')
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    said = call(asked)
    assert said.code == 1 and is_told(said.err, "gate.summary_unwritten")


def test_hostile_names_reach_neither_terminal_nor_log(call, tmp_path, monkeypatch):
    monkeypatch.setenv("CI", "1")
    judged(call, tmp_path, v1=FAIR, **{"v2\n::error::\x1b[31m\u202e<b>|": "1" * 20})
    said = call(f"gate {AGAINST} --better --junit gate.xml")
    assert said.code == 1 and not {"\x1b", "\u202e"} & set(said.out)
    assert len(commands(said.out)) == 2
    Xml.fromstring((tmp_path / "gate.xml").read_bytes())


# Runs that were to stop once they were decided


def stopped(call, folder, **rest):
    """Judge until v2 is better, and return what `show` says of the run."""
    judged(call, folder, {"compare": COMPARE, "stop": STOP} | rest, v1="1" * 200, v2="35" * 100)
    return call.json("show")


def test_a_run_that_stopped_early_keeps_its_decision(call, tmp_path):
    limits = {"better": True, "no_worse_than": 0.05, "max_failure_rate": 0.02}
    shown = stopped(call, tmp_path, gate=limits)
    assert shown["pending"] > 200
    found = gate(call)
    numbers = [one["n"] for one in found["conditions"]]
    assert max(numbers[:2]) < 100 and numbers[2] == shown["verdicts"]
    assert is_told(found["notes"][-1], "gate.stopped")
    # What the sequential test was not asked is open while so much is missing.
    gate(call, "--dimension correct", code=7)
    mean = gate(call, "--min-mean 0.6", code=7)
    assert is_told(" ".join(mean["reasons"]), "gate.judge_left")
    flags = "--judge python/judge:good --max-failure-rate 0"
    failures = gate(call, flags, code=7)["conditions"][-1]
    assert values(failures, "outcome n") == ["better", shown["verdicts"]]


def test_a_decision_at_a_larger_error_is_not_the_gates_own(call, tmp_path):
    stop = STOP | {"dimension": "correct"}
    stopped(call, tmp_path, stop=stop | {"alpha": 0.4})
    flags = "--better --no-worse-than 0 --dimension correct"
    said = gate(call, flags, code=7)
    assert said["level"] == 0.95
    for one in said["conditions"]:
        assert values(one, "outcome low high") == [OPEN, None, None]
        assert is_told(one["reason"], "gate.unfit", error=0.4, asked=0.05, level="--level 0.6")
    lower = gate(call, f"{flags} --level 0.6")
    assert lower["level"] == 0.6 and is_told(lower["notes"][-1], "gate.stopped")
    gate(call, f"{flags} --level 0.61", code=7)
    stopped(call, tmp_path, stop=stop | {"alpha": 0.05})
    assert is_told(gate(call, flags)["notes"][-1], "gate.stopped")


def test_what_an_undecided_run_has_not_judged_can_still_fail(call, tmp_path):
    rows, units = samples(v1="1" * 40, v2="1" * 40), [f"v{v}/q{q}" for v in "12" for q in range(30)]
    limits = {"max_failure_rate": 0.02}
    judge = write_replies(tmp_path, units, 3)
    write_suite(tmp_path, rows, judge, compare=COMPARE, gate=limits, stop=STOP)
    assert call.json("run")["pending"] > 0
    assert is_told(gate(call, code=7)["reasons"][0], "gate.pending", n=20)


def test_a_stopped_run_of_pairs_passes_its_gate(call, tmp_path):
    rows = [pair_row(f"p{i}", 2, 9, topic=f"T{i}?") for i in range(80)]
    write_pairs(tmp_path, rows, compare={"baseline": "c1"}, stop=STOP)
    call.run()
    flags = "--better --max-failure-rate 0"
    gate(call, flags)
    named = gate(call, f"{flags} --by candidate")
    assert is_told(named["notes"][-1], "gate.stopped")
    judge = "--candidate c2 --judge python/judge:content"
    assert is_told(gate(call, f"{flags} {judge}", code=7)["reasons"][0], "gate.judge_left")
    call.refused("gate --candidate nobody --max-failure-rate 0")
