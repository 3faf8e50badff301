"""Which ratings are held against which: every one of a side against every one of the other side on
the same unit, all pairs of judges among themselves, or one verdict per side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.stats.tables import Bools, Floats, Ints

TIE = 2
"""A tie, among votes turned to the order of the candidates' names."""


class Column(NamedTuple):
    """Ratings on one dimension, none missing."""

    unit: Ints
    judge: Ints
    value: Floats

    def where(self, rows: Bools) -> Column:
        return Column(self.unit[rows], self.judge[rows], self.value[rows])


class Pairs(NamedTuple):
    """Ratings held against each other, row by row."""

    unit: Ints
    a: Floats
    b: Floats

    def where(self, rows: Bools) -> Pairs:
        return Pairs(self.unit[rows], self.a[rows], self.b[rows])

    @property
    def units(self) -> int:
        return int(np.unique(self.unit).size)


def against(first: Column, second: Column) -> Pairs:
    """Every rating of one side with every rating of the other on the same unit."""
    i, j = _crossed(first.unit, second.unit)
    return Pairs(first.unit[i], first.value[i], second.value[j])


def among(column: Column) -> Pairs:
    """Every two ratings of one unit by different judges, each two once."""
    i, j = _crossed(column.unit, column.unit)
    once = column.judge[i] < column.judge[j]
    i, j = i[once], j[once]
    return Pairs(column.unit[i], column.value[i], column.value[j])


def _crossed(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """The places of all pairs of rows with equal units."""
    order = np.argsort(second, kind="stable")
    starts = np.searchsorted(second[order], first, "left")
    counts = np.searchsorted(second[order], first, "right") - starts
    i = np.repeat(np.arange(first.size), counts)
    within = np.arange(i.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return i, order[np.repeat(starts, counts) + within]


def majority(column: Column, split: int = TIE, *, each: bool = False) -> Column:
    """One vote per unit (and judge), the most frequent; without a single one it is `split`."""
    unit, judge, place = _grouped(column, each)
    counts = np.bincount(place * 3 + column.value.astype(np.int64), minlength=unit.size * 3)
    return Column(unit, judge, _most(counts.reshape(-1, 3), split))


def _grouped(column: Column, each: bool) -> tuple[Ints, Ints, Ints]:
    judge = column.judge if each else np.zeros_like(column.judge)
    span = int(judge.max(initial=0)) + 1
    keys, place = np.unique(column.unit * span + judge, return_inverse=True)
    return keys // span, keys % span, place


def _most(counts: Ints, split: int) -> Floats:
    top = counts.max(axis=1, keepdims=True, initial=0)
    single = (counts == top).sum(axis=1) == 1
    return np.where(single, counts.argmax(axis=1), split).astype(np.float64)


def mean(column: Column, *, each: bool = False) -> Column:
    """One score per unit (and judge): the mean."""
    unit, judge, place = _grouped(column, each)
    sums = np.bincount(place, column.value, minlength=unit.size)
    return Column(unit, judge, sums / np.maximum(np.bincount(place, minlength=unit.size), 1))


def others(column: Column, split: int = TIE) -> Pairs:
    """Every vote with the majority of the other judges' votes on its unit; one vote per judge."""
    code = column.value.astype(np.int64)
    size = int(column.unit.max(initial=-1)) + 1
    counts = np.bincount(column.unit * 3 + code, minlength=size * 3).reshape(-1, 3)
    rest = counts[column.unit]
    rest[np.arange(code.size), code] -= 1
    pairs = Pairs(column.unit, column.value, _most(rest, split))
    return pairs.where(rest.sum(axis=1) > 0)
