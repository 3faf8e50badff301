"""Coefficients of agreement of two columns of ratings, or of a panel, each with its interval.

Cohen's kappa (1960), with quadratic weights for scores (1968); Krippendorff's alpha (2004), nominal
and interval; Pearson's, Spearman's and Kendall's (tau-b) correlations. All are functions of sums
over ratings, so that leaving out a question is a subtraction; the interval comes from what the
figure is without each question. Shares, means and errors have the intervals of `estimate.mean`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from evenhand.stats.estimate import Estimate, correlation_interval, difference, mean
from evenhand.stats.observations import Bools, Floats, Ints

TIE = 2
"""A tie; 0 and 1 are the candidates of a pair in the order of their names."""
CATEGORIES = 20
"""Different scores up to which each counts as a category."""
LARGEST = 3_000
"""Ratings up to which every two are compared for Kendall's tau-b."""
NOTHING = "nothing to compare"
SAME = "all rated the same"
TOO_MANY = "too many different scores"
MANY = "too many ratings"


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A figure with its interval from `n` observations; None where it is not defined, and why."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    why: str = ""


def no_coefficient(why: str, n: int = 0) -> Coefficient:
    """Return no figure, and the reason."""
    return Coefficient(None, None, None, n, why)


def share(hits: Floats, question: Ints, level: float) -> Coefficient:
    """Return the mean of values from 0 to 1."""
    return of_estimate(mean(hits, question, (0.0, 1.0), level, weigh="units"))


def of_estimate(estimate: Estimate) -> Coefficient:
    """Return a mean or difference of the core."""
    why = "" if estimate.n else NOTHING
    return Coefficient(estimate.value, estimate.low, estimate.high, estimate.n, why)


def bias(a: Floats, b: Floats, question: Ints, span: float, level: float) -> Coefficient:
    """Return the mean difference of two columns on a scale of this span."""
    return of_estimate(difference(a - b, question, span, level))


def errors(
    a: Floats, b: Floats, question: Ints, span: float, level: float
) -> dict[str, Coefficient]:
    """Return the mean absolute error and the root of the mean squared one."""
    squared = mean((a - b) ** 2, question, (0.0, span**2), level, weigh="units")
    low, value, high = (
        None if part is None else sqrt(part) for part in (squared.low, squared.value, squared.high)
    )
    absolute = mean(np.abs(a - b), question, (0.0, span), level, weigh="units")
    return {"mae": of_estimate(absolute), "rmse": Coefficient(value, low, high, a.size)}


def kappa(
    a: Floats, b: Floats, question: Ints, level: float = 0.95, *, quadratic: bool = False
) -> Coefficient:
    """Return Cohen's kappa; undefined where either side has one rating for all."""
    if why := _why_undefined(a, b):
        return no_coefficient(why, a.size)
    if quadratic:
        a, b = a - a.mean(), b - a.mean()
        columns = [a, b, a**2 + b**2, (a - b) ** 2]
        return _beyond_chance(_quadratic_disagreement, columns, question, level)
    levels = np.unique(np.concatenate([a, b]))
    if levels.size > CATEGORIES:
        return no_coefficient(TOO_MANY, a.size)
    columns = [a != b, *(side == each for side in (a, b) for each in levels)]
    return _beyond_chance(_disagreement, columns, question, level)


def _why_undefined(a: Floats, b: Floats) -> str:
    if a.size < 2:
        return NOTHING
    return SAME if np.ptp(a) == 0 or np.ptp(b) == 0 else ""


Disagreement = Callable[..., tuple[Floats, Floats]]
"""The disagreement observed and that expected by chance, from the number and sums of ratings."""


def _disagreement(size: Floats, apart: Floats, *counts: Floats) -> tuple[Floats, Floats]:
    half = len(counts) // 2
    chance = sum(x * y for x, y in zip(counts[:half], counts[half:], strict=True)) / size**2
    return apart / size, 1 - chance


def _quadratic_disagreement(
    size: Floats, a: Floats, b: Floats, squares: Floats, apart: Floats
) -> tuple[Floats, Floats]:
    return apart / size, squares / size - 2 * a * b / size**2


