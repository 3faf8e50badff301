"""Repeatability of a judge: variance within a unit against variance between units."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand.observation import OVERALL
from evenhand.stats.observations import Floats, Ints, Observations

SHOWN = 10


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

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Wavering:
    """A unit on which a judge does not repeat itself, with what it said each time."""

    unit: str
    judge: str
    scores: dict[str, list[float | None]]
    spread: float
    """The root of the mean within-unit variance over dimensions, each scaled to 0..1."""

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Repeats:
    """The variance components of repeated judgments, and the units that repeat least."""

    most: int
    """The most repeats that any unit has of one judge."""
    components: tuple[Components, ...]
    wavering: tuple[Wavering, ...]

    def json(self) -> dict[str, Any]:
        return {
            "most": self.most,
            "components": [components.json() for components in self.components],
            "wavering": [unit.json() for unit in self.wavering],
        }


def repeats(scores: Observations) -> Repeats | None:
    """Return what repeats tell, dimension by dimension and overall; None where nothing was judged
    twice by one judge."""
    cell = scores.unit * max(1, len(scores.judges)) + scores.judge
    cells, place, counts = np.unique(cell, return_inverse=True, return_counts=True)
    if not scores.dimensions or counts.max(initial=0) < 2:
        return None
    judge = cells % max(1, len(scores.judges))
    components = [
        _components(name, values, place, judge)
        for name in (*scores.dimensions, OVERALL)
        for values in [scores.column(name)]
    ]
    return Repeats(int(counts.max()), tuple(components), _wavering(scores, place, cells))


def _components(name: str, values: Floats, place: Ints, judge: Ints) -> Components:
    """One-way components by the analysis of variance, pooled over judges."""
    scored = ~np.isnan(values)
    count = np.bincount(place[scored], minlength=judge.size)
    sums = np.bincount(place[scored], values[scored], judge.size)
    means = np.divide(sums, count, out=np.zeros(judge.size), where=count > 0)
    inner = float(((values[scored] - means[place[scored]]) ** 2).sum())
    inner_free = int((count - 1)[count > 0].sum())
    outer, outer_free, weight = 0.0, 0, 0.0
    for code in np.unique(judge):
        cells = (judge == code) & (count > 0)
        total = count[cells].sum()
        if cells.sum() > 1:
            middle = sums[cells].sum() / total
            outer += float((count[cells] * (means[cells] - middle) ** 2).sum())
            outer_free += int(cells.sum()) - 1
            weight += float(total - (count[cells] ** 2).sum() / total)
    units = int((count > 1).sum())
    within = inner / inner_free if inner_free else None
    if within is None or not outer_free:
        return Components(name, units, within, None, None)
    between = max(0.0, (outer - outer_free * within) / weight)
    whole = within + between
    return Components(name, units, within, between, within / whole if whole else None)


def _wavering(scores: Observations, place: Ints, cells: Ints) -> tuple[Wavering, ...]:
    """Return the units on which a judge repeats itself least, the worst first."""
    scaled = [
        scores.column(name) / ((scale.high - scale.low) or 1.0)
        for name in scores.dimensions
        for scale in [scores.scale(name)]
    ]
    variances = np.stack([_variances(values, place, cells.size) for values in scaled])
    is_known = ~np.isnan(variances)
    sums = np.where(is_known, variances, 0).sum(axis=0)
    spread = np.sqrt(sums / np.maximum(is_known.sum(axis=0), 1))
    worst = [c for c in np.argsort(-spread, kind="stable")[:SHOWN] if spread[c] > 1e-12]
    wavering: list[Wavering] = []
    for cell in worst:
        rows = np.flatnonzero(place == cell)
        rows = rows[np.argsort(scores.repeat[rows], kind="stable")]
        unit_scores = {
            name: [None if np.isnan(v) else float(v) for v in scores.column(name)[rows]]
            for name in scores.dimensions
        }
        unit, judge = divmod(int(cells[cell]), max(1, len(scores.judges)))
        wavering.append(
            Wavering(scores.units[unit], scores.judges[judge], unit_scores, float(spread[cell]))
        )
    return tuple(wavering)


def _variances(values: Floats, place: Ints, size: int) -> Floats:
    """The variance within each cell; nan with fewer than two values."""
    scored = ~np.isnan(values)
    count = np.bincount(place[scored], minlength=size)
    sums = np.bincount(place[scored], values[scored], size)
    means = np.divide(sums, count, out=np.zeros(size), where=count > 0)
    squares = np.bincount(place[scored], (values[scored] - means[place[scored]]) ** 2, size)
    variances: Floats = np.full(size, np.nan)
    return np.divide(squares, count - 1, out=variances, where=count > 1)
