"""Tables that hold what is read under plain names: their cells are read where they stand, since to
make an object of each row takes longer than to read it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

from evenhand.data.columns import parts_of
from evenhand.data.files import read_format_of
from evenhand.data.foreign.shaping import Shaping
from evenhand.data.read import cells
from evenhand.data.table import CellTable

Cells = list[str]


class PlainCells:
    """The records of a table, and where in them each column stands."""

    def __init__(self, table: CellTable, places: dict[str, int]) -> None:
        self._table, self.places = table, places

    def __iter__(self) -> Iterator[Cells]:
        return iter(self._table)

    @property
    def where(self) -> str:
        """Where the record that was read last stands."""
        return self._table.where

    def row(self, record: Cells) -> dict[str, Any]:
        """A record as a row with its columns."""
        return {name: record[place] for name, place in self.places.items()}

    def getter(self, names: Iterable[str]) -> Callable[[Cells], Any]:
        """The function from a record to its cells in some columns, all of which there are: one
        alone, or several together."""
        places = [self.places[name] for name in names]
        return itemgetter(*places) if places else _nothing


def _nothing(record: Cells) -> Any:
    return ()


def has_plain_cells(path: Path, shaping: Shaping) -> bool:
    """Whether the cells of a file can be read where they stand: of a text table that is not brought
    into another form, but that columns may be renamed."""
    if not shaping.is_plain or read_format_of(path) not in ("csv", "tsv"):
        return False
    with cells(path) as table:
        names = (*table.header, *shaping.columns)
        is_flat = all(len(parts_of(name)) == 1 for name in names)
        return is_flat and set(shaping.columns.values()) <= set(table.header)


@contextmanager
def plain_cells(path: Path, shaping: Shaping) -> Generator[PlainCells]:
    """The cells of such a file under the names that its columns get."""
    with cells(path) as table:
        places = {name: place for place, name in enumerate(table.header)}
        columns = shaping.columns
        places |= {name: places[source] for name, source in columns.items()}
        moved = set(columns.values()) - columns.keys()
        yield PlainCells(table, {name: at for name, at in places.items() if name not in moved})