def alpha(
    item: Ints, value: Floats, question: Ints, level: float = 0.95, *, interval: bool = False
) -> Coefficient:
    """Return Krippendorff's alpha of ratings of items; `question` is that of each item. Distances
    are squared differences with `interval`, else 0 or 1."""
    per_item = np.bincount(item, minlength=question.size)
    kept = per_item[item] > 1
    item, value, several = item[kept], value[kept], per_item > 1
    if not item.size or np.ptp(value) == 0:
        return no_coefficient(SAME if item.size else NOTHING, int(several.sum()))
    levels = np.unique(value)
    if not interval and levels.size > CATEGORIES:
        return no_coefficient(TOO_MANY, int(several.sum()))
    value = value - value.mean() if interval else value

    def sum_up(weights: Floats) -> Floats:
        return np.bincount(item, weights, question.size)[several].astype(np.float64)

    size = per_item[several].astype(np.float64)
    if interval:
        columns = [sum_up(value), sum_up(value**2)]
        apart = 2 * (size * columns[1] - columns[0] ** 2) / (size - 1)
    else:
        columns = [sum_up((value == each).astype(np.float64)) for each in levels]
        apart = (size**2 - sum(counts**2 for counts in columns)) / (size - 1)
    expected = _interval_chance if interval else _nominal_chance
    return _beyond_chance(expected, [size, apart, *columns], question[several], level)


def _nominal_chance(
    _: Floats, size: Floats, apart: Floats, *counts: Floats
) -> tuple[Floats, Floats]:
    same = sum(count**2 for count in counts)
    return apart / size, (size**2 - same) / size / (size - 1)


def _interval_chance(
    _: Floats, size: Floats, apart: Floats, total: Floats, squares: Floats
) -> tuple[Floats, Floats]:
    return apart / size, 2 * (size * squares - total**2) / size / (size - 1)


def _without_each(columns: Sequence[Floats], question: Ints) -> Floats:
    """Return the number of observations and the sums of columns, a row each: without each question
    in turn, and last of all."""
    place = np.unique(question, return_inverse=True)[1]
    sums = np.stack([np.bincount(place, column) for column in (np.ones(place.size), *columns)])
    return np.asarray(sums.sum(axis=1, keepdims=True) - np.pad(sums, ((0, 0), (0, 1))))


