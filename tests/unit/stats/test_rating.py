"""Ratings, against textbook forms and another library, their coverage, and ranks beside them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import evalica
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.stats.rating import Matches, Ratings, rate
from tests.unit.stats.ballots import (
    EVEN_TASTE,
    MEETINGS,
    STRENGTHS,
    chances,
    drawn,
    everybody,
    matches,
    textbook_bradley_terry,
    textbook_davidson,
)

LONG = bool(os.environ.get("EVENHAND_LONG"))
ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 4), st.sampled_from([1.0, 0.0, "=", 0.3])),
    min_size=1,
    max_size=40,
).map(lambda rows: [(a, (a + step) % 5, won) for a, step, won in rows])


def fitted(size: int, rows: Any, ties: Any = "davidson", **options: Any) -> Ratings:
    """The plain maximum of the likelihood."""
    (found,) = rate(matches(size, rows), ties, added=0.0, **options)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_without_ties_they_are_bradley_and_terrys(seed):
    rows = drawn(np.random.default_rng(seed), 6, 200, tie=0.0)
    found = fitted(6, rows)
    assert found.values == pytest.approx(textbook_bradley_terry(6, rows), abs=1e-8)
    assert found.tie is None and found.position is None


def test_ties_as_half_a_win_are_those_of_evalica():
    rows = drawn(np.random.default_rng(7), 12, 2000)
    said = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y, "=": evalica.Winner.Draw}
    left, right = [f"m{row[0]:02}" for row in rows], [f"m{row[1]:02}" for row in rows]
    found = evalica.bradley_terry(left, right, [said[row[2]] for row in rows], tolerance=1e-12)
    scores = np.log(found.scores.sort_index().to_numpy())
    assert fitted(12, rows, "half").values == pytest.approx(scores - scores.mean(), abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_davidsons_ties_are_the_most_likely(seed):
    rows = drawn(np.random.default_rng(seed), 5, 150, tie=0.7)
    found, expected = fitted(5, rows), textbook_davidson(5, rows)
    assert found.values == pytest.approx(expected[:5], abs=2e-5)
    assert np.log(found.tie) == pytest.approx(expected[-2], abs=2e-5)


@pytest.mark.parametrize("ties", ["davidson", "half"])
def test_a_position_term_is_the_most_likely(ties):
    rows = drawn(np.random.default_rng(3), 5, 300, tie=0.5 if ties == "davidson" else 0, first=0.6)
    found, expected = (
        fitted(5, rows, ties, position=True),
        textbook_davidson(5, rows, position=True),
    )
    assert found.values == pytest.approx(expected[:5], abs=2e-5)
    assert found.position == pytest.approx(expected[-1], abs=2e-5)


def test_soft_preferences_are_parts_of_a_win():
    soft = [(0, 1, 0.25), (1, 2, 0.5), (0, 2, 0.9)] * 20
    hard = [(0, 1, 1.0)] * 5 + [(0, 1, 0.0)] * 15 + [(1, 2, 1.0), (1, 2, 0.0)] * 10
    hard += [(0, 2, 1.0)] * 18 + [(0, 2, 0.0)] * 2
    assert fitted(3, soft).values == pytest.approx(fitted(3, hard).values, abs=1e-8)


def test_half_a_vote_is_added_between_any_two_that_met():
    (found,) = rate(matches(2, [(0, 1, 1.0)] * 19 + [(0, 1, 0.0)]))
    assert found.values[0] - found.values[1] == pytest.approx(np.log(19.25 / 1.25))
    with pytest.raises(ValueError, match="bound no ratings"):
        fitted(2, [(0, 1, 1.0)] * 5)


@given(ROWS, st.permutations(range(5)))
@settings(max_examples=60, deadline=None)
def test_names_and_sides_do_not_matter(rows, renamed):
    turned = [(b, a, won if won == "=" else 1 - won) for a, b, won in rows]
    moved = [(renamed[a], renamed[b], won) for a, b, won in rows]
    expected = by_candidate(rows, range(5))
    assert by_candidate(turned, range(5)) == pytest.approx(expected, abs=1e-6)
    assert by_candidate(moved, renamed) == pytest.approx(expected, abs=1e-6)


def by_candidate(rows, names):
    """Ratings and their ends, of each candidate under its name; nan without a match."""
    table = np.full((5, 3), np.nan)
    for found in rate(matches(5, rows)):
        table[found.members] = np.stack(found.intervals(0.95), axis=1)
    return np.nan_to_num(table[list(names)], nan=99).ravel().tolist()


def test_sets_that_never_met_are_rated_apart_the_largest_first():
    small = drawn(np.random.default_rng(2), 3, 60)
    rows = [(a + 5, b + 5, won) for a, b, won in drawn(np.random.default_rng(1), 4, 60)]
    first, second = rate(matches(10, [*small, *rows]), added=0.0)
    assert (first.members.tolist(), second.members.tolist()) == ([5, 6, 7, 8], [0, 1, 2])
    assert second.values == pytest.approx(fitted(3, small).values, abs=1e-8)


def test_a_chain_of_many_candidates_is_fitted_as_well():
    outcomes = 3 * (1.0, 1.0, 0.0)
    rows = [(place, place + 1, won) for place in range(199) for won in outcomes]
    assert -np.diff(fitted(200, rows).values) == pytest.approx(np.log(2), abs=1e-6)


def test_the_covariance_is_that_of_leaving_out_each_question_where_these_are_many():
    played = everybody(np.random.default_rng(5), 300, 0.5)
    (found,) = rate(played)
    without = [next(rate(played.where(played.topic != topic))).values for topic in range(300)]
    moves = np.array(without) - np.mean(without, axis=0)
    expected = moves.T @ moves * 299 / 300
    assert found.covariance == pytest.approx(expected, rel=0.05, abs=1e-4)


def test_nineteen_wins_of_twenty_leave_more_room_above_than_below():
    (found,) = rate(matches(2, [(0, 1, 1.0)] * 19 + [(0, 1, 0.0)]))
    (value, _), (low, _), (high, _) = found.intervals(0.95)
    # By hand: the sandwich of one parameter, and Wilson's interval with Student's quantile.
    p = 19.25 / 20.5
    squares = (19 * (1 - p) ** 2 + p**2) * 20 / 19 + ((1 - p) ** 2 + p**2) / 4
    error = squares**0.5 / (20.5 * p * (1 - p))
    trials, square = 1 / (p * (1 - p) * error**2), 2.093024**2
    root = (square * (p * (1 - p) * trials + square / 4)) ** 0.5
    shares = [(p * trials + square / 2 + side * root) / (trials + square) for side in (-1, 1)]
    ends = [np.log(share / (1 - share)) / 2 for share in shares]
    assert (value, low, high) == pytest.approx((np.log(p / (1 - p)) / 2, *ends), abs=1e-5)
    assert [each.tolist() for each in found.ranks(0.95)] == [[1, 2], [1, 2], [1, 2]]


def test_a_cycle_in_which_all_topics_agree_is_not_certain():
    rows = [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)] * 20
    (found,) = rate(matches(3, rows, topics=[place // 3 for place in range(60)]))
    values, low, high = found.intervals(0.95)
    assert values == pytest.approx([0, 0, 0], abs=1e-9)
    assert (low < -0.04).all() and (high > 0.04).all()
    assert [each.tolist() for each in found.ranks(0.95)] == [[1] * 3, [1] * 3, [3] * 3]


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_ranks_and_intervals_of_differences_never_contradict_each_other(seed):
    """Who is ranked above another has, put at 0, the other's whole interval below it."""
    (found,) = rate(everybody(np.random.default_rng(seed), 12, 0.3))
    _, best, worst = found.ranks(0.95)
    for one in range(4):
        _, low, high = found.intervals(0.95, anchor=one)
        certainly_below = int((high < 0).sum())
        assert len(found.members) - worst[one] <= certainly_below
        assert best[one] - 1 <= int((low > 0).sum())


