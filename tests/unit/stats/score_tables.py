"""Observations of scores and of pairs, made from plain rows for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.observation import CRITICAL_FAIL, OVERALL, TAG, UNCERTAIN, WINNER
from evenhand.stats.compare import compare
from evenhand.stats.comparison import Comparison
from evenhand.stats.layout import lay_out
from evenhand.stats.observations import (
    Field,
    Observations,
    Passes,
    Scale,
    questions,
)

SHARES = {"first": 1.0, "second": 0.0, "tie": 0.5, "uncertain": 0.5, None: np.nan}
TAGS = tuple("ABCDE")


def scores_of(
    rows: Sequence[Mapping[str, Any]],
    *,
    units: Sequence[Mapping[str, Any]] = (),
    id_fields: Sequence[str] = ("prompt_variant", "question_id"),
    scale: tuple[float, float] = (1.0, 5.0),
    is_known: bool = True,
    planned: int = 1,
) -> Observations:
    """Return the observations of rows with `scores`, and perhaps `judge`, `repeat`, `tags` and
    `critical`; all else are fields. Units without a row are named by their fields in `units`."""
    beside = {"scores", "judge", "repeat", "tags", "critical"}
    names = list(dict.fromkeys(n for row in [*rows, *units] for n in row if n not in beside))
    keys = [tuple(row.get(name) for name in names) for row in [*rows, *units]]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    dimensions = tuple(dict.fromkeys(d for row in rows for d in row["scores"] or ()))
    judges = tuple(dict.fromkeys(row.get("judge", "j") for row in rows)) or ("j",)
    given = np.array(
        [[(row["scores"] or {}).get(d, np.nan) for d in dimensions] for row in rows], dtype=float
    ).reshape(len(rows), len(dimensions))
    shares = (given - scale[0]) / ((scale[1] - scale[0]) or 1.0)
    overall = shares.mean(axis=1) if dimensions else np.full(len(rows), np.nan)
    flags = [
        [float(t in row.get("tags", ())) for t in TAGS] + [float(row.get("critical", False))]
        for row in rows
    ]
    is_failed = np.isnan(given).all(axis=1)
    flagged = np.array(flags, dtype=float).reshape(len(rows), len(TAGS) + 1)
    flagged[is_failed] = np.nan
    fields = {name: field_of([key[at] for key in places]) for at, name in enumerate(names)}
    return Observations(
        measures=(*dimensions, OVERALL, *(f"{TAG}{tag}" for tag in TAGS), CRITICAL_FAIL),
        scales=(*(Scale(*scale, is_known) for _ in dimensions), *[Scale()] * (len(TAGS) + 2)),
        values=np.column_stack([given, overall, flagged]),
        unit=ints(places[key] for key in keys[: len(rows)]),
        judge=ints(judges.index(row.get("judge", "j")) for row in rows),
        repeat=ints(row.get("repeat", 0) for row in rows),
        conflict=np.zeros(len(rows), np.bool_),
        passes=no_passes(),
        units=["/".join(map(str, key)) for key in places],
        fields=fields,
        id_fields=tuple(id_fields),
        question=questions(fields, len(places)),
        subject=np.full(len(places), -1),
        opponent=np.full(len(places), -1),
        judges=judges,
        planned=_planned(len(places), len(judges), planned),
        failures={},
    )


def _planned(units: int, judges: int, planned: int) -> Any:
    """Return so many judgments of each unit, shared over the judges; None where it is 0."""
    if not planned:
        return None
    each = [planned // judges + (place < planned % judges) for place in range(judges)]
    return np.tile(each, (units, 1))


def votes_of(rows: Sequence[Mapping[str, Any]]) -> Observations:
    """Return the observations of rows with `topic`, `first`, `second`, `winner`, and perhaps
    `judge`, `repeat`, `preference` (for the second) and `marks`."""
    keys = [(str(row["topic"]), row["first"], row["second"]) for row in rows]
    known = list(dict.fromkeys(keys))
    candidates = tuple(dict.fromkeys(name for key in keys for name in key[1:]))
    judges = tuple(dict.fromkeys(row.get("judge", "j") for row in rows)) or ("j",)
    criteria = list(dict.fromkeys(name for row in rows for name in row.get("marks", ())))
    values = [
        [
            *(SHARES[row.get("marks", {}).get(name)] for name in criteria),
            1 - row["preference"] if "preference" in row else SHARES[row["winner"]],
            np.nan if row["winner"] is None else float(row["winner"] == "uncertain"),
        ]
        for row in rows
    ]
    topic = field_of([key[0] for key in known])
    return Observations(
        measures=(*criteria, WINNER, UNCERTAIN),
        scales=(Scale(),) * (len(criteria) + 2),
        values=np.array(values, dtype=float).reshape(len(rows), len(criteria) + 2),
        unit=ints(known.index(key) for key in keys),
        judge=ints(judges.index(row.get("judge", "j")) for row in rows),
        repeat=ints(row.get("repeat", 0) for row in rows),
        conflict=np.array([row["winner"] == "uncertain" for row in rows], dtype=np.bool_),
        passes=no_passes(),
        units=[":".join(key) for key in known],
        fields={"topic": topic},
        id_fields=("unit",),
        question=questions({"topic": topic}, len(known), "topic"),
        candidates=candidates,
        subject=ints(candidates.index(key[1]) for key in known),
        opponent=ints(candidates.index(key[2]) for key in known),
        judges=judges,
        planned=None,
        failures={},
    )


def empty_votes() -> Observations:
    return votes_of([])


def no_passes() -> Passes:
    nothing = np.zeros(0, np.int64)
    return Passes(row=nothing, round=nothing, position=nothing, value=np.zeros(0))


def field_of(values: Sequence[object]) -> Field:
    levels = tuple(dict.fromkeys(str(value) for value in values if value is not None))
    codes = [-1 if value is None else levels.index(str(value)) for value in values]
    return Field(np.array(codes, dtype=np.int64), levels)


def ints(values: Any) -> Any:
    return np.array(list(values), dtype=np.int64)


def compare_scores(
    table: Observations,
    by: str | Sequence[str],
    baseline: str | None = None,
    *,
    pair_by: Sequence[str] = (),
    judge: str | None = None,
    level: float = 0.95,
    margin: float | None = None,
) -> Comparison:
    """Return the comparison of variants, as `compare` gives it of a run."""
    told = table if judge is None else table.of_judge(judge)
    fields = [by] if isinstance(by, str) else list(by)
    return compare(lay_out(told, fields, baseline, pair_by), level, margin)


def compare_votes(
    table: Observations,
    baseline: str | None = None,
    *,
    judge: str | None = None,
    level: float = 0.95,
    margin: float | None = None,
) -> Comparison:
    """Return the comparison of candidates with a baseline."""
    return compare_scores(table, (), baseline, judge=judge, level=level, margin=margin)
