"""AlpacaEval's judgments replayed in random orders: the decisions that all of them give, early."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from tests.published.data import records
from tests.unit.stats.sequences import decisions

ALPHA, SEEDS = 0.05, range(10)


@pytest.fixture(scope="module")
def preferences():
    """Of each published (annotator, model), how far the model is preferred to the baseline. A
    preference of 0 is a draw; one that is empty a failure, and skipped."""
    found = {}
    for row in records("alpacaeval/annotations_compact.csv.gz"):
        if row["preference"]:
            value = (float(row["preference"]) or 1.5) - 1
            found.setdefault((row["annotator"], row["model"]), []).append(value)
    published = records("alpacaeval/leaderboard_published.csv")
    values = [np.array(found[row["annotator"], row["model"]]) for row in published]
    for row, one in zip(published, values, strict=True):
        assert 100 * one.mean() == pytest.approx(float(row["win_rate"]), abs=1e-6)
    return values


def test_the_same_62_of_63_decisions_on_less_than_a_tenth(preferences):
    same, shares = np.zeros(len(SEEDS), np.int64), np.zeros((len(preferences), len(SEEDS)))
    decided = 0
    for place, values in enumerate(preferences):
        is_decided = ttest_1samp(values, 0.5).pvalue <= ALPHA
        full = int(np.sign(values.mean() - 0.5)) * bool(is_decided)
        decided += bool(is_decided)
        orders = np.stack([np.random.default_rng(seed).permutation(values) for seed in SEEDS])
        sides, after = decisions(orders, ALPHA)
        assert not (sides == -full).any() or not full, "decided the wrong way"
        assert full or not sides.any(), "decided what all of them leave open"
        same += (sides == full) & is_decided
        shares[place] = after / values.size
    assert decided == 62
    assert (same == 62).all()
    assert shares.mean(axis=0).max() <= 0.09
    assert shares.mean() <= 0.07
