"""Shares of trials that come in clusters, with the intervals of `estimate`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, sqrt


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share of `n` trials and its interval; without a trial it is None, anywhere from 0 to 1."""

    value: float | None
    low: float
    high: float
    n: float


def clustered(clusters: Iterable[tuple[float, float]], level: float = 0.95) -> Proportion:
    """Return the share of hits in all trials, for clusters of (hits, trials) that may depend on
    each other; halves count, as ties do."""
    filled = [(hits, trials) for hits, trials in clusters if _has_trials(hits, trials)]
    if not filled:
        return Proportion(None, 0.0, 1.0, 0)
    import numpy as np  # slow to import, and a run without pairs needs none of it

    from evenhand.stats.estimate import share

    hits, trials = np.array(filled, dtype=np.float64).T
    found = share(hits, trials, level)
    assert found.low is not None and found.high is not None, "a share has a scale"
    return Proportion(found.value, found.low, found.high, float(trials.sum()))


def _has_trials(hits: float, trials: float) -> bool:
    if not 0 <= hits <= trials < inf:
        raise ValueError(f"{hits} hits in {trials} trials")
    return trials > 0


def bounds_of_one(rate: float, level: float) -> tuple[float, float]:
    """Return the interval of a mean of values from 0 to 1 where one observation is all there is,
    however such observations are spread. By Markov's inequality, one as low as `rate` comes at most
    (1 - mean) / (1 - rate) of the time, and one as high at most mean / rate of the time."""
    tail = (1 - level) / 2
    return tail * rate, 1 - tail * (1 - rate)


def wilson_bounds(rate: float, trials: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's interval of a rate in so many trials, a quantile of standard errors wide."""
    square = quantile**2
    middle = rate * trials + square / 2
    reach = sqrt(square * (max(0.0, rate * (1 - rate)) * trials + square / 4))
    # The rate lies within, and at the ends the bound is exact, whatever the rounding.
    low = max(0.0, min(rate, (middle - reach) / (trials + square)))
    high = min(1.0, max(rate, (middle + reach) / (trials + square)))
    return low, high
