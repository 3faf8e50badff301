"""The fields of what is judged, numbered: what identifies a unit, and what sets units apart."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count, repeat
from operator import itemgetter
from typing import Any, cast

import numpy as np

from evenhand import jsontext
from evenhand.measures import Ends
from evenhand.stats.tables import NONE, Field, Fields
from evenhand.units import META_FIELDS

_BLOCK = 1024
"""Rows that are numbered together, column by column."""


class Codes:
    """Values numbered in the order in which they first come."""

    def __init__(self) -> None:
        self.numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self.codes = array("q")

    def of(self, value: str) -> int:
        return self.numbers[value]

    def append(self, value: object) -> None:
        """The value of the next row; None where it has none."""
        self.codes.append(NONE if value is None else self.numbers[jsontext.as_text(value)])

    def extend(self, values: Sequence[object]) -> None:
        """The values of the next rows."""
        if set(map(type, values)) == {str}:
            self.codes.extend(map(self.numbers.__getitem__, cast("Sequence[str]", values)))
        else:
            for value in values:
                self.append(value)

    def pad(self, rows: int) -> None:
        """Let all rows before this one have a code."""
        self.codes.extend(repeat(NONE, rows - len(self.codes)))

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(self.numbers)


class Columns:
    """The fields of what is judged, gathered unit by unit."""

    def __init__(self) -> None:
        self._fields: dict[str, Codes] = {}
        self._rows = 0
        self._block: list[dict[str, Any]] = []

    def add(self, values: Mapping[str, Any]) -> None:
        """The fields of the next row; one that is None it has not."""
        self._block.append(
            cast("dict[str, Any]", values) if type(values) is dict else dict(values.items())
        )
        if len(self._block) == _BLOCK:
            self._number()

    def _number(self) -> None:
        """Number the rows that were added last: column by column where all have the fields of the
        first."""
        block, self._block = self._block, []
        columns = _columns(block)
        if columns is None:
            for row in block:
                self._extend({name: (value,) for name, value in row.items() if value is not None})
                self._rows += 1
        else:
            self._extend(columns)
            self._rows += len(block)

    def _extend(self, columns: Mapping[str, Sequence[object]]) -> None:
        """The values of some fields in the next rows."""
        for name, values in columns.items():
            codes = self._fields.get(name)
            if codes is None:
                codes = self._fields[name] = Codes()
            codes.pad(self._rows)
            codes.extend(values)

    def fields(self) -> dict[str, Field]:
        """Every field with a code for each row."""
        self._number()
        fields: dict[str, Field] = {}
        for name, column in self._fields.items():
            column.pad(self._rows)
            fields[name] = Field(np.array(column.codes, dtype=np.int64), column.levels)
        return fields


def _columns(rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]] | None:
    """The values of each field, where all rows have the same fields and the first has all of
    them."""
    names = rows[0] if rows else {}
    if None in names.values() or any(len(row) != len(names) for row in rows):
        return None
    try:
        return {name: list(map(itemgetter(name), rows)) for name in names}
    except KeyError:
        return None


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
