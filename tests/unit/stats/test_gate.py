"""Gates on runs of scores and of pairs: what is held to which condition, and what stays open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evenhand.errors import UsageError
from evenhand.observation import WINNER
from evenhand.stats.conditions import Condition, Conditions, JudgmentCounts
from evenhand.stats.gate import Gate, hold_to
from tests.cases import cases
from tests.sentences import is_told, keys, refused
from tests.unit.stats.tables import ballots, compare_scores, scores_of, votes

OPEN = "not enough evidence"
AGAINST = {"by": ("prompt_variant",), "baseline": "v1"}
GOOD = [4, 5, 5, 4, 5, 4, 5, 5, 4, 5] * 3
FAIR = [3, 4, 3, 2, 3, 4, 3, 3, 2, 3] * 3
CORRECT = {"dimensions": ("correct",)}


def scores(*, planned=1, critical=0, scale=(1.0, 5.0), **variants):
    """A score on `correct`, from 1 to 5, a question and variant; None is a failure. The first
    `critical` fail critically."""
    rows = [
        {"prompt_variant": v, "question_id": q, "scores": score and {"correct": score}}
        for v, given in variants.items()
        for q, score in enumerate(given)
    ]
    told = [row | {"critical": place < critical} for place, row in enumerate(rows)]
    return scores_of(told, planned=planned, scale=scale)


def gate(table, pending=0, **asked):
    failed = int(table.failed.sum())
    counts = JudgmentCounts(table.failed.size - failed, failed, pending)
    return hold_to(table, counts, Conditions(**asked))


def gate_pairs(signs, other="", pending=0, **asked):
    """A gate on votes of `old` with `new`, and of `old` with `other`, a topic each."""
    table = ballots(votes(signs, "old", "new") + votes(other, "old", "other"))
    return gate_votes(table, pending, **asked)


def gate_votes(table, pending=0, **asked):
    """The last so many votes are still to come."""
    judged = table.unit < len(table.units) - pending
    failed = int(np.isnan(table.column(WINNER)[judged]).sum())
    counts = JudgmentCounts(int(judged.sum()) - failed, failed, pending)
    planned = np.ones((len(table.units), 1), np.int64)
    return hold_to(replace(table.where(judged), planned=planned), counts, Conditions(**asked))


@cases
def test_all_must_be_met_and_one_is_enough_to_fail(outcomes, whole):
    names = ("value", "low", "high", "threshold", "dimension", "variant")
    rest = dict.fromkeys(names) | {"n": 0, "clusters": 0}
    made = [Condition(name="better", outcome=one, reason=f"{one}.", **rest) for one in outcomes]
    found = Gate(conditions=tuple(made), level=0.95)
    assert found.outcome == found.json()["outcome"] == whole
    assert found.json()["reasons"] == [f"{one}." for one in outcomes]


@cases
def test_a_variant_is_held_against_the_baseline(is_up, asked, outcome):
    low, high = (FAIR, GOOD) if is_up else (GOOD, FAIR)
    assert gate(scores(v1=low, v2=high), **asked, **AGAINST).outcome == outcome


def test_what_compare_finds_is_open_where_so_few_need_not_show_what_is_rare():
    table = scores(v1=[2.0] * 16, v2=[2.5, 3.0] * 8)
    assert compare_scores(table).row("v2").outcome == "better"
    (condition,) = gate(table, better=True, **AGAINST).conditions
    assert condition.outcome == OPEN and condition.more is not None
    assert is_told(condition.reason, "gate.unseen")
    more = scores(v1=[2.0] * 40, v2=[2.5, 3.0] * 20)
    assert gate(more, better=True, **AGAINST).outcome == "better"


def test_every_variant_but_the_baseline_is_held_unless_one_is_named():
    table, asked = scores(v1=FAIR, v2=GOOD, v3=[1.0] * 30), {"no_worse_than": 0.1, **AGAINST}
    both = [(one.variant, one.outcome) for one in gate(table, **asked).conditions]
    assert both == [("v2", "better"), ("v3", "worse")]
    assert gate(table, variant="v2", **asked).outcome == "better"
    for name, key in (("v1", "gate.is_baseline"), ("v22", "stats.no_variant")):
        with refused(UsageError, key, '"v2"'):
            gate(table, variant=name, **asked)


def test_a_mean_is_of_the_variant_or_of_all_units():
    table = scores(v1=FAIR, v2=GOOD)
    whole, one, scaled = (
        gate(table, **asked).conditions[0]
        for asked in (
            {"min_mean": 3.0, **CORRECT},
            {"min_mean": 3.5, **CORRECT, **AGAINST},
            {"min_mean": 0.5, "variant": "v1", "by": ("prompt_variant",)},
        )
    )
    # Two answers to one question are one cluster.
    assert (whole.variant, whole.n, whole.clusters) == (None, 60, 30)
    assert whole.outcome == "better"
    assert whole.value == pytest.approx(np.mean([*FAIR, *GOOD]))
    assert (one.variant, one.n, one.outcome) == ("v2", 30, "better")
    assert scaled.value == pytest.approx((np.mean(FAIR) - 1) / 4)
    with refused(UsageError, "stats.no_dimension", "corect"):
        gate(table, min_mean=3.5, dimensions=("corect",))


def test_a_scale_that_is_not_known_is_said_to_be_what_was_seen():
    table = scores(v1=FAIR, v2=GOOD)
    imported = replace(table, scales=tuple(replace(s, is_known=False) for s in table.scales))
    assert gate(table, min_mean=0.1).notes == gate(imported, max_failure_rate=0.1).notes == ()
    for asked in ({"min_mean": 0.1}, {"no_worse_than": 0.5, **AGAINST}):
        assert "notes.unknown_scale" in keys(gate(imported, **asked).notes)


def test_missing_judgments_open_what_they_could_turn():
    lacking = scores(v1=FAIR, v2=[*GOOD[:15], *[None] * 15])
    still = gate(lacking, better=True, **AGAINST)
    assert still.outcome == OPEN and is_told(still.json()["reasons"][0], "gate.turned")
    for least, outcome in ((3.5, OPEN), (2.0, "better")):
        assert gate(lacking, min_mean=least, **CORRECT, **AGAINST).outcome == outcome
    # Judgments that are planned and not there count as missing too.
    for planned, outcome in ((2, OPEN), (1, "better")):
        assert gate(scores(v2=GOOD, planned=planned), min_mean=0.7).outcome == outcome


@pytest.mark.parametrize("noisy", [1.0, 0.15])
def test_hardly_any_run_has_a_case_that_falls_by_the_noise_of_the_judge(noisy):
    random, runs, cases = np.random.default_rng(4), 40, 40
    fallen, found = 0, 0
    for _ in range(runs):
        wobble = (
            random.normal(0, 0.3, (cases, 2, 3)) * (random.random(cases) < noisy)[:, None, None]
        )
        rows = [
            {"prompt_variant": f"v{side + 1}", "question_id": q, "judge": "j", "repeat": n}
            | {"scores": {"correct": 3 + wobble[q, side, n] - 2 * (q == side == 1)}}
            for q in range(cases)
            for side in range(2)
            for n in range(3)
        ]
        told = gate(scores_of(rows, planned=3), no_case_worse_than=0.0, **AGAINST, **CORRECT)
        found += bool(told.conditions[0].units)
        fallen += len(told.conditions[0].units) > 1
    assert found >= 0.9 * runs and fallen <= 0.1 * runs


def test_critical_fails_are_those_of_the_variant():
    table, lacking = scores(v1=GOOD, v2=GOOD, critical=2), scores(v1=GOOD, v2=[*GOOD, None])
    for held, most, asked, outcome in (
        (table, 1, {}, "worse"),
        (table, 2, {}, "better"),
        (table, 0, AGAINST, "better"),
        (lacking, 0, AGAINST, OPEN),
        (lacking, 1, AGAINST, "better"),
    ):
        assert gate(held, max_critical_fails=most, **asked).outcome == outcome


@pytest.mark.parametrize("number", [0, 1, 2])
def test_hardly_any_unit_is_not_enough(number):
    table = scores(v1=FAIR[:number], v2=GOOD[:number]) if number else scores(v1=[None])
    found = gate(table, better=True, no_worse_than=0.1, min_mean=0.4, **AGAINST)
    assert found.outcome == OPEN and "nan" not in str(found.json()).lower()
    assert all(reason.endswith(".") for reason in found.json()["reasons"])


def test_one_variant_has_nothing_beside_it():
    found = gate(scores(v1=GOOD), better=True, min_mean=0.1, **AGAINST)
    assert [(one.name, one.outcome) for one in found.conditions] == [
        ("better", OPEN),
        ("min_mean", OPEN),
    ]
    assert all(is_told(reason, "gate.no_variant") for reason in found.json()["reasons"])


# Pairs

WON = "<" * 36 + ">" * 12 + "=" * 4


@cases
def test_a_win_rate_is_against_the_baseline_or_against_all(asked, outcome):
    found = gate_pairs(WON, **asked)
    assert found.outcome == outcome
    if asked.get("candidate") == "new":
        assert found.conditions[0].value == pytest.approx(38 / 52)


@cases
def test_whose_win_rate_must_be_said(asked, key, advice):
    marked = ballots([(1, "old", "new", "=")], marks={"C1": "="})
    with refused(UsageError, key, advice):
        gate_votes(marked, min_win_rate=0.5, **asked)


@pytest.mark.parametrize("baseline", [{}, {"baseline": "old"}])
@pytest.mark.parametrize(
    ("failed", "pending", "outcome"), [(40, 40, OPEN), (40, 0, OPEN), (4, 2, "better")]
)
def test_pairs_that_failed_or_wait_open_what_they_could_turn(failed, pending, outcome, baseline):
    asked = {"min_win_rate": 0.55, "candidate": "new", **baseline}
    assert gate_pairs([*WON, *[""] * failed], pending=pending, **asked).outcome == outcome


@cases
def test_conflicts_are_counted_of_those_that_are_held_to_the_gate(new, asked, counted):
    found = gate_pairs(new, "???", baseline="old", min_win_rate=0.5, **asked)
    conflicts = [note for note in found.notes if note.key == "notes.conflicts"]
    assert [note.values["n"] for note in conflicts] == counted
