"""Which candidates of a topic are kept when all its pairs are judged.

Candidates are numbers from 0. Both sets are given in ascending order, and both take the square of
the number of candidates in steps on whole rows of bits, so that hundreds of them are no matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def schwartz(size: int, beats: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The union of all minimal non-empty sets that no outsider beats; `beats` is (winner, loser).

    A candidate is in it if and only if it reaches, by a chain of beats, everyone who reaches it.
    """
    reached = _reached(size, beats)
    reaching = [
        sum(1 << rival for rival in range(size) if reached[rival] >> candidate & 1)
        for candidate in range(size)
    ]
    return tuple(
        candidate for candidate in range(size) if not reaching[candidate] & ~reached[candidate]
    )


def _reached(size: int, beats: Iterable[tuple[int, int]]) -> list[int]:
    """For each candidate, as bits, whom it reaches by a chain of beats (Warshall)."""
    reached = [0] * size
    for winner, loser in beats:
        _inside(size, winner, loser)
        reached[winner] |= 1 << loser
    for middle in range(size):
        for candidate in range(size):
            if reached[candidate] >> middle & 1:
                reached[candidate] |= reached[middle]
    return reached


def pareto(size: int, marks: Mapping[tuple[int, int], Sequence[str]]) -> tuple[int, ...]:
    """The candidates that no other equals or betters on every settled criterion, bettering one.

    `marks[i, j]` with i < j are the settled marks of that pair: `A+` if i is better, `B+` if j is,
    or `tie`. A pair that is absent, or without marks, dominates nothing.
    """
    dominated: set[int] = set()
    for (first, second), pair_marks in marks.items():
        _inside(size, first, second)
        kinds = set(pair_marks)
        if not first < second or not kinds <= {"A+", "B+", "tie"}:
            raise ValueError(f"pair ({first}, {second}) with marks {sorted(kinds)}: expected i < j")
        if "A+" in kinds and "B+" not in kinds:
            dominated.add(second)
        elif "B+" in kinds and "A+" not in kinds:
            dominated.add(first)
    return tuple(candidate for candidate in range(size) if candidate not in dominated)


def _inside(size: int, *candidates: int) -> None:
    if any(not 0 <= candidate < size for candidate in candidates):
        raise ValueError(f"candidates {candidates} of a topic that has {size}")
