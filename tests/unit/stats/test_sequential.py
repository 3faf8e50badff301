"""The sequential test: fair bets, an error rate that holds at every look, and its naive twins."""

from __future__ import annotations

import os
from itertools import product
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.stats.bounded import chance_at_most
from evenhand.stats.bounded import interval as bounded_interval
from evenhand.stats.observations import Floats
from evenhand.stats.sequential import (
    CAUTION,
    KEPT_BACK,
    MOST,
    PACE,
    SPREAD,
    Betting,
    Gambler,
    shared_out,
)
from tests.unit.stats.laws import CLEAR, EQUAL
from tests.unit.stats.sequences import decisions

LONG = bool(os.environ.get("EVENHAND_LONG"))
ALPHA, GOAL = 0.05, 40.0
UNDECIDED = "not enough evidence"
VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def naive_money(
    values: list[float], ends: list[int], null: float = 0.5, goal: float = GOAL
) -> list[float]:
    """What a gambler owns after each value, in plain loops: the share from scratch each time."""
    staked, kept, money = 1 - KEPT_BACK, KEPT_BACK, []
    for place, value in enumerate(values):
        if place in ends[:-1]:
            staked, kept = staked + kept * (1 - KEPT_BACK), kept * KEPT_BACK
        left = min(end for end in ends if end > place) - place
        gains = [(before - null) / null for before in values[:place]]
        number = place + 1
        second = ((SPREAD / null) ** 2 + sum(gain**2 for gain in gains)) / number
        in_time = PACE * sqrt(2 * log(max(1, (goal - kept) / max(staked, 1e-300))) / left / second)
        growing = (sum(gains) / number - sqrt(second / number)) / second
        share = min(max(in_time, growing, 0), MOST, 1 - CAUTION**number)
        if staked + kept < goal:
            staked *= 1 + share * (value - null) / null
        money.append(staked + kept)
    return money


def naive_decision(values: list[float]) -> tuple[str, int]:
    """What is decided, and after how many values: by bets, else by a test of all of them."""
    at_end = ALPHA * min(0.7, 42 / len(values))
    goal = 2 / (ALPHA - at_end)
    up = naive_money(values, [len(values)], goal=goal)
    down = naive_money([1 - value for value in values], [len(values)], goal=goal)
    for number, (gained, lost) in enumerate(zip(up, down, strict=True), 1):
        if max(gained, lost) >= goal:
            return ("better" if gained >= lost else "worse"), number
    gaps = np.array(values) - 0.5
    for outcome, side in (("better", gaps), ("worse", -gaps)):
        if len(values) > 1 and chance_at_most(side, 0.5)[0] <= 0.95 * at_end / 2:
            return outcome, len(values)
    return UNDECIDED, len(values)


@given(VALUES, st.floats(0.1, 0.9))
def test_a_gambler_owns_what_loops_give(values: list[float], null: float) -> None:
    gambler, length = Gambler(GOAL, null), len(values)
    money = [float(gambler.bet(value, length - place)) for place, value in enumerate(values)]
    assert money == pytest.approx(naive_money(values, [length], null), rel=1e-9)


@given(VALUES)
def test_many_means_are_bet_against_at_once(values: list[float]) -> None:
    nulls = np.array([0.2, 0.5, 0.7])
    gambler, length = Gambler(GOAL, nulls), len(values)
    for place, value in enumerate(values):
        money = gambler.bet(value, length - place)
    alone = [naive_money(values, [length], null)[-1] for null in nulls.tolist()]
    assert money == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize("null", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("ends", [[8], [5, 8], [2, 4, 8]])
def test_bets_are_fair_whatever_has_happened(null: float, ends: list[int]) -> None:
    """Over all ways in which eight values can come out, the money is 1 in the mean, however the
    plan was extended."""
    ways = np.array(list(product((0.0, 1.0), repeat=8)))
    chances = np.where(ways > 0, null, 1 - null).prod(axis=1)
    money = played(ways, ends, null)
    assert chances @ money[-1] == pytest.approx(1)
    for way, owned in zip(ways.tolist(), money.T.tolist(), strict=True):
        assert owned == pytest.approx(naive_money(way, ends, null), rel=1e-9)


def played(runs: Floats, ends: list[int], null: float = 0.5) -> Floats:
    """What gamblers on these runs own after each value."""
    gambler, money = Gambler(GOAL, np.full(len(runs), null)), []
    for place, values in enumerate(runs.T):
        if place in ends[:-1]:
            gambler.stake_anew()
        money.append(gambler.bet(values, min(end for end in ends if end > place) - place))
    return np.array(money)


@given(VALUES)
def test_nobody_loses_more_than_there_is(values: list[float]) -> None:
    assert min(naive_money(values, [len(values)])) >= 0


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), min_size=1, max_size=30))
@example([1.0] * 12)
@example([0.9, 0.2] * 3 + [0.9] * 14)
@example([0.1, 0.8] * 3 + [0.2] * 20)
@example([0.8, 0.6, 0.7, 0.4] * 25)
def test_one_by_one_and_many_at_once_decide_alike(values: list[float]) -> None:
    betting = Betting(ALPHA, [len(values)])
    for value in values:
        betting.add(value)
    outcome, after = naive_decision(values)
    assert betting.outcome == outcome
    assert betting.at_end
    (side,), (number,) = decisions(np.array([values]), ALPHA)
    assert {1: "better", -1: "worse", 0: UNDECIDED}[int(side)] == outcome
    assert number == after