def _beyond_chance(
    disagreement: Disagreement, columns: Sequence[Floats], question: Ints, level: float
) -> Coefficient:
    """Return 1 less the disagreement observed over that expected by chance.

    The spread is at least that of the disagreement with chance held fast: a small sample may not
    show how rare categories vary.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        observed, expected = disagreement(*_without_each(columns, question))
        values, steady = 1 - observed / expected, 1 - observed / expected[-1]
    value = float(values[-1])
    low, high = correlation_interval(value, values[:-1], steady[:-1], level=level)
    return Coefficient(value, low, high, question.size)


def pearson(a: Floats, b: Floats, question: Ints, level: float = 0.95) -> Coefficient:
    """Return the linear correlation."""
    if why := _why_undefined(a, b):
        return no_coefficient(why, a.size)
    x, y = ((side - side.mean()) / side.std() for side in (a, b))

    def correlation(
        size: Floats, x: Floats, y: Floats, xx: Floats, yy: Floats, xy: Floats
    ) -> Floats:
        return (xy - x * y / size) / np.sqrt((xx - x**2 / size) * (yy - y**2 / size))

    return _correlation(correlation, [x, y, x**2, y**2, x * y], question, level)


def spearman(a: Floats, b: Floats, question: Ints, level: float = 0.95) -> Coefficient:
    """Return the correlation of ranks, equal scores sharing theirs."""
    if why := _why_undefined(a, b):
        return no_coefficient(why, a.size)
    x, y = _ranks(a), _ranks(b)
    # A rating moves the product it is in, and the ranks of all others (Hajek's projection).
    columns = [2 * _lift(x, x), 2 * _lift(y, y), _lift(x, y) + _lift(y, x)]
    products = [x * x, y * y, x * y]
    moved = [
        product + lifted - lifted.mean() for product, lifted in zip(products, columns, strict=True)
    ]
    return _correlation(_ratio, moved, question, level)


def _ratio(_: Floats, xx: Floats, yy: Floats, xy: Floats) -> Floats:
    return np.asarray(xy / np.sqrt(xx * yy))


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value as a share of all, less one half."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - counts / 2)[place] / values.size - 0.5)


def _lift(ranks: Floats, effect: Floats) -> Floats:
    """Return for each rating the mean of `effect` over those that it lifts in rank, half over its
    equals."""
    _, place = np.unique(ranks, return_inverse=True)
    sums = np.bincount(place, effect)
    return np.asarray((sums.sum() - np.cumsum(sums) + sums / 2)[place] / ranks.size)


def kendall(a: Floats, b: Floats, question: Ints, level: float = 0.95) -> Coefficient:
    """Return tau-b: pairs in the same order less those in opposite order, ties allowed for."""
    if why := _why_undefined(a, b) or (MANY if a.size > LARGEST else ""):
        return no_coefficient(why, a.size)
    x, y = (np.sign(np.subtract.outer(side, side)).astype(np.int8) for side in (a, b))
    means = [(part != 0).mean(axis=1) for part in (x, y)] + [(x * y).mean(axis=1)]
    return _correlation(_ratio, [2 * part - part.mean() for part in means], question, level)


def _correlation(
    function: Callable[..., Floats], columns: Sequence[Floats], question: Ints, level: float
) -> Coefficient:
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.clip(function(*_without_each(columns, question)), -1, 1)
    value = float(values[-1])
    low, high = correlation_interval(value, values[:-1], level=level)
    return Coefficient(value, low, high, question.size)


# Ratings of the same units, brought together


class Column(NamedTuple):
    """Ratings on one dimension, none missing."""

    unit: Ints
    judge: Ints
    value: Floats

    def where(self, rows: Bools) -> Column:
        """Return some of the ratings."""
        return Column(self.unit[rows], self.judge[rows], self.value[rows])


class Pairs(NamedTuple):
    """Ratings held against each other, row by row."""

    unit: Ints
    a: Floats
    b: Floats

    def where(self, rows: Bools) -> Pairs:
        """Return some of the rows."""
        return Pairs(self.unit[rows], self.a[rows], self.b[rows])


def against(first: Column, second: Column) -> Pairs:
    """Return every rating of one side with every rating of the other on the same unit."""
    i, j = _cross(first.unit, second.unit)
    return Pairs(first.unit[i], first.value[i], second.value[j])


def among(column: Column) -> Pairs:
    """Return every two ratings of one unit by different judges, each two once."""
    i, j = _cross(column.unit, column.unit)
    once = column.judge[i] < column.judge[j]
    return Pairs(column.unit[i], column.value[i], column.value[j]).where(once)


def _cross(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return the places of all pairs of rows with equal units."""
    order = np.argsort(second, kind="stable")
    starts = np.searchsorted(second[order], first, "left")
    counts = np.searchsorted(second[order], first, "right") - starts
    i = np.repeat(np.arange(first.size), counts)
    within = np.arange(i.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return i, order[np.repeat(starts, counts) + within]


def one_per_unit(column: Column, *, is_votes: bool, each: bool = False) -> Column:
    """Return one rating per unit, or per unit and judge: of votes the most frequent, a tie where no
    single one is; of scores the mean."""
    judge = column.judge if each else np.zeros_like(column.judge)
    span = int(judge.max(initial=0)) + 1
    keys, place = np.unique(column.unit * span + judge, return_inverse=True)
    counts = np.bincount(place, minlength=keys.size)
    values = np.bincount(place, column.value, keys.size) / np.maximum(counts, 1)
    if is_votes:
        table = np.bincount(place * 3 + column.value.astype(np.int64), minlength=keys.size * 3)
        table = table.reshape(-1, 3)
        is_single = (table == table.max(axis=1, keepdims=True, initial=0)).sum(axis=1) == 1
        values = np.where(is_single, table.argmax(axis=1), TIE).astype(np.float64)
    return Column(keys // span, keys % span, values)
