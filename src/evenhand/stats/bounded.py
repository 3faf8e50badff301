"""An interval of a mean that holds whatever the values are, as long as they lie on their scale.

An interval that goes by the spread that was seen misses what is rare: where one answer in twenty
breaks down, a third of all samples of twenty have no breakdown, and nothing in them hints at one.
There is one value per question, the mean of what was judged about it: questions weigh alike, and a
question that was never seen is one like any other.

The test is Gaffke's (2005). It adds one value at the end of the scale and asks how likely the mean
is at most the threshold when all of them have weights drawn at random (those of the Bayesian
bootstrap). For two values it is the exact binomial test; for any other law no case is known, by
proof or by search, in which it errs more often than it says.

Where no value lies in the lower half between the end of the scale and the threshold, a share s of
such **breakdowns** would have shown none in n values with a chance of (1 - s)^n only; the values
are then a sample of a law without them, whose mean lies above the threshold by no more than such a
share, all of it at the end of the scale, can make up for. How likely that law gives so much is
Gaffke's test again, on the half of the scale that is left. p is the greatest product of the two
chances, over all shares. Gaffke's test alone takes what is unseen for one value at the end and for
spread at once, which passes far less often where there is no breakdown.

Each of the two errs no more often than alpha if Gaffke's does not: the first since a product of
chances is that of both. Together they could err twice as often by that argument; under no law that
a search finds do they err more often than alpha (tests/unit/stats/test_bounded.py).
"""

from __future__ import annotations

from math import log

import numpy as np
from scipy.special import ndtr

from evenhand.stats.observations import Bools, Floats

BREAKDOWN = 0.5
"""Beyond which part of the way from the threshold to the end of the scale a value breaks down.
From 0.35 to 0.65 it makes little difference."""
LIKELY = 0.9
"""A chance above this counts as 1: Gaffke's test keeps its word on small chances, not on those near
1. It costs nothing but where all values are nearly alike: a twentieth of p."""
MANY = 2000
"""In so many values what is unseen is so rare that Gaffke's test alone is as sharp."""
_CELLS, _ZOOMS = 8, 4
"""The grid cells and zooms of the search for the greatest product: each zoom divides the cell with
the greatest bound."""
_PRECISION = 1e-7
"""Of the ends of an interval, as a part of the scale."""
_ROUNDING = 1e-12
_TINY = 1e-12
"""Added to p, so that it has a logarithm; more would make the search slower, not wrong."""
_STEPS = 60
_CLOSE = 1e-10
"""Steps so small, as a part of the way between the poles, are none."""
_SHORT = 1 - 1e-13
"""The part of the way to its pole that a saddlepoint may go."""
_NEAR = 1e-3
"""The distance from its mean, in standard errors, within which a sum has the chance that its
skewness alone gives."""


def interval(values: Floats, ends: tuple[float, float], level: float) -> tuple[float, float]:
    """Return all means that the test does not reject, at half of 1 - level on either side."""
    low, high = ends
    return _lower(values, low, high, level), -_lower(-values, -high, -low, level)


def p_value(values: Floats, threshold: float, low: float) -> float:
    """Return how likely it is to see so much, or more, if the mean is at most the threshold, of
    values on a scale that begins at `low`."""
    return float(chance_at_most(values - threshold, threshold - low)[0])


def _lower(values: Floats, low: float, high: float, level: float) -> float:
    """Return the least mean that is not rejected; the higher a threshold, the harder it is to
    reject."""
    alpha, middle = (1 - level) / 2, float(values.mean())
    nearest = low + 1e-9 * (middle - low)
    if middle <= nearest or p_value(values, nearest, low) > alpha:
        return low

    def beyond(threshold: float) -> float:
        return log(p_value(values, threshold, low) + _TINY) - log(alpha)

    from scipy.optimize import brentq  # slow to import, and most commands solve nothing

    return float(brentq(beyond, nearest, middle, xtol=_PRECISION * (high - low)))


def chance_at_most(gaps: Floats, unseen: Floats | float) -> Floats:
    """Return the p of "the mean is at most the threshold", of each row: `gaps` are how far its
    values lie above the threshold, `unseen` how far the end of the scale lies below it."""
    rows = np.atleast_2d(gaps)
    ends = np.broadcast_to(np.asarray(unseen, np.float64), len(rows))
    whole = rows.min(axis=1) >= -(BREAKDOWN + _ROUNDING) * ends
    whole &= (rows.shape[1] <= MANY) & (ends > 0)
    p = np.empty(len(rows))
    for test, part in ((gaffke, ~whole), (_without_breakdown, whole)):
        if part.any():
            p[part] = test(rows[part], ends[part])
    return p


