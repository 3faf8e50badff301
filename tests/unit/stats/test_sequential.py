"""The sequential test: fair bets, plans that are extended, its naive twins, and what it finds."""

from __future__ import annotations

from itertools import product
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.stats.bounded import chance_at_most, interval
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
from tests.cases import cases
from tests.unit.stats.error_tables import samples
from tests.unit.stats.laws import CLEAR
from tests.unit.stats.sequences import decisions

ALPHA, GOAL = 0.05, 40.0
UNDECIDED = "not enough evidence"
OUTCOMES = {1: "better", -1: "worse", 0: UNDECIDED}
VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def naive_money(values, ends, null=0.5, goal=GOAL):
    """What a gambler owns after each value, in plain loops: the share from scratch each time."""
    staked, kept, money = 1 - KEPT_BACK, KEPT_BACK, []
    for place, value in enumerate(values):
        if place in ends[:-1]:
            staked, kept = staked + kept * (1 - KEPT_BACK), kept * KEPT_BACK
        left, number = min(end for end in ends if end > place) - place, place + 1
        gains = [(before - null) / null for before in values[:place]]
        second = ((SPREAD / null) ** 2 + sum(gain**2 for gain in gains)) / number
        in_time = PACE * sqrt(2 * log(max(1, (goal - kept) / max(staked, 1e-300))) / left / second)
        growing = (sum(gains) / number - sqrt(second / number)) / second
        share = min(max(in_time, growing, 0), MOST, 1 - CAUTION**number)
        if staked + kept < goal:
            staked *= 1 + share * (value - null) / null
        money.append(staked + kept)
    return money


def naive_decision(values):
    """The outcome, and after how many values: by bets, else by a test of all of them."""
    at_end = ALPHA * min(0.7, 42 / len(values))
    goal = 2 / (ALPHA - at_end)
    up, down = (
        naive_money(side, [len(values)], goal=goal) for side in (values, [1 - v for v in values])
    )
    for number, (gained, lost) in enumerate(zip(up, down, strict=True), 1):
        if max(gained, lost) >= goal:
            return ("better" if gained >= lost else "worse"), number
    for outcome, side in (("better", 1), ("worse", -1)):
        chance = chance_at_most(side * (np.array(values) - 0.5), 0.5)[0] if values[1:] else 1
        if chance <= 0.95 * at_end / 2:
            return outcome, len(values)
    return UNDECIDED, len(values)


def bet(values, *ends):
    """The test after these values, of a plan with these ends."""
    betting = Betting(ALPHA, ends or [len(values)])
    for value in values:
        betting.add(value)
    return betting


@given(VALUES, st.floats(0.1, 0.9))
def test_gamblers_own_what_loops_give_against_many_means_at_once(values, null):
    nulls, length = np.array([0.2, null, 0.7]), len(values)
    gambler = Gambler(GOAL, nulls)
    money = np.array([gambler.bet(value, length - place) for place, value in enumerate(values)])
    for column, one in zip(money.T, nulls.tolist(), strict=True):
        assert column == pytest.approx(naive_money(values, [length], one), rel=1e-9)
        assert (column >= 0).all()


@pytest.mark.parametrize("null", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("ends", [[8], [5, 8], [2, 4, 8]])
def test_bets_are_fair_whatever_has_happened(null, ends):
    """Over all ways in which eight values can come out, the money is 1 in the mean, however the
    plan was extended."""
    ways = np.array(list(product((0.0, 1.0), repeat=8)))
    chances = np.where(ways > 0, null, 1 - null).prod(axis=1)
    gambler, money = Gambler(GOAL, np.full(len(ways), null)), []
    for place, values in enumerate(ways.T):
        if place in ends[:-1]:
            gambler.stake_anew()
        money.append(gambler.bet(values, min(end for end in ends if end > place) - place))
    assert chances @ money[-1] == pytest.approx(1)
    for way, owned in zip(ways.tolist(), np.array(money).T, strict=True):
        assert owned == pytest.approx(naive_money(way, ends, null), rel=1e-9)


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), min_size=1, max_size=30))
@example([1.0] * 12)
@example([0.9, 0.2] * 3 + [0.9] * 14)
@example([0.1, 0.8] * 3 + [0.2] * 20)
@example([0.8, 0.6, 0.7, 0.4] * 25)
def test_one_by_one_and_many_at_once_decide_alike(values):
    betting, (outcome, after) = bet(values), naive_decision(values)
    (side,), (number,) = decisions(np.array([values]), ALPHA)
    assert betting.at_end
    assert betting.outcome == outcome == OUTCOMES[int(side)] and number == after


def test_the_first_outcome_stays():
    assert bet([1.0] * 20 + [0.0] * 200).outcome == "better"


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_value_outside_is_refused(value):
    with pytest.raises(ValueError, match=r"not in \[0, 1\]"):
        bet([value])


