"""An interval of a mean that holds whatever the values are, as long as they lie on their scale.

An interval that goes by the spread that was seen misses what is rare: where one answer in twenty
breaks down, a third of all samples of twenty have no breakdown, and nothing in them hints at one.

The test goes by whether one was seen. A **breakdown** is a value in the lower half between the end
of the scale and the threshold. Where there is one, the test is Gaffke's. Where there is none, a
share s of breakdowns would have shown none in n values with a chance of (1 - s)^n only; the values
are then a sample of a law without them, whose mean lies above the threshold by no more than such a
share, all of it at the end of the scale, can make up for. How likely that law gives so much is
Gaffke's test again, on the half of the scale that is left. p is the greatest product of the two
chances, over all shares. Gaffke's test alone takes what is unseen for one value at the end and for
spread at once, which passes far less often where there is no breakdown.

Each of the two errs no more often than alpha if Gaffke's does not: the first since a product of
chances is that of both. Together they could err twice as often by that argument; under no law that
a search finds do they err more often than alpha (tests/unit/stats/test_bounded.py).

Clusters are drawn, not values: each counts with its sum and its size, and what is added is a
cluster as large as the largest, all of it at the end of the scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np
from scipy.special import ndtri

from evenhand.stats.decision.gaffke import gaffke
from evenhand.stats.estimate import LARGEST
from evenhand.stats.power import POWER
from evenhand.stats.tables import Bools, Floats, Ints

MOST = 1_000_000_000
BREAKDOWN = 0.5
"""Beyond which part of the way from the threshold to the end of the scale a value breaks down.
From 0.35 to 0.65 it makes little difference."""
LIKELY = 0.9
"""A chance above this counts as 1: Gaffke's test keeps its word on small chances, not on those near
1. It costs nothing but where all values are nearly alike: a twentieth of p."""
MANY = 2000
"""In so many values what is unseen is so rare that Gaffke's test alone is as sharp."""
_CELLS, _ZOOMS = 8, 4
"""How the greatest product is looked for: in the cell of a grid with the greatest bound, and so on
in that cell."""
_PRECISION = 1e-7
"""Of the ends of an interval, as a part of the scale."""
_ROUNDING = 1e-12
_TINY = 1e-12
"""What is added to p, so that it has a logarithm; more would make the search slower, not wrong."""


def chance_at_most(gaps: Floats, unseen: Floats | float, times: float = 1.0) -> Floats:
    """The p of "the mean is at most the threshold", of each row: `gaps` are how far its values lie
    above the threshold, `unseen` how far the end of the scale lies below it. With `times`, as if
    every value had been there so often."""
    rows = np.atleast_2d(gaps)
    ends = np.broadcast_to(np.asarray(unseen, np.float64), len(rows))
    whole = rows.min(axis=1) >= -(BREAKDOWN + _ROUNDING) * ends
    whole &= (rows.shape[1] * times <= MANY) & (ends > 0)
    p = np.empty(len(rows))
    for test, part in ((gaffke, ~whole), (_without_breakdown, whole)):
        if part.any():
            p[part] = test(rows[part], ends[part], times)
    return p


def rejects(gaps: Floats, unseen: float, alpha: float) -> Bools:
    """Of each row, whether its p is at most alpha; quicker than the p of many rows."""
    rows = np.atleast_2d(gaps)
    # No test whose scale ends nearer has a greater p.
    rejected = gaffke(rows, BREAKDOWN * unseen) <= alpha
    if rejected.any():
        rejected[rejected] = chance_at_most(rows[rejected], unseen) <= alpha
    return rejected


def _without_breakdown(rows: Floats, ends: Floats, times: float) -> Floats:
    """The p of rows in which nothing breaks down: the greatest chance, over all shares of
    breakdowns, to see none of them and so much of the rest.

    A share makes up for a mean that is higher by so much: `logs` are the logarithms of how likely
    none of it is seen, with their sign changed. The chance of the rest grows with the share, so
    that its value at the end of a cell bounds it within.
    """
    p = gaffke(rows, BREAKDOWN * ends, times)
    open_rows = np.flatnonzero((p < 1) & (rows.max(axis=1) > 0))
    if not open_rows.size:
        return p
    rows, ends, count = rows[open_rows], ends[open_rows], rows.shape[1] * times
    # Beyond these no share can do: all values lie below, or none of it is seen too rarely.
    most = np.minimum(count * np.log1p(rows.max(axis=1) / ends), -np.log(p[open_rows] + 1e-300))
    low, greatest = np.zeros(len(rows)), p[open_rows]
    places = np.arange(len(rows))
    for _ in range(_ZOOMS):
        logs = low[:, None] + (most - low)[:, None] * np.linspace(0, 1, _CELLS + 1)
        higher = ends[:, None] * np.expm1(logs / count)
        rests = (rows[:, None, :] - higher[:, :, None]).reshape(-1, rows.shape[1])
        chances = gaffke(rests, (BREAKDOWN * ends[:, None] + higher).ravel(), times)
        chances = np.where(chances > LIKELY, 1.0, chances).reshape(logs.shape)
        bounds = np.exp(-logs[:, :-1]) * chances[:, 1:]
        cell = bounds.argmax(axis=1)
        low, most, bound = logs[places, cell], logs[places, cell + 1], bounds[places, cell]
    p[open_rows] = np.maximum(greatest, bound)
    return p


