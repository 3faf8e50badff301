"""Rows column by column, some at a time: what many of them hold alike is read once, and no object
is made of each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any

from evenhand.data.columns import remove
from evenhand.data.foreign.rows import Shape, TidyRow, missing
from evenhand.data.foreign.shaping import Shaping
from evenhand.data.read import rows
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
        self._types: dict[str, set[type]] = {}

    def types(self, name: str) -> set[type]:
        """The types of the cells in a column; several readers ask for them."""
        types = self._types.get(name)
        if types is None:
            types = self._types[name] = set(map(type, self.columns[name]))
        return types

    def row(self, place: int) -> dict[str, Any]:
        """The row at a place."""
        return {name: column[place] for name, column in self.columns.items()}

    def alone(self, place: int) -> Chunk:
        """A chunk of that row alone."""
        columns = {name: (column[place],) for name, column in self.columns.items()}
        return Chunk(self.shape, columns, 1, lambda _: self.where(place), self.flag)


def chunked(tidy_rows: Iterable[TidyRow]) -> Iterator[Chunk]:
    """Rows as chunks. Where one cannot be read, those before it come first."""
    waiting: list[TidyRow] = []
    columns: tuple[str, ...] = ()
    chars, problem = 0, None
    try:
        for row in tidy_rows:
            names = (*row.value, row.shape, row.flag)
            is_full = len(waiting) >= CHUNK_ROWS or chars >= CHUNK_CHARS
            if waiting and (is_full or names != columns):
                yield _chunk(waiting)
                waiting, chars = [], 0
            columns = names
            waiting.append(row)
            chars += sum([len(c) if type(c) is str else _OTHER for c in row.value.values()])
    except EvenhandError as error:
        problem = error
    if waiting:
        yield _chunk(waiting)
    if problem is not None:
        raise problem


def _chunk(tidy_rows: Sequence[TidyRow]) -> Chunk:
    first = tidy_rows[0]
    columns = {
        name: list(map(itemgetter(name), values))
        for values in ([row.value for row in tidy_rows],)
        for name in first.value
    }
    wheres = [row.where for row in tidy_rows]
    return Chunk(first.shape, columns, len(tidy_rows), wheres.__getitem__, first.flag)


def is_plain(path: Path, shaping: Shaping, needed: Iterable[str], any_of: Iterable[str]) -> bool:
    """Whether the rows of a file mean what they say: they are not brought into another form, but
    that columns may be renamed. The first must have the columns `needed`, and one of `any_of`."""
    if not shaping.is_plain:
        return False
    names = _first_row(path, shaping)
    return set(needed) <= names.keys() and not names.keys().isdisjoint(any_of)


def plain_chunks(
    path: Path, shaping: Shaping, shape: Shape, needed: Iterable[str] = ()
) -> Iterator[Chunk]:
    """The rows of such a file, under the names that its columns get; raises DataError."""
    for chunk in chunked(_plain_rows(path, shaping, shape)):
        for name in needed:
            if name not in chunk.columns:
                raise missing(name, chunk.columns, chunk.where(0), shape)
        yield chunk


def _first_row(path: Path, shaping: Shaping) -> Mapping[str, Any]:
    with closing(_plain_rows(path, shaping, "votes")) as source:
        return next(source).value


def _plain_rows(path: Path, shaping: Shaping, shape: Shape) -> Generator[TidyRow]:
    moved = _moved(shaping)
    for value, where in rows(path, shaping.columns, lenient=True):
        for name in moved:
            remove(value, name)
        yield TidyRow(shape, value, where)


def _moved(shaping: Shaping) -> set[str]:
    """The columns that stand under other names alone."""
    return set(shaping.columns.values()) - shaping.columns.keys()
