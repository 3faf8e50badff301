"""Length-controlled win rates, against the optimum that they are defined by; and their intervals at
equal lengths, against refits one by one."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, stdtrit

from evenhand.errors import UsageError
from evenhand.stats.length import FIRTH, Anchored, equal_length_interval, length_controlled
from tests.unit.stats.coverage import long_answers, steadied


def optimum(rows, wanted, weights, strength):
    """The coefficients that minimise |b| + strength * weighted loss, each in two parts of one
    sign."""

    def loss(parts):
        b = parts[: len(parts) // 2] - parts[len(parts) // 2 :]
        odds = rows @ b
        slope = strength * rows.T @ (weights * (expit(odds) - wanted))
        value = strength * (weights * (np.logaddexp(0, odds) - wanted * odds)).sum()
        return parts.sum() + value, 1 + np.concatenate([slope, -slope])

    size, options = rows.shape[1], {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000}
    bounds = [(0, None)] * (2 * size)
    found = minimize(loss, np.zeros(2 * size), jac=True, bounds=bounds, options=options).x
    return found[:size] - found[size:]


def judged(seed=1, votes=300, longer=1.5):
    """A judge that likes the longer answer, and answers that are often the longer one."""
    rng = np.random.default_rng(seed)
    ahead = rng.normal(-200, 300, votes)
    chance = expit(-longer * np.tanh(ahead / ahead.std(ddof=1)) - 0.3)
    return (rng.random(votes) < chance).astype(float), ahead


def shape_of(ahead):
    return np.tanh(ahead / ahead.std(ddof=1))


def test_it_is_what_the_regression_says_at_equal_lengths():
    preference, ahead = judged()
    found = length_controlled(preference, ahead)
    rows = np.stack([shape_of(ahead), np.ones(300)], axis=1)
    effect, even = optimum(rows, preference, np.ones(300), found.strength)
    assert found.win_rate == pytest.approx(expit(even), abs=5e-4)
    assert found.length_effect == pytest.approx(effect, abs=5e-3) and effect < 0
    assert found.win_rate < preference.mean() - 0.05
    turned = length_controlled(1 - preference, -ahead)
    assert turned.win_rate == pytest.approx(1 - found.win_rate, abs=2e-3)
    # Votes without a verdict are predicted too.
    preference[::10] = np.nan
    fewer = length_controlled(preference, ahead)
    assert fewer.win_rate == pytest.approx(found.win_rate, abs=0.05)


def test_difficulty_and_further_rows_are_used():
    preference, ahead = judged()
    rng = np.random.default_rng(2)
    difficulty, soft = rng.normal(size=300), np.clip(preference * 0.8 + 0.1, 0, 1)
    extra = Anchored(
        preference=rng.random(200), length=rng.normal(size=200), difficulty=rng.normal(size=200)
    )
    found = length_controlled(soft, ahead, difficulty=difficulty, anchored=extra)
    own = np.stack([shape_of(ahead), difficulty, np.ones(300)], axis=1)
    beside = np.stack([np.tanh(extra.length), extra.difficulty, np.zeros(200)], axis=1)
    best = optimum(
        np.concatenate([beside, own]),
        np.concatenate([extra.preference, soft]),
        np.repeat([0.1, 1.0], [200, 300]),
        found.strength,
    )
    assert found.win_rate == pytest.approx(expit(own * [0, 1, 1] @ best).mean(), abs=5e-4)


def test_one_that_never_won_wins_nothing_at_equal_lengths(capfd):
    _, ahead = judged(votes=40)
    never, always = (length_controlled(np.full(40, share), ahead) for share in (0.0, 1.0))
    assert never.low <= never.win_rate < 0.001 and 0.05 < never.high < 0.2
    assert always.high >= always.win_rate > 0.999 and 0.8 < always.low < 0.95
    assert capfd.readouterr() == ("", "")


def test_a_figure_that_the_penalty_draws_to_a_half_has_an_interval_still():
    """Twelve wins of twenty: cross-validation takes the strongest penalty."""
    ahead = np.random.default_rng(3).normal(size=20)
    found = length_controlled(np.repeat([1.0, 0.0], [12, 8]), ahead)
    assert found.win_rate == pytest.approx(0.5, abs=1e-6)
    assert found.low < 0.45 and found.high > 0.75


@pytest.mark.parametrize(
    "votes",
    [judged(votes=9), (np.ones(50), np.zeros(50)), (np.zeros(0), np.zeros(0))],
    ids=["few", "equal", "none"],
)
def test_too_few_votes_or_equal_lengths_have_no_figure(votes):
    assert length_controlled(*votes) is None


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(UsageError, match="scikit-learn") as told:
        length_controlled(*judged())
    assert told.value.advice == 'pip install "evenhand[length]"'


# The interval


def drawn(seed, topics, chance, **given):
    return long_answers(np.random.default_rng(seed), topics, chance, **given)


def refitted(regression, chosen):
    """The coefficients of some rows by a general minimiser of the penalised likelihood."""
    rows, targets = regression.rows[chosen], regression.targets[chosen]
    weights = regression.weights[chosen]

    def loss(coefficients):
        odds = rows @ coefficients
        spread = weights * expit(odds) * expit(-odds)
        penalty = np.linalg.slogdet((rows * spread[:, None]).T @ rows)[1]
        return (weights * (np.logaddexp(0, odds) - targets * odds)).sum() - FIRTH * penalty

    return minimize(loss, np.zeros(rows.shape[1]), method="BFGS", options={"gtol": 1e-7}).x


def slow_interval(regression, level):
    """As it is told: every group left out in turn, and Wilson's interval of what that varies by."""
    voted = regression.group >= 0
    rows, group, weights = regression.rows, regression.group, regression.weights
    even = rows * np.r_[0, np.ones(rows.shape[1] - 1)]
    whole = refitted(regression, np.ones(len(voted), bool))
    odds = even[voted] @ whole
    rate, slope = expit(odds).mean(), (even[voted].T * expit(odds) * expit(-odds)).mean(axis=1)
    rests = []
    for one in np.unique(group[voted]):
        rest = group != one
        rests.append(expit(even[rest & voted] @ refitted(regression, rest)).mean())
    count, votes = len(rests), voted.sum()
    variance = (count - 1) / count * ((np.array(rests) - rate) ** 2).sum()
    spread = weights * expit(rows @ whole) * expit(-rows @ whole)
    information = (rows * spread[:, None]).T @ rows
    more = slope @ np.linalg.inv(information) @ slope * votes / (rate * (1 - rate))
    sizes = np.bincount(group[voted])
    unseen = 0.25 * (sizes @ sizes / votes**2) ** 2 * max(1, more)
    trials = rate * (1 - rate) / (variance + unseen)
    square = stdtrit(count - 1, (1 + level) / 2) ** 2
    reach = np.sqrt(square * (rate * (1 - rate) * trials + square / 4))
    return [(rate * trials + square / 2 + side * reach) / (trials + square) for side in (-1, 1)]


@pytest.mark.parametrize(
    "regression",
    [
        drawn(2, 40, 0.7),
        drawn(3, 20, 0.7, each=4, alike=1.0),
        steadied(drawn(4, 40, 0.6, hard=0.5)),
    ],
    ids=["votes", "topics", "difficulty and anchors"],
)
def test_an_interval_is_that_of_leaving_out_groups_in_turn(regression):
    ends = equal_length_interval(regression, 0.9)
    assert ends == pytest.approx(slow_interval(regression, 0.9), abs=0.01)


def test_votes_on_one_topic_leave_what_one_observation_does():
    low, high = equal_length_interval(drawn(5, 1, 0.8, each=30), 0.95)
    assert low < 0.03 and high > 0.97


@pytest.mark.parametrize("wins", [0, 1, 20])
def test_nearly_equal_votes_are_not_certain(wins):
    votes = replace(drawn(6, 20, 0.5), targets=(np.arange(20) < wins) * 1.0)
    low, high = equal_length_interval(votes, 0.95)
    assert 0 <= low < wins / 20 + 0.01 and wins / 20 - 0.01 < high <= 1 and 0.1 < high - low < 0.7
