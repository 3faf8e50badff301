"""The sequential test: fair bets, an error rate that holds at every look, and its naive twins."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.decision.sequential import (
    ON_THE_WAY,
    PRIOR,
    SHARES,
    Betting,
    Gambler,
    at_the_end,
    decisions,
    interval,
    last_look,
    p_above,
)
from evenhand.stats.tables import Floats

ALPHA = 0.05
UNDECIDED = "not enough evidence"
VALUES = st.lists(st.floats(0, 1), max_size=40)


def naive_wealth(values: list[float], null: float = 0.5) -> float:
    """One gambler a share, value by value."""
    total = 0.0
    for share, prior in zip(SHARES.tolist(), PRIOR.tolist(), strict=True):
        own = prior
        for value in values:
            own *= 1 + share * (value - null) / null
        total += own
    return total


def naive_decision(values: list[float], alpha: float = ALPHA) -> tuple[str, int]:
    """What is decided, and after how many values; the last look is left out."""
    for number in range(1, len(values) + 1):
        up = naive_wealth(values[:number])
        down = naive_wealth([1 - value for value in values[:number]])
        if max(up, down) >= 2 / (ON_THE_WAY * alpha):
            return ("better" if up >= down else "worse"), number
    return "not enough evidence", len(values)


@given(VALUES)
def test_a_gambler_owns_what_loops_give(values: list[float]) -> None:
    gambler, wealth = Gambler(), 1.0
    for value in values:
        wealth = float(gambler.bet(value))
    assert wealth == pytest.approx(naive_wealth(values), rel=1e-9)


@given(VALUES, st.floats(0.1, 0.9))
def test_the_most_it_owned_is_the_most_of_all_moments(values: list[float], null: float) -> None:
    most = max(naive_wealth(values[:number], null) for number in range(len(values) + 1))
    assert float(Gambler(null).most(np.array(values))) == pytest.approx(most, rel=1e-9)
    long = np.array(values * 10)
    gambler = Gambler(np.array([null, 0.5]))
    owned = np.array([gambler.bet(value) for value in long] or [[1.0, 1.0]])
    expected = np.maximum(1, owned.max(axis=0))
    assert Gambler(np.array([null, 0.5])).most(long) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("null", [0.1, 0.5, 0.8])
def test_bets_are_fair_whatever_has_happened(null: float) -> None:
    """Over all ways in which eight values can come out, the wealth is 1 in the mean."""
    mean = 0.0
    for way in product((0.0, 1.0), repeat=8):
        gambler = Gambler(null)
        wealth = [float(gambler.bet(value)) for value in way][-1]
        mean += wealth * float(np.prod([null if value else 1 - null for value in way]))
    assert mean == pytest.approx(1)


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), min_size=1, max_size=30))
def test_one_by_one_and_many_at_once_decide_alike(values: list[float]) -> None:
    betting = Betting(ALPHA)
    for value in values:
        betting.add(value)
    said, after = naive_decision(values)
    assert betting.outcome == said
    if said == "not enough evidence":
        said = at_the_end(np.array(values), ALPHA)
    (side,), (number,) = decisions(np.array([values]), ALPHA)
    assert {1: "better", -1: "worse", 0: "not enough evidence"}[int(side)] == said
    assert number == after


def test_the_first_outcome_stays() -> None:
    betting = Betting(ALPHA)
    for value in [1.0] * 20 + [0.0] * 200:
        betting.add(value)
    assert betting.outcome == "better"


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_value_outside_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"not in \[0, 1\]"):
        Betting(ALPHA).add(value)


# the error rate

CHANCES = {
    "wins and losses": ([0, 1], [0.5, 0.5]),
    "nine ties in ten": ([0, 0.5, 1], [0.05, 0.9, 0.05]),
    "nearly all ties": ([0, 0.5, 1], [0.005, 0.99, 0.005]),
    "few great losses": ([0.55, 0], [10 / 11, 1 / 11]),
    "very few great losses": ([0.5125, 0], [40 / 41, 1 / 41]),
    "few great wins": ([0.375, 1], [0.8, 0.2]),
    "five bands": ([0, 0.3, 0.5, 0.8, 1], [0.2, 0.25, 0.15, 0.25, 0.15]),
}


def null_runs(name: str, rows: int, length: int) -> Floats:
    """Sequences in which nothing is to be found: their mean is one half."""
    chance = np.random.default_rng(7)
    if name == "soft":
        return chance.beta(3, 3, (rows, length))
    if name == "soft and sure":
        return chance.beta(0.2, 0.2, (rows, length))
    if name == "a finite set":
        whole = np.tile(np.arange(length) % 2, (rows, 1)).astype(float)
        return chance.permuted(whole, axis=1)
    values, odds = CHANCES[name]
    assert np.dot(values, odds) == pytest.approx(0.5)
    return chance.choice(np.array(values, dtype=float), p=odds, size=(rows, length))


@pytest.mark.parametrize("name", [*CHANCES, "soft", "soft and sure", "a finite set"])
def test_the_error_rate_over_ten_thousand_nulls_is_at_most_alpha(name: str) -> None:
    sides, _ = decisions(null_runs(name, 10_000, 150), ALPHA)
    assert np.mean(sides != 0) <= ALPHA
    spare = 3 * np.sqrt(ALPHA / 2 / 10_000)
    assert max(np.mean(sides > 0), np.mean(sides < 0)) <= ALPHA / 2 + spare


@pytest.mark.parametrize("length", [5, 20, 300])
@pytest.mark.parametrize("alpha", [0.01, 0.2])
def test_the_error_rate_holds_at_other_lengths_and_levels(length: int, alpha: float) -> None:
    for name in ("wins and losses", "few great losses"):
        sides, _ = decisions(null_runs(name, 3000, length), alpha)
        assert np.mean(sides != 0) <= alpha


def test_looks_at_growing_sets_share_their_part() -> None:
    """Whoever adds units after each last look spends no more than the half that is kept for it."""
    runs = null_runs("wins and losses", 4000, 160)
    found = np.zeros(len(runs), dtype=np.bool_)
    for earlier, length in enumerate((10, 20, 40, 80, 160)):
        level = last_look(ALPHA, earlier) / 2
        found |= p_above(runs[:, :length]) <= level
        found |= p_above(1 - runs[:, :length]) <= level
    assert np.mean(found) <= (1 - ON_THE_WAY) * ALPHA
    assert sum(last_look(ALPHA, k) for k in range(50)) <= (1 - ON_THE_WAY) * ALPHA + 1e-12


# the last look


@pytest.mark.parametrize(
    ("wins", "of"), [(5, 5), (9, 10), (15, 20), (31, 50), (62, 100), (440, 805)]
)
def test_for_wins_and_losses_the_last_look_is_the_binomial_test(wins: int, of: int) -> None:
    values = np.array([1.0] * wins + [0.0] * (of - wins))
    exact = sum(comb(of, k) for k in range(wins, of + 1)) / 2**of
    assert p_above(values)[0] == pytest.approx(exact, rel=0.035)
    tied = np.concatenate([values, np.full(30, 0.5)])
    assert p_above(tied)[0] == pytest.approx(exact, rel=0.035)


@pytest.mark.parametrize("seed", range(4))
def test_for_soft_values_it_is_what_drawing_the_weights_gives(seed: int) -> None:
    chance = np.random.default_rng(seed)
    values = chance.beta(2, 1.6, 25)
    whole = np.append(values, 0.0)
    means = (chance.dirichlet(np.ones(26), 40_000) * whole).sum(axis=1)
    drawn = np.mean(means <= 0.5)
    assert p_above(values)[0] == pytest.approx(drawn, abs=5 * np.sqrt(0.25 / 40_000))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.05, 0.95))
def test_a_p_value_is_one_and_falls_as_the_null_does(values: list[float], null: float) -> None:
    given_values = np.array(values)
    p, lower = p_above(given_values, null)[0], p_above(given_values, null * 0.9)[0]
    assert 0 <= p <= 1
    assert lower <= p * 1.05 + 0.02


# intervals


def test_nothing_and_ties_decide_nothing() -> None:
    assert interval(np.array([]), ALPHA) == (0, 1)
    assert at_the_end(np.array([]), ALPHA) == "not enough evidence"
    ties = np.full(400, 0.5)
    sides, after = decisions(ties[None], ALPHA)
    assert (int(sides[0]), int(after[0])) == (0, 400)
    low, high = interval(ties, ALPHA, 0)
    assert 0.4 < low < 0.5 < high < 0.6


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_an_interval_leaves_out_the_null_just_when_it_is_decided(share: float) -> None:
    values = (np.random.default_rng(3).random(60) < share).astype(float)
    for length in range(4, 61, 8):
        low, high = interval(values[:length], ALPHA)
        said, _ = naive_decision(values[:length].tolist())
        assert said == ("better" if low >= 0.5 else "worse" if high <= 0.5 else UNDECIDED)


def test_intervals_cover_the_mean_at_every_look() -> None:
    chance, missed = np.random.default_rng(11), 0
    for _ in range(100):
        values = chance.choice([0.0, 0.5, 1.0], p=[0.2, 0.2, 0.6], size=64)
        looks = [interval(values[:length], ALPHA) for length in (8, 32)]
        looks.append(interval(values, ALPHA, 0))
        missed += any(not low <= 0.7 <= high for low, high in looks)
    assert missed <= 100 * ALPHA


def test_a_last_look_sharpens_the_interval() -> None:
    values = (np.random.default_rng(5).random(200) < 0.6).astype(float)
    on_the_way, at_end = interval(values, ALPHA), interval(values, ALPHA, 0)
    assert on_the_way[0] <= at_end[0] < at_end[1] <= on_the_way[1]
    later = interval(values, ALPHA, 2)
    assert later[0] <= at_end[0]


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0])
def test_long_runs_of_one_value_stay_within_numbers(value: float) -> None:
    values = np.full(6000, value)
    low, high = interval(values, ALPHA, 0)
    assert max(0, value - 0.02) <= low <= value <= high <= min(1, value + 0.02)
    betting = Betting(ALPHA)
    for one in values.tolist():
        betting.add(one)
    assert betting.outcome == ("better" if value > 0.5 else "worse")


def test_a_run_that_turns_leaves_a_number_too() -> None:
    turned = np.concatenate([np.zeros(3000), np.ones(3000)])
    most = Gambler(np.array([0.001, 0.5, 0.999])).most(turned)
    assert not np.isnan(most).any()
    low, high = interval(turned, ALPHA)
    assert 0 <= low <= high <= 1


# what it is worth


def test_the_clearer_the_sooner() -> None:
    chance, shares = np.random.default_rng(2), (0.6, 0.75, 0.9)
    after = [
        decisions((chance.random((200, 800)) < share).astype(float), ALPHA) for share in shares
    ]
    assert [bool((sides == 1).mean() > 0.98) for sides, _ in after] == [True] * 3
    means = [float(number.mean()) for _, number in after]
    assert means == sorted(means, reverse=True)
    assert means[0] < 0.4 * 800
    assert means[2] < 30


def test_what_a_fixed_number_would_decide_is_seldom_lost() -> None:
    """At full length the last look has four fifths of half of alpha: of what the plain test at
    alpha finds in 400 values, it loses little."""
    runs = (np.random.default_rng(8).random((500, 400)) < 0.58).astype(float)
    fixed = p_above(runs) <= ALPHA / 2
    sides, _ = decisions(runs, ALPHA)
    assert not (sides < 0).any()
    assert (sides[fixed] == 1).mean() > 0.85