def test_the_first_outcome_stays() -> None:
    betting = Betting(ALPHA, [220])
    for value in [1.0] * 20 + [0.0] * 200:
        betting.add(value)
    assert betting.outcome == "better"


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_value_outside_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"not in \[0, 1\]"):
        Betting(ALPHA, [5]).add(value)


def test_a_question_without_a_value_takes_time_and_nothing_else() -> None:
    values = [0.6, 0.4, 0.8, 1.0, 0.7] * 5
    betting, fewer = Betting(ALPHA, [40]), Betting(ALPHA, [25])
    for value in values:
        betting.add(value)
        fewer.add(value)
    standing = betting.interval()
    for _ in range(15):
        assert not betting.at_end
        betting.add(None)
    assert betting.at_end and fewer.at_end
    assert betting.interval() == standing
    # In a plan of 25, more is bet on each than in one of 40.
    assert fewer.interval() != standing
    assert 0 < standing[0] < np.mean(values) < standing[1] <= 1


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
    if name in EQUAL:
        return (1 + EQUAL[name].sample(chance, (rows, length))) / 2
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


def spare(rows: int, alpha: float) -> float:
    """Three standard errors of a share of alpha in so many rows."""
    return 3 * sqrt(alpha * (1 - alpha) / rows)


@pytest.mark.parametrize("name", [*CHANCES, "soft", "soft and sure", "a finite set"])
def test_the_error_rate_over_ten_thousand_nulls_is_at_most_alpha(name: str) -> None:
    sides, _ = decisions(null_runs(name, 10_000, 150), ALPHA)
    assert np.mean(sides != 0) <= ALPHA + spare(10_000, ALPHA)
    assert max(np.mean(sides > 0), np.mean(sides < 0)) <= ALPHA / 2 + spare(10_000, ALPHA / 2)


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.parametrize("length", [20, 60, 300])
def test_equal_means_are_told_apart_at_most_as_often_as_said(name: str, length: int) -> None:
    rows = 20_000 if LONG else 60_000 // length
    sides, _ = decisions(null_runs(name, rows, length), ALPHA)
    assert np.mean(sides != 0) <= ALPHA + spare(rows, ALPHA)
    assert max(np.mean(sides > 0), np.mean(sides < 0)) <= ALPHA / 2 + spare(rows, ALPHA / 2)


@pytest.mark.parametrize("length", [5, 20, 300])
@pytest.mark.parametrize("alpha", [0.01, 0.2])
def test_the_error_rate_holds_at_other_lengths_and_levels(length: int, alpha: float) -> None:
    for name in ("wins and losses", "few great losses"):
        sides, _ = decisions(null_runs(name, 3000, length), alpha)
        assert np.mean(sides != 0) <= alpha + spare(3000, alpha)


def test_a_plan_that_is_extended_while_nothing_is_decided_errs_no_more() -> None:
    """Whoever adds values whenever the plan has ended without a decision."""
    ends, rows = [10, 20, 40, 80, 160], 10_000
    runs = null_runs("wins and losses", rows, ends[-1])
    for values in (runs, 1 - runs):
        reached = (played(values, ends) >= GOAL).any(axis=0)
        assert np.mean(reached) <= ALPHA / 2 + spare(rows, ALPHA / 2)


# plans that are extended


def test_bets_that_were_made_stay_as_they_were_when_values_are_added() -> None:
    values = np.random.default_rng(4).choice([0.25, 0.5, 0.75, 1.0], 60).tolist()
    first, extended = Betting(ALPHA, [30]), Betting(ALPHA, [30, 60])
    for value in values[:30]:
        first.add(value)
        extended.add(value)
    assert (first.interval(), first.outcome) == (extended.interval(), extended.outcome)
    assert (first.at_end, extended.at_end) == (True, False)
    before = extended.interval()
    for value in values[30:]:
        extended.add(value)
    after = extended.interval()
    assert before[0] <= after[0] < after[1] <= before[1]


def test_what_was_kept_back_can_still_decide() -> None:
    values = [0.0, 1.0] * 15 + [1.0] * 30
    betting = Betting(ALPHA, [30, 60])
    for value in values:
        betting.add(value)
    assert betting.outcome == "better"
    assert naive_money(values, [30, 60])[29] < 0.5
    assert betting.interval()[0] >= 0.5


def test_an_end_without_questions_is_none() -> None:
    betting = Betting(ALPHA, [0, 3, 3])
    for value in (1.0, 1.0, 1.0):
        betting.add(value)
    assert betting.at_end
    assert Betting(ALPHA, []).interval() == (0, 1)


# intervals


def interval(values: Floats, planned: int | None = None) -> tuple[float, float]:
    betting = Betting(ALPHA, [planned or len(values)])
    for value in values.tolist():
        betting.add(value)
    return betting.interval()


