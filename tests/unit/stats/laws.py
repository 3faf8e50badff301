"""Laws of differences between a variant and a baseline, for simulations of errors and of power.

A law draws, for each of many samples, one difference per question, of scores from 0 to 1. Where a
question has several units or judges, the difference is their mean, as the product takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from evenhand.stats.observations import Floats

Draw = np.random.Generator
Sampler = Callable[[Draw, tuple[int, int]], Floats]
"""Differences of the shape (samples, questions)."""


@dataclass(frozen=True)
class Law:
    """Where differences come from, and what their mean is."""

    sample: Sampler
    mean: float
    about: str


EVEN = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
"""Of the bands 1 to 5, how often each is given: an ordinary use of the scale."""
LOWER = np.array([0.15, 0.25, 0.3, 0.2, 0.1])
CEILING = np.array([0.0, 0.02, 0.08, 0.2, 0.7])
BELOW_CEILING = np.array([0.02, 0.05, 0.1, 0.2, 0.63])


def bands(chances, places):
    """The scores, from 0 to 1, that lie at these places of a scale so used."""
    return np.asarray(np.minimum(np.searchsorted(np.cumsum(chances), places), 4) / 4)


def _mean_of(chances):
    return float(chances @ np.arange(5) / 4)


def paired(variant, baseline, units=1):
    """Two Likert scores on each of so many units per question, which have half in common."""

    def sample(draw, shape):
        common = draw.normal(size=(*shape, 1))
        scores = [
            bands(chances, ndtr((common + draw.normal(size=(*shape, units))) / np.sqrt(2)))
            for chances in (variant, baseline)
        ]
        return np.asarray((scores[0] - scores[1]).mean(axis=-1))

    mean = _mean_of(variant) - _mean_of(baseline)
    return Law(sample, mean, f"{units} units per question" if units > 1 else "")


def normal(mean, sd):
    """Fine scores whose differences are normal."""

    def sample(draw, shape):
        return np.clip(draw.normal(mean, sd, shape), -1, 1)

    return Law(sample, mean, f"sd {sd:g}")


def breakdowns(share, loss, otherwise):
    """Fine scores that differ by next to nothing, but for a share of answers that break down."""

    def sample(draw, shape):
        return np.asarray(draw.normal(otherwise, 0.05, shape) - loss * (draw.random(shape) < share))

    return Law(sample, otherwise - share * loss, f"{share:.0%} lose {loss:g}")


def coarse_breakdowns(share, *, even):
    """Scores from 1 to 5 near the top, of which a share breaks down to 1. Where the means are even,
    the other answers of the variant make up for it."""
    base = np.array([0, 0, 0, 4 * share, 1 - 4 * share]) if even else np.array([0, 0, 0, 0.2, 0.8])
    rest = np.array([0, 0, 0, 0, 1.0]) if even else base
    variant = (1 - share) * rest + share * np.array([1.0, 0, 0, 0, 0])

    def sample(draw, shape):
        place = draw.random(shape)
        apart = np.where(draw.random(shape) < 0.5, place, draw.random(shape))
        return bands(variant, apart) - bands(base, place)

    mean = _mean_of(variant) - _mean_of(base)
    return Law(sample, mean, f"{share:.0%} fall to 1")


def skewed(mean, side):
    """Fine scores with one long tail, below (-1) or above (1)."""

    def sample(draw, shape):
        return np.clip(mean + side * 0.1 * (draw.exponential(size=shape) - 1), -1, 1)

    return Law(sample, mean, "sd 0.1")


def judges(mean):
    """Scores from 1 to 5 by three judges, each with a leaning of its own."""
    lean = np.array([-0.3, 0.0, 0.3])

    def sample(draw, shape):
        quality = draw.normal(3.2, 0.7, (*shape, 1))
        scores = [
            np.clip(np.rint(quality + lean + draw.normal(0, 0.6, (*shape, 3))), 1, 5)
            for _ in range(2)
        ]
        return np.asarray(mean + (scores[0] - scores[1]).mean(axis=-1) / 4)

    return Law(sample, mean, "each its own leaning")


def ties(wins, losses):
    """Wins, losses, and ties for the rest."""

    def sample(draw, shape):
        place = draw.random(shape)
        return np.where(place < wins, 1.0, np.where(place < wins + losses, -1.0, 0.0))

    return Law(sample, wins - losses, f"{wins:.1%} won, {losses:.1%} lost")


def _laws(gap):
    """The laws that errors are counted under: the means are equal (a gap of 0), or the variant is
    worse, by `gap` where that can be chosen."""
    even = gap == 0
    likert, ceiling = (EVEN, CEILING) if even else (LOWER, BELOW_CEILING)
    return {
        "normal": normal(-gap, 0.15),
        "Likert": paired(likert, EVEN),
        "ceiling": paired(ceiling, CEILING),
        "2 % breakdowns, coarse": coarse_breakdowns(0.02, even=even),
        "5 % breakdowns, coarse": coarse_breakdowns(0.05, even=even),
        "2 % breakdowns, fine": breakdowns(0.02, 0.6, 0.012 if even else 0.0),
        "5 % breakdowns, fine": breakdowns(0.05, 0.6, 0.03 if even else 0.0),
        "skewed below": skewed(-gap, -1),
        "skewed above": skewed(-gap, 1),
        "clusters of 4": paired(likert, EVEN, 4),
        "clusters of 10": paired(likert, EVEN, 10),
        "three judges": judges(-gap),
        "95 % ties": ties(0.025, 0.025) if even else ties(0.01, 0.04),
    }


EQUAL = _laws(0.0)
"""Nothing is to be found: the means are equal."""
WORSE = _laws(0.05)
"""The variant is worse by exactly the law's mean, which is the margin it is held to."""
HARMLESS = {
    "normal, sd 0.05": normal(0.0, 0.05),
    "normal, sd 0.15": normal(0.0, 0.15),
    "Likert": paired(EVEN, EVEN),
    "ceiling": paired(CEILING, CEILING),
    "clusters of 4": paired(EVEN, EVEN, 4),
    "three judges": judges(0.0),
    "95 % ties": ties(0.025, 0.025),
}
"""The variant is as good as the baseline, and a gate with a margin ought to let it pass."""
HIGHER = np.array([0.03, 0.09, 0.21, 0.33, 0.34])
CLEAR = {
    "Likert": paired(HIGHER, EVEN),
    "normal, sd 0.3": normal(0.18, 0.3),
    "normal, sd 0.2": normal(0.12, 0.2),
    "normal, sd 0.15": normal(0.09, 0.15),
    "normal, sd 0.1": normal(0.06, 0.1),
    "normal, sd 0.05": normal(0.03, 0.05),
    "wins and losses": ties(0.757, 0.243),
}
"""The variant is better, by 0.6 standard deviations of the differences."""
