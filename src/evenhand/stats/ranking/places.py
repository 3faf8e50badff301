"""Ranks with intervals: no order is claimed between candidates that the votes cannot tell apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.stats.comparison.contrast import are_apart
from evenhand.stats.ranking.bootstrap import Rated, quantiles, widening
from evenhand.stats.ranking.duels import Duels
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


def is_apart(pairs: Duels, place: int, level: float, seed: int) -> bool:
    """Whether a candidate and the only one that it met can be told apart, by the test of the two
    compared."""
    met = (pairs.first == place) | (pairs.second == place)
    won = np.where(pairs.first == place, pairs.won, 1 - pairs.won)[met]
    return are_apart(won, pairs.topic[met], level, seed)


def _surely_apart(rated: Rated, members: Ints, ahead: Floats, level: float) -> tuple[Ints, Ints]:
    """Of each member of a set, how many of the others are surely better, and how many worse."""
    if rated.rounds.shape[1] < 2:
        return np.zeros(len(members), np.int64), np.zeros(len(members), np.int64)
    middle = rated.rounds[members].mean(axis=1)
    rounds = rated.rounds[members] - middle[:, None]
    spread = _spreads(rounds)
    shifted = rounds + (middle - rated.ratings[members])[:, None]
    largest = _largest(shifted.astype(np.float32), spread)
    critical = quantiles(largest, [level])[0] * widening(rated.topics, level)
    varies = spread > SAME
    bound = critical[:, None] * spread
    better, worse = (varies & (ahead < -bound)), (varies & (ahead > bound))
    return better.sum(axis=1), worse.sum(axis=1)


def _spreads(rounds: Floats) -> Floats:
    """Of every two rows around 0, the standard deviation of their difference."""
    products = rounds @ rounds.T / (rounds.shape[1] - 1)
    own = products.diagonal()
    spread: Floats = np.sqrt(np.maximum(own[:, None] + own - 2 * products, 0))
    # Where two hardly differ, the sum of products would be all rounding.
    near = spread <= NEAR * (np.sqrt(own)[:, None] + np.sqrt(own))
    np.fill_diagonal(near, val=False)
    np.fill_diagonal(spread, 0)
    for place in np.flatnonzero(near.any(axis=1)).tolist():
        rivals = near[place]
        spread[place, rivals] = (rounds[place] - rounds[rivals]).std(axis=1, ddof=1)
    return spread


def _largest(coarse: Coarse, spread: Floats) -> Coarse:
    """Of each candidate and round, its largest difference to any other, in spreads of the two. For
    the largest of many, half the digits do, at half the time."""
    varies = spread > SAME
    scale = np.where(varies, 1 / np.where(varies, spread, 1), 0).astype(np.float32)
    largest = np.zeros_like(coarse)
    for place in range(len(coarse) - 1):
        for begin in range(place + 1, len(coarse), RIVALS):
            rivals = slice(begin, begin + RIVALS)
            gaps = coarse[place] - coarse[rivals]
            gaps *= scale[place, rivals, None]
            np.abs(gaps, out=gaps)
            # What one has to the other the other has to it.
            np.maximum(largest[place], gaps.max(axis=0), out=largest[place])
            np.maximum(largest[rivals], gaps, out=largest[rivals])
    return largest
