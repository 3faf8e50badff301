"""A judgment is one of three, and comes back from its text as it was."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from msgspec import Raw

from evenhand import jsontext
from evenhand.judgment import (
    Evidence,
    Failure,
    Fix,
    Judgment,
    LeftOut,
    Pass,
    Problem,
    Verdict,
    bad_tries,
    write_judgment,
)
from evenhand.kinds import KINDS
from evenhand.kinds.checklist.verdict import ChecklistVerdict, CriterionAnswer
from evenhand.kinds.pairwise.verdict import CriterionReply, PairPass, PairVerdict
from evenhand.kinds.rubric.verdict import DimensionScore, RubricVerdict
from evenhand.kinds.weighted.verdict import Grade

META = '{"z": 1.50,"a":{"ключ":1e3},"n":-0}'
PROBLEM = Problem("schema", "scores", "wrong")
PASS = PairPass(
    reask=0,
    problems=(),
    odds={"winner": {"A": -0.5}},
    round=1,
    order="21",
    judge="j",
    flags=("self_contradiction",),
    winner="A",
    said="B",
    criteria={"C1": CriterionReply(True, False, "why", "A+"), "C2": CriterionReply()},
    explanation="so",
)
VALUES = {
    "rubric": RubricVerdict(
        meta_json=Raw(META),
        scores={"d": DimensionScore(4, ("quote",), "because")},
        failure_tags=("A",),
        notes="",
    ),
    "checklist": ChecklistVerdict(
        meta_json=Raw(META),
        criteria={"c1": CriterionAnswer(None, (), "no"), "c2": CriterionAnswer(True, ("q",), "so")},
        score=0.5,
        passed=None,
        notes="",
    ),
    "pairwise": PairVerdict(
        pair_id="p",
        candidates=("a", "b"),
        winner="uncertain",
        settled="uncertain",
        rounds=3,
        criteria={"C1": "tie"},
        unstable=("C1",),
        notes="so",
        meta_json=Raw(META),
        preference=0.25,
    ),
    "weighted": Grade(
        task_name="t",
        task_type=None,
        inferred_task_type=None,
        weights=None,
        score={"d": 0},
        total_score=0,
        reasoning={"d": ""},
        critical_fail=True,
        critical_fail_reason="it lies",
        confidence="high",
    ),
}
JUDGMENTS = [
    Failure(reason="schema", detail="wrong", fixes=(Fix("cut", "a"),), flags=("masked:A",)),
    LeftOut(detail="kin"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_judgment_comes_back_from_its_text_as_it_was(kind):
    tried = (PASS,) if kind == "pairwise" else (Pass(reask=1, problems=(PROBLEM,)),)
    quotes = (Evidence("d", 1, 4, "exact"),)
    verdict = Verdict(value=VALUES[kind], evidence=quotes, flags=("snapped",), passes=tried)
    for judgment in (verdict, *JUDGMENTS):
        text = write_judgment(judgment, ("key",))
        assert KINDS[kind].read_judgment(text) == judgment
        assert (text.status, text.reason) == (judgment.status, judgment.reason)
        body = jsontext.parse(text.body)
        assert list(body) == ["output", "detail", "evidence", "fixes", "flags", "passes", "calls"]
        assert body["calls"] == ["key"]
        assert jsontext.same(body["output"], judgment.output)


@pytest.mark.parametrize("kind", ["rubric", "pairwise", "checklist"])
def test_meta_is_kept_byte_for_byte(kind):
    text = write_judgment(Verdict(value=VALUES[kind]))
    assert META in text.body
    judgment = KINDS[kind].read_judgment(text)
    assert judgment.output is not None
    assert jsontext.dump(judgment.output["meta"]) == jsontext.dump(jsontext.parse(META))
    assert META in write_judgment(judgment).body


@pytest.mark.parametrize("judgment", [Verdict(value=VALUES["weighted"]), *JUDGMENTS])
def test_only_a_verdict_has_an_output_and_only_a_failure_a_reason(judgment):
    assert (judgment.output is not None) == (judgment.status == "verdict")
    assert (judgment.reason is not None) == (judgment.status == "failure")
    assert bool(judgment.detail) == (judgment.status != "verdict")


def test_a_judgment_is_none_but_one_of_three_and_cannot_be_changed():
    with pytest.raises(TypeError):
        Judgment()
    with pytest.raises(FrozenInstanceError):
        JUDGMENTS[0].flags = ()
    with pytest.raises(AttributeError):
        VALUES["weighted"].total_score = 100


def tried(*tries):
    """A failure of conversations: of each try, the how-manieth it was and whether it was good."""
    passes = [Pass(reask=reask, problems=() if good else (PROBLEM,)) for reask, good in tries]
    return Failure(reason="schema", detail="wrong", passes=tuple(passes))


@pytest.mark.parametrize(
    ("judgment", "calls", "expected"),
    [
        (tried((0, True), (0, False), (1, True), (0, False), (1, False)), 5, [3, 4]),
        (tried((0, False), (1, False), (0, True)), 3, [0, 1]),
        (tried((0, True), (0, True)), 4, [2, 3]),
        (tried((0, True), (0, True)), 2, []),
        (tried((0, False), (1, False)), 2, [0, 1]),
        (tried(), 2, [0, 1]),
    ],
    ids=[
        "a bad pass",
        "a bad pass before a good one",
        "a call lost amid a pass",
        "a call lost at once",
        "only bad",
        "unknown",
    ],
)
def test_only_the_conversation_that_failed_is_asked_again(judgment, calls, expected):
    keys = tuple(f"key{number}" for number in range(calls))
    assert bad_tries(judgment, keys) == tuple(f"key{number}" for number in expected)
