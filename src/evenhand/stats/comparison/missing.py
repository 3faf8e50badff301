"""What is missing, and how far it could move a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaln

from evenhand.stats.comparison.variants import Layout
from evenhand.stats.tables import Floats, Ints, Scores

TELLING = 0.05
"""A p value, and a difference of shares, from which missingness is said to differ."""


@dataclass(frozen=True, slots=True)
class Count:
    """Of one variant: its units, how many lack a score, and its judgments.

    planned = scored + failed + pending.
    """

    units: int
    incomplete: int
    planned: int
    scored: int
    failed: int
    pending: int
    missing_scores: Mapping[str, int] = field(default_factory=dict[str, int])
    """By dimension, how many of the scored judgments say nothing on it."""
    unpaired: int = 0
    """Units that have no partner in a comparison with the baseline."""

    def json(self) -> dict[str, Any]:
        return asdict(self)


def counts(scores: Scores, places: Layout, base: int) -> dict[str, Count]:
    """Return what every variant lacks, beside the baseline. Where it is not known how many
    judgments a unit is to have, it is as many as there are."""
    units = len(scores.units)
    lacking = np.isnan(scores.values)
    if scores.asked is not None:
        lacking &= scores.asked[scores.unit]
    judged, scored, whole = (
        np.bincount(scores.unit[rows], minlength=units)
        for rows in (slice(None), ~scores.failed, ~lacking.any(axis=1) & ~scores.failed)
    )
    due = np.maximum(judged, np.maximum(scores.planned, 1))
    variant = places.variant[scores.unit]
    present = places.present
    in_all = np.asarray(present.all(axis=1))
    by_variant: dict[str, Count] = {}
    for place, name in enumerate(places.variants):
        members = places.variant == place
        all_due, there, good = (int(each[members].sum()) for each in (due, judged, scored))
        # A unit of the baseline takes part in every comparison.
        partners = in_all if place == base else present[:, base]
        silent = lacking[(variant == place) & ~scores.failed].sum(axis=0)
        by_variant[name] = Count(
            units=int(members.sum()),
            incomplete=int((whole[members] < due[members]).sum()),
            planned=all_due,
            scored=good,
            failed=there - good,
            pending=all_due - there,
            missing_scores={d: int(n) for d, n in zip(scores.dimensions, silent, strict=True) if n},
            unpaired=int((~partners[places.key[members]]).sum()),
        )
    return by_variant


def differs(first: Count, second: Count) -> bool:
    """Whether two variants lack judgments of unlike shares of their units."""
    if not first.units or not second.units:
        return False
    gap = abs(first.incomplete / first.units - second.incomplete / second.units)
    return (
        gap > TELLING
        or fisher(first.incomplete, first.units, second.incomplete, second.units) < TELLING
    )


def fisher(hits: int, of: int, other_hits: int, of_other: int) -> float:
    """Fisher's exact two-sided p value that two shares are the same."""
    all_hits = hits + other_hits
    possible = np.arange(max(0, all_hits - of_other), min(of, all_hits) + 1)
    chances = _log_ways(of, possible) + _log_ways(of_other, all_hits - possible)
    chances = np.exp(chances - _log_ways(of + of_other, np.array([all_hits])))
    observed = chances[hits - possible[0]]
    # Tables that are equally likely count, whatever the rounding.
    return float(min(1.0, chances[chances <= observed * (1 + 1e-7)].sum()))


def _log_ways(of: int, number: Ints) -> Floats:
    """The logarithm of in how many ways so many can be taken."""
    return np.asarray(gammaln(of + 1) - gammaln(number + 1) - gammaln(of - number + 1))


def filled(sums: Floats, scored: Ints, planned: Ints, end: float) -> Floats:
    """The mean of each unit if every judgment that it lacks had given this end of the scale."""
    expected = np.maximum(np.maximum(planned, scored), 1)
    return np.asarray((sums + (expected - scored) * end) / expected)
