"""The checklist kind: prompts, rows, and a run from its suite to every command that reads it."""

import json
import sys

import pytest

import evenhand
from evenhand.kinds.evidence import fragments
from tests.suites import TICK_JUDGE, evenhand_here, write_checklist
from tests.unit.kinds.checking import CHECKLIST, PHRASES, SAMPLE, protocol


@pytest.mark.parametrize("language", PHRASES)
@pytest.mark.parametrize("style", ["full", "compact"])
def test_the_judge_sees_question_output_and_criteria_without_points_and_meta(language, style):
    judged = protocol(language)
    question = judged.question(SAMPLE, CHECKLIST, style)
    text = "\n".join(message.content for message in question.messages)
    for part in (SAMPLE.question, SAMPLE.model_output, *(c.text for c in CHECKLIST.criteria)):
        assert text.count(part) == 1
    assert f"- vague{judged.words.phrases['fault']}: " in text
    assert judged.words.phrases["fault"].strip() in text
    assert "{{" not in text and "m-7" not in text and "points" not in text and "must" not in text
    if style == "full":
        assert PHRASES[language] == judged.words.no_evidence and PHRASES[language] in text


@pytest.mark.parametrize("output", [SAMPLE.model_output, "", "…"])
def test_a_judge_that_fills_a_form_can_only_keep_the_contract(output):
    form = protocol().question(SAMPLE, CHECKLIST, "compact").schema.value["properties"]
    assert form["notes"] == {"const": ""}
    sample = type(SAMPLE)(id="x", question="Why?", model_output=output)
    form = protocol().question(sample, CHECKLIST, "compact").schema.value["properties"]["criteria"]
    for value in (True, False):
        answers = {}
        for name, one in form["properties"].items():
            parts = one["properties"]
            evidence = parts["evidence"].get("const", fragments(output)[:1])
            met = value if value in parts["met"]["enum"] else parts["met"]["enum"][0]
            reason = parts["reason"].get("const", "so it is")
            answers[name] = {"evidence": evidence, "reason": reason, "met": met}
        checked = protocol().check(
            json.dumps({"criteria": answers, "notes": ""}), sample, "compact"
        )
        assert checked.problems == ()


def test_a_run_is_summed_up_exported_and_compared_by_score_and_pass(tmp_path):
    rows = [
        {"id": f"{v}-{n}", "question": f"Q{n}?", "model_output": f"The answer {v} number {n}."}
        | {"meta": {"prompt_variant": v, "question_id": f"q{n}"}}
        for n in range(3)
        for v in ("v1", "v2")
    ]
    rows[-1] |= {"id": "own", "criteria": ["Is it short?"]}
    write_checklist(tmp_path, rows)

    def call(*arguments):
        done = evenhand_here(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = json.loads(call("run", "--json"))
    assert (told["verdicts"], told["checklist"]) == (6, {"notes": 0, "passed": 6})
    exported = [json.loads(line) for line in call("export", "-o", "-").splitlines()]
    assert exported[0]["criteria"]["rude"] == {"met": False, "evidence": [], "reason": "so it is"}
    assert (exported[0]["score"], list(exported[-1]["criteria"])) == (1.0, ["c1"])
    compared = json.loads(call("compare", "--by", "prompt_variant", "--baseline", "v1", "--json"))
    names = {row["dimension"] for row in compared["rows"]}
    assert "overall" in names and "pass" not in names
    (rates,) = compared["passes"]
    assert (rates["dimension"], rates["mean"], rates["n"]) == ("pass", 1, 3)
    seen = call("export", "-o", "-", "--observations").splitlines()
    assert sum('"measure":"pass"' in line.replace(" ", "") for line in seen) == 6


def test_a_share_that_passes_is_a_setting_and_a_rule_to_settle_by(tmp_path):
    write_checklist(tmp_path, 2, settings={"pass_share": 1.0}, criteria=["Is it?", "Was it?", "!"])
    ran = evenhand_here("run", "--json", cwd=tmp_path)
    assert json.loads(ran.stdout)["checklist"]["passed"] == 0, ran.stderr
    evenhand_here("protocols", "new", "mild", "--from", "checklist", cwd=tmp_path)
    with (tmp_path / "mild" / "protocol.toml").open("a") as file:
        file.write("pass_share = 0.5\n")
    settled = evenhand_here("settle", "latest", "--protocol", "mild", "--json", cwd=tmp_path)
    told = json.loads(settled.stdout)
    assert told["rules"] == {"pass_share": {"old": 1.0, "new": 0.5}}, settled.stderr
    shown = json.loads(evenhand_here("show", told["run"], "--json", cwd=tmp_path).stdout)
    assert shown["checklist"]["passed"] == 2


def test_one_output_is_checked_from_python(tmp_path, monkeypatch):
    (tmp_path / "judge.py").write_text(TICK_JUDGE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "judge", raising=False)
    criteria = ["Is it right?", {"text": "Is it clear?", "must": True}, "Is it brief?"]
    given = {"criteria": criteria, "judge": "python/judge:good", "meta": {"n": 1}}
    for share, outcome in ((None, True), (0.7, False)):
        found = evenhand.checklist("Why?", "Because it is so.", **given, pass_share=share)
        assert found.output["pass"] is outcome and found.output["meta"] == {"n": 1}
        assert isinstance(found.value, evenhand.ChecklistVerdict)
