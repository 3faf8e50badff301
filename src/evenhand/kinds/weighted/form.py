"""The dimensions and task types of a weighted protocol, and the forms of a reply that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from evenhand.kinds.prompt import object_of
from evenhand.kinds.protocol import Protocol, ProtocolError

CONFIDENCE = ("high", "medium", "low")
LOW = CONFIDENCE[-1]
FULL_MARKS = 100
REASONING_CHARS = 200
_FILE = "protocol.toml"
_STEPS = (0, 25, 50, 75, 100)
"""What a judge that fills a form may give, in percent of a dimension's weight."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One thing to grade, worded in one language."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class TaskType:
    """A type of task: which tasks it means, and the most points of each dimension."""

    id: str
    text: str
    weights: Mapping[str, float]


def read_dimensions(protocol: Protocol, language: str) -> tuple[Dimension, ...]:
    """The dimensions of a protocol in one language; raises ProtocolError."""
    return tuple(
        Dimension(ident, text) for ident, text, _ in _worded(protocol, "dimensions", language)
    )


def read_types(
    protocol: Protocol, language: str, dimensions: Sequence[Dimension]
) -> tuple[TaskType, ...]:
    """The task types of a protocol, each with weights that add up; raises ProtocolError."""
    ids = [dimension.id for dimension in dimensions]
    return tuple(
        TaskType(ident, text, _weights(ident, row.get("weights"), ids))
        for ident, text, row in _worded(protocol, "types", language)
    )


def read_weights(protocol: Protocol) -> dict[str, dict[str, float]]:
    """The weights of each task type, whatever the languages of the protocol are; raises
    ProtocolError."""
    dimensions = protocol.ids("dimensions")
    return {
        str(row["id"]): _weights(str(row["id"]), row.get("weights"), dimensions)
        for row in protocol.rows("types")
    }


def _worded(
    protocol: Protocol, table: str, language: str
) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Id, text and the rest of each row of a table."""
    rows_given = protocol.given.get(table)
    if not isinstance(rows_given, list) or not rows_given:
        raise ProtocolError(_FILE, f"a weighted protocol needs [[{table}]], each with an id")
    rows: list[tuple[str, str, Mapping[str, Any]]] = []
    for number, value in enumerate(cast("list[object]", rows_given), 1):
        row = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
        ident, text = row.get("id"), protocol.said(row, language)
        if not isinstance(ident, str) or not ident.strip() or "." in ident:
            raise ProtocolError(_FILE, f"[[{table}]] {number} needs an id, without full stops")
        if any(ident == earlier for earlier, _, _ in rows):
            raise ProtocolError(_FILE, f"two of [[{table}]] are called {ident}")
        if not isinstance(text, str) or not text.strip():
            raise ProtocolError(_FILE, f'[[{table}]] {ident} has no text in "{language}"')
        rows.append((ident, text.strip(), row))
    return rows


def _weights(ident: str, value: object, dimensions: Sequence[str]) -> dict[str, float]:
    row = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
    if set(row) != set(dimensions):
        named = ", ".join(dimensions)
        raise ProtocolError(_FILE, f"the weights of type {ident} must name each of {named}")
    for dimension, weight in row.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
            raise ProtocolError(
                _FILE, f"type {ident}: the weight of {dimension} must be a number from 0 to 100"
            )
    total = sum(Decimal(str(weight)) for weight in row.values())
    if total != FULL_MARKS:
        raise ProtocolError(_FILE, f"the weights of type {ident} add up to {total}, not to 100")
    return {dimension: row[dimension] for dimension in dimensions}


def shape_of(dimensions: Sequence[Dimension]) -> dict[str, Any]:
    """The reply as an example."""
    return {
        "inferred_task_type": None,
        "critical_fail": False,
        "critical_fail_reason": None,
        "reasoning": {dimension.id: "..." for dimension in dimensions},
        "score": {dimension.id: 0 for dimension in dimensions},
        "confidence": "high",
    }


def schema_of(
    dimensions: Sequence[Dimension], types: Sequence[TaskType], task_type: TaskType | None
) -> dict[str, Any]:
    """The schema of a reply; `given` is the task's type where the rubric names it."""
    ids = [kind.id for kind in types]
    text, number = {"type": "string"}, {"type": "number"}
    return object_of(
        inferred_task_type={"type": "null"} if task_type else {"type": "string", "enum": ids},
        critical_fail={"type": "boolean"},
        critical_fail_reason={"type": ["string", "null"]},
        reasoning=object_of(**{d.id: text for d in dimensions}),
        score=object_of(**{d.id: number for d in dimensions}),
        confidence={"type": "string", "enum": list(CONFIDENCE)},
    )


def compact_schema_of(
    dimensions: Sequence[Dimension], types: Sequence[TaskType], task_type: TaskType | None
) -> dict[str, Any]:
    """For a judge that fills a form: a few steps of each weight, nothing it cannot decide. Where
    no type is given the steps are those of the first, which the check rescales to the inferred."""
    weights = (task_type or types[0]).weights
    ids = [kind.id for kind in types]
    return object_of(
        inferred_task_type={"const": None} if task_type else {"enum": ids},
        critical_fail={"const": False},
        critical_fail_reason={"const": None},
        reasoning=object_of(
            **{d.id: {"type": "string", "maxLength": REASONING_CHARS} for d in dimensions}
        ),
        score=object_of(**{d.id: {"enum": _steps(weights[d.id])} for d in dimensions}),
        confidence={"const": LOW},
    )


def _steps(weight: float) -> list[float]:
    exact = Decimal(str(weight))
    steps = [exact * step / 100 for step in _STEPS]
    if isinstance(weight, int):
        return list(dict.fromkeys(map(int, steps)))
    return list(dict.fromkeys(map(float, steps)))
