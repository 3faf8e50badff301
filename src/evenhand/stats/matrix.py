"""Every question by every variant: a row of values each, and how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from evenhand.stats.layout import lay_out, lay_out_candidates
from evenhand.stats.observations import (
    NONE,
    Bools,
    Floats,
    Ints,
    Observations,
    Scale,
    place_of,
)
from evenhand.stats.variants import Variants

Only = Literal["", "different", "failures"]
MatrixSort = Literal["loss", "spread", "order"]
FAILED = ("no_verdict", "pending")
"""The reasons of cells that should have a value."""
EVEN = 1e-9
"""Means that differ by less are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionMatrix:
    """A row per question in the order of the run, a column per variant or candidate."""

    names: tuple[str, ...]
    base: int | None
    """The column of the baseline; None where nobody named one for pairs."""
    is_duel: bool
    """Whether values are shares of pairs won, else scores."""
    measure: str
    scale: Scale
    values: Floats
    passed: Floats
    """The share of judgments that pass; nan where none says."""
    missing: npt.NDArray[np.str_]
    """Why a cell has no value: `absent`, `pending`, `left_out`, `no_verdict`; empty if it has."""
    opens: Ints
    """The unit behind each cell, as a place in `units`: of several the one with the least value."""
    units: Sequence[str]

    @property
    def first(self) -> Ints:
        """Return the first unit of each question, of those that cells open."""
        return np.asarray(np.where(self.opens == NONE, len(self.units), self.opens).min(1))

    @property
    def spread(self) -> Floats:
        """Return how far apart the values of each question are; nan of fewer than two."""
        apart = np.fmax.reduce(self.values, 1) - np.fmin.reduce(self.values, 1)
        return np.where((~np.isnan(self.values)).sum(1) > 1, apart, np.nan)

    @property
    def loss(self) -> Floats:
        """Return how far the worst of the other columns is above the baseline."""
        if self.base is None:
            return np.full(len(self.values), np.nan)
        others = np.delete(self.values, self.base, 1) - self.values[:, [self.base]]
        return np.asarray(np.fmin.reduce(others, 1))

    def ways(self, name: str) -> list[str]:
        """Return, for each question, whether a column is `better` or `worse` than the baseline or
        the `same`; empty where either has no value."""
        if self.base is None or name not in self.names:
            return [""] * len(self.values)
        gaps = self.values[:, self.names.index(name)] - self.values[:, self.base]
        ways = np.select(
            [np.isnan(gaps), gaps > EVEN, gaps < -EVEN], ["", "better", "worse"], "same"
        )
        return [str(way) for way in ways]

    @property
    def is_failed(self) -> Bools:
        """Return, for each question, True if a cell that should have a value has none."""
        return np.asarray(np.isin(self.missing, FAILED).any(1))

    @property
    def counts(self) -> dict[Only, int]:
        """Return the number of rows that each filter leaves."""
        different, failed = int((self.spread > EVEN).sum()), int(self.is_failed.sum())
        return {"": len(self.values), "different": different, "failures": failed}

    def rows(self, only: Only, sort: MatrixSort) -> Ints:
        """Return the places of the rows that are asked for, in their order; what cannot be
        compared comes last."""
        wanted = np.ones(len(self.values), np.bool_)
        if only == "different":
            wanted = self.spread > EVEN
        elif only == "failures":
            wanted = self.is_failed
        places = np.flatnonzero(wanted)
        if sort == "order":
            return places
        keys = self.loss if sort == "loss" else -self.spread
        return np.asarray(places[np.argsort(keys[places], kind="stable")])

    def of_rows(self, places: Ints) -> QuestionMatrix:
        """Return some of the rows, in this order."""
        columns = ("values", "passed", "missing", "opens")
        return replace(self, **{name: getattr(self, name)[places] for name in columns})

    def other_answers(self, unit: int) -> list[tuple[str, int]]:
        """Return the other variants of a unit's question with their units; none for pairs, which
        hold both answers, and where no cell opens the unit."""
        if self.is_duel or unit == NONE:
            return []
        rows = np.flatnonzero((self.opens == unit).any(1))
        if not rows.size:
            return []
        beside = zip(self.names, self.opens[rows[0]].tolist(), strict=True)
        return [(name, other) for name, other in beside if other not in (NONE, unit)]

    @property
    def without_base_units(self) -> QuestionMatrix:
        """Return it with no units behind the cells of the baseline."""
        is_base = np.arange(len(self.names)) == self.base
        return replace(self, opens=np.where(is_base, NONE, self.opens))

    def out_of(self, most: float | None) -> QuestionMatrix:
        """Return it as it is shown where totals, shares from 0 to 1, are points out of `most`."""
        if most is None:
            return self
        return replace(self, values=self.values * most, scale=Scale(0.0, float(most)))


def question_matrix(
    table: Observations, by: Sequence[str] = (), baseline: str | None = None
) -> QuestionMatrix | None:
    """Return what every variant made of every question; None where no two have one in common.
    Raise UsageError for names that nobody has."""
    if not table.is_pairs:
        return matrix_of_variants(lay_out(table, by, baseline))
    variants = lay_out_candidates(table)
    base = 0 if len(variants.names) == 2 else None
    if baseline is not None:
        base = place_of(variants.names, baseline, "candidate")
    matrix = matrix_of_variants(variants)
    return matrix and replace(matrix, base=base)


def matrix_of_variants(variants: Variants) -> QuestionMatrix | None:
    """Return what every variant made of every key; None where no two have one in common."""
    measure, entries = variants.changed_measure(), variants.entries
    values = variants.cells(measure.values)
    due, judged = (
        variants.cells(each.astype(np.float64)) for each in (entries.due, entries.judged)
    )
    reasons = [~np.isnan(values), np.isnan(due), judged > 0, due > 0]
    passed = variants.passes[0].values if variants.passes else np.full(measure.values.size, np.nan)
    matrix = QuestionMatrix(
        names=variants.names,
        base=variants.base,
        is_duel=variants.is_duel,
        measure=measure.name,
        scale=measure.scale,
        values=values,
        passed=variants.cells(passed),
        missing=np.select(reasons, ["", "absent", "no_verdict", "pending"], "left_out"),
        opens=variants.least_units(measure),
        units=variants.units,
    )
    is_there = matrix.opens != NONE
    if not (is_there.sum(1) > 1).any():
        return None
    # Questions without a variant come last, and are left out.
    return matrix.of_rows(np.argsort(matrix.first, kind="stable")[: int(is_there.any(1).sum())])
