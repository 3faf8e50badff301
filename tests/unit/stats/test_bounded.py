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
from evenhand.stats.observations import Floats
from tests.unit.stats.laws import CLEAR, WORSE

LONG = bool(os.environ.get("EVENHAND_LONG"))
SCALE = (-1.0, 1.0)


def naive_chance(gaps: list[Fraction]) -> Fraction:
    """How likely a sum of different gaps with exponential weights is not positive, exactly: above
    0 its density is a mixture of one exponential for each gap above 0."""
    return 1 - sum(
        prod(gap / (gap - other) for other in gaps if other is not gap) for gap in gaps if gap > 0
    )


@given(
    st.lists(st.integers(-40, 60), min_size=4, max_size=12, unique=True),
    st.integers(41, 60),
)
def test_gaffkes_chance_is_within_a_few_hundredths_of_the_exact_one(
    gaps: list[int], unseen: int
) -> None:
    whole = [Fraction(gap) for gap in gaps if gap]
    exact = float(naive_chance([*whole, Fraction(-unseen)]))
    (found,) = gaffke(np.array([float(gap) for gap in whole]), float(unseen))
    assert found == pytest.approx(exact, rel=0.06, abs=1e-4)


def naive_p(gaps: Floats, unseen: float) -> float:
    """By the words of the test: where nothing breaks down, the greatest chance over many shares of
    breakdowns to see none and so much of the rest."""
    if gaps.min() < -unseen / 2:
        return float(gaffke(gaps, unseen)[0])
    greatest = 0.0
    for share in np.linspace(0, 0.5, 600):
        higher = unseen * share / (1 - share)
        (rest,) = gaffke(gaps - higher, unseen / 2 + higher)
        greatest = max(greatest, (1 - share) ** gaps.size * (1 if rest > 0.9 and share else rest))
    return greatest


@pytest.mark.parametrize("name", ["Likert", "normal, sd 0.15", "normal, sd 0.05"])
def test_the_chance_is_the_greatest_over_all_shares_of_breakdowns(name: str) -> None:
    rows = CLEAR[name].sample(np.random.default_rng(1), (3, 25))
    for row in rows:
        (found,) = chance_at_most(row, 1.0)
        assert found == pytest.approx(naive_p(row, 1.0), rel=0.03)


@pytest.mark.parametrize("name", CLEAR)
@pytest.mark.parametrize("questions", [5, 20, 60])
def test_it_is_hardly_ever_more_cautious_than_gaffkes_test(name: str, questions: int) -> None:
    rows = CLEAR[name].sample(np.random.default_rng(2), (40, questions))
    p, plain = chance_at_most(rows, 1.0), gaffke(rows, 1.0)
    assert (p <= plain * 1.07)[plain < 0.2].all()
    for alpha in (0.005, 0.025):
        assert (rejects(rows, 1.0, alpha) == (p <= alpha)).all()


def test_beyond_many_values_it_is_gaffkes_test() -> None:
    rows = CLEAR["Likert"].sample(np.random.default_rng(2), (1, 2001))
    assert chance_at_most(rows, 1.0) == gaffke(rows, 1.0)
    assert chance_at_most(rows[:, :2000], 1.0) <= gaffke(rows[:, :2000], 1.0)


@pytest.mark.parametrize(
    ("wins", "of"), [(5, 5), (9, 10), (15, 20), (31, 50), (62, 100), (440, 805)]
)
def test_for_wins_and_losses_it_is_the_binomial_test(wins: int, of: int) -> None:
    values = np.array([1.0] * wins + [-1.0] * (of - wins))
    exact = sum(comb(of, k) for k in range(wins, of + 1)) / 2**of
    assert p_value(values, 0.0, -1.0) == pytest.approx(exact, rel=0.035 if wins < of else 0.09)
    if wins < of:
        tied = np.concatenate([values, np.zeros(30)])
        assert p_value(tied, 0.0, -1.0) == pytest.approx(exact, rel=0.035)


