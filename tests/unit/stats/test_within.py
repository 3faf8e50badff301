"""Interactions: if a difference differs between the values of a field, against scipy's tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.stats.within import Interaction, interaction


def of(*columns, level=0.95):
    """Questions that have every value: a column per value."""
    questions = np.tile(np.arange(len(columns[0])), len(columns))
    value = np.repeat(np.arange(len(columns)), len(columns[0]))
    return interaction(np.concatenate(columns), questions, value, len(columns), level)


def check(found, known, level=0.95):
    interval = known.confidence_interval(level)
    expected = (known.pvalue, interval.low, interval.high)
    assert (found.p, found.low, found.high) == pytest.approx(expected)


def test_two_values_on_the_same_questions_are_a_paired_t_test():
    draw = np.random.default_rng(1)
    own = draw.normal(size=12)
    first, second = own + draw.normal(size=12), own + draw.normal(0.8, 1, 12)
    found = of(first, second, level=0.9)
    check(found, stats.ttest_rel(second, first), 0.9)
    assert found.gap == pytest.approx((second - first).mean())
    # Units of a question are one observation.
    questions, value = np.repeat(np.tile(np.arange(12), 2), 3), np.repeat([0, 1], 36)
    tripled = interaction(np.repeat([first, second], 3), questions, value, 2)
    assert tripled.p == pytest.approx(found.p)


def test_two_values_on_different_questions_are_welchs_t_test():
    draw = np.random.default_rng(2)
    first, second = draw.normal(size=5), draw.normal(1, 3, 40)
    value = np.repeat([0, 1], [5, 40])
    found = interaction(np.concatenate([first, second]), np.arange(45), value, 2)
    check(found, stats.ttest_ind(second, first, equal_var=False))


def test_three_values_on_the_same_questions_are_hotellings_test():
    columns = np.random.default_rng(3).normal([[0], [0.5], [1]], 1, (3, 10))
    apart = columns[1:] - columns[0]
    square = 10 * apart.mean(axis=1) @ np.linalg.solve(np.cov(apart), apart.mean(axis=1))
    found = of(*columns)
    assert (found.p, found.gap) == (pytest.approx(stats.f(2, 8).sf(square * 8 / (2 * 9))), None)


def test_what_shows_no_spread_is_not_tested():
    two = np.array([1.0, 2.0])
    assert interaction(two, np.arange(2), np.zeros(2, int), 2) == Interaction()
    assert interaction(two, np.zeros(2, int), np.arange(2), 2) == Interaction(gap=1.0)
    assert of(np.zeros(5), np.zeros(5)).p is None


def test_questions_that_are_all_alike_on_each_value_leave_room_for_the_unseen():
    opposed, near = (of(np.full(6, value), np.ones(6)) for value in (-1.0, 0.9))
    assert opposed.p < 0.01 and near.p > 0.05 and 0 < opposed.low < 2
