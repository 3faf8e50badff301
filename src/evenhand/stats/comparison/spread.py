"""How far answers waver when the same is asked again, and whether one variant wavers more.

A cell is one question under one variant (and model, and set), answered in several runs. The
variance within cells, pooled by their degrees of freedom, is what repeated runs differ by. Variants
are compared on the cells that both have: the ratio of their variances, with an interval from
leaving out each question in turn on the log scale, and a sign-flip test of the differences of the
cells' variances, summed by question: exact whatever the distribution of scores, where that of
variances or of F would take them to be normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, log, sqrt
from typing import Any

import numpy as np
from scipy.special import stdtrit

from evenhand.errors import UsageError, quoted
from evenhand.stats.comparison.compare import VariantScores, measures_of
from evenhand.stats.comparison.comparison import OVERALL
from evenhand.stats.comparison.paired import sign_flip
from evenhand.stats.comparison.variants import Layout, field_codes, layout
from evenhand.stats.decision.decision import Outcome
from evenhand.stats.tables import Floats, Ints, field_named
from evenhand.stats.test import holm

_NOTHING = 1e-18
"""A sum of squares that is rounding alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadRow:
    """The variance of a variant and of the baseline within cells that both have, on a dimension.
    What cannot be had is None."""

    dimension: str
    variant: str
    n: int
    """How many cells."""
    clusters: int
    variance: float | None
    baseline_variance: float | None
    ratio: float | None
    """The variance over that of the baseline."""
    low: float | None
    high: float | None
    p: float | None
    exact: bool
    p_adjusted: float | None
    outcome: Outcome
    """Better is steadier."""

    @property
    def deviation(self) -> float | None:
        return None if self.variance is None else sqrt(self.variance)

    @property
    def baseline_deviation(self) -> float | None:
        return None if self.baseline_variance is None else sqrt(self.baseline_variance)

    def json(self) -> dict[str, Any]:
        deviations = {"sd": self.deviation, "baseline_sd": self.baseline_deviation}
        return asdict(self) | deviations


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What repeated runs differ by under each variant, compared with the baseline."""

    field: str
    baseline: str
    level: float
    rows: tuple[SpreadRow, ...]
    """One per variant and dimension, those of dimension `overall` last."""

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "field": self.field,
            "baseline": self.baseline,
            "rows": [row.json() for row in self.rows],
        }


def scores_spread(variants: VariantScores, name: str, level: float, seed: int) -> Spread:
    """The spread over the values of a field, variant by variant; raises UsageError where no cell
    has two of them."""
    scores, by, base = variants.scores, variants.places.by, variants.base
    field_named(scores.fields, name)
    field = name if name in scores.fields else name.removeprefix("meta.")
    pairing = [other for other in variants.places.pair_by if other != field]
    _refuse(field, by, pairing)
    places = layout(scores, by, [*pairing, field])
    cells = _cells(places, field_codes(scores.fields, pairing, len(scores.units)))
    rows: list[SpreadRow] = []
    for measure in measures_of(replace(variants, places=places)):
        theirs = _within(measure.values[:, base], cells)
        for place, variant in enumerate(places.variants):
            if place != base:
                ours = _within(measure.values[:, place], cells)
                row = _compared(ours, theirs, cells, level, seed)
                rows.append(replace(row, dimension=measure.name, variant=variant))
    if not any(row.n for row in rows):
        raise UsageError(
            f"nothing was answered under two values of {quoted(field)} by both variants",
            advice="--spread names the field that tells repeated runs apart, such as run_id.",
        )
    return Spread(field=field, baseline=variants.baseline, level=level, rows=_decided(rows, level))


def _refuse(field: str, by: Sequence[str], pairing: Sequence[str]) -> None:
    if field in by:
        raise UsageError(
            f"--spread {quoted(field)} is what the variants differ in", advice="Name another field."
        )
    if not pairing or "unit" in pairing:
        raise UsageError(
            f"nothing says which units of different {field} answer the same",
            advice="Name what they share: --pair-by question_id (and model, and set).",
        )


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cell of each key, and the question of each cell."""

    cell: Ints
    question: Ints


