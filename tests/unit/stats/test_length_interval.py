"""The interval of win rates at equal lengths: against refits one by one, and how often it holds."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit, stdtrit

from evenhand.stats.length import FIRTH, Regression, equal_length_interval

LONG = bool(os.environ.get("EVENHAND_LONG"))


def drawn(seed, topics, rate, *, liking=1.5, each=1, alike=0.0, tie=0.0, soft=False, hard=0.0):
    """Votes on topics by a judge that likes the longer answer; `alike` is how far topics differ,
    `hard` what the difficulty of an instruction takes from the candidate."""
    rng = np.random.default_rng(seed)
    votes, group = topics * each, np.repeat(np.arange(topics), each)
    ahead, difficulty = rng.normal(-0.5, 1, votes), rng.normal(size=topics)[group]
    odds = logit(rate) - liking * np.tanh(ahead) + alike * rng.normal(size=topics)[group]
    chance = expit(odds + hard * difficulty)
    won = rng.beta(2 * chance, 2 - 2 * chance) if soft else rng.random(votes) < chance
    targets = np.where(rng.random(votes) < tie, 0.5, won)
    length = np.tanh(ahead / ahead.std(ddof=1))
    columns = [length, difficulty, np.ones(votes)] if hard else [length, np.ones(votes)]
    return Regression(
        rows=np.stack(columns, axis=1), targets=targets, weights=np.ones(votes), group=group
    )


def steadied(regression, seed=1, votes=200):
    """The same with rows of other candidates before it, a tenth of a vote each."""
    anchors = drawn(seed, votes, 0.5, hard=0.5)
    rows = anchors.rows * [1, 1, 0]
    return Regression(
        rows=np.concatenate([rows, regression.rows]),
        targets=np.concatenate([anchors.targets, regression.targets]),
        weights=np.concatenate([np.full(votes, 0.1), regression.weights]),
        group=np.concatenate([np.full(votes, -1), regression.group]),
    )


def refitted(regression, chosen):
    """The coefficients of some rows by a general minimiser of the penalised likelihood."""
    rows, targets, weights = (
        array[chosen] for array in (regression.rows, regression.targets, regression.weights)
    )

    def loss(coefficients):
        odds = rows @ coefficients
        chance = expit(odds)
        spread = weights * chance * (1 - chance)
        penalty = np.linalg.slogdet((rows * spread[:, None]).T @ rows)[1]
        return (weights * (np.logaddexp(0, odds) - targets * odds)).sum() - FIRTH * penalty

    return minimize(loss, np.zeros(rows.shape[1]), method="BFGS", options={"gtol": 1e-7}).x


def wilson(rate, trials, quantile):
    """Wilson's interval of a rate in so many trials."""
    square = quantile**2
    middle = rate * trials + square / 2
    reach = np.sqrt(square * (rate * (1 - rate) * trials + square / 4))
    return (middle - reach) / (trials + square), (middle + reach) / (trials + square)


def slow_interval(regression, level):
    """As it is told: every group left out in turn, and Wilson's interval of what that varies by."""
    voted = regression.group >= 0
    even = regression.rows * np.r_[0, np.ones(regression.rows.shape[1] - 1)]
    groups = np.unique(regression.group[voted])
    whole = refitted(regression, np.ones(len(voted), bool))
    rate = expit(even[voted] @ whole).mean()
    rests = []
    for group in groups:
        rest = regression.group != group
        rests.append(expit(even[rest & voted] @ refitted(regression, rest)).mean())
    count, votes = len(groups), voted.sum()
    variance = (count - 1) / count * ((np.array(rests) - rate) ** 2).sum()
    chance = expit(regression.rows @ whole)
    spread = regression.weights * chance * (1 - chance)
    information = (regression.rows * spread[:, None]).T @ regression.rows
    slope = (
        even[voted] * (expit(even[voted] @ whole) * expit(-even[voted] @ whole))[:, None]
    ).mean(axis=0)
    more = slope @ np.linalg.inv(information) @ slope * votes / (rate * (1 - rate))
    sizes = np.bincount(regression.group[voted])
    unseen = 0.25 * (sizes @ sizes / votes**2) ** 2 * max(1, more)
    worth = rate * (1 - rate) / (variance + unseen)
    return wilson(rate, worth, stdtrit(count - 1, (1 + level) / 2))


