"""Shares with intervals: Wilson's score interval, and the same where trials come in clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import NormalDist


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share of `n` trials and its interval; without a trial it is None, anywhere from 0 to 1."""

    value: float | None
    low: float
    high: float
    n: float


def wilson(successes: float, n: float, level: float = 0.95) -> Proportion:
    """The share of successes with Wilson's score interval; halves count, as ties do."""
    if not 0 <= successes <= n < inf or not 0 < level < 1:
        raise ValueError(f"{successes} successes in {n} trials at level {level}")
    if n == 0:
        return Proportion(None, 0.0, 1.0, n)
    low, high = _bounds(successes / n, n, level)
    return Proportion(successes / n, low, high, n)


def clustered(clusters: Iterable[tuple[float, float]], level: float = 0.95) -> Proportion:
    """The share of hits in all trials, for clusters of (hits, trials) that may hang together.

    The interval is Wilson's for as many independent trials as would vary as much as the clusters
    do: at most the trials there are. Where the clusters cannot show how much they vary (all trials
    came out alike, or there is one cluster), each counts once. With fewer than some twenty clusters
    the interval is a little too narrow.
    """
    filled = [(hits, trials) for hits, trials in clusters if _valid(hits, trials)]
    if not filled:
        return wilson(0, 0, level)
    total = sum(trials for _, trials in filled)
    hits = sum(hits for hits, _ in filled)
    low, high = _bounds(hits / total, _effective(filled, hits, total), level)
    return Proportion(hits / total, low, high, total)


def exchanged(clusters: Iterable[tuple[float, float]], level: float = 0.95) -> Proportion:
    """The same for trials that were asked in both orders: hits are wins of the first slot.

    Whoever is consistent gives each slot one win of two, so that such trials vary less than
    independent ones would: the interval counts as many as the clusters vary like, be they more than
    there are, with Student's quantile for the number of clusters.
    """
    from scipy.special import stdtrit  # slow to import, and most shares need none of it

    filled = [(hits, trials) for hits, trials in clusters if _valid(hits, trials)]
    independent = clustered(filled, level)
    rate, variance = independent.value, _variance(filled)
    if rate is None or len(filled) < 2 or not 0 < rate < 1 or variance <= 0:
        return independent
    quantile = float(stdtrit(len(filled) - 1, (1 + level) / 2))
    low, high = wilson_bounds(rate, rate * (1 - rate) / variance, quantile)
    return Proportion(rate, low, high, independent.n)


def _valid(hits: float, trials: float) -> bool:
    """Whether a cluster has trials at all."""
    if not 0 <= hits <= trials < inf:
        raise ValueError(f"{hits} hits in {trials} trials")
    return trials > 0


def _effective(clusters: Sequence[tuple[float, float]], hits: float, total: float) -> float:
    """How many independent trials the clusters are worth, by linearised variance."""
    count = len(clusters)
    if count == 1 or hits in (0, total):
        return min(total, count)
    rate, variance = hits / total, _variance(clusters)
    return min(total, rate * (1 - rate) / variance) if variance > 0 else total


def _variance(clusters: Sequence[tuple[float, float]]) -> float:
    """The linearised variance of the share of hits; 0 where one cluster shows none."""
    count, total = len(clusters), sum(trials for _, trials in clusters)
    if count < 2:
        return 0.0
    rate = sum(hits for hits, _ in clusters) / total
    spread = sum((hits - rate * trials) ** 2 for hits, trials in clusters)
    return spread / total**2 * count / (count - 1)


def _bounds(rate: float, n: float, level: float) -> tuple[float, float]:
    return wilson_bounds(rate, n, NormalDist().inv_cdf((1 + level) / 2))


def bounds_of_one(rate: float, level: float) -> tuple[float, float]:
    """The interval of a mean of values from 0 to 1 where one observation is all there is, however
    such observations are spread. By Markov's inequality, one as low as `rate` comes at most
    (1 - mean) / (1 - rate) of the time, and one as high at most mean / rate of the time."""
    tail = (1 - level) / 2
    return tail * rate, 1 - tail * (1 - rate)


def wilson_bounds(rate: float, trials: float, quantile: float) -> tuple[float, float]:
    """Wilson's interval of a rate in so many trials, a quantile of standard errors wide."""
    square = quantile**2
    middle = rate * trials + square / 2
    reach = sqrt(square * (max(0.0, rate * (1 - rate)) * trials + square / 4))
    # The rate lies within, and at the ends the bound is exact, whatever the rounding.
    low = max(0.0, min(rate, (middle - reach) / (trials + square)))
    high = min(1.0, max(rate, (middle + reach) / (trials + square)))
    return low, high
