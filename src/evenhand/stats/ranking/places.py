"""Ranks with intervals: no order is claimed between candidates that the votes cannot tell apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.stats.ranking.bootstrap import Rated, widening
from evenhand.stats.tables import Floats, Ints

SAME = 1e-9
"""Ratings no further apart share a rank."""
RIVALS = 64
"""How many are looked at together, so that their rounds stay in the processor's own memory."""
Coarse = npt.NDArray[np.float32]
NEAR = 1e-4
"""A spread that is so small a part of the two it comes of is not taken from their products."""


def ranks(rated: Rated, level: float) -> tuple[Ints, Ints, Ints]:
    """Of each candidate its rank within its set, and the best and worst that it may have; 0 of one
    that met nobody.

    Each candidate's interval holds at the level given, over all its comparisons together: the
    critical value is that of its largest studentised difference to any other (Mogstad, Romano,
    Shaikh and Wilhelm, 2024).
    """
    table = np.zeros((3, len(rated.ratings)), np.int64)
    for number in np.unique(rated.sets[rated.sets >= 0]):
        members = np.flatnonzero(rated.sets == number)
        ahead = rated.ratings[members][:, None] - rated.ratings[members]
        better, worse = _surely_apart(rated, members, ahead, level)
        table[0, members] = 1 + (ahead < -SAME).sum(axis=1)
        table[1, members] = 1 + better
        table[2, members] = len(members) - worse
    return table[0], table[1], table[2]


def _surely_apart(rated: Rated, members: Ints, ahead: Floats, level: float) -> tuple[Ints, Ints]:
    """Of each member of a set, how many of the others are surely better, and how many worse."""
    size, number = len(members), rated.rounds.shape[1]
    better, worse = np.zeros(size, np.int64), np.zeros(size, np.int64)
    if number < 2:
        return better, worse
    rounds = rated.rounds[members] - rated.rounds[members].mean(axis=1, keepdims=True)
    shift = rated.rounds[members].mean(axis=1) - rated.ratings[members]
    products = rounds @ rounds.T / (number - 1)
    own = products.diagonal()
    # For the largest of many, half the digits do, at half the time.
    coarse = (rounds + shift[:, None]).astype(np.float32)
    wide = widening(rated.topics, level)
    for place in range(size):
        # Where two hardly differ, the sum of products would be all rounding.
        spread = np.sqrt(np.maximum(own[place] + own - 2 * products[place], 0))
        near = spread <= NEAR * (np.sqrt(own[place]) + np.sqrt(own))
        spread[near] = (rounds[place] - rounds[near]).std(axis=1, ddof=1)
        varies = spread > SAME
        varies[place] = False
        if not varies.any():
            continue
        scale = np.where(varies, 1 / np.where(varies, spread, 1), 0)
        largest = _largest(coarse, place, scale.astype(np.float32))
        bound = np.quantile(largest, level) * wide * spread
        better[place] = (varies & (ahead[place] < -bound)).sum()
        worse[place] = (varies & (ahead[place] > bound)).sum()
    return better, worse


def _largest(coarse: Coarse, place: int, scale: Coarse) -> Coarse:
    """Of each round, the largest difference of one candidate to any other, in the units that
    `scale` has for each of them."""
    largest = np.zeros(coarse.shape[1], np.float32)
    for begin in range(0, len(coarse), RIVALS):
        gaps = coarse[place] - coarse[begin : begin + RIVALS]
        gaps *= scale[begin : begin + RIVALS, None]
        np.maximum(largest, gaps.max(axis=0), out=largest)
        np.maximum(largest, -gaps.min(axis=0), out=largest)
    return largest