def rejects(gaps: Floats, unseen: float, alpha: float) -> Bools:
    """Return of each row whether its p is at most alpha; quicker than the p of many rows."""
    rows = np.atleast_2d(gaps)
    # No test whose scale ends nearer has a greater p.
    rejected = gaffke(rows, BREAKDOWN * unseen) <= alpha
    if rejected.any():
        rejected[rejected] = chance_at_most(rows[rejected], unseen) <= alpha
    return rejected


def _without_breakdown(rows: Floats, ends: Floats) -> Floats:
    """Return the p of rows in which nothing breaks down: the greatest chance, over all shares of
    breakdowns, to see none of them and so much of the rest.

    A share makes up for a mean that is higher by so much: `logs` are the logarithms of how likely
    none of it is seen, with their sign changed. The chance of the rest grows with the share, so
    that its value at the end of a cell bounds it within.
    """
    p = gaffke(rows, BREAKDOWN * ends)
    open_rows = np.flatnonzero((p < 1) & (rows.max(axis=1) > 0))
    if not open_rows.size:
        return p
    rows, ends, count = rows[open_rows], ends[open_rows], rows.shape[1]
    # Beyond these no share can do: all values lie below, or none of it is seen too rarely.
    most = np.minimum(count * np.log1p(rows.max(axis=1) / ends), -np.log(p[open_rows] + 1e-300))
    low, greatest = np.zeros(len(rows)), p[open_rows]
    places = np.arange(len(rows))
    for _ in range(_ZOOMS):
        logs = low[:, None] + (most - low)[:, None] * np.linspace(0, 1, _CELLS + 1)
        higher = ends[:, None] * np.expm1(logs / count)
        rests = (rows[:, None, :] - higher[:, :, None]).reshape(-1, count)
        chances = gaffke(rests, (BREAKDOWN * ends[:, None] + higher).ravel())
        chances = np.where(chances > LIKELY, 1.0, chances).reshape(logs.shape)
        bounds = np.exp(-logs[:, :-1]) * chances[:, 1:]
        cell = bounds.argmax(axis=1)
        low, most, bound = logs[places, cell], logs[places, cell + 1], bounds[places, cell]
    p[open_rows] = np.maximum(greatest, bound)
    return p


def gaffke(gaps: Floats, unseen: Floats | float) -> Floats:
    """Return Gaffke's p of "the mean is at most the threshold", of each row.

    The chance that a sum of the gaps and of -unseen, with exponential weights, is not positive, by
    the saddlepoint approximation of Lugannani and Rice (within 3 % from five values on).
    """
    rows = np.atleast_2d(gaps)
    least = np.broadcast_to(-np.asarray(unseen, np.float64), len(rows))
    rows = np.concatenate([rows, least[:, None]], axis=1)
    size = np.abs(rows).max(axis=1, keepdims=True)
    rows[:, :-1][np.abs(rows[:, :-1]) <= _ROUNDING * size] = 0.0
    hopeless = np.asarray((rows <= 0).all(axis=1))
    rows = np.where(hopeless[:, None], -1.0, rows)
    rows[hopeless, 0] = 1.0
    point = _saddle(rows)
    room = 1 - point[:, None] * rows
    log_moment = -np.log(room).sum(axis=1)
    parts = rows / room
    spread = np.sqrt((parts**2).sum(axis=1))
    middle = 0.5 + (parts**3).sum(axis=1) / (3 * np.sqrt(2 * np.pi) * spread**3)
    root = np.sign(point) * np.sqrt(np.maximum(0, -2 * log_moment))
    far = np.abs(root) > _NEAR
    root, lean = np.where(far, root, 1), np.where(far, point * spread, 1)
    density = np.exp(-(root**2) / 2) / np.sqrt(2 * np.pi)
    p = np.where(far, ndtr(root) + density * (1 / root - 1 / lean), middle)
    return np.asarray(np.where(hopeless, 1.0, np.clip(p, 0, 1)))


def _saddle(rows: Floats) -> Floats:
    """Return where the derivative of the cumulants' generating function is 0, between its two
    poles: by Newton's steps, halved where they lead out, on what is left of it without the poles.
    """
    ends = low, high = _SHORT / rows.min(axis=1), _SHORT / rows.max(axis=1)
    point = np.zeros(len(rows))
    for _ in range(_STEPS):
        parts = rows / (1 - point[:, None] * rows)
        slope, bend = parts.sum(axis=1), (parts**2).sum(axis=1)
        low, high = np.where(slope > 0, low, point), np.where(slope > 0, point, high)
        room = (point - ends[0]) * (ends[1] - point)
        incline = bend * room + slope * (ends[0] + ends[1] - 2 * point)
        following = point - slope * room / np.where(incline > 0, incline, np.nan)
        inside = (following >= low) & (following <= high)
        following = np.where(inside, following, (low + high) / 2)
        is_close = np.abs(following - point) <= _CLOSE * (ends[1] - ends[0])
        point = following
        if is_close.all():
            break
    return point
