"""Means with intervals that respect clusters and the ends of a scale.

The interval is Wilson's, for as many independent yes-or-no trials as would vary as much as the
clusters do, with a t quantile. A plain t interval misses too often near the ends of a scale, where
a few low scores make the difference and a small sample may have none; so each bound is computed
with a tenth of a cluster more that lies at that end of the scale. Where nothing varies, the bound
is what could have gone unseen: a share of units at the end of the scale that so many clusters would
show at least once, at the level of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import stdtrit

from evenhand.stats.tables import Floats, Ints

UNSEEN = 0.1
"""How much of a cluster is added at the end of the scale. Found by simulation: at 20 clusters it
brings skewed scores to their level, at 100 it widens an ordinary interval by a fiftieth."""
_NOTHING = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its interval; None where there is nothing to compute it from."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    error: float | None
    """The standard error."""


def mean(values: Floats, cluster: Ints, ends: tuple[float, float], level: float = 0.95) -> Estimate:
    """The mean of values that hang together within clusters, on a scale between two ends.

    Without two clusters, or on a scale without extent, there is no interval.
    """
    if values.size == 0:
        return Estimate(None, None, None, 0, 0, None)
    place = np.unique(cluster, return_inverse=True)[1]
    sums, sizes = (np.bincount(place, each).astype(np.float64) for each in (values, None))
    middle, count = float(values.mean()), sums.size
    low, high = min(ends[0], float(values.min())), max(ends[1], float(values.max()))
    if count < 2 or low == high:
        return Estimate(middle, None, None, values.size, count, None)
    error = sqrt(_variance(sums, sizes, middle))
    if error <= _NOTHING * (high - low):
        unseen = 1 - (1 - level) ** (1 / count)
        reach = [middle + unseen * (end - middle) for end in (low, high)]
        return Estimate(middle, reach[0], reach[1], values.size, count, 0.0)
    quantile = float(stdtrit(count - 1, (1 + level) / 2))
    under, over = (_bound(sums, sizes, (low, high), end, quantile) for end in (low, high))
    bounds = max(low, min(under, middle)), min(high, max(over, middle))
    return Estimate(middle, *bounds, values.size, count, error)


def _variance(
    sums: Floats, sizes: Floats, middle: float, extra: float = 0, end: float = 0
) -> float:
    """The variance of a mean by leaving out each cluster in turn; `extra` clusters of the mean size
    lie at an `end` of the scale."""
    count, whole = sums.size + extra, float(sizes.sum()) * (1 + extra / sums.size)
    rests = (sums - middle * sizes) / (1 - sizes / whole)
    other = (end - middle) * whole / count / (1 - 1 / count)
    return (float(rests @ rests) + extra * other**2) * (count - 1) / count / whole**2


def _bound(
    sums: Floats, sizes: Floats, ends: tuple[float, float], end: float, quantile: float
) -> float:
    """The bound of the interval that lies towards an end of the scale."""
    low, span = ends[0], ends[1] - ends[0]
    weight = UNSEEN * float(sizes.mean())
    middle = float((sums.sum() + weight * end) / (sizes.sum() + weight))
    variance = _variance(sums, sizes, middle, UNSEEN, end) / span**2
    rate = (middle - low) / span
    # Wilson's interval for rate * (1 - rate) / variance trials.
    per_trial = quantile**2 * variance / (rate * (1 - rate))
    reach = quantile * sqrt(variance * (1 + per_trial / (4 * rate * (1 - rate))))
    shifted = rate + per_trial / 2 + (reach if end > low else -reach)
    return low + span * shifted / (1 + per_trial)
