"""Does a difference differ between the values of a field? Wald's test, by question.

Every value has a mean difference, each question weighing alike, and every question an influence on
each of these means: how far it moves them. Their products are the covariance of the means, whether
questions are shared between the values or not. The test is Hotelling's (1931) with the degrees of
freedom of Welch (1947), so that a value with few questions does not pass for a sure one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import fdtrc, stdtrit

from evenhand.stats.estimate import HALF
from evenhand.stats.observations import Floats, Ints


@dataclass(frozen=True, slots=True)
class Interaction:
    """The p value of no interaction; of two values, how much greater the difference is on the
    second, with its interval. None where nothing can be said."""

    p: float | None = None
    gap: float | None = None
    low: float | None = None
    high: float | None = None


def interaction(
    gaps: Floats, cluster: Ints, value: Ints, values: int, level: float = 0.95
) -> Interaction:
    """Test paired differences, each of a question (`cluster`) and on one value of a field. Values
    with fewer than two questions are left out of the test."""
    means, moves, counts = _by_value(gaps, cluster, value, values)
    gap = float(means[1] - means[0]) if values == 2 and counts.all() else None
    tested = counts > 1
    rank = int(tested.sum()) - 1
    if rank < 1:
        return Interaction(gap=gap)
    means, moves, counts = means[tested], moves[:, tested], counts[tested]
    apart = moves[:, 1:] - moves[:, :1]
    covariance, variances = apart.T @ apart, (moves**2).sum(axis=0)
    reach = float(np.abs(gaps).max())
    if np.linalg.matrix_rank(covariance, tol=(1e-9 * reach) ** 2) < rank:
        # Nothing varies: half a question of each value may lie at either end of what was seen.
        unseen = HALF * (reach**2 + means**2) / counts**2
        variances = variances + unseen
        covariance = covariance + np.diag(unseen[1:]) + unseen[0]
    if not reach:
        return Interaction(gap=gap)
    freedom = min(
        len(moves) - 1,
        float(variances.sum() ** 2 / (variances**2 / (counts - 1)).sum()),
    )
    rest = freedom - rank + 1
    if rest <= 0:
        return Interaction(gap=gap)
    from_first = means[1:] - means[0]
    statistic = float(from_first @ np.linalg.solve(covariance, from_first))
    p = float(fdtrc(rank, rest, statistic * rest / (rank * freedom)))
    if gap is None:
        return Interaction(p)
    wide = float(stdtrit(freedom, (1 + level) / 2)) * sqrt(float(covariance[0, 0]))
    return Interaction(p, gap, gap - wide, gap + wide)


def _by_value(
    gaps: Floats, cluster: Ints, value: Ints, values: int
) -> tuple[Floats, Floats, Floats]:
    """Return the mean on each value, each question's influence on it, and how many it has."""
    place = np.unique(cluster, return_inverse=True)[1]
    questions = int(place.max(initial=-1)) + 1
    at, size = place * values + value, questions * values
    sizes = np.bincount(at, minlength=size).reshape(questions, values)
    sums = np.bincount(at, gaps, size).reshape(questions, values)
    there = sizes > 0
    each = np.divide(sums, sizes, out=np.zeros(sums.shape), where=there)
    counts = there.sum(axis=0).astype(np.float64)
    means = each.sum(axis=0) / np.maximum(counts, 1)
    # By leaving out each question: what it moves grows by n / (n - 1), and sqrt((n - 1) / n) of it.
    spread = np.sqrt(counts * np.maximum(counts - 1, 1))
    moves = np.where(there, each - means, 0.0) / np.maximum(spread, 1)
    return means, moves, counts