def test_a_question_without_a_value_takes_time_and_nothing_else():
    values = [0.6, 0.4, 0.8, 1.0, 0.7] * 5
    early, late, fewer = bet(values, 40), bet([*values, *[None] * 15], 40), bet(values)
    assert (early.at_end, late.at_end, fewer.at_end) == (False, True, True)
    # In a plan of 25, more is bet on each than in one of 40.
    assert early.interval() == late.interval() != fewer.interval()
    assert 0 < early.interval()[0] < np.mean(values) < early.interval()[1] <= 1


def test_bets_that_were_made_stay_as_they_were_when_values_are_added():
    values = np.random.default_rng(4).choice([0.25, 0.5, 0.75, 1.0], 60).tolist()
    first, extended, whole = bet(values[:30]), bet(values[:30], 30, 60), bet(values, 30, 60)
    assert (first.interval(), first.outcome) == (extended.interval(), extended.outcome)
    assert (first.at_end, extended.at_end) == (True, False)
    before, after = extended.interval(), whole.interval()
    assert before[0] <= after[0] < after[1] <= before[1]


def test_what_was_kept_back_can_still_decide():
    values = [0.0, 1.0] * 15 + [1.0] * 30
    betting = bet(values, 30, 60)
    assert (betting.outcome, betting.interval()[0] >= 0.5) == ("better", True)
    assert naive_money(values, [30, 60])[29] < 0.5


def test_an_end_without_questions_is_none():
    assert bet([1.0, 1.0, 1.0], 0, 3, 3).at_end
    assert Betting(ALPHA, []).interval() == Betting(ALPHA, [10]).interval() == (0, 1)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_an_interval_leaves_out_the_null_just_when_it_is_decided(share):
    betting = Betting(ALPHA, [60])
    for value in (np.random.default_rng(3).random(60) < share) * 1.0:
        betting.add(value)
        low, high = betting.interval()
        assert betting.outcome == OUTCOMES[(low >= 0.5) - (high <= 0.5)]


@cases
def test_long_runs_of_one_value_stay_within_numbers(value, outcome):
    betting = bet([value] * 1200)
    low, high = betting.interval()
    assert max(0, value - 0.02) <= low <= value <= high <= min(1, value + 0.02)
    assert betting.outcome == outcome
    # One that turns leaves a number too.
    low, high = bet([value] * 500 + [1 - value] * 500).interval()
    assert 0 <= low <= high <= 1


@cases
def test_a_clear_difference_is_found_as_often_and_as_soon_as_the_documentation_says(
    name, questions, least, used
):
    sides, after = decisions((1 + samples(CLEAR[name], questions, 1000)) / 2, ALPHA)
    assert np.mean(sides > 0) >= least and not (sides < 0).any()
    assert after.mean() <= used


def test_the_end_has_its_part_of_alpha_by_how_much_is_planned():
    for planned, part in ((20, 0.7), (60, 0.7), (84, 0.5), (840, 0.05)):
        goal, at_end = shared_out(ALPHA, planned)
        assert (at_end, 2 / goal + at_end) == pytest.approx((part * ALPHA, ALPHA))


def test_the_end_decides_what_bets_did_not():
    values = np.clip(np.random.default_rng(0).normal(0.62, 0.15, 30), 0, 1).round(3).tolist()
    found = bet(values[:-1], 30), bet(values, 31), bet(values)
    assert [one.outcome for one in found] == [UNDECIDED, UNDECIDED, "better"]
    assert found[1].interval()[0] < 0.5 <= found[2].interval()[0]


def test_values_that_are_added_are_tested_by_themselves_at_what_is_left():
    """How many are added may hang on the values before them, and on nothing that comes."""
    values = np.random.default_rng(0).normal(0.6, 0.1, 60)
    every = [0.0, 1.0] * 15 + values.tolist()
    before, betting = bet(every[:-1], 30, 90), bet(every, 30, 90)
    left = KEPT_BACK * (1 - KEPT_BACK) * 0.7 * ALPHA
    assert betting.interval()[0] == interval(values, (0.0, 1.0), 1 - left)[0] > 0.5
    assert (before.outcome, betting.outcome) == (UNDECIDED, "better")


def test_a_plan_that_is_extended_while_nothing_is_decided_errs_no_more():
    """Whoever adds values whenever the plan has ended without a decision."""
    ends, rows = [10, 20, 40, 80, 160], 5000
    runs = np.random.default_rng(7).integers(0, 2, (rows, ends[-1])) * 1.0
    for values in (runs, 1 - runs):
        gambler, most = Gambler(GOAL, np.full(rows, 0.5)), np.zeros(rows)
        for place, column in enumerate(values.T):
            if place in ends[:-1]:
                gambler.stake_anew()
            left = min(end for end in ends if end > place) - place
            most = np.maximum(most, gambler.bet(column, left))
        assert np.mean(most >= GOAL) <= 0.025 + 3 * sqrt(0.025 * 0.975 / rows)
