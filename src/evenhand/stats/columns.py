"""The fields of what is judged, numbered: what identifies a unit, and what sets units apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand import jsontext
from evenhand.measures import Ends
from evenhand.stats.tables import NONE, Field, Fields
from evenhand.units import META_FIELDS


class Codes:
    """Values numbered in the order in which they first come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.codes: list[int] = []

    def of(self, value: str) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(self.numbers)


class Columns:
    """The fields of what is judged, gathered unit by unit."""

    def __init__(self) -> None:
        self._fields: dict[str, Codes] = {}
        self._rows = 0

    def add(self, values: Mapping[str, Any]) -> None:
        fields, rows = self._fields, self._rows
        for name, value in values.items():
            if value is None:
                continue
            column = fields.get(name)
            if column is None:
                column = fields[name] = Codes()
            codes, numbers = column.codes, column.numbers
            if len(codes) < rows:
                codes += [NONE] * (rows - len(codes))
            text = value if type(value) is str else jsontext.as_text(value)
            codes.append(numbers.setdefault(text, len(numbers)))
        self._rows = rows + 1

    def fields(self) -> dict[str, Field]:
        """Every field with a code for each row."""
        fields: dict[str, Field] = {}
        for name, column in self._fields.items():
            codes = column.codes + [NONE] * (self._rows - len(column.codes))
            fields[name] = Field(np.array(codes, dtype=np.int64), column.levels)
        return fields


def id_fields(fields: Fields) -> tuple[str, ...]:
    """The fields that tell units apart: those that their ids are made of where the question or task
    is named everywhere, else the id itself."""
    present = [name for name in ("task_name", *META_FIELDS) if name in fields]
    whole = [name for name in ("task_name", "question_id") if name in present]
    if any((fields[name].codes >= 0).all() for name in whole):
        return tuple(present)
    return ("unit",)


def widen_ends(ends: dict[str, tuple[float, float]], others: Ends) -> None:
    """Let the ends of each dimension reach as far as these do."""
    for name, (low, high) in others.items():
        span = ends.get(name, (low, high))
        ends[name] = (min(low, span[0]), max(high, span[1]))
