"""Variation of answers when the same is asked again, compared between variants.

A cell is one question under one variant (and model, and set), answered in several runs. The
variance within cells is pooled by degrees of freedom; variants are compared on the cells that both
have, by the logarithm of the ratio of their variances, whose standard error comes from how far each
question moves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, log, sqrt
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from evenhand.errors import UsageError
from evenhand.observation import OVERALL
from evenhand.stats.comparison import Outcome
from evenhand.stats.estimate import holm_by_family, is_significant
from evenhand.stats.layout import lay_out
from evenhand.stats.observations import Floats, Ints, Observations, plain_name
from evenhand.stats.variants import Variants
from evenhand.words import Code, Sentence

_NOTHING = 1e-18
"""A sum of squares that is rounding alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityRow:
    """The variance of a variant and of the baseline within cells that both have. What cannot be
    computed is None."""

    dimension: str
    variant: str
    n: int
    """Cells."""
    clusters: int
    sd: float | None
    baseline_sd: float | None
    ratio: float | None
    """The variance over that of the baseline."""
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    outcome: Outcome
    """Better is steadier."""

    def out_of(self, most: float) -> StabilityRow:
        """Return it as it is shown: what is overall in points out of `most`."""
        if self.dimension != OVERALL or self.sd is None or self.baseline_sd is None:
            return self
        return replace(self, sd=most * self.sd, baseline_sd=most * self.baseline_sd)

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """The variance over repeated runs under each variant, compared with the baseline."""

    field: str
    baseline: str
    level: float
    rows: tuple[StabilityRow, ...]
    """One per variant and dimension, those of dimension `overall` last."""

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        rows = [row.json() for row in self.rows]
        return {"field": self.field, "baseline": self.baseline, "rows": rows}


def compare_stability(
    table: Observations, variants: Variants, name: str, level: float
) -> Stability:
    """Return the stability over the values of a field, variant by variant; raise UsageError where
    no cell has two of them."""
    field = plain_name(table.fields, name)
    pairing = [other for other in variants.pair_by if other != field]
    _refuse(field, variants.by, pairing)
    cells = lay_out(table, variants.by, variants.baseline, pairing)
    repeats = lay_out(table, variants.by, variants.baseline, [*pairing, field])
    cell = np.zeros(repeats.cluster.size, np.int64)
    cell[repeats.key] = cells.key
    rows: list[StabilityRow] = []
    for measure in repeats.measures:
        values = repeats.cells(measure.values)
        for place in repeats.others:
            sides = values[:, place], values[:, repeats.base]
            row = stability_row(*sides, cell, repeats.cluster, level)
            rows.append(replace(row, dimension=measure.name, variant=repeats.names[place]))
    if not any(row.n for row in rows):
        raise UsageError(
            Sentence("compare.nothing_repeated", field=field),
        )
    rows = with_outcomes(rows, level)
    return Stability(field=field, baseline=variants.baseline, level=level, rows=tuple(rows))


def _refuse(field: str, by: Sequence[str], pairing: Sequence[str]) -> None:
    if field in by:
        raise UsageError(
            Sentence("compare.is_by", flag=Code("--stability"), field=field),
        )
    if not pairing or "unit" in pairing:
        raise UsageError(
            Sentence("compare.repeats_unpaired", field=field),
        )


def stability_row(
    ours: Floats, theirs: Floats, cell: Ints, question: Ints, level: float
) -> StabilityRow:
    """Return the figures of one row, from a value of either side (nan: none) per cell and repeat;
    what its family decides is open still."""
    cells = int(cell.max(initial=-1)) + 1
    sides = [_cells(values, cell, cells) for values in (ours, theirs)]
    shared = (sides[0][0] > 1) & (sides[1][0] > 1)
    of_cell = np.zeros(cells, np.int64)
    of_cell[cell] = question
    place = np.unique(of_cell[shared], return_inverse=True)[1]
    count = int(place.max(initial=-1)) + 1
    logs, moves, variances = list[float](), np.zeros(count), list[float | None]()
    for sign, (repeats, _, squares) in zip((1, -1), sides, strict=True):
        square, free = (np.bincount(place, part[shared], count) for part in (squares, repeats - 1))
        whole, of = float(square.sum()), float(free.sum())
        variances.append(whole / of if count else None)
        if whole > _NOTHING:
            logs.append(log(whole / of))
            moves += sign * (square / whole - free / of)
    ratio = low = high = p = None
    if len(logs) == 2:
        ratio = exp(logs[0] - logs[1])
        error = sqrt(float(moves @ moves) * count / (count - 1)) if count > 1 else 0.0
        if error > 0:
            reach = float(stdtrit(count - 1, (1 + level) / 2)) * error
            low, high = ratio * exp(-reach), ratio * exp(reach)
            p = float(2 * stdtr(count - 1, -abs(log(ratio)) / error))
    return StabilityRow(
        dimension="",
        variant="",
        n=int(shared.sum()),
        clusters=count,
        sd=None if variances[0] is None else sqrt(variances[0]),
        baseline_sd=None if variances[1] is None else sqrt(variances[1]),
        ratio=ratio,
        low=low,
        high=high,
        p=p,
        p_adjusted=None,
        outcome="not enough evidence",
    )