def test_one_question_has_ratings_without_ends_and_any_rank():
    (found,) = rate(matches(3, [(0, 1, 1.0), (1, 2, 1.0)], topics=[0, 0]))
    values, low, high = found.intervals(0.95)
    assert np.isfinite(values).all() and np.isnan(low).all() and np.isnan(high).all()
    assert [each.tolist() for each in found.ranks(0.95)] == [[1, 2, 3], [1] * 3, [3] * 3]


# How often intervals hold the truth: laws with lopsided boards among them.

LEANINGS = (-0.2, 0.0, 0.2)
TASTES = ((0.5, -0.5, 0.0, 0.0), (0.0, 0.5, -0.5, 0.0), (-0.5, 0.0, 0.5, 0.0))
Draw = Callable[[np.random.Generator, int], Matches]


def two(chance: float) -> tuple[Draw, np.ndarray]:
    """Two candidates, a topic each, of which the first wins so often."""
    half = np.log(chance / (1 - chance)) / 2

    def draw(rng: np.random.Generator, topics: int) -> Matches:
        return matches(2, [(0, 1, float(won)) for won in rng.random(topics) < chance])

    return draw, np.array([half, -half])


def round_robin(strengths: list[float], tie: float) -> tuple[Draw, np.ndarray]:
    """Everybody meets everybody on every topic."""
    truth = np.array(strengths) - np.mean(strengths)
    first, second = np.triu_indices(len(truth), 1)

    def draw(rng: np.random.Generator, topics: int) -> Matches:
        return _voted(rng, np.tile(first, topics), np.tile(second, topics), len(first), truth, tie)

    return draw, truth


