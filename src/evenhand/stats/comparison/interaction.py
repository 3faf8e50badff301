"""Does a difference differ from place to place? A permutation test that respects questions.

Every question has a sum of paired differences for each level (each model, each evaluation set). If
the levels are alike, it does not matter which level a sum is called by. Where questions have
several levels, their sums change places within each question, so that what a question has of its
own cancels out; where each question has one level, whole questions change places between levels.
The p value is the share of arrangements whose levels lie at least as far apart as the observed:
exact where all can be gone through, else of a sample of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import factorial, prod, sqrt
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from evenhand.stats.tables import Bools, Floats, Ints

Design = Literal["within questions", "between questions"]
ENUMERATED = 20_000
"""Arrangements up to which all are gone through."""
ROUNDS = 9_999
MOVED = 2_000
"""How many questions move by themselves; of more, some that have the same levels move together."""


@dataclass(frozen=True, slots=True)
class LevelTest:
    """A p value, None where there is nothing to arrange; whether it is exact; what was moved."""

    p: float | None
    exact: bool
    design: Design


@dataclass(frozen=True, slots=True)
class _Cells:
    """The sum of differences of each question (row) on each level (column), and of how many."""

    sums: Floats
    sizes: Floats

    @property
    def present(self) -> Bools:
        return np.asarray(self.sizes > 0)


def level_test(gaps: Floats, cluster: Ints, level: Ints, levels: int, seed: int = 0) -> LevelTest:
    """The test of paired differences, each of a question (`cluster`) and on one of some levels."""
    cells = _merged(_cells(gaps, cluster, level, levels))
    several = cells.present.sum(axis=1) > 1
    design: Design = "within questions" if several.any() else "between questions"
    if cells.present.any(axis=0).sum() < 2 or cells.sizes.shape[0] < 2:
        return LevelTest(None, True, design)
    number = _ways_within(cells) if several.any() else _ways_between(cells)
    observed = _apart(cells.sums.sum(axis=0)[None], cells.sizes.sum(axis=0)[None])[0]
    if number <= ENUMERATED:
        every = _every_within(cells) if several.any() else _every_between(cells)
        return LevelTest(float((_apart(*every) >= _least(observed)).mean()), True, design)
    generator = np.random.default_rng(seed)
    sampled = _some_within(cells, generator) if several.any() else _some_between(cells, generator)
    hits = int((_apart(*sampled) >= _least(observed)).sum())
    return LevelTest((hits + 1) / (ROUNDS + 1), False, design)


def _least(observed: float) -> float:
    """From where on an arrangement counts as lying as far apart, whatever the rounding."""
    return observed - 1e-9 * max(1.0, abs(observed))


def _cells(gaps: Floats, cluster: Ints, level: Ints, levels: int) -> _Cells:
    place = np.unique(cluster, return_inverse=True)[1]
    size = (int(place.max(initial=-1)) + 1) * levels
    at = place * levels + level
    sums = np.bincount(at, gaps, size).reshape(-1, levels).astype(np.float64)
    return _Cells(sums, np.bincount(at, minlength=size).reshape(-1, levels).astype(np.float64))


def _merged(cells: _Cells) -> _Cells:
    """At most about MOVED rows: of more, some that have the same levels are moved together. That is
    as valid a test, and what it takes no longer grows with the number of questions."""
    count = cells.sizes.shape[0]
    if count <= MOVED:
        return cells
    pattern = np.unique(cells.present, axis=0, return_inverse=True)[1].reshape(-1)
    groups = np.unique(pattern * MOVED + np.arange(count) % MOVED, return_inverse=True)[1]
    sums, sizes = np.zeros((2, int(groups.max()) + 1, cells.sizes.shape[1]))
    np.add.at(sums, groups, cells.sums)
    np.add.at(sizes, groups, cells.sizes)
    return _Cells(sums, sizes)


def _apart(sums: Floats, sizes: Floats) -> Floats:
    """How far the means of levels lie apart, up to what no arrangement changes."""
    return np.asarray((sums**2 / np.where(sizes > 0, sizes, np.inf)).sum(axis=1))


_Totals = tuple[Floats, Floats]
"""Of each arrangement (row) and level (column): the sum, and of how many."""


def _ways_within(cells: _Cells) -> int:
    return prod(factorial(int(n)) for n in cells.present.sum(axis=1))


def _orders(cells: _Cells) -> Iterator[tuple[Floats, Floats]]:
    """Of each question, its sums and sizes in every order of its levels."""
    levels = cells.sizes.shape[1]
    for sums, sizes, present in zip(cells.sums, cells.sizes, cells.present, strict=True):
        there = np.flatnonzero(present)
        orders = np.array(list(permutations(there)))
        rows = np.zeros((2, len(orders), levels))
        rows[0][:, there], rows[1][:, there] = sums[orders], sizes[orders]
        yield rows[0], rows[1]


def _every_within(cells: _Cells) -> _Totals:
    sums, sizes = np.zeros((2, 1, cells.sizes.shape[1]))
    for more_sums, more_sizes in _orders(cells):
        sums = (sums[:, None] + more_sums[None]).reshape(-1, sums.shape[1])
        sizes = (sizes[:, None] + more_sizes[None]).reshape(-1, sizes.shape[1])
    return sums, sizes


def _some_within(cells: _Cells, generator: np.random.Generator) -> _Totals:
    sums, sizes = np.zeros((2, ROUNDS, cells.sizes.shape[1]))
    for row_sums, row_sizes, present in zip(cells.sums, cells.sizes, cells.present, strict=True):
        there = np.flatnonzero(present)
        order = there[np.argsort(generator.random((ROUNDS, there.size)), axis=1)]
        sums[:, there] += row_sums[order]
        sizes[:, there] += row_sizes[order]
    return sums, sizes


def _ways_between(cells: _Cells) -> int:
    counts = [int(n) for n in cells.present.sum(axis=0)]
    return factorial(sum(counts)) // prod(map(factorial, counts))


def _every_between(cells: _Cells) -> _Totals:
    """Each question on each level in turn, as long as the level has room."""
    room = cells.present.sum(axis=0)
    levels = room.size
    sums, sizes, filled = np.zeros((3, 1, levels))
    for total, size in zip(cells.sums.sum(axis=1), cells.sizes.sum(axis=1), strict=True):
        parts: list[tuple[Floats, Floats, Floats]] = []
        for level in range(levels):
            free = filled[:, level] < room[level]
            step = np.eye(levels)[level]
            moved = (sums[free] + total * step, sizes[free] + size * step, filled[free] + step)
            parts.append(moved)
        sums, sizes, filled = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sums, sizes


def _some_between(cells: _Cells, generator: np.random.Generator) -> _Totals:
    totals, of = cells.sums.sum(axis=1), cells.sizes.sum(axis=1)
    level, levels = cells.present.argmax(axis=1), cells.sizes.shape[1]
    sums, sizes = np.zeros((2, ROUNDS, levels))
    for number in range(ROUNDS):
        order = generator.permutation(level)
        sums[number] = np.bincount(order, totals, levels)
        sizes[number] = np.bincount(order, of, levels)
    return sums, sizes


@dataclass(frozen=True, slots=True)
class Gap:
    """How much greater the mean difference is on one level than on another, with its interval: None
    where nothing varies, or leaving out a question leaves a level without any."""

    value: float
    low: float | None
    high: float | None


def gap_between(gaps: Floats, cluster: Ints, level: Ints, confidence: float) -> Gap | None:
    """The mean on level 1 less that on level 0, with Student's interval from leaving out each
    question in turn; None where a level is empty."""
    cells = _cells(gaps, cluster, level, 2)
    sums, sizes = cells.sums.sum(axis=0), cells.sizes.sum(axis=0)
    if not sizes.all():
        return None
    value = float(sums[1] / sizes[1] - sums[0] / sizes[0])
    rest_sizes, count = sizes - cells.sizes, cells.sizes.shape[0]
    if count < 2 or not rest_sizes.all():
        return Gap(value, None, None)
    means = (sums - cells.sums) / rest_sizes
    rests = means[:, 1] - means[:, 0]
    spread = rests - rests.mean()
    error = sqrt(float(spread @ spread) * (count - 1) / count)
    if error <= 1e-12 * float(np.abs(gaps).max()):
        return Gap(value, None, None)
    reach = float(stdtrit(count - 1, (1 + confidence) / 2)) * error
    return Gap(value, value - reach, value + reach)
