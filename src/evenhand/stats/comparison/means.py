"""Means with intervals that respect clusters and the ends of a scale.

The interval is Wilson's, for as many independent yes-or-no trials as would vary as much as the
clusters do, with a t quantile. A plain t interval misses too often near the ends of a scale, where
a few low scores make the difference and a small sample may have none; so each bound is computed
with a quarter of a cluster more that lies at that end of the scale. Where nothing varies, the bound
is what could have gone unseen: a share of units at the end of the scale that so many clusters would
show at least once, but for half of what the level leaves.

For paired differences the end of the scale, lowest against highest, is hardly plausible, and an
interval that reckons with it is several times too wide where they spread little. There what is
added lies as far from the mean as the farthest cluster that was seen, and is a tenth of one; but at
least four steps, and then a quarter: on a scale of few steps that is its end still.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import stdtrit

from evenhand.stats.proportion import bounds_of_one
from evenhand.stats.tables import Floats, Ints

UNSEEN = 0.25
"""How much of a cluster is added at the end of the scale. Found by simulation: with a tenth, means
near the ceiling are missed 12 times in 100 at 40 clusters, and losses of one answer in twenty 9
times at 60. At 100 it widens an ordinary interval by a twentieth."""
SEEN = 0.1
"""How much of one is added as far away as the farthest that was seen, of differences."""
STEPS = 4
"""How many steps from the mean of differences an unseen cluster lies at least. Found by simulation:
with three, breakdowns of one answer in twenty are missed too often at 20 clusters."""
LARGEST = 1e150
"""Beyond this squares overflow: nothing is computed of such values."""
_NOTHING = 1e-12
_Ends = tuple[float, float]


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


def mean(values: Floats, cluster: Ints, ends: _Ends, level: float = 0.95) -> Estimate:
    """The mean of values that hang together within clusters, on a scale between two ends.

    One cluster has the interval that one observation leaves, and no standard error. On a scale
    without extent there is no interval; of values too large to compute with no mean either.
    """
    return _estimate(values, cluster, ends, level, of_differences=False)


def mean_difference(values: Floats, cluster: Ints, ends: _Ends, level: float = 0.95) -> Estimate:
    """The mean of paired differences, as `mean` but with what is unseen nearer to what was seen."""
    return _estimate(values, cluster, ends, level, of_differences=True)


def _estimate(
    values: Floats, cluster: Ints, ends: _Ends, level: float, *, of_differences: bool
) -> Estimate:
    if values.size == 0:
        return Estimate(None, None, None, 0, 0, None)
    place = np.unique(cluster, return_inverse=True)[1]
    sums, sizes = (np.bincount(place, each).astype(np.float64) for each in (values, None))
    count = sums.size
    # Written so that what is not a number is too large as well.
    if not max(float(np.abs(values).max()), *map(abs, ends)) <= LARGEST:
        return Estimate(None, None, None, values.size, count, None)
    middle = float(values.mean())
    low, high = min(ends[0], float(values.min())), max(ends[1], float(values.max()))
    if low == high:
        return Estimate(middle, None, None, values.size, count, None)
    if count < 2:
        shares = bounds_of_one((middle - low) / (high - low), level)
        least, most = (low + (high - low) * share for share in shares)
        return Estimate(middle, least, most, values.size, count, None)
    error = sqrt(_variance(sums, sizes, middle))
    if error <= _NOTHING * (high - low):
        unseen = 1 - ((1 - level) / 2) ** (1 / count)
        reach = [middle + unseen * (end - middle) for end in (low, high)]
        return Estimate(middle, reach[0], reach[1], values.size, count, 0.0)
    quantile = float(stdtrit(count - 1, (1 + level) / 2))
    far, extra = high - low, UNSEEN
    if of_differences:
        far, extra = _reach(sums / sizes, middle, high - low)
    places = max(low, middle - far), min(high, middle + far)
    under, over = (_bound(sums, sizes, (low, high), (end, extra), quantile) for end in places)
    bounds = max(low, min(under, middle)), min(high, max(over, middle))
    return Estimate(middle, *bounds, values.size, count, error)


def _reach(means: Floats, middle: float, span: float) -> tuple[float, float]:
    """How far from the mean an unseen cluster of differences is taken to lie, and how much of one
    is."""
    steps = np.diff(np.unique(np.append(means, 0.0)))
    step = float(steps[steps > 1e-9 * span].min(initial=span))
    seen = float(np.abs(means - middle).max())
    return (seen, SEEN) if seen >= STEPS * step else (STEPS * step, UNSEEN)


def _variance(
    sums: Floats, sizes: Floats, middle: float, extra: float = 0, end: float = 0
) -> float:
    """The variance of a mean by leaving out each cluster in turn; `extra` clusters of the mean size
    lie at one place, the `end`."""
    count, whole = sums.size + extra, float(sizes.sum()) * (1 + extra / sums.size)
    rests = (sums - middle * sizes) / (1 - sizes / whole)
    unseen = (end - middle) * whole / count / (1 - 1 / count)
    return (float(rests @ rests) + extra * unseen**2) * (count - 1) / count / whole**2


def _bound(
    sums: Floats, sizes: Floats, ends: _Ends, unseen: tuple[float, float], quantile: float
) -> float:
    """The bound of the interval on the side where what is unseen lies: at a place, so much of a
    cluster."""
    low, span = ends[0], ends[1] - ends[0]
    end, extra = unseen
    weight = extra * float(sizes.mean())
    middle = float((sums.sum() + weight * end) / (sizes.sum() + weight))
    variance = _variance(sums, sizes, middle, extra, end) / span**2
    rate = (middle - low) / span
    if not 0 < rate < 1:  # the values differ by rounding alone
        return middle
    # Wilson's interval for rate * (1 - rate) / variance trials.
    per_trial = quantile**2 * variance / (rate * (1 - rate))
    reach = quantile * sqrt(variance * (1 + per_trial / (4 * rate * (1 - rate))))
    shifted = rate + per_trial / 2 + (reach if end > middle else -reach)
    return low + span * shifted / (1 + per_trial)
