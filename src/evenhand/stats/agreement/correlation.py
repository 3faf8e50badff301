"""How far two columns of scores go together: Pearson, Spearman, and Kendall's tau-b."""

from __future__ import annotations

from math import sqrt

import numpy as np

from evenhand.stats.agreement.coefficient import Coefficient, correlation, undefined
from evenhand.stats.agreement.ranks import lifted, midranks
from evenhand.stats.tables import Floats, Ints

CONSTANT = "the scores of one side are all equal"
TOO_FEW = "a correlation needs at least 2 observations"


def pearson(a: Floats, b: Floats, cluster: Ints, level: float = 0.95) -> Coefficient:
    """The linear correlation."""
    if why := _undefined(a, b):
        return undefined(why, a.size)
    x, y = ((scores - scores.mean()) / scores.std() for scores in (a, b))
    value, load = float((x * y).mean()), (x**2 + y**2) / 2
    return correlation(value, x * y - value * load, load, cluster, level)


def _undefined(a: Floats, b: Floats) -> str:
    if a.size < 2:
        return TOO_FEW
    return CONSTANT if np.ptp(a) == 0 or np.ptp(b) == 0 else ""


def spearman(a: Floats, b: Floats, cluster: Ints, level: float = 0.95) -> Coefficient:
    """The correlation of ranks, equal scores sharing theirs."""
    if why := _undefined(a, b):
        return undefined(why, a.size)
    x, y = (midranks(scores) - 0.5 for scores in (a, b))
    xy, xx, yy = float((x * y).mean()), float((x * x).mean()), float((y * y).mean())
    # An observation moves the product it is in, and the ranks of all others.
    moved_xy = x * y + lifted(x, y) + lifted(y, x) - 3 * xy
    moved_xx, moved_yy = (ranks**2 + 2 * lifted(ranks, ranks) for ranks in (x, y))
    value = xy / sqrt(xx * yy)
    relative = (moved_xx / xx + moved_yy / yy) / 2 - 3
    influence = moved_xy / sqrt(xx * yy) - value * relative
    return correlation(value, influence, (x**2 / xx + y**2 / yy) / 2, cluster, level)


def kendall(a: Floats, b: Floats, cluster: Ints, level: float = 0.95) -> Coefficient:
    """Kendall's tau-b: pairs in the same order less pairs in opposite order, ties allowed for."""
    if why := _undefined(a, b):
        return undefined(why, a.size)
    n = a.size
    concordant = concordance(a, b) / n
    apart = [(n - _equals(scores)) / n for scores in (a, b)]
    s, x, y = (float(parts.mean()) for parts in (concordant, *apart))
    value = s / sqrt(x * y)
    load = apart[0] / x + apart[1] / y - 1
    influence = 2 * (concordant - s) / sqrt(x * y) - value * (load - 1)
    return correlation(value, influence, load, cluster, level, floor=0.44)


def _equals(values: Floats) -> Ints:
    """How many values equal each, itself among them."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(counts[place])


def concordance(a: Floats, b: Floats) -> Floats:
    """Of each observation, with how many others it stands in the same order on both sides, less
    those in opposite order. Pairs are told apart by the highest bit in which their ranks differ, so
    that one sort a bit is enough."""
    (_, x), (_, y) = (np.unique(scores, return_inverse=True) for scores in (a, b))
    excess, span = np.zeros(a.size), int(y.max()) + 1
    for bit in range(int(x.max()).bit_length()):
        upper, key = (x >> bit) & 1, (x >> (bit + 1)) * span + y
        order = np.argsort(key, kind="stable")
        up, keys = upper[order], key[order]
        groups = keys // span
        ends = np.searchsorted(groups, groups, "right")
        starts = np.searchsorted(groups, groups, "left")
        less, most = np.searchsorted(keys, keys, "left"), np.searchsorted(keys, keys, "right")
        below = np.concatenate([[0], np.cumsum(up)])
        place = np.arange(a.size + 1) - below
        # Those of the other half, lower and higher on the second side.
        for half, counts in ((1, place), (0, below)):
            lower, higher = counts[less] - counts[starts], counts[ends] - counts[most]
            mine = up == half
            excess[order[mine]] += ((lower - higher) if half else (higher - lower))[mine]
    return excess