def test_nothing_and_ties_decide_nothing() -> None:
    assert interval(np.array([]), 10) == (0, 1)
    ties = np.full(400, 0.5)
    sides, after = decisions(ties[None], ALPHA)
    assert (int(sides[0]), int(after[0])) == (0, 400)
    low, high = interval(ties)
    assert 0.4 < low < 0.5 < high < 0.6


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_an_interval_leaves_out_the_null_just_when_it_is_decided(share: float) -> None:
    values = (np.random.default_rng(3).random(60) < share).astype(float)
    betting = Betting(ALPHA, [60])
    for value in values.tolist():
        betting.add(value)
        low, high = betting.interval()
        side = "better" if low >= 0.5 else "worse" if high <= 0.5 else UNDECIDED
        assert betting.outcome == side


def test_intervals_cover_the_mean_at_every_look() -> None:
    chance, missed, rounds = np.random.default_rng(11), 0, 1000 if LONG else 60
    for _ in range(rounds):
        betting = Betting(ALPHA, [64])
        inside = True
        for number, value in enumerate(chance.choice([0.0, 0.5, 1.0], p=[0.2, 0.2, 0.6], size=64)):
            betting.add(float(value))
            if number in (7, 15, 31, 63):
                low, high = betting.interval()
                inside &= low <= 0.7 <= high
        missed += not inside
    assert missed <= rounds * (ALPHA + spare(rounds, ALPHA))


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0])
def test_long_runs_of_one_value_stay_within_numbers(value: float) -> None:
    values = np.full(1500, value)
    low, high = interval(values)
    assert max(0, value - 0.02) <= low <= value <= high <= min(1, value + 0.02)
    sides, _ = decisions(values[None], ALPHA)
    assert int(sides[0]) == (1 if value > 0.5 else -1)


def test_a_run_that_turns_leaves_a_number_too() -> None:
    turned = np.concatenate([np.zeros(600), np.ones(600)])
    low, high = interval(turned)
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
    runs = (np.random.default_rng(8).random((500, 400)) < 0.58).astype(float)
    fixed = runs.sum(axis=1) >= 220
    """More wins than 219 of 400 have a chance of 2.5 % where the mean is one half."""
    sides, _ = decisions(runs, ALPHA)
    assert not (sides < 0).any()
    assert (sides[fixed] == 1).mean() > 0.9


@pytest.mark.parametrize(
    ("name", "questions", "least", "used"),
    [
        ("Likert", 30, 0.6, 30),
        ("Likert", 60, 0.95, 43),
        ("Likert", 100, 0.99, 44),
        ("normal, sd 0.3", 30, 0.58, 30),
        ("normal, sd 0.2", 60, 0.93, 53),
        ("normal, sd 0.2", 100, 0.98, 50),
        ("normal, sd 0.15", 60, 0.8, 60),
        ("normal, sd 0.15", 100, 0.98, 61),
        ("normal, sd 0.1", 100, 0.9, 83),
        ("wins and losses", 30, 0.69, 27),
        ("wins and losses", 60, 0.95, 41),
    ],
)
def test_a_clear_difference_is_found_as_often_and_as_soon_as_the_documentation_says(
    name: str, questions: int, least: float, used: float
) -> None:
    rows = CLEAR[name].sample(np.random.default_rng(questions), (1000, questions))
    sides, after = decisions((1 + rows) / 2, ALPHA)
    assert np.mean(sides > 0) >= least
    assert not (sides < 0).any()
    assert after.mean() <= used


# the test at the end


def test_the_end_has_its_part_of_alpha_by_how_much_is_planned() -> None:
    for planned, part in ((20, 0.7), (60, 0.7), (84, 0.5), (840, 0.05)):
        goal, at_end = shared_out(ALPHA, planned)
        assert (at_end, 2 / goal + at_end) == pytest.approx((part * ALPHA, ALPHA))


def test_the_end_decides_what_bets_did_not() -> None:
    values = np.clip(np.random.default_rng(0).normal(0.62, 0.15, 30), 0, 1).round(3)
    betting, longer = Betting(ALPHA, [30]), Betting(ALPHA, [31])
    for value in values.tolist():
        assert betting.outcome == UNDECIDED
        betting.add(value)
        longer.add(value)
    assert (betting.outcome, longer.outcome) == ("better", UNDECIDED)
    assert longer.interval()[0] < 0.5 <= betting.interval()[0]


def test_values_that_are_added_are_tested_by_themselves_at_what_is_left() -> None:
    """How many are added may hang on the values before them, and on nothing that comes."""
    values = np.random.default_rng(0).normal(0.6, 0.1, 60)
    betting = Betting(ALPHA, [30, 90])
    for value in [0.0, 1.0] * 15 + values.tolist():
        assert betting.outcome == UNDECIDED
        betting.add(value)
    left = KEPT_BACK * (1 - KEPT_BACK) * 0.7 * ALPHA
    assert betting.interval()[0] == bounded_interval(values, (0.0, 1.0), 1 - left)[0] > 0.5
    assert betting.outcome == "better"
