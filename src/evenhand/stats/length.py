"""The length-controlled win rate, as AlpacaEval 2 defines it (`length_controlled_v1`).

A logistic regression without intercept explains the preference by the difference of lengths, the
difficulty of the instruction where it is known, and the candidate itself; the rate is what it
predicts for answers of equal length. The penalty is on absolute values, and its strength is found
by cross-validation in five folds. liblinear solves it, by way of scikit-learn: a solver of our own
came within 0.02 points in two thirds of the time, but liblinear stops a little short of the
optimum, the published figures with it, and to be comparable with them is what this figure is for.

The figure itself is drawn to a half by a penalty that cross-validation makes strong where votes are
few, often all the way; leaving out votes then changes nothing, so that what the figure varies by is
no interval. `equal_length_interval` is of the same regression under a slighter penalty.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from evenhand.errors import UsageError
from evenhand.stats.estimate import logit_interval
from evenhand.stats.observations import Bools, Floats, Ints
from evenhand.words import Sentence

FOLDS = 5
STRENGTHS = np.logspace(-4, 4, 10)
SEED = 123
HARDLY = 1e-12
"""The weight of what did not happen, where it has to be there."""
LEAST = 10
"""With fewer votes there is no figure: each fold tests on two."""
FIRTH = 0.1
"""The part of the logarithm of the information's determinant in the penalty; Firth's is a half.
Found by simulation: with a half, 20 votes of which all are won leave out 98 %."""
STEPS, CLOSE, LONGEST = 200, 1e-8, 2.0
"""Of Newton's method: the most steps, the last one, and the longest."""
EDGE = 1e-9
STEEP = 8.0
"""With a coefficient of the length beyond this, votes say next to nothing of equal lengths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored:
    """Further rows that steady the regression, as AlpacaEval's annotations of gamed baselines."""

    preference: Floats
    length: Floats
    """The standardised difference, as given."""
    difficulty: Floats
    weight: float = 0.1


@dataclass(frozen=True, slots=True)
class LengthControlled:
    """The win rate at equal lengths, from 0 to 1, and the fit that it is from."""

    win_rate: float
    low: float
    high: float
    length_effect: float
    """The coefficient of tanh of the standardised difference; below 0, longer answers win more."""
    strength: float


def length_controlled(
    preference: Floats,
    length: Floats,
    *,
    difficulty: Floats | None = None,
    anchored: Anchored | None = None,
    groups: Ints | None = None,
    level: float = 0.95,
) -> LengthControlled | None:
    """The win rate at equal lengths; None where there are too few votes or lengths do not differ.

    `preference` is how far the candidate is preferred, from 0 to 1, nan where that is not known;
    `length` is the other's length less its own. `groups` keeps votes together, in the folds and in
    the interval, which goes by a slighter penalty and holds the rate all the same.
    """
    spread = length.std(ddof=1) if len(length) > 1 else 0.0
    has_preference = ~np.isnan(preference)
    if has_preference.sum() < LEAST or not spread > 0:
        return None
    columns = [np.tanh(length / spread), np.ones(len(length))]
    if difficulty is not None:
        columns.insert(1, difficulty)
    features = np.stack(columns, axis=1)
    rows, targets, weights = (
        features[has_preference],
        preference[has_preference],
        np.ones(int(has_preference.sum())),
    )
    group = np.arange(len(targets)) if groups is None else groups[has_preference]
    if anchored is not None:
        extra = [np.tanh(anchored.length), anchored.difficulty, np.zeros(len(anchored.length))]
        rows = np.concatenate([np.stack(extra, axis=1), rows])
        targets = np.concatenate([anchored.preference, targets])
        weights = np.concatenate([np.full(len(extra[0]), anchored.weight), weights])
        group = np.concatenate([np.arange(len(extra[0])), group + len(extra[0])])
    strength = _strength(rows, targets, weights, _folds(group))
    coefficients = _fit(rows, targets, weights, strength)
    features[:, 0] = 0
    rate = float(expit(features @ coefficients).mean())
    # Rows that steady the regression come first.
    of_vote = np.where(np.arange(len(rows)) < len(rows) - has_preference.sum(), -1, group)
    regression = Regression(rows=rows, targets=targets, weights=weights, group=of_vote)
    low, high = equal_length_interval(regression, level)
    return LengthControlled(
        rate, min(low, rate), max(high, rate), float(coefficients[0]), float(strength)
    )


def _folds(group: Ints) -> Ints:
    """A fold for each row, from the last group to the first in turn."""
    groups, place = np.unique(group, return_inverse=True)
    return (len(groups) - 1 - place) % FOLDS


