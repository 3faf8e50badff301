"""The interval of a win rate at equal lengths.

The figure itself is drawn to a half by a penalty that cross-validation makes strong where votes are
few, often all the way; leaving out votes then changes nothing, so that what the figure varies by is
no interval. This one is of the same regression under a fifth of Firth's penalty (1993), which has
an optimum whatever the votes are and is next to nothing beside many. How far the rate varies is
seen by leaving out each group of votes in turn, one Newton step each; the interval is Wilson's for
as many votes as would vary as much, as that of any win rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, stdtrit

from evenhand.stats.observations import Floats, Ints
from evenhand.stats.proportion import bounds_of_one, wilson_bounds

FIRTH = 0.1
"""The part of the logarithm of the information's determinant in the penalty; Firth's is a half.
Found by simulation: with a half, 20 votes of which all are won leave out 98 %."""
STEPS, CLOSE, LONGEST = 200, 1e-8, 2.0
"""Of Newton's method: the most steps, the last one, and the longest."""
EDGE = 1e-9
STEEP = 8.0
"""With a coefficient of the length beyond this, votes say next to nothing of equal lengths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Rows of features, how far the candidate is preferred in each, and what each weighs. The first
    column is the length, which is 0 where lengths are equal."""

    rows: Floats
    targets: Floats
    weights: Floats
    group: Ints
    """The cluster of each vote; below 0 for a row that is no vote and only steadies the fit."""


@dataclass(frozen=True, slots=True)
class _Fit:
    coefficients: Floats
    information: Floats
    spreads: Floats
    """Of each row, its part in the information."""
    slopes: Floats
    """Of each row, how far it pulls the coefficients."""


def equal_length_interval(regression: Regression, level: float) -> tuple[float, float]:
    """Return the interval of the win rate at equal lengths, with groups of votes as clusters. It is
    that of a single observation for one group, and for votes that depend on length and hardly on
    anything else."""
    fit, voted = _fit(regression), regression.group >= 0
    place = np.unique(regression.group[voted], return_inverse=True)[1]
    sizes = np.bincount(place).astype(np.float64)
    even = regression.rows[voted].copy()
    even[:, 0] = 0
    chances = expit(even @ fit.coefficients)
    rate = float(np.clip(chances.mean(), EDGE, 1 - EDGE))
    least, most = bounds_of_one(rate, level)
    if len(sizes) < 2 or abs(fit.coefficients[0]) > STEEP:
        return least, most
    gradient = (even * (chances * (1 - chances))[:, None]).mean(axis=0)
    # Without a group the coefficients are others, and so are the rows that the rate is the mean of.
    moves = _moves(regression, fit, place) @ gradient
    moves += (rate - np.bincount(place, chances) / sizes) * sizes / (sizes.sum() - sizes)
    groups, free = len(sizes), rate * (1 - rate)
    variance = float(moves @ moves) * (groups - 1) / groups
    worth = free / (variance + _unseen(fit, gradient, sizes, free))
    low, high = wilson_bounds(rate, worth, float(stdtrit(groups - 1, (1 + level) / 2)))
    return max(low, least), min(high, most)


def _unseen(fit: _Fit, gradient: Floats, sizes: Floats, free: float) -> float:
    """Return the variance that one more group, half a win from the rest, would add: that of any win
    rate, times the ratio of the regression's variance to the binomial one, at least 1."""
    votes = float(sizes.sum())
    of_model = float(gradient @ np.linalg.pinv(fit.information, hermitian=True) @ gradient)
    return 0.25 * float(sizes @ sizes) ** 2 / votes**4 * max(1.0, of_model * votes / free)


def _moves(regression: Regression, fit: _Fit, place: Ints) -> Floats:
    """Return the change of the coefficients without each group, a row per group."""
    voted = regression.group >= 0
    rows, width = regression.rows[voted], regression.rows.shape[1]
    slopes, spreads = fit.slopes[voted], fit.spreads[voted]
    pulls = np.stack([np.bincount(place, slopes * column) for column in rows.T], axis=1)
    parts = [np.bincount(place, spreads * a * b) for a in rows.T for b in rows.T]
    rests = fit.information - np.stack(parts, axis=1).reshape(-1, width, width)
    # A rest without information on a coefficient leaves it open: it moves far, not nowhere.
    rests += EDGE * float(np.trace(fit.information)) * np.eye(width)
    return np.asarray(-np.linalg.solve(rests, pulls[:, :, None])[:, :, 0])


def _fit(regression: Regression) -> _Fit:
    rows, weights = regression.rows, regression.weights
    coefficients = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        chances = expit(rows @ coefficients)
        spreads = weights * chances * (1 - chances)
        information = (rows * spreads[:, None]).T @ rows
        inverse = np.linalg.pinv(information, hermitian=True)
        leverage = spreads * np.einsum("ij,jk,ik->i", rows, inverse, rows)
        slopes = weights * (regression.targets - chances) + FIRTH * leverage * (1 - 2 * chances)
        step = inverse @ (rows.T @ slopes)
        reach = float(np.abs(step).max())
        if reach < CLOSE:
            break
        coefficients += step * min(1.0, LONGEST / reach)
    return _Fit(coefficients, information, spreads, slopes)
