"""A coefficient with its interval, from how much each observation moves it.

Every coefficient here is a smooth function of means, so its variance is that of the sum of its
influences, taken cluster by cluster: observations of one cluster may hang together in any way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import atanh, sqrt, tanh
from typing import Any

import numpy as np
from scipy.special import stdtrit

from evenhand.stats.proportion import bounds_of_one, wilson_bounds
from evenhand.stats.tables import Floats, Ints

NOTHING = "there is nothing to compare"
ONE_CLUSTER = "one unit or topic shows no spread, so there is no interval"
PERFECT = 1 - 1e-12
HEAVIEST = 0.9
"""The greatest share of a denominator that one cluster is taken to hold."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A figure with its interval from `n` observations; None where it is not defined, and why."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    why: str = ""

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        interval: dict[str, Any] = {"value": self.value, "low": self.low, "high": self.high}
        return interval | {"n": self.n} | ({"why": self.why} if self.why else {})


def undefined(why: str, n: int = 0) -> Coefficient:
    """No figure, and the words for it."""
    return Coefficient(None, None, None, n, why)


def spread(influence: Floats, cluster: Ints, load: Floats | None = None) -> tuple[float, int]:
    """The variance of the mean of influences, and the number of clusters.

    `load` is each observation's part in what the coefficient is divided by, 1 on average. A cluster
    without which that would be smaller moves the coefficient the more by its absence.
    """
    sizes = np.bincount(cluster)
    filled = sizes > 0
    count = int(filled.sum())
    if count < 2:
        return 0.0, count
    moves = np.bincount(cluster, influence)[filled] / influence.size
    if load is not None:
        loads = np.bincount(cluster, load)[filled] / influence.size
        moves = moves / (1 - np.minimum(loads, HEAVIEST))
    moves = moves - moves.mean()
    return float(moves @ moves) * count / (count - 1), count


def quantile(count: int, level: float) -> float:
    """How many standard errors an interval over so many clusters reaches."""
    return float(stdtrit(count - 1, (1 + level) / 2))


def share(hits: Floats, cluster: Ints, level: float) -> Coefficient:
    """The mean of values from 0 to 1, with Wilson's interval; of one unit or topic, with that which
    one observation leaves."""
    mean = _mean(hits, cluster, partial(wilson, level=level))
    if mean.value is None or mean.why != ONE_CLUSTER:
        return mean
    return Coefficient(mean.value, *bounds_of_one(mean.value, level), mean.n)


Bounds = Callable[[float, float, int], tuple[float, float | None]]
"""The interval of a mean, from its value, its variance and the number of clusters."""


def _mean(values: Floats, cluster: Ints, bounds: Bounds) -> Coefficient:
    n = values.size
    if n == 0:
        return undefined(NOTHING)
    value = float(values.mean())
    variance, count = spread(values - value, cluster)
    if count < 2:
        return Coefficient(value, None, None, n, ONE_CLUSTER)
    return Coefficient(value, *bounds(value, variance, count), n)


def wilson(value: float, variance: float, count: int, level: float) -> tuple[float, float]:
    """Wilson's bounds of a share that varies so much over so many clusters: those of as many trials
    as would vary alike. Where nothing varies, each cluster counts as one trial."""
    trials = value * (1 - value) / variance if variance > 0 else 0.0
    if trials <= 0:
        trials = float(count)
    return wilson_bounds(value, trials, quantile(count, level))


@dataclass(frozen=True, slots=True)
class Beyond:
    """What a coefficient of agreement beyond chance is made of: 1 - observed / expected."""

    observed: float
    expected: float
    influence: Floats
    """Of each observation on the coefficient."""
    load: Floats
    """Each observation's part in the expected disagreement, 1 on average."""
    apart: Floats
    """Each observation's disagreement."""

    def spread(self, cluster: Ints) -> tuple[float, int]:
        """The variance of the coefficient, and the number of clusters. It is at least that of the
        disagreement with chance held fast: a small sample may not show how rare categories vary."""
        plain, count = spread(self.apart - self.observed, cluster)
        return max(spread(self.influence, cluster)[0], plain / self.expected**2), count


def of_categories(parts: Beyond, cluster: Ints, level: float) -> Coefficient:
    """A coefficient whose disagreements are shares: they get Wilson's interval, for as many trials
    as would vary like the coefficient. So perfect agreement still has a lower bound."""
    n, value = parts.influence.size, 1 - parts.observed / parts.expected
    variance, count = parts.spread(cluster)
    if count < 2:
        return Coefficient(value, None, None, n, ONE_CLUSTER)
    low, high = wilson(parts.observed, variance * parts.expected**2, count, level)
    least = max(min(-1.0, value), 1 - high / parts.expected)
    return Coefficient(value, least, 1 - low / parts.expected, n)


def of_distances(parts: Beyond, cluster: Ints, level: float, floor: float = 1.0) -> Coefficient:
    """A coefficient whose disagreements are distances on a scale: it varies like a correlation."""
    value = 1 - parts.observed / parts.expected
    if abs(value) >= PERFECT:
        return of_categories(parts, cluster, level)
    return correlation(value, parts.influence, parts.load, cluster, level, floor)


def correlation(
    value: float, influence: Floats, load: Floats, cluster: Ints, level: float, floor: float = 1.0
) -> Coefficient:
    """A correlation, with an interval on Fisher's scale. `floor` over the number of observations is
    its least variance there, that of the normal distribution: where most scores are equal, a small
    sample may show no more than those."""
    n = influence.size
    variance, count = spread(influence, cluster, load)
    if abs(value) >= PERFECT:
        value = 1.0 if value > 0 else -1.0
        return Coefficient(value, None, None, n, "a perfect correlation shows no spread")
    if count < 3:
        return Coefficient(value, None, None, n, "fewer than 3 units or topics give no interval")
    fisher_variance = max(variance / (1 - value**2) ** 2, floor / max(n - 3, 1))
    reach = quantile(count, level) * sqrt(fisher_variance)
    return Coefficient(value, tanh(atanh(value) - reach), tanh(atanh(value) + reach), n)


def average(values: Floats, cluster: Ints, level: float) -> Coefficient:
    """A mean on an open scale, with Student's interval."""

    def bounds(value: float, variance: float, count: int) -> tuple[float, float]:
        reach = quantile(count, level) * sqrt(variance)
        return value - reach, value + reach

    return _mean(values, cluster, bounds)


def positive(values: Floats, cluster: Ints, level: float) -> Coefficient:
    """A mean of values that are never below 0, such as squared errors: the smaller it is, the less
    it is taken to vary."""

    def bounds(value: float, variance: float, count: int) -> tuple[float, float | None]:
        if value == 0:
            return 0.0, None
        half = quantile(count, level) ** 2 * variance / value / 2
        reach = sqrt(half * (2 * value + half))
        return max(0.0, value + half - reach), value + half + reach

    mean = _mean(values, cluster, bounds)
    if mean.low is not None and mean.high is None:
        return replace(mean, why="no difference at all shows no spread")
    return mean
