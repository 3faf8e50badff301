"""Ranks with intervals: no order is claimed between candidates that the votes cannot tell apart."""

from __future__ import annotations

import numpy as np

from evenhand.stats.ranking.bootstrap import Rated, widening
from evenhand.stats.tables import Bools, Ints

SAME = 1e-9
"""Ratings no further apart share a rank."""


def ranks(rated: Rated, level: float) -> tuple[Ints, Ints, Ints]:
    """Of each candidate its rank within its set, and the best and worst that it may have; 0 of one
    that met nobody.

    Each candidate's interval holds at the level given, over all its comparisons together: the
    critical value is that of its largest studentised difference to any other (Mogstad, Romano,
    Shaikh and Wilhelm, 2024).
    """
    table = np.zeros((3, len(rated.ratings)), np.int64)
    for place in np.flatnonzero(rated.sets >= 0):
        others = rated.sets == rated.sets[place]
        others[place] = False
        ahead = rated.ratings[place] - rated.ratings[others]
        table[0, place] = 1 + (ahead < -SAME).sum()
        better, worse = _surely_apart(rated, int(place), others, level)
        table[1, place], table[2, place] = 1 + better.sum(), 1 + others.sum() - worse.sum()
    return table[0], table[1], table[2]


def _surely_apart(rated: Rated, place: int, others: Bools, level: float) -> tuple[Bools, Bools]:
    """Which of the others are surely better, and which worse."""
    ahead = rated.ratings[place] - rated.ratings[others]
    if rated.rounds.shape[1] < 2:
        nobody = np.zeros(len(ahead), np.bool_)
        return nobody, nobody
    rounds = rated.rounds[place] - rated.rounds[:-2][others] - ahead[:, None]
    spread = rounds.std(axis=1, ddof=1)
    varies = spread > SAME
    largest = np.abs(rounds[varies] / spread[varies, None]).max(axis=0, initial=0)
    bound = np.quantile(largest, level) * widening(rated.topics, level) * spread
    return varies & (ahead < -bound), varies & (ahead > bound)