@dataclass(frozen=True, slots=True)
class Sample:
    """Sums and sizes of clusters of values, and the ends of the scale that they lie on."""

    sums: Floats
    sizes: Floats
    ends: tuple[float, float]

    @property
    def mean(self) -> float:
        return float(self.sums.sum() / self.sizes.sum())

    @property
    def turned(self) -> Sample:
        """The same with every value's sign changed."""
        return Sample(-self.sums, self.sizes, (-self.ends[1], -self.ends[0]))

    @property
    def as_rate(self) -> Sample:
        """Differences of two shares that make up 1, as the first of the two."""
        low, high = self.ends
        return Sample((self.sizes + self.sums) / 2, self.sizes, ((1 + low) / 2, (1 + high) / 2))

    def gaps(self, threshold: float) -> tuple[Floats, float]:
        """How far each cluster lies above the threshold, and how far what is unseen below."""
        return self.sums - threshold * self.sizes, (threshold - self.ends[0]) * self.sizes.max()

    def p(self, threshold: float) -> float:
        """How likely it is to see so much, or more, if the mean is at most the threshold."""
        return float(chance_at_most(*self.gaps(threshold))[0])


def sample(values: Floats, cluster: Ints, ends: tuple[float, float]) -> Sample | None:
    """Values that hang together within clusters; a value beyond the scale widens it. None without
    two clusters, without a scale, and where values are too large to compute with."""
    # Written so that what is not a number is too large as well.
    if values.size == 0 or not max(float(np.abs(values).max()), *map(abs, ends)) <= LARGEST:
        return None
    place = np.unique(cluster, return_inverse=True)[1]
    sums, sizes = (np.bincount(place, each).astype(np.float64) for each in (values, None))
    low, high = min(ends[0], float(values.min())), max(ends[1], float(values.max()))
    return None if sums.size < 2 or low == high else Sample(sums, sizes, (low, high))


def interval(bounded: Sample, level: float) -> tuple[float, float]:
    """All means that the test does not reject, at half of 1 - level on either side."""
    return _lower(bounded, level), -_lower(bounded.turned, level)


def _lower(bounded: Sample, level: float) -> float:
    """The least mean that is not rejected; the higher a threshold, the harder it is to reject."""
    alpha, (low, _), middle = (1 - level) / 2, bounded.ends, bounded.mean
    nearest = low + 1e-9 * (middle - low)
    if middle <= nearest or bounded.p(nearest) > alpha:
        return low
    tolerance = _PRECISION * (bounded.ends[1] - low)

    def beyond(threshold: float) -> float:
        return log(bounded.p(threshold) + _TINY) - log(alpha)

    from scipy.optimize import brentq  # slow to import, and most commands solve nothing

    return float(brentq(beyond, nearest, middle, xtol=tolerance))


def units_needed(bounded: Sample, threshold: float, level: float) -> int | None:
    """How many units more would tell the mean from the threshold with a power of 80 %, if they go
    on as those that are there; None if the mean is at the threshold, or where no number would do.
    """
    above = bounded if bounded.mean > threshold else bounded.turned
    gaps, unseen = above.gaps(threshold if above is bounded else -threshold)
    if unseen <= 0 or gaps.sum() <= 0:
        return None
    alpha, spread = (1 - level) / 2, float(gaps.std())

    def decides(clusters: float) -> bool:
        # One sample in five has a mean that is lower by so much, or more.
        shift = ndtri(POWER) * spread / sqrt(clusters)
        return float(chance_at_most(gaps - shift, unseen, clusters / gaps.size)[0]) <= alpha

    many = 2.0
    while many <= MOST and not decides(many):
        many *= 2
    if many > MOST:
        return None
    least = many / 2
    while many - least > 0.5:
        middle = (least + many) / 2
        least, many = (least, middle) if decides(middle) else (middle, many)
    more = many * float(bounded.sizes.mean()) - float(bounded.sizes.sum())
    return max(1, ceil(more))