@pytest.mark.parametrize("kind", ["votes", "topics", "difficulty", "anchors"])
def test_an_interval_is_that_of_leaving_out_groups_in_turn(kind):
    regression = {
        "votes": lambda: drawn(2, 60, 0.7),
        "topics": lambda: drawn(3, 20, 0.7, each=4, alike=1.0),
        "difficulty": lambda: drawn(4, 60, 0.6, hard=0.5),
        "anchors": lambda: steadied(drawn(4, 60, 0.6, hard=0.5)),
    }[kind]()
    ends = equal_length_interval(regression, 0.9)
    assert ends == pytest.approx(slow_interval(regression, 0.9), abs=0.01)


def test_sides_mirror_each_other():
    one = drawn(5, 30, 0.8)
    turned = Regression(
        rows=one.rows * [-1, 1], targets=1 - one.targets, weights=one.weights, group=one.group
    )
    low, high = equal_length_interval(one, 0.95)
    assert equal_length_interval(turned, 0.95) == pytest.approx((1 - high, 1 - low), abs=1e-6)


def test_votes_on_one_topic_leave_what_one_observation_does():
    one = drawn(5, 1, 0.8, each=30)
    low, high = equal_length_interval(one, 0.95)
    assert low < 0.03 and high > 0.97


@pytest.mark.parametrize("wins", [0, 1, 19, 20])
def test_nearly_equal_votes_are_not_certain(wins):
    one = drawn(6, 20, 0.5)
    votes = Regression(
        rows=one.rows,
        targets=(np.arange(20) < wins).astype(float),
        weights=one.weights,
        group=one.group,
    )
    low, high = equal_length_interval(votes, 0.95)
    assert 0 <= low < wins / 20 + 0.01 and wins / 20 - 0.01 < high <= 1 and 0.1 < high - low < 0.7


LAWS = {
    "even, lengths do not matter": {"rate": 0.5, "liking": 0.0},
    "even": {"rate": 0.5},
    "70 %": {"rate": 0.7},
    "90 %": {"rate": 0.9},
    "95 %": {"rate": 0.95},
    "98 %, lengths hardly matter": {"rate": 0.98, "liking": 0.5},
    "60 %, lengths matter most": {"rate": 0.6, "liking": 4.0},
    "70 %, soft": {"rate": 0.7, "soft": True},
    "70 %, half ties": {"rate": 0.7, "tie": 0.5},
    "70 %, 95 % ties": {"rate": 0.7, "tie": 0.95},
    "70 %, 4 votes per topic": {"rate": 0.7, "each": 4, "alike": 1.0},
    "90 %, 10 votes per topic": {"rate": 0.9, "each": 10, "alike": 1.0},
    "60 %, difficulty": {"rate": 0.6, "hard": 0.5},
    "60 %, difficulty, anchors": {"rate": 0.6, "hard": 0.5, "anchors": True},
}
LEAST = {20: 0.92, 60: 0.935, 300: 0.935}


def votes_of(law, seed, topics):
    anchored, settings = law.get("anchors"), {k: v for k, v in law.items() if k != "anchors"}
    regression = drawn(seed, topics, **settings)
    return steadied(regression, seed=[*seed, 1]) if anchored else regression


@pytest.mark.parametrize("topics", LEAST if LONG else [20])
@pytest.mark.parametrize("name", LAWS)
def test_intervals_hold_what_many_votes_come_to(name, topics):
    rounds, least = 2000 if LONG else 100, LEAST[topics]
    limit = votes_of(LAWS[name], [0, 0], 40_000 // LAWS[name].get("each", 1))
    ends = equal_length_interval(limit, 0.5)
    truth, hits = sum(ends) / 2, 0
    for seed in range(rounds):
        low, high = equal_length_interval(votes_of(LAWS[name], [seed, topics], topics), 0.95)
        hits += low <= truth <= high
    print(f"{name}, {topics} topics: {100 * hits / rounds:.1f} %")
    assert hits / rounds >= least - 3 * (least * (1 - least) / rounds) ** 0.5


@pytest.mark.parametrize("topics", LEAST if LONG else [20])
@pytest.mark.parametrize("liking", [10.0, 20.0, 1000.0])
@pytest.mark.parametrize("rate", [0.5, 0.7])
def test_intervals_hold_where_a_judge_goes_by_lengths_alone(rate, liking, topics):
    rounds, least = 2000 if LONG else 100, LEAST[topics]
    hits = 0
    for seed in range(rounds):
        votes = drawn([seed, topics], topics, rate, liking=liking)
        low, high = equal_length_interval(votes, 0.95)
        hits += low <= rate <= high
    print(f"liking {liking:g}, {rate:.0%}, {topics} topics: {100 * hits / rounds:.1f} %")
    assert hits / rounds >= least - 3 * (least * (1 - least) / rounds) ** 0.5
