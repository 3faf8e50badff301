"""Ranks in which equal values share their place, and how one observation moves those of others."""

from __future__ import annotations

import numpy as np

from evenhand.stats.tables import Floats


def midranks(values: Floats) -> Floats:
    """The place of each value among all, as a share: 0.5 on average."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - counts / 2)[place] / values.size)


def lifted(ranks: Floats, effect: Floats) -> Floats:
    """For each observation the mean of `effect` over those that it lifts in rank, half over its
    equals."""
    _, place = np.unique(ranks, return_inverse=True)
    sums = np.bincount(place, effect)
    above = sums.sum() - np.cumsum(sums)
    return np.asarray((above + sums / 2)[place] / ranks.size)
