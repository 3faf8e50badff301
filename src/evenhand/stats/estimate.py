"""One way from an estimate and its standard error to an interval and a p value.

The standard error comes from questions: everything judged about one question is one observation,
however many units, judges and repeats there are. Intervals have Student's quantile for the number
of questions less one. They are computed on the figure's own scale; for log odds, and for shares as
their log odds, the interval is Wilson's (1927) for as many independent trials as would vary as
much, which on the scale of log odds is symmetric about the estimate (Newcombe, 1998).

A p value is 1 less the level at which the interval of the same estimate begins to hold the null. So
an interval and a test of one figure never disagree.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr, stdtrit

from evenhand.stats.tables import Floats

HALF = 0.5
"""How much of an observation is added to every bounded figure, a half of it at either end, so that
what was never seen is not taken to be impossible."""


def log_odds_interval(
    value: Floats, error: Floats, questions: int, level: float
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of log odds, given their standard errors."""
    quantile = stdtrit(questions - 1, (1 + level) / 2)
    reach = 2 * np.arcsinh(quantile * error / 2)
    return np.asarray(value - reach), np.asarray(value + reach)


def log_odds_p(value: Floats, error: Floats, questions: int) -> Floats:
    """Return the two-sided p values of log odds being 0; 1 where there is no spread to tell by."""
    distance = 2 * np.sinh(np.abs(value) / 2)
    statistic = np.divide(distance, error, out=np.zeros_like(distance), where=error > 0)
    return np.asarray(2 * stdtr(questions - 1, -statistic))
