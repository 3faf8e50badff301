"""Ratings, against textbook forms and another library, and ranks beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from evenhand.stats.rating import Matches, rate
from tests.cases import cases
from tests.unit.stats.coverage import everybody, voted

ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 4), st.sampled_from([1.0, 0.0, "=", 0.3])),
    min_size=1,
    max_size=40,
).map(lambda rows: [(a, (a + step) % 5, won) for a, step, won in rows])


def matches(size, rows, topics=()):
    """Rows of (first, second, how far the first won or `=`)."""
    return Matches(
        size=size,
        first=np.array([row[0] for row in rows]),
        second=np.array([row[1] for row in rows]),
        won=np.array([0.5 if row[2] == "=" else row[2] for row in rows], dtype=float),
        tie=np.array([row[2] == "=" for row in rows], dtype=np.bool_),
        topic=np.array(topics or range(len(rows))),
    )


def drawn(tie, first):
    """Votes of Davidson's model between random candidates, of which some are parts of a win."""
    rng = np.random.default_rng(3)
    pairs = np.array([rng.choice(5, 2, replace=False) for _ in range(300)])
    played = voted(rng, *pairs.T, 1, rng.normal(size=5), tie, first)
    soft = np.where(played.tie | (rng.random(300) < 0.7), played.won, 0.2 + 0.5 * played.won)
    return replace(played, won=soft)


def fitted(played, ties="davidson", **options):
    """The plain maximum of the likelihood."""
    (found,) = rate(played, ties, added=0.0, **options)
    return found


def ends_of(found, **options):
    return np.array(found.intervals(0.95, **options))


def ranks(found):
    return [each.tolist() for each in found.ranks(0.95)]


def most_likely(played, ties, *, position=False):
    """Ratings about a mean of 0, the logarithm of the tie parameter, and the position term, by a
    general minimiser of Davidson's likelihood vote by vote."""

    tie = played.tie & (ties == "davidson")

    def loss(x):
        gap = x[played.first] - x[played.second] + (x[-1] if position else 0)
        total = np.logaddexp(gap / 2, -gap / 2)
        total = np.logaddexp(total, x[-2] if tie.any() else -np.inf)
        said = np.where(tie, x[-2], (played.won - 0.5) * gap)
        return float((total - said).sum() + 1e-9 * (x**2).sum())

    found = minimize(loss, np.zeros(played.size + 2), method="BFGS", options={"gtol": 1e-9}).x
    found[: played.size] -= found[: played.size].mean()
    return found


@cases
def test_ratings_ties_and_position_are_the_most_likely(ties, tie, first):
    played, position = drawn(tie, first), bool(first)
    found = fitted(played, ties, position=position)
    *expected, tied, shift = most_likely(played, ties, position=position)
    assert found.values == pytest.approx(expected, abs=2e-5)
    has_tie = bool(tie) and ties == "davidson"
    assert (found.tie is None, found.position is None) == (not has_tie, not first)
    assert not has_tie or np.log(found.tie) == pytest.approx(tied, abs=2e-5)
    assert not first or found.position == pytest.approx(shift, abs=2e-5)


@given(ROWS, st.permutations(range(5)))
@settings(max_examples=30, deadline=None)
def test_names_and_sides_do_not_matter(rows, renamed):
    turned = [(b, a, won if won == "=" else 1 - won) for a, b, won in rows]
    moved = [(renamed[a], renamed[b], won) for a, b, won in rows]
    expected = by_candidate(rows, range(5))
    assert by_candidate(turned, range(5)) == pytest.approx(expected, abs=1e-6)
    assert by_candidate(moved, renamed) == pytest.approx(expected, abs=1e-6)


def by_candidate(rows, names):
    """Ratings and their ends, of each candidate under its name; 99 without a match."""
    table = np.full((5, 3), np.nan)
    for found in rate(matches(5, rows)):
        table[found.members] = ends_of(found).T
    return np.nan_to_num(table[list(names)], nan=99).ravel().tolist()


