"""A comparison inside each value of a field, and whether the difference differs between values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import Any, Literal

import numpy as np
from scipy.special import fdtrc, stdtrit

from evenhand.errors import UsageError
from evenhand.observation import OVERALL
from evenhand.stats.compare import Shared, cells_of, compare, pair_cells
from evenhand.stats.comparison import Comparison
from evenhand.stats.estimate import HALF, holm_by_family, is_significant, mean_of_questions
from evenhand.stats.observations import Floats, Ints, plain_name
from evenhand.stats.variants import Variants
from evenhand.words import Code, Sentence


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


VALUES = 40
"""So many values of a field are compared by themselves at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """A comparison inside one value of a field."""

    value: str
    units: int
    comparison: Comparison

    def json(self) -> dict[str, Any]:
        return {"value": self.value, "units": self.units, **self.comparison.json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """The test whether a variant's difference on a dimension differs by the values of a field."""

    dimension: str
    variant: str
    differences: Mapping[str, float]
    """By value of the field."""
    n: int
    clusters: int
    gap: float | None
    """Of two values: by how much the difference is greater on the second."""
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None = None
    outcome: Literal["differs", "not enough evidence"] = "not enough evidence"

    def json(self) -> dict[str, Any]:
        return asdict(self) | {"differences": dict(self.differences)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """One comparison for each value of a field, and the tests between them."""

    field: str
    blocks: tuple[Within, ...]
    between: tuple[Between, ...]

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "field": self.field,
            "blocks": [block.json() for block in self.blocks],
            "between": [test.json() for test in self.between],
        }


def compare_within(
    variants: Variants, name: str, level: float = 0.95, margin: float | None = None
) -> Blocks:
    """Return the variants compared inside each value of a field; raise UsageError for one that no
    unit has, and for one that the variants differ in."""
    field_name = plain_name(variants.fields, name)
    field = variants.fields[field_name]
    if field_name in variants.by:
        raise UsageError(
            Sentence("compare.is_by", flag=Code("--within"), field=name),
        )
    if not 1 < len(field.levels) <= VALUES:
        raise UsageError(
            Sentence("compare.too_many_blocks", field=name, n=len(field.levels), most=VALUES),
        )
    parts, blocks = list[Variants](), list[Within]()
    for code, value in enumerate(field.levels):
        members = field.codes == code
        part = variants.of_units(members)
        parts.append(part)
        comparison = compare(part, level, margin)
        units = int(np.unique(part.entries.unit).size)
        blocks.append(Within(value=value, units=units, comparison=comparison))
    tests = _tests(parts, field.levels, level)
    return Blocks(field=field_name, blocks=tuple(blocks), between=tuple(tests))


def _tests(parts: Sequence[Variants], values: Sequence[str], level: float) -> list[Between]:
    """Return a test for each variant and measure; the dimensions are one family, `overall` is
    another."""
    whole = parts[0]
    tests = [
        _test([pair_cells(part, cells, place) for part, cells in laid], values, level)
        for at in range(len(whole.measures))
        for laid in [[(part, cells_of(part, part.measures[at])) for part in parts]]
        for place in whole.others
    ]
    adjusted = holm_by_family([test.p for test in tests], [t.dimension == OVERALL for t in tests])
    return [
        replace(
            test,
            p_adjusted=p,
            outcome="differs" if is_significant(p, level) else "not enough evidence",
        )
        for test, p in zip(tests, adjusted, strict=True)
    ]


def _test(sides: Sequence[Shared], values: Sequence[str], level: float) -> Between:
    gaps = np.concatenate([side.ours - side.theirs for side in sides])
    cluster = np.concatenate([side.cluster for side in sides])
    place = np.repeat(np.arange(len(sides)), [side.ours.size for side in sides])
    test = interaction(gaps, cluster, place, len(sides), level)
    return Between(
        dimension=sides[0].dimension,
        variant=sides[0].variant,
        differences={
            value: mean_of_questions(side.ours - side.theirs, side.cluster)
            for value, side in zip(values, sides, strict=True)
            if side.ours.size
        },
        n=gaps.size,
        clusters=int(np.unique(cluster).size),
        gap=test.gap,
        low=test.low,
        high=test.high,
        p=test.p,
    )
