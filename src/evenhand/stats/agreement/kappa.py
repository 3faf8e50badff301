"""Agreement of two raters beyond chance: Cohen's kappa, unweighted and weighted.

A disagreement weighs 1 (unweighted), the distance of the two scores (linear), or its square
(quadratic). Distances are those of the values, not of their places among the values seen.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from evenhand.stats.agreement.coefficient import (
    NOTHING,
    Beyond,
    Coefficient,
    of_categories,
    of_distances,
    undefined,
)
from evenhand.stats.tables import Floats, Ints

Weights = Literal["linear", "quadratic"]
ONE_CATEGORY = "only one category is used"


def apart(a: Floats, b: Floats, weights: Weights | None) -> Floats:
    """How far the values of two columns are from each other, row by row."""
    if weights is None:
        return np.asarray(a != b, dtype=np.float64)
    return np.asarray(np.abs(a - b) if weights == "linear" else (a - b) ** 2)


def mean_distance(values: Floats, shares: Floats, weights: Weights | None) -> Floats:
    """How far each of the sorted values is on average from one drawn by these shares."""
    if weights is None:
        return np.asarray(1 - shares)
    total = float(values @ shares)
    if weights == "quadratic":
        return np.asarray(values**2 - 2 * values * total + float(values**2 @ shares))
    below, summed = np.cumsum(shares), np.cumsum(shares * values)
    return np.asarray(values * (2 * below - 1) - 2 * summed + total)


def kappa(
    a: Floats,
    b: Floats,
    *,
    weights: Weights | None = None,
    cluster: Ints | None = None,
    level: float = 0.95,
) -> Coefficient:
    """Cohen's kappa of two equally long columns, with its interval."""
    if a.size == 0:
        return undefined(NOTHING)
    values, places = np.unique(np.concatenate([a, b]), return_inverse=True)
    if values.size == 1:
        return undefined(ONE_CATEGORY, a.size)
    i, j = places[: a.size], places[a.size :]
    if weights:
        # On a scale from 0 to 1 a disagreement is a share of the greatest that was possible.
        values = (values - values[0]) / (values[-1] - values[0])
    of_a, of_b = (np.bincount(codes, minlength=values.size) / a.size for codes in (i, j))
    from_a, from_b = (mean_distance(values, shares, weights) for shares in (of_b, of_a))
    expected = float(of_a @ from_a)
    far = apart(values[i], values[j], weights)
    observed = float(far.mean())
    load = (from_a[i] + from_b[j]) / expected - 1
    influence = (observed * load - far) / expected
    among = np.arange(a.size) if cluster is None else cluster
    parts = Beyond(observed, expected, influence, load, far)
    if weights is None:
        return of_categories(parts, among, level)
    floor = _reachable(values[i], values[j]) ** 2 * (1.0 if weights == "quadratic" else 0.5)
    return of_distances(parts, among, level, floor)


def _reachable(a: Floats, b: Floats) -> float:
    """How large a weighted kappa can be where the sides differ in mean and spread: it is then a
    correlation, times this."""
    most = float(a.var() + b.var() + (a.mean() - b.mean()) ** 2)
    return 2 * float(a.std() * b.std()) / most


def cohen_kappa(a: npt.ArrayLike, b: npt.ArrayLike, weights: Weights | None = None) -> float | None:
    """Cohen's kappa of two raters' values; None where only one category is used."""
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"two equally long columns are needed, not {first.shape}, {second.shape}")
    return kappa(first, second, weights=weights).value
