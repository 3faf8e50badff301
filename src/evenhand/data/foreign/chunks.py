"""Rows column by column, some at a time: what many of them hold alike is read once, and no object
is made of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from evenhand.data.columns import parts_of
from evenhand.data.files import read_format_of
from evenhand.data.foreign.rows import Shape, TidyRow
from evenhand.data.foreign.shaping import Shaping
from evenhand.data.read import cells, no_rows
from evenhand.errors import EvenhandError
from evenhand.limits import CHUNK_CHARS, CHUNK_ROWS

_OTHER = 256
"""What a cell that is no text is counted as, of the characters of a chunk."""


class Chunk:
    """Rows with the same columns that stand one after the other; `flag` is what a layout says of
    all of them."""

    def __init__(
        self,
        shape: Shape,
        columns: Mapping[str, Sequence[Any]],
        size: int,
        where: Callable[[int], str],
        flag: str = "",
    ) -> None:
        self.shape, self.columns, self.size = shape, columns, size
        self.where, self.flag = where, flag
        """Where the row at a place of the chunk stands in its file."""

    def row(self, place: int) -> dict[str, Any]:
        """The row at a place."""
        return {name: column[place] for name, column in self.columns.items()}

    def alone(self, place: int) -> Chunk:
        """A chunk of that row alone."""
        columns = {name: (column[place],) for name, column in self.columns.items()}
        return Chunk(self.shape, columns, 1, lambda _: self.where(place), self.flag)


def chunked(rows: Iterable[TidyRow]) -> Iterator[Chunk]:
    """Rows as chunks. Where one cannot be read, those before it come first."""
    waiting: list[TidyRow] = []
    columns: tuple[str, ...] = ()
    chars, problem = 0, None
    try:
        for row in rows:
            names = (*row.value, row.shape, row.flag)
            is_full = len(waiting) >= CHUNK_ROWS or chars >= CHUNK_CHARS
            if waiting and (is_full or names != columns):
                yield _chunk(waiting)
                waiting, chars = [], 0
            columns = names
            waiting.append(row)
            for cell in row.value.values():
                chars += len(cell) if type(cell) is str else _OTHER
    except EvenhandError as error:
        problem = error
    if waiting:
        yield _chunk(waiting)
    if problem is not None:
        raise problem


def _chunk(rows: Sequence[TidyRow]) -> Chunk:
    first = rows[0]
    columns = {
        name: list(map(itemgetter(name), values))
        for values in ([row.value for row in rows],)
        for name in first.value
    }
    wheres = [row.where for row in rows]
    return Chunk(first.shape, columns, len(rows), wheres.__getitem__, first.flag)


def has_plain_cells(
    path: Path, shaping: Shaping, needed: Iterable[str], any_of: Iterable[str]
) -> bool:
    """Whether a file is a text table whose cells mean what they say: one that is not
    brought into another form, but that columns may be renamed. It must have the columns `needed`,
    and one of `any_of`."""
    if not shaping.is_plain or read_format_of(path) not in ("csv", "tsv"):
        return False
    with cells(path) as table:
        names = (*table.header, *shaping.columns)
        is_flat = all(len(parts_of(name)) == 1 for name in names)
        columns = {*table.header, *shaping.columns} - _moved(shaping)
        has_columns = set(needed) <= columns and not columns.isdisjoint(any_of)
        return is_flat and has_columns and set(shaping.columns.values()) <= set(table.header)


def plain_chunks(path: Path, shaping: Shaping, shape: Shape) -> Iterator[Chunk]:
    """The records of such a file, under the names that its columns get; raises DataError."""
    has_rows = False
    with cells(path) as table:
        places = {name: place for place, name in enumerate(table.header)}
        places |= {name: places[source] for name, source in shaping.columns.items()}
        names = {name: at for name, at in places.items() if name not in _moved(shaping)}
        for records, lines in table.chunks():
            has_rows = True
            whole = list(zip(*records, strict=True))
            columns = {name: whole[at] for name, at in names.items()}
            yield Chunk(shape, columns, len(records), _place_in(str(path), lines))
    if not has_rows:
        raise no_rows(str(path))


def _moved(shaping: Shaping) -> set[str]:
    """The columns that stand under other names alone."""
    return set(shaping.columns.values()) - shaping.columns.keys()


def _place_in(name: str, lines: Sequence[int]) -> Callable[[int], str]:
    return lambda place: f"{name}:{lines[place]}"
