"""When the test of a comparison may err more often than it says.

It takes each question's difference to be as likely up as down by as much, if nothing differs. That
holds where variants are alike; equal means alone are not enough. A variant that is mostly a little
better and breaks down now and then can have the same mean, and is called better whenever a sample
has fewer breakdowns than it should. What of that can be seen is told here, and what cannot.
"""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np

from evenhand.stats.comparison.means import Estimate
from evenhand.stats.tables import Floats

LARGEST = 0.05
"""The part of the questions that is looked at as the largest, at least one."""
SKEWNESS = 2.0
LEANING = 0.15
"""The skewness and its part in the error, skewness / sqrt(questions), from which on differences are
called skewed. Found by simulation: symmetric ones are in less than one sample of a hundred, and the
part adds about one error in a hundred on the side it leans to."""
LEAST = 8
"""So few differences show nothing of their shape."""


def is_lopsided(sums: Floats) -> bool:
    """Whether few large differences stand against many small ones, of one sum for each question.

    Differences that are all of one size are not, however many are up: by chance they are as likely
    down.
    """
    sizes = np.sort(np.abs(sums[sums != 0]))[::-1]
    if sizes.size < LEAST or sizes[0] - sizes[-1] <= 1e-9 * sizes[0]:
        return False
    return _is_dominated(sizes / sizes[0]) or _is_skewed(sums / sizes[0])


def _is_dominated(sizes: Floats) -> bool:
    """Whether a twentieth of the differences holds more than half of all squares."""
    squares = sizes**2
    return bool(squares[: ceil(LARGEST * sizes.size)].sum() > squares.sum() / 2)


def _is_skewed(sums: Floats) -> bool:
    rests = sums - sums.mean()
    spread = float((rests**2).mean())
    if spread <= 1e-18:
        return False
    skewness = abs(float((rests**3).mean())) / spread**1.5
    return bool(skewness > SKEWNESS and skewness / sqrt(sums.size) > LEANING)


def undoing_share(difference: float, span: float, questions: int, level: float) -> float | None:
    """The share of questions at the end of the scale that would make up for a difference, if so
    many show none of it more often than 1 - level; None if they would have shown it."""
    if not difference:
        return None
    share = abs(difference) / (abs(difference) + span)
    return share if share < unseen_share(questions, level) else None


def unseen_share(questions: int, level: float) -> float:
    """How many may be of a kind of which so many questions show none, at this level."""
    return float(1 - (1 - level) ** (1 / questions))


def is_narrow(estimate: Estimate, span: float, level: float) -> bool:
    """Whether as many questions at an end of the scale as need not have been seen would carry a
    difference out of its interval."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return False
    share = unseen_share(estimate.clusters, level)
    down, up = share * (estimate.value + span), share * (span - estimate.value)
    return estimate.value - down < estimate.low or estimate.value + up > estimate.high
