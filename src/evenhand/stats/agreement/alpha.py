"""Krippendorff's alpha and Gwet's AC: agreement of any number of raters beyond chance.

Ratings come as two columns, `item` and `value`, a row per rating: an item may have any number of
ratings, and one alone says nothing about agreement.
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
from evenhand.stats.agreement.kappa import ONE_CATEGORY, Weights, apart
from evenhand.stats.agreement.ranks import lifted, midranks
from evenhand.stats.tables import Floats, Ints

Level = Literal["nominal", "ordinal", "interval"]
NO_PAIR = "nothing has two ratings"


def alpha(
    item: Ints,
    value: Floats,
    *,
    scale: Level,
    cluster: Ints | None = None,
    level: float = 0.95,
) -> Coefficient:
    """Krippendorff's alpha; `cluster` is of each item, and items hang together within it."""
    item, value, among = _rated_twice(item, value, cluster)
    if value.size == 0:
        return undefined(NO_PAIR)
    sizes = np.bincount(item).astype(np.float64)
    if scale == "ordinal":
        value = midranks(value)
    if value.min() == value.max():
        return undefined(ONE_CATEGORY, sizes.size)
    counted = _nominal if scale == "nominal" else _squared
    within, reach, total = counted(item, value)
    n, items = value.size, sizes.size
    within = within / (sizes - 1)
    observed, expected = float(within.sum()) / n, total / n / (n - 1)
    # An item adds to the expected disagreement, and to the ratings that share it.
    load = items * (2 * np.bincount(item, reach) / total - sizes / (n - 1))
    influence = (observed * load - items * within / n) / expected
    if scale == "ordinal":
        lift = _lift(item, value, observed / expected)
        influence -= items / n * np.bincount(item, lift) / expected
    parts = Beyond(observed, expected, influence, load, items * within / n)
    return (of_categories if scale == "nominal" else of_distances)(parts, among, level)


def _rated_twice(item: Ints, value: Floats, cluster: Ints | None) -> tuple[Ints, Floats, Ints]:
    """The ratings of items that have at least two, items numbered anew, and their clusters."""
    counts = np.bincount(item)
    rows = counts[item] > 1
    items, places = np.unique(item[rows], return_inverse=True)
    among = np.arange(items.size) if cluster is None else cluster[items]
    return places, value[rows], among


def _nominal(item: Ints, value: Floats) -> tuple[Floats, Floats, float]:
    """Of each item how many ordered pairs of its ratings differ; of each rating how many of all
    differ from it; and how many ordered pairs of all do."""
    levels, code = np.unique(value, return_inverse=True)
    totals = np.bincount(code).astype(np.float64)
    cells, counts = np.unique(item * levels.size + code, return_counts=True)
    alike = np.bincount(cells // levels.size, counts.astype(np.float64) ** 2)
    within = np.asarray(np.bincount(item).astype(np.float64) ** 2 - alike)
    return within, value.size - totals[code], float(value.size**2 - totals @ totals)


def _squared(item: Ints, value: Floats) -> tuple[Floats, Floats, float]:
    """The same, each pair weighing the square of its difference."""
    value = (value - value.mean()) / np.ptp(value)
    sizes = np.bincount(item)
    square = float(value @ value)
    within = np.asarray(2 * (sizes * np.bincount(item, value**2) - np.bincount(item, value) ** 2))
    # Rounding may leave a trace where all ratings of an item are equal.
    within = np.where(within < 1e-12 * square, 0.0, within)
    return within, value.size * value**2 + square, 2 * value.size * square


def _lift(item: Ints, ranks: Floats, ratio: float) -> Floats:
    """How far each rating moves the disagreement by moving the ranks of the others."""
    span = float(np.ptp(ranks))
    ranks = (ranks - ranks.mean()) / span
    sizes, sums = np.bincount(item), np.bincount(item, ranks)
    observed = (sizes[item] * ranks - sums[item]) / (sizes[item] - 1)
    lift = lifted(ranks, 4 * (observed - ratio * ranks)) / span
    return np.asarray(lift - lift.mean())


def gwet(
    item: Ints,
    value: Floats,
    *,
    weights: Weights | None = None,
    cluster: Ints | None = None,
    level: float = 0.95,
) -> Coefficient:
    """Gwet's AC1, or AC2 with weights; chance is that of raters who guess among the categories."""
    if value.size == 0:
        return undefined(NOTHING)
    levels, code = np.unique(value, return_inverse=True)
    items, item = np.unique(item, return_inverse=True)
    among = np.arange(items.size) if cluster is None else cluster[items]
    counts = np.bincount(item * levels.size + code, minlength=items.size * levels.size)
    counts = counts.reshape(items.size, levels.size).astype(np.float64)
    sizes = counts.sum(axis=1)
    paired = sizes > 1
    if not paired.any():
        return undefined(NO_PAIR, 0)
    if levels.size == 1:
        return undefined(ONE_CATEGORY, int(paired.sum()))
    near = _nearness(levels, weights)
    pairs = np.where(paired, sizes * (sizes - 1), 1.0)
    alike = ((counts @ near * counts).sum(axis=1) - sizes) / pairs
    shares = counts / sizes[:, None]
    mean = shares.mean(axis=0)
    guessed = near.sum() / levels.size / (levels.size - 1)
    observed, chance = 1 - float(alike[paired].mean()), guessed * float(mean @ (1 - mean))
    expected = 1 - chance
    moved = -guessed * ((shares - mean) @ (1 - 2 * mean))
    deviation = np.where(paired, (1 - alike - observed) * items.size / paired.sum(), 0.0)
    influence = (observed / expected * moved - deviation) / expected
    parts = Beyond(
        max(observed, 0.0), expected, influence, 1 + moved / expected, deviation + observed
    )
    coefficient = of_categories(parts, among, level)
    return Coefficient(
        coefficient.value, coefficient.low, coefficient.high, int(paired.sum()), coefficient.why
    )


def _nearness(levels: Floats, weights: Weights | None) -> Floats:
    """How far two categories count as agreement: from 0 to 1."""
    if weights is None:
        return np.eye(levels.size)
    scaled = (levels - levels[0]) / (levels[-1] - levels[0])
    return 1 - apart(scaled[:, None], scaled[None, :], weights)


def _ratings(matrix: npt.ArrayLike) -> tuple[Ints, Floats]:
    """A row per rater, a column per item, nan or None where there is no rating: as two columns."""
    table = np.asarray(matrix, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"a row a rater and a column an item are needed, not {table.shape}")
    _, item = np.nonzero(~np.isnan(table))
    return item, table[~np.isnan(table)]


def krippendorff_alpha(matrix: npt.ArrayLike, level: Level = "nominal") -> float | None:
    """Krippendorff's alpha of raters in rows and items in columns; None where it is undefined."""
    item, value = _ratings(matrix)
    return alpha(item, value, scale=level).value


def gwet_ac(matrix: npt.ArrayLike, weights: Weights | None = None) -> float | None:
    """Gwet's AC1 (AC2 with weights) of raters in rows and items in columns."""
    item, value = _ratings(matrix)
    return gwet(item, value, weights=weights).value
