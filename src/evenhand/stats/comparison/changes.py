"""Which units changed most: each pair of units by how far the variant lies from the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenhand.stats.comparison.against import shared_votes
from evenhand.stats.comparison.compare import Measure, VariantScores, measures_of, shared_of
from evenhand.stats.comparison.comparison import OVERALL
from evenhand.stats.comparison.contrast import Shared
from evenhand.stats.tables import Votes


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
    measures = measures_of(variants)
    has_overall = len(measures) > 2 and np.isfinite(measures[-1].values).any()
    return measures[-1] if has_overall else measures[0]


def score_changes(variants: VariantScores, number: int) -> Changes:
    """The pairs of units with the lowest and the highest difference, `number` of each at most."""
    measure = changed_measure(variants)
    places, units = variants.places, variants.scores.units
    every: list[Change] = []
    for place, name in enumerate(places.variants):
        if place == variants.base:
            continue
        shared = shared_of(measure, places, place, variants.base)
        members = members_of(variants, place), members_of(variants, variants.base)
        every += [
            Change(name, ours, theirs, *(tuple(units[unit] for unit in of[key]) for of in members))
            for ours, theirs, key in zip(
                shared.ours.tolist(), shared.theirs.tolist(), shared.key.tolist(), strict=True
            )
        ]
    return _most(every, measure.name, number)


def members_of(variants: VariantScores, place: int) -> dict[int, list[int]]:
    """The units of a variant, by their key."""
    members: dict[int, list[int]] = {}
    for unit in np.flatnonzero(variants.places.variant == place).tolist():
        members.setdefault(int(variants.places.key[unit]), []).append(unit)
    return members


def vote_changes(votes: Votes, baseline: str, number: int, judge: str | None = None) -> Changes:
    """The same for pairs of one run: those that a candidate lost and won most clearly."""
    every: list[Change] = []
    for candidate in votes.candidates:
        if candidate != baseline:
            shared = shared_votes(votes, OVERALL, candidate, baseline, judge)
            every += _won(votes, candidate, shared)
    return _most(every, OVERALL, number)


def _won(votes: Votes, candidate: str, shared: Shared) -> list[Change]:
    rows = zip(shared.ours.tolist(), shared.theirs.tolist(), shared.key.tolist(), strict=True)
    return [
        Change(candidate, ours, theirs, (votes.pairs[key],), (votes.pairs[key],))
        for ours, theirs, key in rows
    ]


def _most(every: list[Change], dimension: str, number: int) -> Changes:
    worse = sorted((c for c in every if c.difference < 0), key=lambda c: c.difference)
    better = sorted((c for c in every if c.difference > 0), key=lambda c: -c.difference)
    return Changes(
        dimension=dimension,
        worst=tuple(worse[:number]),
        best=tuple(better[:number]),
        worse=len(worse),
        better=len(better),
        n=len(every),
    )