def _strength(rows: Floats, targets: Floats, weights: Floats, folds: Ints) -> float:
    """Return the `C` with the least loss on rows left out; a greater one penalises less."""
    losses = np.zeros((FOLDS, len(STRENGTHS)))
    for fold in range(FOLDS):
        out = folds == fold
        for column, strength in enumerate(STRENGTHS):
            coefficients = _fit(rows[~out], targets[~out], weights[~out], strength)
            losses[fold, column] = _loss(rows, targets, weights, out, coefficients)
    return float(STRENGTHS[losses.mean(axis=0).argmin()])


def _loss(
    rows: Floats, targets: Floats, weights: Floats, out: Bools, coefficients: Floats
) -> float:
    odds = rows[out] @ coefficients
    return float((weights[out] * (np.logaddexp(0, odds) - targets[out] * odds)).mean())


def _fit(rows: Floats, targets: Floats, weights: Floats, strength: float) -> Floats:
    """The coefficients; a preference between 0 and 1 is a win and a loss with these weights."""
    logistic, penalty = _scikit_learn()
    count = len(targets)
    model = logistic(
        C=strength, solver="liblinear", fit_intercept=False, random_state=SEED, **penalty
    )
    doubled = np.concatenate([rows, rows])
    won = np.concatenate([np.ones(count), np.zeros(count)])
    shares = np.concatenate([targets * weights, (1 - targets) * weights])
    # Where nothing was won, or nothing lost, liblinear forgets which of the two it was.
    shares = np.maximum(shares, 0.0 if shares[:count].any() and shares[count:].any() else HARDLY)
    with warnings.catch_warnings():
        # Few votes that lengths explain in full have no optimum under a weak penalty; the losses on
        # rows left out then choose a stronger one.
        warnings.filterwarnings("ignore", message="Liblinear failed to converge")
        model.fit(doubled, won, sample_weight=shares)
    return np.asarray(model.coef_[0])


def _scikit_learn() -> tuple[Any, dict[str, Any]]:
    """Its logistic regression, and how its version is told to penalise absolute values."""
    try:
        import sklearn
        from sklearn.linear_model import LogisticRegression
    except ImportError as missing:
        raise UsageError(Sentence("stats.no_sklearn")) from missing
    new = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 8)
    return LogisticRegression, {"l1_ratio": 1.0} if new else {"penalty": "l1"}


# The interval


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
class _LogisticFit:
    coefficients: Floats
    information: Floats
    spreads: Floats
    """Of each row, its part in the information."""
    slopes: Floats
    """Of each row, how far it pulls the coefficients."""


def equal_length_interval(regression: Regression, level: float) -> tuple[float, float]:
    """Return the interval of the win rate at equal lengths, with groups of votes as clusters. One
    group leaves the whole scale open, and so do votes that hardly depend on anything but length.

    The regression is fitted under a fifth of Firth's penalty (1993), which has an optimum whatever
    the votes are and is next to nothing beside many. How far the rate varies is seen by leaving out
    each group of votes in turn, one Newton step each; the ends are those of any win rate.
    """
    fit, voted = _fit_penalised(regression), regression.group >= 0
    place = np.unique(regression.group[voted], return_inverse=True)[1]
    sizes = np.bincount(place).astype(np.float64)
    even = regression.rows[voted].copy()
    even[:, 0] = 0
    chances = expit(even @ fit.coefficients)
    rate = float(np.clip(chances.mean(), EDGE, 1 - EDGE))
    if len(sizes) < 2 or abs(fit.coefficients[0]) > STEEP:
        return 0.0, 1.0
    gradient = (even * (chances * (1 - chances))[:, None]).mean(axis=0)
    # Without a group the coefficients are others, and so are the rows that the rate is the mean of.
    moves = _moves(regression, fit, place) @ gradient
    moves += (rate - np.bincount(place, chances) / sizes) * sizes / (sizes.sum() - sizes)
    groups, free = len(sizes), rate * (1 - rate)
    variance = float(moves @ moves) * (groups - 1) / groups
    variance += _unseen_variance(fit, gradient, sizes, free)
    return logit_interval(rate, variance, (0.0, 1.0), groups, level)[:2]


def _unseen_variance(fit: _LogisticFit, gradient: Floats, sizes: Floats, free: float) -> float:
    """Return the variance that one more group, half a win from the rest, would add: that of any win
    rate, times the ratio of the regression's variance to the binomial one, at least 1."""
    votes = float(sizes.sum())
    of_model = float(gradient @ np.linalg.pinv(fit.information, hermitian=True) @ gradient)
    return 0.25 * float(sizes @ sizes) ** 2 / votes**4 * max(1.0, of_model * votes / free)


def _moves(regression: Regression, fit: _LogisticFit, place: Ints) -> Floats:
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


def _fit_penalised(regression: Regression) -> _LogisticFit:
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
    return _LogisticFit(coefficients, information, spreads, slopes)
