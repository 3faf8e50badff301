"""Holm's correction (1979): the chance of any false claim in a family stays at its level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.stats.observations import Bools, Floats

ROUNDING = 1e-12
"""A level such as 0.95 is no exact binary fraction: its rest is a little more than 0.05."""


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Return adjusted p values, in the order given; None is no part of the family."""
    ranked = sorted((p, place) for place, p in enumerate(values) if p is not None)
    adjusted: list[float | None] = [None] * len(values)
    highest = 0.0
    for rank, (p, place) in enumerate(ranked):
        highest = max(highest, min(1.0, p * (len(ranked) - rank)))
        adjusted[place] = highest
    return adjusted


def is_rejected(values: Floats, alpha: float) -> Bools:
    """Return of each p value of a family whether its adjusted value is at most alpha."""
    order = np.argsort(values, kind="stable")
    shares = (alpha + ROUNDING) / np.arange(values.size, 0, -1)
    passed = np.logical_and.accumulate(values[order] <= shares)
    rejected = np.zeros(values.size, np.bool_)
    rejected[order] = passed
    return rejected
