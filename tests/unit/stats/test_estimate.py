"""The core: means, differences and shares with their intervals, against naive twins and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenhand.stats.estimate import (
    Estimate,
    difference,
    holm,
    in_words,
    mean,
    more_questions,
    share,
)
from tests.cases import cases
from tests.unit.stats.twin import naive, naive_difference

VALUES = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 5)), min_size=2, max_size=30)
LEVELS = st.sampled_from([0.8, 0.95, 0.99])
UNIT = (0.0, 1.0)


def grouped(cluster, values):
    return [values[cluster == one].tolist() for one in dict.fromkeys(cluster.tolist())]


def ends_of(found):
    return found.low, found.high


@given(VALUES, LEVELS)
def test_intervals_of_means_are_what_their_naive_twin_says(rows, level):
    cluster, values = np.array(rows).T
    questions = grouped(cluster, values)
    means = [np.mean(one) for one in questions]
    found = mean(values * 1.0, cluster, (1.0, 5.0), level)
    assert found.value == pytest.approx(np.mean(means))
    assert (found.n, found.clusters) == (len(rows), len(questions))
    if len(questions) == 1:
        assert (*ends_of(found), found.error, found.p) == (1, 5, None, None)
        return
    assert 1 <= found.low <= found.value <= found.high <= 5 and found.low < found.high
    assert found.error == pytest.approx(stats.sem(means), abs=1e-12)
    if np.ptp(means) > 1e-9:
        low, high, p = naive(questions, (1.0, 5.0), (1.0, 5.0), level)
        assert ends_of(found) == pytest.approx((min(low, found.value), max(high, found.value)))
        assert found.p == pytest.approx(p)
    # It turns and stretches with its scale.
    turned = mean(10 - 2.0 * values, cluster, (0.0, 8.0), level)
    assert ends_of(turned) == pytest.approx((10 - 2 * found.high, 10 - 2 * found.low))


@given(VALUES, LEVELS)
def test_an_interval_of_differences_leaves_out_0_where_p_says_so(rows, level):
    cluster, values = np.array(rows).T
    values = values - 3.0
    found, turned = (difference(side * values, cluster, 4.0, level) for side in (1, -1))
    if found.clusters == 1:
        assert (*ends_of(found), found.p) == (-4, 4, None)
        return
    assert -4 <= found.low <= found.value <= found.high <= 4 and found.low < found.high
    assert (*ends_of(turned), turned.p) == pytest.approx((-found.high, -found.low, found.p))
    if found.value:
        low, high, p = naive_difference(grouped(cluster, values), 4.0, level)
        expected = (p, min(low, found.value), max(high, found.value))
        assert (found.p, *ends_of(found)) == pytest.approx(expected)
    if abs(found.p - (1 - level)) > 1e-9:
        assert (found.p < 1 - level) == (not found.low <= 0 <= found.high)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.5, 1.0])), min_size=2))
def test_units_weigh_alike_and_their_error_is_that_of_leaving_out_each_topic(rows):
    topics, values = np.array(rows).T
    found = mean(values, topics, UNIT, weigh="units")
    other = mean(1 - values, topics, UNIT, weigh="units")
    assert found.value == pytest.approx(values.mean())
    seen = np.unique(topics)
    if seen.size == 1:
        assert (found.error, *ends_of(found)) == (None, 0, 1)
        return
    rests = np.array([values[topics != one].mean() for one in seen])
    variance = ((rests - values.mean()) ** 2).sum() * (seen.size - 1) / seen.size
    assert found.error == pytest.approx(variance**0.5, abs=1e-9)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert ends_of(other) == pytest.approx((1 - found.high, 1 - found.low))


@cases
def test_shares_of_many_trials_are_close_to_wilson(hits, n):
    known = stats.binomtest(hits, n).proportion_ci(method="wilson")
    values = np.repeat([0.0, 1.0], [n - hits, hits])
    for found in (mean(values, np.arange(n), UNIT), share(values, np.ones(n))):
        assert ends_of(found) == pytest.approx((known.low, known.high), abs=0.004)


@pytest.mark.parametrize(
    ("gaps", "within"),
    [
        (np.random.default_rng(3).normal(0.02, 0.1, 400), 2e-4),
        (np.random.default_rng(1).integers(-2, 3, 1000) / 4 + 0.02, 0.001),
    ],
    ids=["normal", "levels"],
)
def test_differences_of_many_questions_are_close_to_student(gaps, within):
    found, known = difference(gaps, np.arange(gaps.size), 1.0), stats.ttest_1samp(gaps, 0)
    interval = known.confidence_interval(0.95)
    assert ends_of(found) == pytest.approx((interval.low, interval.high), abs=within)
    assert found.p == pytest.approx(known.pvalue, rel=0.2, abs=0.005)
    assert found.error == pytest.approx(stats.sem(gaps))


@cases
def test_so_many_wins_decide(wins, losses, ties, is_decided):
    gaps = np.repeat([1.0, -1.0, 0.0], [wins, losses, ties])
    assert (difference(gaps, np.arange(gaps.size), 1.0).p <= 0.05) == is_decided


@pytest.mark.parametrize("n", [2, 20, 1000])
def test_values_that_are_all_alike_leave_open_what_may_be_unseen(n):
    """As wide at either end as a share of 0 in so many questions allows."""
    unseen = mean(np.zeros(n), np.arange(n), UNIT).high
    assert 1 - 0.05 ** (1 / n) <= unseen < 20 / (n + 18)
    middle = mean(np.full(n, 2.0), np.arange(n), (1.0, 5.0))
    assert ends_of(middle) == pytest.approx((2 - unseen, 2 + 3 * unseen))
    none = difference(np.zeros(n), np.arange(n), 1.0)
    assert (none.value, none.p, *ends_of(none)) == pytest.approx((0, 1, -unseen, unseen))


def test_a_share_counts_hits_and_trials_by_question():
    # 100 topics in both orders: consistent but for eight, where the first slot won both times.
    found = share(np.repeat([2.0, 1.0], [8, 92]), np.full(100, 2.0))
    assert (found.value, found.n, found.clusters) == (0.54, 200, 100)
    assert 0.5 < found.low < 0.54 < found.high < 0.58 and found.p < 0.05


@pytest.mark.parametrize("large", [1e308, float("inf"), float("nan")])
def test_of_values_too_large_to_compute_with_there_is_nothing(large):
    values = np.array([large, large, 1.0])
    for found in (mean(values, np.arange(3), UNIT), difference(values, np.arange(3), 1.0)):
        assert found == Estimate(None, None, None, 3, 3, None)


def test_without_values_or_scale_there_is_no_interval():
    nothing = mean(np.zeros(0), np.zeros(0, dtype=np.int64), UNIT)
    assert nothing == Estimate(None, None, None, 0, 0, None)
    flat = mean(np.full(9, 2.0), np.arange(9), (2.0, 2.0))
    assert (flat.value, *ends_of(flat)) == (2.0, None, None)


def test_a_value_beyond_its_scale_widens_it():
    assert 0.875 < mean(np.array([0.2, 1.5, 0.7, 1.1]), np.arange(4), UNIT).high <= 1.5


@pytest.mark.parametrize("values", [(0.3, 0.1 + 0.2), (1 / 3, 1 - 2 / 3), (1e16, 1e16 + 2)])
def test_values_that_differ_by_rounding_alone_have_an_interval(values):
    found = mean(np.array([*values] * 6), np.arange(12), (min(values), max(values)))
    assert min(values) <= found.low <= found.high <= max(values)


def test_how_many_more_is_told_in_words():
    far = "more than is practical"
    assert [
        more_questions(value, error, 50, 0.05)
        for value, error in (
            (0.5, 0.3),
            (0.1, 0.1),
            (0.01, 0.1),
            (0.0, 0.1),
            (0.1, None),
            (None, None),
        )
    ] == ["a few dozen", "several hundred", far, far, None, None]
    assert [in_words(one) for one in (3, 100, 101, 1000, 1001)] == [
        *["a few dozen"] * 2,
        *["several hundred"] * 2,
        far,
    ]


def test_holm_is_the_least_level_that_rejects():
    """By its definition: sorted, each against alpha over what is left."""
    values = np.random.default_rng(1).random(12)
    adjusted, order = np.array(holm(values.tolist())), np.argsort(values)
    for alpha in np.linspace(0.001, 0.99, 200):
        kept = values[order] > alpha / np.arange(12, 0, -1)
        first = int(np.argmax(kept)) if kept.any() else 12
        assert set(order[:first]) == set(np.flatnonzero(adjusted <= alpha))
