"""Whether a difference differs between the values of a field, against scipy's tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.stats.within import Interaction, interaction


def of(columns: list[np.ndarray], level: float = 0.95) -> Interaction:
    """Questions that have every value: a column per value."""
    questions = np.tile(np.arange(columns[0].size), len(columns))
    value = np.repeat(np.arange(len(columns)), columns[0].size)
    return interaction(np.concatenate(columns), questions, value, len(columns), level)


def test_two_values_on_the_same_questions_are_a_paired_t_test() -> None:
    draw = np.random.default_rng(1)
    own = draw.normal(size=12)
    first, second = own + draw.normal(size=12), own + draw.normal(0.8, 1, 12)
    found, known = of([first, second], 0.9), stats.ttest_rel(second, first)
    interval = known.confidence_interval(0.9)
    assert found.gap == pytest.approx((second - first).mean())
    assert found.p == pytest.approx(known.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_two_values_on_different_questions_are_welchs_t_test() -> None:
    draw = np.random.default_rng(2)
    first, second = draw.normal(size=5), draw.normal(1, 3, 40)
    gaps, value = np.concatenate([first, second]), np.repeat([0, 1], [5, 40])
    found = interaction(gaps, np.arange(45), value, 2)
    known = stats.ttest_ind(second, first, equal_var=False)
    interval = known.confidence_interval(0.95)
    assert found.p == pytest.approx(known.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_three_values_on_the_same_questions_are_hotellings_test() -> None:
    draw = np.random.default_rng(3)
    columns = [draw.normal(mean, 1, 10) for mean in (0, 0.5, 1)]
    apart = np.stack([columns[1] - columns[0], columns[2] - columns[0]])
    square = 10 * apart.mean(axis=1) @ np.linalg.solve(np.cov(apart), apart.mean(axis=1))
    found = of(columns)
    assert found.p == pytest.approx(stats.f(2, 8).sf(square * 8 / (2 * 9)))
    assert found.gap is None


def test_units_of_a_question_are_one_observation() -> None:
    draw = np.random.default_rng(4)
    columns = [draw.normal(size=8), draw.normal(size=8)]
    gaps = np.repeat(np.concatenate(columns), 3)
    questions, value = np.repeat(np.tile(np.arange(8), 2), 3), np.repeat([0, 1], 24)
    assert interaction(gaps, questions, value, 2).p == pytest.approx(of(columns).p)


@pytest.mark.parametrize("sizes", [(8, 8), (5, 30), (6, 6, 20)])
@pytest.mark.parametrize("is_shared", [True, False])
def test_it_errs_about_as_often_as_it_says(sizes: tuple[int, ...], is_shared: bool) -> None:
    """Questions have a difference of their own, which the test must not take for one of values."""
    draw, hits, rounds = np.random.default_rng(11), 0, 400
    for _ in range(rounds):
        own = draw.normal(size=max(sizes))
        gaps = np.concatenate([own[:size] * is_shared + draw.normal(size=size) for size in sizes])
        value = np.repeat(np.arange(len(sizes)), sizes)
        questions = np.concatenate([np.arange(size) for size in sizes])
        questions = questions if is_shared else np.arange(gaps.size)
        p = interaction(gaps, questions, value, len(sizes)).p
        hits += p is not None and p <= 0.05
    assert hits <= stats.binom.ppf(0.999, rounds, 0.065)


def test_what_shows_no_spread_is_not_tested() -> None:
    two = np.array([1.0, 2.0])
    assert interaction(two, np.arange(2), np.zeros(2, int), 2) == Interaction()
    assert interaction(two, np.zeros(2, int), np.arange(2), 2) == Interaction(gap=1.0)
    assert of([np.zeros(5), np.zeros(5)]).p is None


def test_questions_that_are_all_alike_on_each_value_leave_room_for_the_unseen() -> None:
    opposed, near = of([np.full(6, -1.0), np.ones(6)]), of([np.full(6, 0.9), np.ones(6)])
    assert opposed.p is not None and opposed.p < 0.01
    assert near.p is not None and near.p > 0.05
    assert opposed.low is not None and 0 < opposed.low < 2
