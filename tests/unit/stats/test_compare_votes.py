"""Candidates against a baseline, from votes; and how often intervals hold the truth, end to end."""

from __future__ import annotations

import os
from math import isfinite, sqrt
from typing import Any

import numpy as np
import pytest

from evenhand.errors import UsageError
from tests.unit.stats.coverage import SCENARIOS, covered
from tests.unit.stats.score_tables import (
    compare_scores,
    compare_votes,
    empty_votes,
    scores_of,
    votes_of,
)
from tests.unit.stats.test_compare import ID, all_finite, sample


def vote(topic: int, first: str, second: str, winner: str | None, **more: Any) -> dict[str, Any]:
    return {"topic": topic, "first": first, "second": second, "winner": winner, **more}


def test_votes_are_win_rates_against_the_baseline_whatever_the_order() -> None:
    rows = [vote(t, "old", "new", "second") for t in range(6)]
    rows += [vote(t, "new", "old", "first") for t in range(6, 9)]
    rows += [vote(9, "new", "old", "second"), vote(10, "old", "new", "tie")]
    rows += [vote(11, "old", "new", "uncertain"), vote(12, "old", "new", None)]
    found = compare_votes(votes_of(rows), "old")
    (row,) = found.rows
    assert (row.variant, row.dimension, row.n, row.clusters) == ("new", "overall", 12, 12)
    assert row.mean == pytest.approx(10 / 12) and row.baseline_mean == pytest.approx(2 / 12)
    assert row.difference == pytest.approx(8 / 12)
    assert row.bounds == pytest.approx((2 * 10 / 13 - 1, 2 * 11 / 13 - 1))
    assert row.p is not None and row.p < 0.05 and row.outcome == "better"
    assert found.missing["new"].failed == 1
    assert any('by the rule "uncertain"' in note for note in found.notes)


def test_the_difference_of_votes_has_the_interval_of_its_win_rate() -> None:
    draw = np.random.default_rng(1)
    rows = [vote(t, "a", "b", str(draw.choice(["first", "second", "tie"]))) for t in range(30)]
    (row,) = compare_votes(votes_of(rows), "a").rows
    assert row.mean_low is not None and row.mean_high is not None
    assert (row.low, row.high) == pytest.approx((2 * row.mean_low - 1, 2 * row.mean_high - 1))


