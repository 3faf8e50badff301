"""Which units changed most: each pair of units by how far the variant lies from the baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenhand.stats.comparison.against import shared_votes
from evenhand.stats.comparison.compare import (
    Measure,
    VariantScores,
    measure_of,
    shared_of,
)
from evenhand.stats.comparison.comparison import OVERALL
from evenhand.stats.comparison.contrast import Shared
from evenhand.stats.tables import Votes

Sides = tuple[tuple[str, ...], tuple[str, ...]]
"""The units of a variant, and those of the baseline."""


class Change(NamedTuple):
    """One pair of units: what the variant and the baseline have, and of which units. Of a vote both
    are of the same unit."""

    variant: str
    value: float
    baseline_value: float
    units: tuple[str, ...]
    baseline_units: tuple[str, ...]

    @property
    def difference(self) -> float:
        return self.value - self.baseline_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The pairs that got worse most and those that got better most, and how many there are."""

    dimension: str
    worst: tuple[Change, ...]
    best: tuple[Change, ...]
    worse: int
    better: int
    n: int


def changed_measure(variants: VariantScores) -> Measure:
    """What changes are told on: overall, or the first dimension where there is one alone or no
    overall score."""
    if len(variants.scores.dimensions) > 1:
        overall = measure_of(variants, -1)
        if np.isfinite(overall.values).any():
            return overall
    return measure_of(variants, 0)


def score_changes(variants: VariantScores, number: int) -> Changes:
    """The pairs of units with the lowest and the highest difference, `number` of each at most."""
    measure, places = changed_measure(variants), variants.places
    others = [place for place in range(len(places.variants)) if place != variants.base]
    every = [shared_of(measure, places, place, variants.base) for place in others]

    def units(place: int, key: int) -> tuple[str, ...]:
        members = np.flatnonzero((places.key == key) & (places.variant == place))
        return tuple(variants.scores.units[unit] for unit in members.tolist())

    def units_of(owner: int, key: int) -> Sides:
        return units(others[owner], key), units(variants.base, key)

    return _most(every, units_of, measure.name, number)


def members_of(variants: VariantScores, place: int) -> dict[int, list[int]]:
    """The units of a variant, by their key."""
    members: dict[int, list[int]] = {}
    units = np.flatnonzero(variants.places.variant == place)
    keys = variants.places.key[units]
    for unit, key in zip(units.tolist(), keys.tolist(), strict=True):
        members.setdefault(key, []).append(unit)
    return members


def vote_changes(votes: Votes, baseline: str, number: int, judge: str | None = None) -> Changes:
    """The same for pairs of one run: those that a candidate lost and won most clearly."""
    others = [candidate for candidate in votes.candidates if candidate != baseline]
    every = [shared_votes(votes, OVERALL, candidate, baseline, judge) for candidate in others]

    def pair_of(owner: int, key: int) -> Sides:
        return (votes.pairs[key],), (votes.pairs[key],)

    return _most(every, pair_of, OVERALL, number)


def _most(
    every: Sequence[Shared], units_of: Callable[[int, int], Sides], dimension: str, number: int
) -> Changes:
    """The changes with the lowest and the highest difference, of equal ones those that come first.
    `units_of` are those of a place of `every` and a key."""
    differences = np.concatenate([np.zeros(0), *(shared.ours - shared.theirs for shared in every)])
    starts = np.cumsum([0, *(shared.key.size for shared in every)])

    def change(row: int) -> Change:
        owner = int(np.searchsorted(starts, row, side="right")) - 1
        shared, at = every[owner], row - int(starts[owner])
        values = float(shared.ours[at]), float(shared.theirs[at])
        return Change(shared.variant, *values, *units_of(owner, int(shared.key[at])))

    worse, better = int((differences < 0).sum()), int((differences > 0).sum())
    worst = np.argsort(differences, kind="stable")[: min(worse, number)]
    best = np.argsort(-differences, kind="stable")[: min(better, number)]
    return Changes(
        dimension=dimension,
        worst=tuple(map(change, worst.tolist())),
        best=tuple(map(change, best.tolist())),
        worse=worse,
        better=better,
        n=differences.size,
    )
