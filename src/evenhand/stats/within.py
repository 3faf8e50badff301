"""A comparison inside each value of a field, and whether the difference differs between values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.observation import OVERALL
from evenhand.stats.compare import cells_of, compare, shared
from evenhand.stats.comparison import Comparison
from evenhand.stats.contrast import Shared
from evenhand.stats.estimate import mean_of_questions
from evenhand.stats.holm import holm
from evenhand.stats.interaction import interaction
from evenhand.stats.observations import plain_name
from evenhand.stats.variants import Variants

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
            f"--within {quoted(name)} is what the variants differ in",
            advice="Name another field.",
        )
    if not 1 < len(field.levels) <= VALUES:
        raise UsageError(
            f"--within {quoted(name)} would make {len(field.levels)} blocks",
            advice=f"Name a field with 2 to {VALUES} values.",
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
        _test([shared(part, cells, place) for part, cells in laid], values, level)
        for at in range(len(whole.measures))
        for laid in [[(part, cells_of(part, part.measures[at])) for part in parts]]
        for place in whole.others
    ]
    adjusted: dict[int, float | None] = {}
    for is_overall in (False, True):
        family = [at for at, test in enumerate(tests) if (test.dimension == OVERALL) == is_overall]
        adjusted |= dict(zip(family, holm([tests[at].p for at in family]), strict=True))
    return [_decide(test, adjusted[at], 1 - level) for at, test in enumerate(tests)]


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


def _decide(test: Between, p: float | None, alpha: float) -> Between:
    # A level such as 0.95 is no exact binary fraction: its rest is a little more than 0.05.
    is_told = p is not None and p <= alpha + 1e-12
    return replace(test, p_adjusted=p, outcome="differs" if is_told else "not enough evidence")
