"""Intervals that hold whatever the values are: against exact twins, and against the worst laws that
a search comes upon."""

from __future__ import annotations

import os
from fractions import Fraction
from math import comb, factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.bounded import chance_at_most, gaffke, interval, p_value, rejects
from tests.cases import cases
from tests.unit.stats.error_tables import samples
from tests.unit.stats.laws import CLEAR, WORSE

LONG = bool(os.environ.get("EVENHAND_LONG"))


@given(st.lists(st.integers(-40, 60), min_size=4, max_size=12, unique=True), st.integers(41, 60))
def test_gaffkes_chance_is_within_a_few_hundredths_of_the_exact_one(gaps, unseen):
    """How likely a sum of different gaps with exponential weights is not positive: above 0 its
    density is a mixture of one exponential for each gap above 0."""
    whole = [Fraction(gap) for gap in gaps if gap]
    every = [*whole, Fraction(-unseen)]
    exact = 1 - sum(prod(a / (a - b) for b in every if b is not a) for a in every if a > 0)
    (found,) = gaffke(np.array(whole, dtype=float), float(unseen))
    assert found == pytest.approx(float(exact), rel=0.06, abs=1e-4)


def naive_p(gaps, unseen):
    """By the words of the test: where nothing breaks down, the greatest chance over many shares of
    breakdowns to see none and so much of the rest."""
    if gaps.min() < -unseen / 2:
        return float(gaffke(gaps, unseen)[0])
    greatest = 0.0
    for share in np.linspace(0, 0.5, 400):
        higher = unseen * share / (1 - share)
        (rest,) = gaffke(gaps - higher, unseen / 2 + higher)
        greatest = max(greatest, (1 - share) ** gaps.size * (1 if rest > 0.9 and share else rest))
    return greatest


@pytest.mark.parametrize("name", ["Likert", "normal, sd 0.15", "normal, sd 0.05"])
def test_the_chance_is_the_greatest_over_all_shares_of_breakdowns(name):
    rows = CLEAR[name].sample(np.random.default_rng(1), (3, 25))
    assert chance_at_most(rows, 1.0) == pytest.approx([naive_p(row, 1.0) for row in rows], rel=0.03)


@pytest.mark.parametrize("name", CLEAR)
@pytest.mark.parametrize("questions", [5, 20, 60])
def test_it_is_hardly_ever_more_cautious_than_gaffkes_test(name, questions):
    rows = samples(CLEAR[name], questions, 40)
    p, plain = chance_at_most(rows, 1.0), gaffke(rows, 1.0)
    assert (p <= plain * 1.07)[plain < 0.2].all()
    for alpha in (0.005, 0.025):
        assert (rejects(rows, 1.0, alpha) == (p <= alpha)).all()


def test_beyond_many_values_it_is_gaffkes_test():
    rows = samples(CLEAR["Likert"], 2001, 1)
    assert chance_at_most(rows, 1.0) == gaffke(rows, 1.0)
    assert chance_at_most(rows[:, :2000], 1.0) <= gaffke(rows[:, :2000], 1.0)


@cases
def test_for_wins_and_losses_it_is_the_binomial_test(wins, of):
    exact = sum(comb(of, k) for k in range(wins, of + 1)) / 2**of
    for ties in (0, 30) if wins < of else (0,):
        values = np.repeat([1.0, -1.0, 0.0], [wins, of - wins, ties])
        found = p_value(values, 0.0, -1.0)
        assert found == pytest.approx(exact, rel=0.035 if wins < of else 0.09)


def test_rows_are_tested_one_by_one():
    rows = samples(WORSE["Likert"], 20, 50)
    alone = [p_value(row, -0.1, -1.0) for row in rows]
    assert chance_at_most(rows + 0.1, 0.9) == pytest.approx(alone)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.floats(-0.9, 0.9))
def test_the_higher_the_threshold_the_likelier(values, threshold):
    thresholds = (threshold, threshold - 0.1 * (1 + threshold))
    p, lower = (p_value(np.array(values), at, -1.0) for at in thresholds)
    assert 0 <= lower <= p + 0.02 <= 1.02


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=30), st.sampled_from([0.8, 0.95, 0.99]))
def test_an_interval_ends_where_the_test_stops_rejecting(rows, level):
    values = np.array(rows) / 4
    low, high = interval(values, (-1.0, 1.0), level)
    assert -1 <= low <= values.mean() <= high <= 1
    for end, turned in ((low, values), (-high, -values)):
        if end > -1 + 1e-9:
            nearby = (max(-1 + 1e-9, end - 1e-5), end + 1e-5)
            least, most = (p_value(turned, at, -1.0) for at in nearby)
            assert least <= (1 - level) / 2 <= most
    assert interval(-values, (-1.0, 1.0), level) == pytest.approx((-high, -low))


@pytest.mark.parametrize("number", [5, 60, 300])
def test_values_all_alike_leave_room_for_what_need_not_have_been_seen(number):
    share = 1 - 0.025 ** (1 / number)
    found = interval(np.zeros(number), (-1.0, 1.0), 0.95)
    assert found == pytest.approx((-share, share), rel=0.02)


def counts_of(number, points):
    """All ways to spread so many values over so many points."""
    if points == 1:
        return [(number,)]
    heads = range(number + 1)
    return [(first, *rest) for first in heads for rest in counts_of(number - first, points - 1)]


def exact_errors(points, chances, number, alphas):
    """How often the tests reject the mean of a law on a few points in [0, 1], exactly."""
    counts = counts_of(number, points.size)
    rows = np.array([np.repeat(points, count) for count in counts])
    ways = np.array([factorial(number) // prod(map(factorial, count)) for count in counts])
    odds, mean = ways * np.prod(chances ** np.array(counts), axis=1), float(points @ chances)
    return [odds[rejects(rows - mean, mean, alpha)].sum() for alpha in alphas]


@cases
def test_no_law_on_three_points_that_a_search_finds_errs_more_often(number, laws):
    draw, alphas = np.random.default_rng(number), (0.005, 0.025)
    for _ in range(10 * laws if LONG else laws):
        points = np.sort(draw.random(3))
        points[0] *= draw.random() < 0.3
        if draw.random() < 0.3:  # nearly two values: what is unseen is all that matters
            points[1] = points[2] * (1 - 0.03 * draw.random())
        chances = draw.dirichlet(np.full(3, draw.choice([0.3, 1.0])))
        errors = exact_errors(points, chances, number, alphas)
        assert (np.array(errors) <= np.array(alphas) * 1.001).all()
