"""One rule broken at a time, in every kind: what is mended, asked again or flagged."""

from __future__ import annotations

from typing import get_args

import pytest

from evenhand.judgment import FixCode, Reason, VerdictValue
from evenhand.kinds.reply import Checked
from tests.unit.kinds import grading, material, pairing
from tests.unit.kinds.hostile_replies import ANSWERS, LINES, PAIRS, SAMPLES, Hostile


def outcome(checked: Checked[VerdictValue]) -> list[str]:
    """What a check found, in the words of the table, in no order."""
    problems = [f"{problem.code} {problem.path}".strip() for problem in checked.problems]
    fixes = [f"fix {fix.code} {fix.path}".strip() for fix in checked.fixes]
    return sorted([*problems, *fixes, *(f"flag {flag}" for flag in checked.flags)])


def held(checked: Checked[VerdictValue], hostile: Hostile) -> None:
    assert outcome(checked) == sorted(filter(None, hostile.outcome.split("; ")))
    assert (checked.value is None) == bool(checked.problems)
    assert all(problem.path in problem.message for problem in checked.problems)


def test_codes_are_those_of_the_contract() -> None:
    reasons = "refused filtered truncated empty not_json ambiguous schema out_of_range"
    reasons += " evidence_missing meta_changed transport timeout context_overflow judge_crash"
    assert get_args(Reason) == tuple(reasons.split())
    fixes = "meta total weights zeroed tags snapped unwrapped cut rescaled"
    assert get_args(FixCode) == tuple(fixes.split())


def test_there_are_enough_of_them() -> None:
    replies = {hostile.reply for hostile in (*PAIRS, *LINES, *SAMPLES, *ANSWERS)}
    assert len(replies) >= 170


@pytest.mark.parametrize("hostile", PAIRS, ids=lambda hostile: hostile.rule)
def test_pairs(hostile: Hostile) -> None:
    held(pairing.protocol().check(hostile.reply), hostile)


@pytest.mark.parametrize("hostile", LINES, ids=lambda hostile: hostile.rule)
def test_lines_of_a_table(hostile: Hostile) -> None:
    held(pairing.protocol(tables=True).check(hostile.reply), hostile)


@pytest.mark.parametrize("hostile", SAMPLES, ids=lambda hostile: hostile.rule)
def test_samples(hostile: Hostile) -> None:
    held(material.protocol().check(hostile.reply, material.SAMPLE), hostile)


@pytest.mark.parametrize("hostile", ANSWERS, ids=lambda hostile: hostile.rule)
def test_answers(hostile: Hostile) -> None:
    held(grading.protocol().check(hostile.reply, grading.ANSWER), hostile)
