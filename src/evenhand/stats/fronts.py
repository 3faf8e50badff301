"""Which candidates of a topic are kept when all its pairs are judged.

Candidates are numbers from 0. Both sets are given in ascending order, and both take steps by the
pairs that were judged, on whole rows of bits, so that hundreds of candidates are no matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain


def schwartz(size: int, beats: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The union of all minimal non-empty sets that no outsider beats; `beats` is (winner, loser).

    A candidate is in it if and only if it reaches, by a chain of beats, everyone who reaches it.
    """
    beats = list(beats)
    reached, outside = _reached(size, beats), 0
    for winner, loser in beats:
        if not reached[loser] >> winner & 1:
            outside |= 1 << loser | reached[loser]
    return tuple(candidate for candidate in range(size) if not outside >> candidate & 1)


def _reached(size: int, beats: Sequence[tuple[int, int]]) -> list[int]:
    """For each candidate, as bits, whom it reaches by a chain of beats."""
    _require_inside(size, chain.from_iterable(beats))
    reached = [0] * size
    for winner, loser in beats:
        reached[winner] |= 1 << loser
    is_growing = True
    while is_growing:
        is_growing = False
        for winner, loser in beats:
            further = reached[winner] | reached[loser]
            if further != reached[winner]:
                reached[winner], is_growing = further, True
    return reached


def pareto(size: int, marks: Mapping[tuple[int, int], Sequence[str]]) -> tuple[int, ...]:
    """The candidates that no other equals or betters on every settled criterion, bettering one.

    `marks[i, j]` with i < j are the settled marks of that pair: `A+` if i is better, `B+` if j is,
    or `tie`. A pair that is absent, or without marks, dominates nothing.
    """
    _require_inside(size, chain.from_iterable(marks))
    dominated: set[int] = set()
    for (first, second), pair_marks in marks.items():
        kinds = set(pair_marks)
        if not first < second or not kinds <= {"A+", "B+", "tie"}:
            raise ValueError(f"pair ({first}, {second}) with marks {sorted(kinds)}: expected i < j")
        if "A+" in kinds and "B+" not in kinds:
            dominated.add(second)
        elif "B+" in kinds and "A+" not in kinds:
            dominated.add(first)
    return tuple(candidate for candidate in range(size) if candidate not in dominated)


def _require_inside(size: int, candidates: Iterable[int]) -> None:
    outside = set(candidates).difference(range(size))
    if outside:
        raise ValueError(f"candidates {sorted(outside)} of a topic that has {size}")
