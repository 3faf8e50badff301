"""An interval of a mean that holds whatever the values are, as long as they lie on their scale.

An interval that goes by the spread that was seen misses what is rare: where one answer in twenty
breaks down, a third of all samples of twenty have no breakdown, and nothing in them hints at one.
Gaffke's test (2005) reckons with it: it adds one value at the end of the scale and asks how likely
the mean is at most the threshold when all of them have weights drawn at random (those of the
Bayesian bootstrap). For two values it is the exact binomial test; for any other law no case is
known, by proof or by search, in which it errs more often than it says. Its interval is that of all
thresholds it does not reject. Values that are all alike show nothing of a share s at the end of the
scale with a chance of (1 - s)^n, and just that is their interval.

Clusters are drawn, not values: each counts with its sum and its size, and what is added is a
cluster as large as the largest, all of it at the end of the scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from evenhand.stats.comparison.means import LARGEST
from evenhand.stats.comparison.power import MOST, POWER
from evenhand.stats.tables import Floats, Ints

_STEPS = 60
_NOTHING = 1e-12
"""Which part of the largest gap is none: what rounding makes of 0."""
_NEAR = 1e-3
"""How near to its mean a sum has the chance that its skewness alone gives, in standard errors."""


def chance_at_most(gaps: Floats, unseen: Floats | float, times: float = 1.0) -> Floats:
    """Gaffke's p for "the mean is at most the threshold", of each row: `gaps` are how far its
    values lie above the threshold, `unseen` how far the end of the scale lies below it. With
    `times`, as if every value had been there so often.

    The chance that a sum of the gaps and of -unseen, with exponential weights, is not positive, by
    the saddlepoint approximation of Lugannani and Rice (within 3 % from five values on).
    """
    rows = np.atleast_2d(gaps)
    least = np.broadcast_to(-np.asarray(unseen, np.float64), len(rows))
    rows = np.concatenate([rows, least[:, None]], axis=1)
    size = np.abs(rows).max(axis=1, keepdims=True)
    rows[:, :-1][np.abs(rows[:, :-1]) <= _NOTHING * size] = 0.0
    hopeless = np.asarray((rows <= 0).all(axis=1))
    rows = np.where(hopeless[:, None], -1.0, rows)
    rows[hopeless, 0] = 1.0
    point = _saddle(rows, times)
    room = 1 - point[:, None] * rows
    log_moment = -_total(np.log(room), times)
    parts = rows / room
    spread = np.sqrt(_total(parts**2, times))
    middle = 0.5 + _total(parts**3, times) / (3 * np.sqrt(2 * np.pi) * spread**3)
    root = np.sign(point) * np.sqrt(np.maximum(0, -2 * log_moment))
    far = np.abs(root) > _NEAR
    root, lean = np.where(far, root, 1), np.where(far, point * spread, 1)
    density = np.exp(-(root**2) / 2) / np.sqrt(2 * np.pi)
    p = np.where(far, ndtr(root) + density * (1 / root - 1 / lean), middle)
    return np.asarray(np.where(hopeless, 1.0, np.clip(p, 0, 1)))


def _total(parts: Floats, times: float) -> Floats:
    """The sum of each row, in which all but the last count so often."""
    return np.asarray(times * parts[:, :-1].sum(axis=1) + parts[:, -1])


def _saddle(rows: Floats, times: float) -> Floats:
    """Where the derivative of the cumulants' generating function is 0, between its two poles: by
    Newton's steps, halved where they lead out."""
    low, high = 1 / rows.min(axis=1), 1 / rows.max(axis=1)
    point = np.zeros(len(rows))
    for _ in range(_STEPS):
        parts = rows / (1 - point[:, None] * rows)
        slope = _total(parts, times)
        low, high = np.where(slope > 0, low, point), np.where(slope > 0, point, high)
        following = point - slope / _total(parts**2, times)
        inside = (following > low) & (following < high)
        following = np.where(inside, following, (low + high) / 2)
        is_close = np.abs(following - point) <= 1e-12 * (high - low + np.abs(point))
        point = following
        if is_close.all():
            break
    return point


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
    return float(brentq(lambda at: bounded.p(at) - alpha, nearest, middle, xtol=1e-12, rtol=1e-12))


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