def test_sets_that_never_met_are_rated_apart_the_largest_first():
    small = [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)] * 5
    large = [(a + 4, b + 4, won) for a, b, won in [*small, (0, 3, 1.0), (3, 0, 1.0)]]
    first, second = rate(matches(10, [*small, *large]), added=0.0)
    assert (first.members.tolist(), second.members.tolist()) == ([4, 5, 6, 7], [0, 1, 2])
    assert second.values == pytest.approx([0, 0, 0], abs=1e-8)


def test_a_chain_of_many_candidates_is_fitted_as_well():
    rows = [(place, place + 1, won) for place in range(199) for won in 3 * (1.0, 1.0, 0.0)]
    assert -np.diff(fitted(matches(200, rows)).values) == pytest.approx(np.log(2), abs=1e-6)


def test_the_covariance_is_that_of_leaving_out_each_question_where_these_are_many():
    played = everybody(np.random.default_rng(5), 200, 0.5)
    (found,) = rate(played)
    without = [next(rate(played.where(played.topic != topic))).values for topic in range(200)]
    expected = np.cov(np.array(without).T, bias=True) * 199
    assert found.covariance == pytest.approx(expected, rel=0.06, abs=2e-4)


def test_nineteen_wins_of_twenty_leave_more_room_above_than_below():
    """Half a vote is added between any two that met; without it nothing bounds twenty of twenty."""
    (found,) = rate(matches(2, [(0, 1, 1.0)] * 19 + [(0, 1, 0.0)]))
    # By hand: the sandwich of one parameter, and Wilson's interval with Student's quantile.
    p = 19.25 / 20.5
    squares = (19 * (1 - p) ** 2 + p**2) * 20 / 19 + ((1 - p) ** 2 + p**2) / 4
    error = squares**0.5 / (20.5 * p * (1 - p))
    trials, square = 1 / (p * (1 - p) * error**2), 2.093024**2
    root = (square * (p * (1 - p) * trials + square / 4)) ** 0.5
    shares = [(p * trials + square / 2 + side * root) / (trials + square) for side in (-1, 1)]
    expected = [np.log(share / (1 - share)) / 2 for share in (p, *shares)]
    assert ends_of(found)[:, 0] == pytest.approx(expected, abs=1e-5)
    assert ranks(found) == [[1, 2], [1, 2], [1, 2]]
    with pytest.raises(ValueError, match="bound no ratings"):
        fitted(matches(2, [(0, 1, 1.0)] * 5))


def test_a_cycle_in_which_all_topics_agree_is_not_certain():
    rows = [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)] * 20
    (found,) = rate(matches(3, rows, topics=[place // 3 for place in range(60)]))
    values, low, high = ends_of(found)
    assert values == pytest.approx([0, 0, 0], abs=1e-9)
    assert (low < -0.04).all() and (high > 0.04).all()
    assert ranks(found) == [[1] * 3, [1] * 3, [3] * 3]


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_ranks_and_intervals_of_differences_never_contradict_each_other(seed):
    """Who is ranked above another has, put at 0, the other's whole interval below it."""
    (found,) = rate(everybody(np.random.default_rng(seed), 12, 0.3))
    _, best, worst = found.ranks(0.95)
    for one in range(4):
        _, low, high = ends_of(found, anchor=one)
        assert len(found.members) - worst[one] <= (high < 0).sum()
        assert best[one] - 1 <= (low > 0).sum()


def test_one_question_has_ratings_without_ends_and_any_rank():
    (found,) = rate(matches(3, [(0, 1, 1.0), (1, 2, 1.0)], topics=[0, 0]))
    assert np.isnan(ends_of(found)).any(axis=1).tolist() == [False, True, True]
    assert ranks(found) == [[1, 2, 3], [1] * 3, [3] * 3]