def test_judges_of_one_pair_count_once_and_pairs_of_a_topic_hang_together() -> None:
    rows = [
        vote(t, "a", "b", "second" if j != "k" else "first", judge=j)
        for t in range(8)
        for j in ("i", "j", "k", "l")
    ]
    (row,) = compare_votes(votes_of(rows), "a").rows
    assert (row.n, row.clusters, row.mean) == (8, 8, 0.75)
    (alone,) = compare_votes(votes_of(rows), "a", judge="k").rows
    assert alone.mean == 0.0 and alone.outcome == "worse"
    twice = [vote(t // 2, "a", "b", "second") | {"topic": t // 2} for t in range(8)]
    assert compare_votes(votes_of(twice), "a").rows[0].clusters == 4


def test_criteria_have_rows_of_their_own_and_a_family_of_their_own() -> None:
    rows = [
        vote(t, "a", "b", "second", marks={"C1": "second", "C2": "tie" if t else "first"})
        for t in range(10)
    ]
    found = compare_votes(votes_of(rows), "a")
    assert [row.dimension for row in found.rows] == ["C1", "C2", "overall"]
    first, second, overall = found.rows
    assert first.p_adjusted == pytest.approx(2 * (first.p or 0))
    assert overall.p_adjusted == overall.p == first.p
    assert second.mean == pytest.approx(0.45) and second.outcome == "not enough evidence"


def test_who_never_met_the_baseline_is_said_and_a_candidate_against_itself_left_out() -> None:
    rows = [vote(0, "a", "b", "tie"), vote(1, "b", "c", "first"), vote(2, "a", "a", "first")]
    found = compare_votes(votes_of(rows), "a")
    assert [row.variant for row in found.rows] == ["b"]
    assert any('Never compared with the baseline: "c"' in note for note in found.notes)
    with pytest.raises(UsageError, match="no candidate is called"):
        compare_votes(votes_of(rows), "d")
    with pytest.raises(UsageError, match="no candidate to compare"):
        compare_votes(empty_votes())


@pytest.mark.parametrize("rows", [[None], ["tie"], ["tie", "tie"], ["first", "first"]])
def test_few_votes_and_all_ties_give_words(rows: list[str | None]) -> None:
    found = compare_votes(votes_of([vote(t, "a", "b", w) for t, w in enumerate(rows)]), "a")
    all_finite(found)
    assert found.rows[0].outcome == "not enough evidence" and found.notes


def test_differences_and_win_rates_hold_the_truth_through_the_public_functions() -> None:
    rounds, held, won = 250, 0, 0
    draw = np.random.default_rng(8)
    for _ in range(rounds):
        row = compare_scores(simulated(draw), "prompt_variant", "v1").row("v2", "true")
        assert row is not None and row.low is not None and row.high is not None
        held += row.low <= 0.5 <= row.high
        (row,) = compare_votes(simulated_votes(draw), "a").rows
        assert row.low is not None and row.high is not None
        won += row.low <= 0.2 <= row.high
    least = 0.92 - 3 * sqrt(0.92 * 0.08 / rounds)
    assert held / rounds >= least and won / rounds >= least


def simulated(draw: np.random.Generator) -> Any:
    """Twenty questions with one to four units each, two judges, two repeats, a tenth missing; v2 is
    half a point better."""
    rows = []
    for q in range(20):
        common, lift = draw.normal(2.6, 0.4), draw.normal(0.5, 0.3)
        for run in range(draw.integers(1, 5)):
            for variant in ("v1", "v2"):
                true = common + (variant == "v2") * lift + draw.normal(0, 0.2)
                for judge in ("j", "k"):
                    for repeat in range(2):
                        score = float(true + 0.2 * (judge == "k") + draw.normal(0, 0.2))
                        lost = draw.random() < 0.1
                        rows.append(
                            sample(
                                q,
                                variant,
                                None if lost else score,
                                run_id=run,
                                judge=judge,
                                repeat=repeat,
                            )
                        )
    return scores_of(rows, id_fields=ID, planned=4)


def simulated_votes(draw: np.random.Generator) -> Any:
    """Twenty topics with unequal numbers of pairs; b wins 0.6 with ties half."""
    rows = []
    for topic in range(20):
        lean = draw.choice([0.4, 0.0, -0.4])
        for number in range(draw.integers(1, 4)):
            chances = [0.3 - lean / 2, 0.2, 0.5 + lean / 2]
            winner = str(draw.choice(["first", "tie", "second"], p=chances))
            made = vote(topic, "a", "b", winner)
            rows.append(made if number == 0 else made | {"judge": f"j{number}"})
    return votes_of(rows)


@pytest.mark.skipif(os.environ.get("EVENHAND_LONG") != "1", reason="--long runs it")
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize(("n", "wanted"), [(20, 0.92), (100, 0.935), (1000, 0.935)])
def test_coverage_in_full(name: str, n: int, wanted: float) -> None:
    share, width = covered(SCENARIOS[name], n, 4000, seed=n)
    print(f"{name}, n = {n}: {100 * share:.1f} %, width {width:.3f} of the scale")
    assert isfinite(width) and share >= wanted


def test_contradicted_verdicts_beside_the_baseline_are_counted() -> None:
    rows = [vote(t, "a", "b", "uncertain" if t < 2 else "first") for t in range(6)]
    rows += [vote(t, "b", "c", "uncertain") for t in range(6)]  # without the baseline
    (note,) = [n for n in compare_votes(votes_of(rows), "a").notes if "contradict" in n]
    assert '2 verdicts count by the rule "uncertain".' in note
