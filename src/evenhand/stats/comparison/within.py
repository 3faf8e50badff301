"""A comparison inside each value of a field, and whether the difference differs between values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.stats.comparison.against import compare_votes, shared_votes
from evenhand.stats.comparison.compare import (
    VariantScores,
    compare_variants,
    shared_scores,
)
from evenhand.stats.comparison.comparison import OVERALL, Comparison, Row
from evenhand.stats.comparison.contrast import Shared
from evenhand.stats.comparison.interaction import interaction
from evenhand.stats.tables import Bools, Field, Fields, Ints, Votes, field_named
from evenhand.stats.test import holm

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
    """Whether the difference of a variant on a dimension differs between the values of a field."""

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
    p_adjusted: float | None
    outcome: Literal["differs", "not enough evidence"]

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


def scores_within(
    variants: VariantScores, name: str, level: float, margin: float | None = None
) -> Blocks:
    """Variants compared inside each value of a field; raises UsageError for one that no unit has,
    and for one that the variants differ in."""
    places, scores = variants.places, variants.scores
    field = _proper_field(scores.fields, name, places.by)
    parts = [field.codes == code for code in range(len(field.levels))]
    blocks: list[Within] = []
    for value, members in zip(field.levels, parts, strict=True):
        part = _of_units(variants, members)
        comparison = compare_variants(part, level, margin)
        blocks.append(Within(value=value, units=int(members.sum()), comparison=comparison))

    def shared(row: Row, members: Bools) -> Shared:
        of_value = replace(places, variant=np.where(members, places.variant, -1))
        return shared_scores(scores, of_value, row.dimension, row.variant, variants.baseline)

    rows = compare_variants(variants, level).rows
    between = _tests(rows, field.levels, parts, shared, level)
    return Blocks(field=_plain(scores.fields, name), blocks=tuple(blocks), between=between)


def votes_within(
    votes: Votes,
    name: str,
    baseline: str,
    judge: str | None,
    level: float,
    margin: float | None = None,
) -> Blocks:
    """Candidates compared with the baseline inside each value of a field of the pairs; raises
    UsageError for one that no pair has."""
    field = _proper_field(votes.fields, name, ())
    parts = [field.codes == code for code in range(len(field.levels))]
    blocks = tuple(
        Within(
            value=value,
            units=int(np.unique(votes.pair[rows]).size),
            comparison=compare_votes(
                votes.where(rows), baseline, judge=judge, level=level, margin=margin
            ),
        )
        for value, rows in zip(field.levels, parts, strict=True)
    )

    def shared(row: Row, rows: Bools) -> Shared:
        return shared_votes(votes.where(rows), row.dimension, row.variant, baseline, judge)

    whole = compare_votes(votes, baseline, judge=judge, level=level).rows
    between = _tests(whole, field.levels, parts, shared, level)
    return Blocks(field=_plain(votes.fields, name), blocks=blocks, between=between)


def _plain(fields: Fields, name: str) -> str:
    return name if name in fields else name.removeprefix("meta.")


def _proper_field(fields: Fields, name: str, by: Sequence[str]) -> Field:
    field = field_named(fields, name)
    if _plain(fields, name) in by:
        raise UsageError(
            f"--within {quoted(name)} is what the variants differ in",
            advice="Name another field.",
        )
    if not 1 < len(field.levels) <= VALUES:
        raise UsageError(
            f"--within {quoted(name)} would make {len(field.levels)} blocks",
            advice=f"Name a field with 2 to {VALUES} values.",
        )
    return field


def _of_units(variants: VariantScores, members: Bools) -> VariantScores:
    """Some of the units alone, with their judgments."""
    scores, places = variants.scores, variants.places
    moved, rows = np.cumsum(members) - 1, members[scores.unit]
    keys, key = np.unique(places.key[members], return_inverse=True)
    planned = scores.planned
    part = replace(
        scores,
        values=scores.values[rows],
        totals=None if scores.totals is None else scores.totals[rows],
        unit=moved[scores.unit[rows]],
        judge=scores.judge[rows],
        repeat=scores.repeat[rows],
        most=None if scores.most is None else scores.most[rows],
        tags=scores.tags[rows],
        critical=scores.critical[rows],
        units=[unit for unit, is_in in zip(scores.units, members, strict=True) if is_in],
        fields={n: Field(f.codes[members], f.levels) for n, f in scores.fields.items()},
        planned=planned if isinstance(planned, int) else planned[members],
    )
    layout = replace(places, variant=places.variant[members], key=key, cluster=places.cluster[keys])
    return VariantScores(scores=part, places=layout, base=variants.base)


def _tests(
    rows: Sequence[Row],
    values: Sequence[str],
    parts: Sequence[Bools],
    shared: Callable[[Row, Bools], Shared],
    level: float,
) -> tuple[Between, ...]:
    """A test for each row; the dimensions are one family, the overall rows another."""
    tests = [_test(row, values, [shared(row, members) for members in parts], level) for row in rows]
    adjusted: dict[int, float | None] = {}
    for is_overall in (False, True):
        family = [at for at, test in enumerate(tests) if (test.dimension == OVERALL) == is_overall]
        ps = holm([tests[at].p for at in family])
        adjusted |= dict(zip(family, ps, strict=True))
    return tuple(_decided(test, adjusted[at], 1 - level) for at, test in enumerate(tests))


def _test(row: Row, values: Sequence[str], sides: Sequence[Shared], level: float) -> Between:
    gaps = np.concatenate([side.ours - side.theirs for side in sides])
    cluster = np.concatenate([side.cluster for side in sides])
    place: Ints = np.repeat(np.arange(len(sides)), [side.ours.size for side in sides])
    test = interaction(gaps, cluster, place, len(sides), level)
    return Between(
        dimension=row.dimension,
        variant=row.variant,
        differences={
            value: float((side.ours - side.theirs).mean())
            for value, side in zip(values, sides, strict=True)
            if side.ours.size
        },
        n=gaps.size,
        clusters=int(np.unique(cluster).size),
        gap=test.gap,
        low=test.low,
        high=test.high,
        p=test.p,
        p_adjusted=None,
        outcome="not enough evidence",
    )


def _decided(test: Between, p: float | None, alpha: float) -> Between:
    # A level such as 0.95 is no exact binary fraction: its rest is a little more than 0.05.
    differs = p is not None and p <= alpha + 1e-12
    return replace(test, p_adjusted=p, outcome="differs" if differs else "not enough evidence")
