"""Numbers with a decimal comma, as spreadsheets write them in countries where cells are separated
by semicolons or tabs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand.data.foreign.rows import table
from evenhand.data.foreign.shaping import Shaping

_DECIMAL = re.compile(r"\s*[+-]?[0-9]+,[0-9]+\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[0-9]{1,3},[0-9]{3}\s*")


class DecimalCommas:
    """The columns of a table of scores whose commas are decimal: every value with a comma is such a
    number, and not all of them may as well be thousands."""

    def __init__(self, path: Path, shaping: Shaping) -> None:
        self._field = shaping.wide.field if shaping.wide else ""
        self._columns: frozenset[str] = frozenset()
        self._columns = self._found(path, shaping)

    def _found(self, path: Path, shaping: Shaping) -> frozenset[str]:
        decimal, other = set[str](), set[str]()
        for row in table(path, shaping, "score"):
            score = row.value.get("score")
            if not isinstance(score, str) or "," not in score:
                continue
            column = self._column(row.value)
            if not _DECIMAL.fullmatch(score):
                other.add(column)
            elif not _THOUSANDS.fullmatch(score):
                decimal.add(column)
        return frozenset(decimal - other)

    def _column(self, row: Mapping[str, Any]) -> str:
        return str(row.get(self._field, ""))

    def read(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row with its score spelled with a point."""
        score = row.get("score")
        if isinstance(score, str) and "," in score and self._column(row) in self._columns:
            return row | {"score": score.replace(",", ".")}
        return row
