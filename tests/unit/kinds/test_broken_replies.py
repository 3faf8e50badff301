"""One rule broken at a time, in every kind: what is mended, asked again or flagged, and what is
told in a re-ask. The tables in `broken` name each change and what comes of it."""

import json
import re
from typing import get_args

import pytest

from evenhand.judgment import FixCode, Reason
from evenhand.kinds.protocol import LANGUAGES
from evenhand.limits import PROBLEMS_KEPT
from tests.cases import cases
from tests.unit.kinds import checking, material, pairing
from tests.unit.kinds.contracts import GOOD, KINDS, change, check, outcome_of, read_table

TABLES = {kind: read_table(kind) + read_table("whole") for kind in KINDS}
LINES = read_table("lines")
each_language = pytest.mark.parametrize("language", LANGUAGES)
each_kind = pytest.mark.parametrize("kind", KINDS)


def assert_sound(checked, expected):
    assert outcome_of(checked) == expected
    assert (checked.value is None) == bool(checked.problems)
    assert all(problem.path in problem.message for problem in checked.problems)


def test_codes_are_those_of_the_contract():
    reasons = "refused filtered truncated empty not_json ambiguous schema out_of_range"
    reasons += " evidence_missing meta_changed transport timeout context_overflow judge_crash"
    assert get_args(Reason) == tuple(reasons.split())
    fixes = "meta total weights zeroed tags snapped unwrapped cut rescaled"
    assert get_args(FixCode) == tuple(fixes.split())


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [(kind, *row) for kind, rows in TABLES.items() for row in rows],
    ids=str,
)
def test_a_broken_rule_is_mended_told_or_flagged(kind, changes, expected):
    """In every language alike, in its own words."""
    reply = change(GOOD[kind], changes)
    english = check(kind, reply)
    for language in LANGUAGES:
        phrased = reply.replace(material.PHRASES["en"], material.PHRASES[language])
        if kind == "checklist":
            phrased = re.sub(checking.PHRASES["en"], checking.PHRASES[language], reply, flags=re.I)
        checked = check(kind, phrased, language)
        assert_sound(checked, expected)
        for one, other in zip(checked.problems, english.problems, strict=True):
            assert one.wording
            assert (one.wording == other.wording == one.message) == (language == "en")


@pytest.mark.parametrize(("line", "expected"), LINES, ids=str)
def test_a_table_line_is_mended_told_or_flagged(line, expected):
    assert_sound(pairing.protocol(tables=True).check(line), expected)


@each_kind
def test_two_verdicts_are_ambiguous(kind):
    other = {"weighted": 'confidence = "low"', "pairwise": 'winner = "B"'}
    changed = change(GOOD[kind], other.get(kind, 'notes = "x"'))
    both = f"{json.dumps(GOOD[kind])}\n{changed}"
    assert outcome_of(check(kind, both)) == ["ambiguous"]


@each_kind
def test_very_many_problems_are_not_all_put_into_words(kind):
    reply = json.dumps(GOOD[kind] | {f"key {n}": n for n in range(20_000)})
    assert len(check(kind, reply).problems) == PROBLEMS_KEPT


PLACES = """
pairwise criteria.C2.first_meets
pairwise criteria.C2.comment
pairwise criteria.C2
pairwise explanation
rubric failure_tags
rubric notes
rubric scores.correct.rationale
rubric scores
checklist criteria.cause.met
checklist criteria
weighted critical_fail
weighted reasoning.logic_and_fact
weighted reasoning
"""


@each_language
@pytest.mark.parametrize("place", PLACES.strip().splitlines())
def test_a_value_of_the_wrong_type_is_told_with_its_place(place, language):
    kind, path = place.split()
    [problem] = check(kind, change(GOOD[kind], f"{path} = 17"), language).problems
    assert (problem.code, problem.path) == ("schema", path)
    assert all(path in text and "17" in text for text in (problem.message, problem.wording))


@cases
def test_what_stands_there_is_told_as_it_was_written_and_cut_where_it_is_long(value, written):
    [problem] = check("pairwise", json.dumps(GOOD["pairwise"] | {"explanation": value})).problems
    assert problem.message.startswith(f"explanation: {written} ")


@each_language
@pytest.mark.parametrize("number", ["NaN", "-Infinity"])
def test_a_number_that_json_has_not_is_told_with_its_place(number, language):
    reply = change(GOOD["weighted"], f"score.logic_and_fact = {number}")
    [problem] = check("weighted", reply, language).problems
    assert problem.code == "not_json"
    for text in (problem.message, problem.wording):
        assert f'"logic_and_fact": {number}'[-20:] in text


REASONS = {
    "pairwise": ("explanation", "criteria.C2.comment"),
    "rubric": ("scores.correct.rationale",),
    "weighted": ("reasoning.logic_and_fact",),
    "checklist": ("criteria.brief.reason",),
}


@cases
@each_kind
def test_a_reason_without_a_letter_or_digit_is_asked_again(kind, text):
    for path in REASONS[kind]:
        found = check(kind, change(GOOD[kind], f"{path} = {json.dumps(text)}"))
        assert outcome_of(found) == [f"schema {path}"]


@pytest.mark.parametrize("text", ["\u200bso", "无\u200b", "+5", "A ≻ B."], ids=ascii)
def test_a_reason_with_hidden_characters_beside_others_is_a_reason(text):
    for kind, paths in REASONS.items():
        assert check(kind, change(GOOD[kind], f"{paths[0]} = {json.dumps(text)}")).problems == ()


@each_language
@each_kind
@cases
def test_the_place_from_which_a_reply_is_no_json_is_told(ending, near, kind, language):
    reply = json.dumps(GOOD[kind], ensure_ascii=False)[:-1] + ending
    [problem] = check(kind, reply, language).problems
    assert problem.code == "not_json"
    assert all(near in text and len(text) < 200 for text in (problem.message, problem.wording))


@each_kind
def test_a_reply_without_an_object_is_told_by_its_beginning(kind):
    [problem] = check(kind, "Both answers name the same facts, so it is hard to say.").problems
    assert '"Both answers name th…"' in problem.wording