def _cells(values: Floats, cell: Ints, cells: int) -> tuple[Ints, Floats, Floats]:
    """Return of each cell the number of its values, their mean and sum of squares."""
    scored = ~np.isnan(values)
    at, values = cell[scored], values[scored]
    count = np.bincount(at, minlength=cells)
    means = np.bincount(at, values, cells) / np.maximum(count, 1)
    squares = np.bincount(at, (values - means[at]) ** 2, cells).astype(np.float64)
    return count, means, squares


def with_outcomes(rows: Sequence[StabilityRow], level: float) -> list[StabilityRow]:
    """Return the rows with outcomes; dimensions are one family of tests, overall another."""
    adjusted = holm_by_family([row.p for row in rows], [row.dimension == OVERALL for row in rows])
    found: list[StabilityRow] = []
    for row, p in zip(rows, adjusted, strict=True):
        steadier: Outcome = "better" if (row.ratio or 1.0) < 1 else "worse"
        outcome = steadier if is_significant(p, level) else "not enough evidence"
        found.append(replace(row, p_adjusted=p, outcome=outcome))
    return found


@dataclass(frozen=True, slots=True)
class Components:
    """The variance of scores on one dimension, taken apart.

    `within` is that of one judge's repeats on one unit, `between` that of the units' true means;
    `share` is what part of the two together is within.
    """

    dimension: str
    units: int
    within: float | None
    between: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class Repeats:
    """The variance components of repeated judgments."""

    most: int
    """The most repeats that any unit has of one judge."""
    components: tuple[Components, ...]

    def out_of(self, most: float) -> Repeats:
        """Return it as it is shown: variances of what is overall in points out of `most`."""
        components = (
            replace(
                each,
                within=None if each.within is None else each.within * most**2,
                between=None if each.between is None else each.between * most**2,
            )
            if each.dimension == OVERALL
            else each
            for each in self.components
        )
        return replace(self, components=tuple(components))

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        return asdict(self)


def repeats(scores: Observations) -> Repeats | None:
    """Return what repeats tell, dimension by dimension and overall; None where nothing was judged
    twice by one judge."""
    cell = scores.unit * max(1, len(scores.judges)) + scores.judge
    cells, place, counts = np.unique(cell, return_inverse=True, return_counts=True)
    if not scores.dimensions or counts.max(initial=0) < 2:
        return None
    judge = cells % max(1, len(scores.judges))
    components = [
        _components(name, scores.column(name), place, judge)
        for name in (*scores.dimensions, OVERALL)
    ]
    return Repeats(int(counts.max()), tuple(components))


def judge_noise(table: Observations, measure: str) -> tuple[Floats, int] | None:
    """Return of each unit the variance of one judge's repeats on it, or that of all units pooled
    where it is greater, and the degrees of freedom of that; None where nothing was judged twice by
    one judge."""
    judges, size = max(1, len(table.judges)), len(table.units)
    cells, place = np.unique(table.unit * judges + table.judge, return_inverse=True)
    counts, _, squares = _cells(table.column(measure), place, cells.size)
    free = np.bincount(cells // judges, np.maximum(counts - 1, 0), size)
    if not free.any():
        return None
    own = np.bincount(cells // judges, squares, size) / np.maximum(free, 1)
    return np.maximum(own, squares.sum() / free.sum()), int(free.sum())


def _components(name: str, values: Floats, place: Ints, judge: Ints) -> Components:
    """Return one-way components by the analysis of variance, pooled over judges."""
    count, means, squares = _cells(values, place, judge.size)
    free = int((count - 1)[count > 0].sum())
    outer, outer_free, weight = 0.0, 0, 0.0
    for code in np.unique(judge):
        cells = (judge == code) & (count > 0)
        if cells.sum() > 1:
            sizes, total = count[cells], count[cells].sum()
            middle = float(sizes @ means[cells]) / total
            outer += float(sizes @ (means[cells] - middle) ** 2)
            outer_free += int(cells.sum()) - 1
            weight += float(total - (sizes**2).sum() / total)
    units = int((count > 1).sum())
    within = float(squares.sum()) / free if free else None
    if within is None or not outer_free:
        return Components(name, units, within, None, None)
    between = max(0.0, (outer - outer_free * within) / weight)
    whole = within + between
    return Components(name, units, within, between, within / whole if whole else None)
