"""Length-controlled win rates, against the optimum that they are defined by."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from evenhand.errors import UsageError
from evenhand.stats.length import Anchored, length_controlled


def optimum(rows, wanted, weights, strength):
    """The coefficients that minimise |b| + strength * weighted loss, by coordinate descent on
    quadratic models."""
    found = np.zeros(rows.shape[1])

    def loss(b):
        odds = rows @ b
        return (
            np.abs(b).sum() + strength * (weights * (np.logaddexp(0, odds) - wanted * odds)).sum()
        )

    for _ in range(200):
        chance = 1 / (1 + np.exp(-rows @ found))
        slope = strength * rows.T @ (weights * (chance - wanted))
        bend = strength * (rows * (weights * chance * (1 - chance))[:, None]).T @ rows
        step = np.zeros_like(found)
        for _ in range(200):
            for j in range(len(found)):
                rest = found[j] + step[j] - (slope[j] + bend[j] @ step) / bend[j, j]
                step[j] = np.sign(rest) * max(abs(rest) - 1 / bend[j, j], 0) - found[j]
        size = 1.0
        while loss(found + size * step) > loss(found) and size > 1e-9:
            size /= 2
        found = found + size * step
        if np.abs(step).max() < 1e-9:
            break
    return found


def judged(seed=1, votes=300, longer=1.5):
    """A judge that likes the longer answer, and answers that are often the longer one."""
    rng = np.random.default_rng(seed)
    ahead = rng.normal(-200, 300, votes)
    chance = 1 / (1 + np.exp(longer * np.tanh(ahead / ahead.std(ddof=1)) + 0.3))
    return (rng.random(votes) < chance).astype(float), ahead


def test_it_is_what_the_regression_says_at_equal_lengths():
    preference, ahead = judged()
    found = length_controlled(preference, ahead)
    rows = np.stack([np.tanh(ahead / ahead.std(ddof=1)), np.ones(len(ahead))], axis=1)
    best = optimum(rows, preference, np.ones(len(ahead)), found.strength)
    assert found.win_rate == pytest.approx(1 / (1 + np.exp(-best[1])), abs=5e-4)
    assert found.length_effect == pytest.approx(best[0], abs=5e-3) and best[0] < 0
    assert found.win_rate < preference.mean() - 0.05


def test_difficulty_and_further_rows_are_used():
    preference, ahead = judged()
    rng = np.random.default_rng(2)
    difficulty, soft = rng.normal(size=300), np.clip(preference * 0.8 + 0.1, 0, 1)
    extra = Anchored(
        preference=rng.random(200), length=rng.normal(size=200), difficulty=rng.normal(size=200)
    )
    found = length_controlled(soft, ahead, difficulty=difficulty, anchored=extra)
    own = np.stack([np.tanh(ahead / ahead.std(ddof=1)), difficulty, np.ones(300)], axis=1)
    beside = np.stack([np.tanh(extra.length), extra.difficulty, np.zeros(200)], axis=1)
    weights = np.concatenate([np.full(200, 0.1), np.ones(300)])
    wanted = np.concatenate([extra.preference, soft])
    best = optimum(np.concatenate([beside, own]), wanted, weights, found.strength)
    own[:, 0] = 0
    assert found.win_rate == pytest.approx((1 / (1 + np.exp(-own @ best))).mean(), abs=5e-4)


def test_sides_mirror_each_other():
    preference, ahead = judged()
    one, other = length_controlled(preference, ahead), length_controlled(1 - preference, -ahead)
    assert one.win_rate == pytest.approx(1 - other.win_rate, abs=2e-3)


def test_votes_without_a_verdict_are_predicted_too():
    preference, ahead = judged()
    fewer = preference.copy()
    fewer[::10] = np.nan
    found = length_controlled(fewer, ahead)
    assert found.win_rate == pytest.approx(length_controlled(preference, ahead).win_rate, abs=0.05)


def test_one_that_never_won_wins_nothing_at_equal_lengths(capfd):
    _, ahead = judged(votes=40)
    never, always = (length_controlled(np.full(40, share), ahead) for share in (0.0, 1.0))
    assert never.win_rate < 0.001 and always.win_rate > 0.999
    assert never.low <= never.win_rate and 0.05 < never.high < 0.2
    assert 0.8 < always.low < 0.95 and always.high >= always.win_rate
    assert capfd.readouterr() == ("", "")


def test_a_figure_that_the_penalty_draws_to_a_half_has_an_interval_still():
    """Twelve wins of twenty: cross-validation takes the strongest penalty."""
    rng = np.random.default_rng(3)
    found = length_controlled(np.repeat([1.0, 0.0], [12, 8]), rng.normal(size=20))
    assert found.win_rate == pytest.approx(0.5, abs=1e-6)
    assert found.low < 0.45 and found.high > 0.75


def test_too_few_votes_or_equal_lengths_have_no_figure():
    preference, ahead = judged(votes=9)
    assert length_controlled(preference, ahead) is None
    assert length_controlled(np.ones(50), np.zeros(50)) is None
    assert length_controlled(np.zeros(0), np.zeros(0)) is None


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(UsageError, match="scikit-learn") as told:
        length_controlled(*judged())
    assert told.value.advice == 'pip install "evenhand[length]"'
