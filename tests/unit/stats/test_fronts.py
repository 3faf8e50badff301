"""The two sets of candidates that a topic keeps, against their definitions taken literally."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.stats.pairwise import pareto, schwartz


def schwartz_by_definition(size: int, beats: set[tuple[int, int]]) -> tuple[int, ...]:
    """Every subset is looked at: unbeaten from outside, and no smaller one within it is."""
    subsets = [set(s) for n in range(1, size + 1) for s in combinations(range(size), n)]
    unbeaten = [s for s in subsets if not any(w not in s and lo in s for w, lo in beats)]
    minimal = [s for s in unbeaten if not any(smaller < s for smaller in unbeaten)]
    return tuple(sorted(set().union(*minimal)))


def pareto_by_definition(size, marks) -> tuple[int, ...]:
    """Every ordered pair is looked at, each mark turned to the side that is asked about."""

    def dominates(one: int, other: int) -> bool:
        seen = marks.get((min(one, other), max(one, other)), ())
        better, worse = ("A+", "B+") if one < other else ("B+", "A+")
        return all(mark != worse for mark in seen) and any(mark == better for mark in seen)

    others = range(size)
    return tuple(c for c in others if not any(dominates(o, c) for o in others if o != c))


@st.composite
def tournaments(draw: st.DrawFn, most: int = 7) -> tuple[int, set[tuple[int, int]]]:
    """Each pair is won by one side, or is no beat: a tie, uncertain, or missing."""
    size = draw(st.integers(0, most))
    beats: set[tuple[int, int]] = set()
    for one, other in combinations(range(size), 2):
        beats |= draw(st.sampled_from([{(one, other)}, {(other, one)}, set()]))
    return size, beats


@given(tournaments())
@example((3, {(0, 1), (1, 2), (2, 0)}))
@example((6, {(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)}))
@example((4, {(0, 1), (1, 0), (2, 3)}))
def test_the_front_is_that_of_the_definition(tournament):
    size, beats = tournament
    assert schwartz(size, beats) == schwartz_by_definition(size, beats)


@given(tournaments(), st.randoms(use_true_random=False))
def test_the_front_does_not_depend_on_names_or_order(tournament, rng):
    size, beats = tournament
    renamed = list(range(size))
    rng.shuffle(renamed)
    moved = [(renamed[winner], renamed[loser]) for winner, loser in beats]
    rng.shuffle(moved)
    assert schwartz(size, moved) == tuple(sorted(renamed[one] for one in schwartz(size, beats)))


@pytest.mark.parametrize(
    ("size", "beats", "front"),
    [
        (0, [], ()),
        (1, [], (0,)),
        (1, [(0, 0)], (0,)),
        (3, [], (0, 1, 2)),
        (3, [(0, 1), (0, 2), (1, 2)], (0,)),
        (3, [(0, 1), (1, 2), (2, 0)], (0, 1, 2)),
        (3, [(0, 1)], (0, 2)),
        (3, [(0, 1), (1, 2)], (0,)),
        (4, [(0, 1), (1, 2), (2, 0), (0, 3)], (0, 1, 2)),
        (4, [(3, 0), (0, 1), (1, 2), (2, 0)], (3,)),
        (4, [(0, 1), (1, 2), (2, 0)], (0, 1, 2, 3)),
        (4, [(0, 1), (2, 3)], (0, 2)),
        (5, [(0, 1), (1, 0), (1, 2), (3, 2), (3, 4)], (0, 1, 3)),
    ],
)
def test_fronts_made_by_hand(size, beats, front):
    assert schwartz(size, beats) == front


def test_two_hundred_candidates_in_one_circle_are_all_in_front():
    circle = [(one, (one + 1) % 200) for one in range(200)]
    assert schwartz(200, circle) == tuple(range(200))


def test_of_two_hundred_in_a_row_the_first_is_in_front():
    beats = [(one, other) for one in range(200) for other in range(one + 1, 200)]
    assert schwartz(200, beats) == (0,)
    assert pareto(200, dict.fromkeys(beats, ("A+", "tie"))) == (0,)


@st.composite
def markings(draw: st.DrawFn) -> tuple[int, dict[tuple[int, int], list[str]]]:
    size = draw(st.integers(0, 6))
    marks: dict[tuple[int, int], list[str]] = {}
    kinds = st.lists(st.sampled_from(["A+", "B+", "tie", "tie"]), max_size=4)
    for pair in combinations(range(size), 2):
        if draw(st.booleans()):
            marks[pair] = draw(kinds)
    return size, marks


@given(markings())
def test_the_pareto_set_is_that_of_the_definition(marking):
    size, marks = marking
    assert pareto(size, marks) == pareto_by_definition(size, marks)


@pytest.mark.parametrize(
    ("size", "marks", "kept"),
    [
        (2, {}, (0, 1)),
        (2, {(0, 1): ()}, (0, 1)),
        (2, {(0, 1): ("tie", "tie")}, (0, 1)),
        (2, {(0, 1): ("A+", "tie")}, (0,)),
        (2, {(0, 1): ("tie", "B+")}, (1,)),
        (2, {(0, 1): ("A+", "B+", "A+")}, (0, 1)),
        (3, {(0, 1): ("A+",), (1, 2): ("A+",)}, (0,)),
        (3, {(0, 1): ("A+",), (1, 2): ("A+",), (0, 2): ("B+",)}, ()),
    ],
)
def test_pareto_sets_made_by_hand(size, marks, kept):
    assert pareto(size, marks) == kept
