"""A twin of the core in plain loops, for tests that hold figures against it."""

from __future__ import annotations

from itertools import pairwise
from math import asinh, exp, log, sinh, sqrt

from scipy import stats

STEPS = 3


def naive(
    questions,
    ends,
    added,
    level,
):
    """Interval and p in plain loops: leave out each question in turn, go over to log odds."""
    means = [sum(one) / len(one) for one in questions]
    weighted = [(one, 1.0) for one in means] + [(end, 0.25) for end in added]
    whole = sum(weight for _, weight in weighted)
    middle = sum(value * weight for value, weight in weighted) / whole
    squares = 0.0
    for value, weight in weighted:
        without = (middle * whole - value) / (whole - 1)
        squares += weight * (without - middle) ** 2
    low, high = ends
    part = (middle - low) / (high - low)
    error = sqrt(squares * (whole - 1) / whole) / (high - low) / (part * (1 - part))
    logit, student = log(part / (1 - part)), stats.t(len(means) - 1)
    reach = 2 * asinh(student.ppf((1 + level) / 2) * error / 2)
    p = 2 * student.sf(2 * sinh(abs(logit) / 2) / error)
    bounds = [low + (high - low) * 1 / (1 + exp(-logit - side * reach)) for side in (-1, 1)]
    return bounds[0], bounds[1], float(p)


def naive_difference(questions, span, level=0.95):
    """Interval and p of paired differences: what is added lies as far from 0 as the largest."""
    sizes = sorted({round(abs(sum(one) / len(one)), 9) for one in questions} | {0.0})
    step = min((b - a for a, b in pairwise(sizes)), default=span)
    reach = min(span, max(sizes[-1], STEPS * step))
    return naive(questions, (-span, span), (-reach, reach), level)