def test_rows_are_tested_one_by_one() -> None:
    rows = WORSE["Likert"].sample(np.random.default_rng(1), (50, 20))
    together = chance_at_most(rows + 0.1, 0.9)
    assert together == pytest.approx([p_value(row, -0.1, -1.0) for row in rows])


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.floats(-0.9, 0.9))
def test_the_higher_the_threshold_the_likelier(values: list[float], threshold: float) -> None:
    p, lower = (
        p_value(np.array(values), at, -1.0) for at in (threshold, threshold - 0.1 * (1 + threshold))
    )
    assert 0 <= lower <= p + 0.02 <= 1.02


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=30), st.sampled_from([0.8, 0.95, 0.99]))
def test_an_interval_ends_where_the_test_stops_rejecting(rows: list[int], level: float) -> None:
    values = np.array(rows) / 4
    low, high = interval(values, SCALE, level)
    assert -1 <= low <= values.mean() <= high <= 1
    for end, turned in ((low, values), (-high, -values)):
        if end > -1 + 1e-9:
            step, alpha = 1e-5, (1 - level) / 2
            least, most = (
                p_value(turned, at, -1.0) for at in (max(-1 + 1e-9, end - step), end + step)
            )
            assert least <= alpha <= most
    assert interval(-values, SCALE, level) == pytest.approx((-high, -low))


@pytest.mark.parametrize("number", [5, 20, 60, 300])
def test_values_all_alike_leave_room_for_what_need_not_have_been_seen(number: int) -> None:
    low, high = interval(np.zeros(number), SCALE, 0.95)
    share = 1 - 0.025 ** (1 / number)
    assert (-low, high) == pytest.approx((share, share), rel=0.02)


# errors


@pytest.mark.parametrize("name", WORSE)
@pytest.mark.parametrize("questions", [20, 60, 300])
def test_a_mean_at_the_threshold_is_told_from_it_at_most_as_often_as_said(
    name: str, questions: int
) -> None:
    law, rounds = WORSE[name], 20_000 if LONG else 40_000 // questions
    values = law.sample(np.random.default_rng(questions), (rounds, questions))
    spare = 3 * np.sqrt(0.025 * 0.975 / rounds)
    assert np.mean(rejects(values - law.mean, 1 + law.mean, 0.025)) <= 0.025 + spare
    assert np.mean(rejects(law.mean - values, 1 - law.mean, 0.025)) <= 0.025 + spare


def counts_of(number: int, points: int) -> list[tuple[int, ...]]:
    """All ways to spread so many values over so many points."""
    if points == 1:
        return [(number,)]
    return [
        (first, *rest)
        for first in range(number + 1)
        for rest in counts_of(number - first, points - 1)
    ]


def exact_error(points: Floats, chances: Floats, number: int, alpha: float) -> float:
    """How often the test at alpha rejects the mean of a law on a few points in [0, 1], exactly."""
    counts = counts_of(number, points.size)
    rows = np.array([np.repeat(points, count) for count in counts])
    ways = [factorial(number) // prod(map(factorial, count)) for count in counts]
    odds = np.array(
        [float(way) * np.prod(chances**count) for way, count in zip(ways, counts, strict=True)]
    )
    mean = float(points @ chances)
    return float(odds[rejects(rows - mean, mean, alpha)].sum())


@pytest.mark.parametrize(("number", "laws"), [(2, 60), (4, 60), (7, 40), (12, 20), (20, 8)])
def test_no_law_on_three_points_that_a_search_finds_errs_more_often(number: int, laws: int) -> None:
    draw = np.random.default_rng(number)
    for _ in range(10 * laws if LONG else laws):
        points = np.sort(draw.random(3))
        points[0] *= draw.random() < 0.3
        if draw.random() < 0.3:  # nearly two values: what is unseen is all that matters
            points[1] = points[2] * (1 - 0.03 * draw.random())
        chances = draw.dirichlet(np.full(3, draw.choice([0.3, 1.0])))
        for alpha in (0.005, 0.025):
            assert exact_error(points, chances, number, alpha) <= alpha * 1.001
