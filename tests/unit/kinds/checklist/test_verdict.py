"""Score and pass of a checklist, which code works out, and what statistics take of them."""

import json

import pytest

from evenhand.files.protocols import find_protocol
from evenhand.judgment import Verdict
from evenhand.kinds.checklist.criteria import build_checklist
from evenhand.kinds.checklist.kind import KIND
from evenhand.kinds.checklist.verdict import CriterionAnswer, passes, score_answers
from evenhand.kinds.kind import ReadyKind, Terms
from tests.unit.kinds.checking import CHECKLIST, SAMPLE, good, protocol
from tests.unit.kinds.tables import lines

OUTCOMES = """
1 1           | yy  | 1      True
1 1           | yn  | 0.5    False
1 2           | yn  | 0.3333 False
1 2           | y-  | 1      True
1 2           | --  | None   None
1! 2          | yn  | 0.3333 True
1! 2          | ny  | 0.6667 False
1! 2          | -n  | 0      True
3 -1          | yn  | 1      True
3 -1          | yy  | 0.6667 False
1 -3          | yy  | 0      False
1! -3         | yy  | 0      True
1 -3!         | yy  | 0      False
-1 -2         | nn  | 1      True
-1 -2         | ny  | 0      False
2 -1          | -n  | 1      True
1 1     >=0.5 | yn  | 0.5    True
1 1     >=0.6 | yn  | 0.5    False
1! 1    >=0.5 | ny  | 0.5    False
2 -1    >=0.5 | yy  | 0.5    True
1 1     >=0   | nn  | 0      True
"""
"""Points, with ! for a must; the least share that passes; answers; score and pass."""


@pytest.mark.parametrize("row", lines(OUTCOMES))
def test_score_and_pass_follow_from_the_answers(row):
    given, answered, expected = (part.split() for part in row.split("|"))
    share = next((float(word[2:]) for word in given if word.startswith(">")), None)
    criteria = [word for word in given if not word.startswith(">")]
    checklist = build_checklist(
        [{"text": "?", "points": int(w.rstrip("!")), "must": w[-1] == "!"} for w in criteria]
    )
    met = {"y": True, "n": False, "-": None}
    answers = {
        each.id: CriterionAnswer(met[sign], (), "so")
        for each, sign in zip(checklist.criteria, answered[0], strict=True)
    }
    score = score_answers(checklist, answers)
    assert [score and float(score), passes(checklist, answers, share)] == [
        None if expected[0] == "None" else float(expected[0]),
        {"True": True, "False": False, "None": None}[expected[1]],
    ]


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