def _cells(places: Layout, cell_of_unit: Ints) -> _Cells:
    cell = np.zeros(places.keys, dtype=np.int64)
    cell[places.key] = cell_of_unit
    question = np.zeros(int(cell.max(initial=-1)) + 1, dtype=np.int64)
    question[cell] = places.cluster
    return _Cells(cell, question)


@dataclass(frozen=True, slots=True)
class _Within:
    """Of each cell the sum of squares around its mean, and the degrees of freedom."""

    squares: Floats
    freedom: Floats


def _within(values: Floats, cells: _Cells) -> _Within:
    scored = ~np.isnan(values)
    at, size = cells.cell[scored], cells.question.size
    count = np.bincount(at, minlength=size)
    means = np.bincount(at, values[scored], size) / np.maximum(count, 1)
    squares = np.bincount(at, (values[scored] - means[at]) ** 2, size)
    return _Within(squares.astype(np.float64), np.maximum(count - 1, 0).astype(np.float64))


def _compared(ours: _Within, theirs: _Within, cells: _Cells, level: float, seed: int) -> SpreadRow:
    """The figures of one row; what its family decides is open still."""
    shared = (ours.freedom > 0) & (theirs.freedom > 0)
    parts = [part[shared] for part in (ours.squares, ours.freedom, theirs.squares, theirs.freedom)]
    question = np.unique(cells.question[shared], return_inverse=True)[1]
    count = int(question.max(initial=-1)) + 1
    sums = np.array([np.bincount(question, part, count) for part in parts])
    gaps = parts[0] / parts[1] - parts[2] / parts[3]
    test = sign_flip(np.bincount(question, gaps, count).astype(np.float64), seed)
    low, high = _interval(sums, level)
    total = sums.sum(axis=1)
    return SpreadRow(
        dimension="",
        variant="",
        n=int(shared.sum()),
        clusters=count,
        variance=float(total[0] / total[1]) if count else None,
        baseline_variance=float(total[2] / total[3]) if count else None,
        ratio=_ratio(total),
        low=low,
        high=high,
        p=test.p,
        exact=test.exact,
        p_adjusted=None,
        outcome="not enough evidence",
    )


def _ratio(sums: Floats) -> float | None:
    """The ratio of variances, from both sums of squares and degrees of freedom."""
    squares, freedom, base_squares, base_freedom = (float(part) for part in sums)
    if not freedom or not base_freedom or base_squares <= _NOTHING:
        return None
    return (squares / freedom) / (base_squares / base_freedom)


def _interval(sums: Floats, level: float) -> tuple[float | None, float | None]:
    """Student's interval of the log ratio, from leaving out each question in turn; none where a
    variance is 0 then."""
    count = sums.shape[1]
    whole = _ratio(sums.sum(axis=1)) if count > 1 else None
    rests = [_ratio(sums.sum(axis=1) - sums[:, at]) for at in range(count)]
    logs = np.array([log(rest) for rest in rests if rest is not None and rest > _NOTHING])
    if not whole or logs.size < count:
        return None, None
    spread = logs - logs.mean()
    error = sqrt(float(spread @ spread) * (count - 1) / count)
    reach = float(stdtrit(count - 1, (1 + level) / 2)) * error
    return whole * exp(-reach), whole * exp(reach)


def _decided(rows: Sequence[SpreadRow], level: float) -> tuple[SpreadRow, ...]:
    """Dimensions are one family of tests, the overall rows another."""
    decided = list(rows)
    for is_overall in (False, True):
        family = [at for at, row in enumerate(rows) if (row.dimension == OVERALL) == is_overall]
        adjusted = holm([rows[at].p for at in family])
        for at, p in zip(family, adjusted, strict=True):
            decided[at] = replace(rows[at], p_adjusted=p, outcome=_outcome(rows[at], p, 1 - level))
    return tuple(decided)


def _outcome(row: SpreadRow, p: float | None, alpha: float) -> Outcome:
    variances = row.variance, row.baseline_variance
    if p is None or p > alpha + 1e-12 or row.clusters < 2 or variances[0] == variances[1]:
        return "not enough evidence"
    # The test weighs questions alike, the variances by their repeats: both must say the same.
    if row.low is not None and row.high is not None and row.low <= 1 <= row.high:
        return "not enough evidence"
    return "better" if (variances[0] or 0.0) < (variances[1] or 0.0) else "worse"