def crowded(strengths: list[float], tie: float) -> tuple[Draw, np.ndarray]:
    """Three votes on each topic, most of them on three of the candidates."""
    truth = np.array(strengths) - np.mean(strengths)
    often = np.where(np.isin(np.arange(len(truth)), [0, 4, 7]), 8.0, 1.0)

    def draw(rng: np.random.Generator, topics: int) -> Matches:
        met = [
            rng.choice(len(truth), 2, replace=False, p=often / often.sum())
            for _ in range(3 * topics)
        ]
        return _voted(rng, *np.array(met).T, 3, truth, tie)

    return draw, truth


def _voted(
    rng: np.random.Generator, first: Any, second: Any, each: int, truth: np.ndarray, tie: float
) -> Matches:
    shares = np.cumsum(chances(first, second, truth, tie), axis=0)
    outcome = (rng.random(len(first)) > shares[:2]).sum(axis=0)
    return Matches(
        size=len(truth),
        first=first,
        second=second,
        won=np.array([1.0, 0.0, 0.5])[outcome],
        tie=outcome == 2,
        topic=np.arange(len(first)) // each,
    )


def panel(tie: float, leanings: Any = (0.0,), tastes: Any = (EVEN_TASTE,)) -> tuple[Draw, Any]:
    """Judges that lean to what is shown first, or have tastes of their own."""
    counts, rows = 2000, list[tuple[int, int, float | str]]()
    for number, leaning in enumerate(leanings):
        strengths = STRENGTHS + np.array(tastes[number % len(tastes)])
        for a, b in MEETINGS.tolist():
            for outcome, share in zip(
                (1.0, 0.0, "="), chances(a, b, strengths, tie, leaning), strict=True
            ):
                rows += [(a, b, outcome)] * round(counts * float(share))
    return (lambda rng, topics: everybody(rng, topics, tie, leanings, tastes)), fitted(
        4, rows
    ).values


BOARDS = {
    "two, 0.85": two(0.85),
    "two, 0.93": two(0.93),
    "two, 0.97": two(0.97),
    "four, some ties": round_robin([1.2, 0.3, -0.3, -1.2], 0.5),
    "four, 95 % ties": round_robin([1.2, 0.3, -0.3, -1.2], 45.0),
    "one far below": round_robin([1.0, 1.0, 1.0, -2.0], 0.0),
    "ten": round_robin(np.linspace(-2, 2, 10).tolist(), 0.3),
    "most votes on three of ten": crowded(np.linspace(-1.5, 1.5, 10).tolist(), 0.3),
    "judges with leanings": panel(0.5, LEANINGS),
    "judges with tastes": panel(0.5, LEANINGS, TASTES),
}
LEAST = {20: 0.91, 60: 0.93, 300: 0.93}


@pytest.mark.parametrize("topics", LEAST if LONG else [20])
@pytest.mark.parametrize("name", BOARDS)
def test_rating_intervals_hold_the_truth(name, topics):
    boards, (draw, truth) = 1000 if LONG else 60, BOARDS[name]
    hits, seen = np.zeros(len(truth)), np.zeros(len(truth))
    for seed in range(boards):
        found = next(rate(draw(np.random.default_rng(seed), topics)))
        # Not everybody has met the others in a sample of few votes.
        about = truth[found.members] - truth[found.members].mean()
        _, low, high = found.intervals(0.95)
        hits[found.members] += (low <= about) & (about <= high)
        seen[found.members] += 1
    print(f"{name}, {topics} topics: {(100 * hits / seen).round(1).tolist()}")
    least = LEAST[topics]
    assert (hits / seen >= least - 3 * np.sqrt(least * (1 - least) / seen)).all()


def test_large_boards_on_which_few_meet_often_are_not_drawn_together() -> None:
    """Sixty candidates, about two votes for any two: their ratings keep the true distances."""
    rng, truth = np.random.default_rng(29), np.linspace(-2, 2, 60)
    held, slopes = [], []
    for _ in range(8):
        first, second = rng.integers(0, 60, (2, 4000))
        rows = first != second
        first, second = first[rows], second[rows]
        chance = 1 / (1 + np.exp(truth[second] - truth[first]))
        won = (rng.random(first.size) < chance).astype(float)
        votes = list(zip(first.tolist(), second.tolist(), won.tolist(), strict=True))
        (found,) = rate(matches(60, votes, topics=[place // 10 for place in range(len(votes))]))
        values, low, high = found.intervals(0.95)
        held.append((low <= truth) & (truth <= high))
        slopes.append(np.polyfit(truth, values, 1)[0])
    assert np.mean(held) > 0.91
    assert 0.95 < np.mean(slopes) < 1.1
