"""How many more units would decide."""

from __future__ import annotations

from math import ceil, log2

from scipy.special import ndtri, stdtrit

POWER = 0.8
MOST = 1_000_000_000


def units_needed(
    difference: float, spread: float, n: int, clusters: int, alpha: float
) -> int | None:
    """How many units more than `n` would find the observed difference at 80 % power; None if it is
    0, or where more than a thousand million would be needed.

    `spread` is the standard deviation of one unit's difference, with what clustering adds to it.
    """
    if difference == 0 or clusters < 2:
        return None
    least = 1 + ceil(log2(1 / alpha))
    """A sign-flip test of fewer clusters than this cannot reach alpha at all."""
    needed = float(least)
    for _ in range(20):
        quantile = float(stdtrit(max(needed, 2) - 1, 1 - alpha / 2))
        needed = max(least, ((quantile + float(ndtri(POWER))) * spread / abs(difference)) ** 2)
    units = max(needed, least * n / clusters)
    return None if units > MOST else max(0, ceil(units) - n)


def rough(units: int) -> int:
    """As many units in words: from 100 on two digits, rounded up. A number that hangs on an
    observed difference is no more exact than that."""
    step = 10 ** max(0, len(str(units)) - 2) if units >= 100 else 1
    return -(-units // step) * step
