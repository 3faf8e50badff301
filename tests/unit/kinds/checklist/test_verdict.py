"""Score and pass of a checklist, which code works out, and what statistics take of them."""

import json

import pytest

from evenhand.files.protocols import find_protocol
from evenhand.judgment import Verdict
from evenhand.kinds.checklist.criteria import build_checklist
from evenhand.kinds.checklist.kind import KIND
from evenhand.kinds.checklist.verdict import CriterionAnswer, passes, score_answers
from evenhand.kinds.kind import ReadyKind, Terms
from tests.cases import cases
from tests.unit.kinds.checking import CHECKLIST, SAMPLE, good, protocol


@cases
def test_score_and_pass_follow_from_the_answers(criteria, answers, given, score, passed):
    checklist, met = build_checklist(criteria), {"y": True, "n": False, "-": None}
    answered = {
        each.id: CriterionAnswer(met[sign], (), "so")
        for each, sign in zip(checklist.criteria, answers, strict=True)
    }
    found = score_answers(checklist, answered)
    assert (found if found is None else float(found)) == score
    assert passes(checklist, answered, given.get("share")) is passed


def test_the_output_has_the_keys_of_the_contract_and_meta_as_it_was():
    output = protocol().check(json.dumps(good()), SAMPLE).output
    assert list(output) == ["meta", "criteria", "score", "pass", "notes"]
    assert output["meta"] == SAMPLE.meta and (output["score"], output["pass"]) == (0.5, True)
    assert list(output["criteria"]["cause"]) == ["met", "evidence", "reason"]
    again = protocol().check_output(SAMPLE, output)
    assert (again.output, again.fixes, again.problems) == (output, (), ())


def test_a_fault_that_was_found_is_worth_nothing_and_null_is_left_out():
    reply = good()
    reply["criteria"]["brief"]["met"] = None
    checked = protocol().check(json.dumps(reply), SAMPLE)
    terms = Terms("en", ["en"], 0, CHECKLIST.value, {**KIND.settings, "use": []})
    ready = ReadyKind(KIND, find_protocol("checklist"), terms)
    seen = ready.observe(KIND.dump(SAMPLE), Verdict(value=checked.value))
    assert [(one.measure, one.value, one.points) for one in seen] == [
        ("cause", 1, 1),
        ("vague", 0, 1),
        ("overall", pytest.approx(0.6667), None),
        ("pass", 1, None),
    ]
