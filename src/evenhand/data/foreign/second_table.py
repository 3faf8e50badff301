"""A second table whose columns are added to the rows of the first, joined by the columns that both
have: the categories of questions, say, beside the scores of answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand.data.read import rows
from evenhand.errors import DataError, quoted
from evenhand.jsontext import as_text


class SecondTable:
    """The rows of a second table by the cells that they have in common with a row of the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = [row.value for row in rows(path, lenient=True)]
        self.shared: tuple[str, ...] = ()
        """The columns that both tables have."""
        self._by_cells: dict[tuple[str, ...], dict[str, Any]] = {}

    def columns_for(self, row: Mapping[str, Any], where: str) -> dict[str, Any] | None:
        """What this table says of a row beyond what both say; None where it has no such row.
        Raises DataError."""
        if not self._by_cells:
            self._index(row, where)
        return self._by_cells.get(_cells(row, self.shared))

    def _index(self, row: Mapping[str, Any], where: str) -> None:
        columns = dict.fromkeys(name for each in self._rows for name in each)
        self.shared = tuple(name for name in columns if name in row)
        if not self.shared:
            raise DataError(
                f"{quoted(self._path.name)} has no column in common with the table",
                where=where,
                advice=f"It has {', '.join(map(quoted, columns))}; rename a column of the table"
                " with --map.",
            )
        for each in self._rows:
            cells = _cells(each, self.shared)
            further = {name: value for name, value in each.items() if name not in self.shared}
            if self._by_cells.setdefault(cells, further) != further:
                raise DataError(
                    f"two rows have the same {' and '.join(self.shared)}: {', '.join(cells)}",
                    where=str(self._path),
                    advice="A row of the table could be joined with either.",
                )


def _cells(row: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, ...]:
    values = (row.get(name) for name in names)
    return tuple(value.strip() if isinstance(value, str) else as_text(value) for value in values)
