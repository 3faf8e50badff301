"""Gaffke's test of a mean (2005), for values of which nothing is known but the end of their scale.

It adds one value at the end of the scale and asks how likely the mean is at most the threshold when
all of them have weights drawn at random (those of the Bayesian bootstrap). For two values it is the
exact binomial test; for any other law no case is known, by proof or by search, in which it errs
more often than it says. Values that are all alike show nothing of a share s at the end of the scale
with a chance of (1 - s)^n, and just that is their p.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from evenhand.stats.tables import Floats

_STEPS = 60
_CLOSE = 1e-10
"""Steps so small, as a part of the way between the poles, are none."""
_NOTHING = 1e-12
"""Which part of the largest gap is none: what rounding makes of 0."""
_SHORT = 1 - 1e-13
"""How far a saddlepoint may come to its pole."""
_NEAR = 1e-3
"""How near to its mean a sum has the chance that its skewness alone gives, in standard errors."""


def gaffke(gaps: Floats, unseen: Floats | float, times: float = 1.0) -> Floats:
    """The p of "the mean is at most the threshold", of each row: `gaps` are how far its values lie
    above the threshold, `unseen` how far the end of the scale lies below it. With `times`, as if
    every value had been there so often.

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
    Newton's steps, halved where they lead out, on what is left of it without the poles."""
    ends = low, high = _SHORT / rows.min(axis=1), _SHORT / rows.max(axis=1)
    point = np.zeros(len(rows))
    for _ in range(_STEPS):
        parts = rows / (1 - point[:, None] * rows)
        slope, bend = _total(parts, times), _total(parts**2, times)
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
