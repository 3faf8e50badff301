"""Which answers were scored: a place is a unit with one meta, and the key, which may be found out
only when all rows are there, says which places are one unit."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evenhand.limits import BATCH_ROWS
from evenhand.runs.imports.packedfile import PackedFile
from evenhand.runs.imports.register import Register
from evenhand.runs.imports.spool import Spool
from evenhand.runs.imports.waiting_rows import Numbers

_TABLES = {"metas": ("no INTEGER PRIMARY KEY", "text")}
_TEXT = "SELECT text FROM metas WHERE no=?"

PlaceKey = tuple[str, int]
"""A unit, and the number of a meta."""


class Opening(NamedTuple):
    """What the first row of a place says of it."""

    unit: str
    meta: str
    """As JSON."""
    origin: str
    question: str
    answer: str


class Differing(NamedTuple):
    """A meta that is not that of the first row of its unit: both as JSON, in so many rows."""

    meta: str
    first: str
    rows: int


class Answers:
    """The places of an import, numbered from 1 as they come, and their metas."""

    def __init__(self) -> None:
        self._spool = Spool(_TABLES)
        self._metas: Register[str, int] = Register(int)
        self._meta_number, self._texts = 0, list[tuple[Any, ...]]()
        """How many metas there are, and those that are not in the database yet."""
        self._places: Register[PlaceKey, int] = Register(int)
        self._idents: Register[str, int] = Register(int)
        self._ident_of, self._meta_of = array("I"), array("I")
        """Of each place the number of its id, as far as it was known then, and of its meta."""
        self._ident_number = 0
        self._openings, self._waiting = PackedFile(), list[Opening]()

    def __len__(self) -> int:
        return len(self._meta_of)

    def close(self) -> None:
        for part in (self._spool, self._metas, self._places, self._idents):
            part.close()

    def meta(self, text: str) -> int:
        """The number of a meta, which is JSON."""
        number = self._metas.entries([text])[0]
        if number is None:
            number = self._meta_number = self._meta_number + 1
            self._metas.add({text: number}, len(text))
            self._texts.append((number, text))
            if len(self._texts) >= BATCH_ROWS:
                self._spool.write({"metas": self._texts})
        return number

    def places(self, keys: Sequence[PlaceKey]) -> list[int | None]:
        """The numbers of places; None where one is new."""
        return self._places.entries(keys)

    def add(self, places: Mapping[PlaceKey, tuple[str, Opening]]) -> dict[PlaceKey, int]:
        """The numbers of new places, each with its id."""
        numbers = dict(zip(places, range(len(self) + 1, len(self) + len(places) + 1), strict=True))
        self._ident_of.extend(self._numbered([ident for ident, _ in places.values()]))
        self._meta_of.extend([meta for _, meta in places])
        self._places.add(numbers, sum(len(unit) for unit, _ in places))
        self._waiting += [opening for _, opening in places.values()]
        if len(self._waiting) >= BATCH_ROWS:
            self._write()
        return numbers

    def _numbered(self, idents: Sequence[str]) -> list[int]:
        """The numbers of ids, as they come."""
        numbers = self._idents.entries(idents)
        new = dict.fromkeys(i for i, number in zip(idents, numbers, strict=True) if number is None)
        if not new:
            return [number or 0 for number in numbers]
        start = self._ident_number
        fresh = {ident: number for number, ident in enumerate(new, start + 1)}
        self._ident_number += len(fresh)
        self._idents.add(fresh, sum(map(len, fresh)))
        return [number or fresh[ident] for number, ident in zip(numbers, idents, strict=True)]

    def _write(self) -> None:
        self._openings.add(self._waiting)
        self._waiting.clear()

    def finish(self) -> None:
        """All places are there."""
        self._write()
        self._spool.write({"metas": self._texts})

    def openings(self) -> Iterator[Opening]:
        """What is known of each place, in the order of their numbers."""
        for batch in self._openings:
            yield from map(Opening._make, batch)

    def groups(self, columns: Iterable[str]) -> Numbers:
        """Of each place the number of what the columns hold, alike where they hold the same; the
        id goes for the column `unit`."""
        groups: Numbers = np.zeros(len(self), dtype=np.int64)
        for name in columns:
            values = self.values(name)
            whole = groups * (int(values.max(initial=0)) + 1) + values
            groups = np.unique(whole, return_inverse=True)[1]
        return groups

    def values(self, column: str) -> Numbers:
        """Of each place the number of the value in a column, 0 where there is none."""
        if column == "unit":
            return np.array(self._ident_of, dtype=np.int64)
        numbers: dict[str | None, int] = {None: 0}
        of_meta = [0]
        for (text,) in self._spool.rows(_column(column)):
            of_meta.append(numbers.setdefault(text, len(numbers)))
        by_meta: Numbers = np.array(of_meta, dtype=np.int64)
        return by_meta[np.array(self._meta_of, dtype=np.int64)]

    def owners(self, columns: Iterable[str] = ("unit",)) -> Numbers:
        """By the number of each place that of the first one of its unit; the columns tell units
        apart."""
        _, first, group = np.unique(self.groups(columns), return_index=True, return_inverse=True)
        return np.concatenate(([0], first[group] + 1)).astype(np.uint32)

    def differing(self, owners: Numbers, rows: Numbers) -> Iterator[Differing]:
        """The metas that are not those of their units, as they come; `rows` says how many rows each
        place has."""
        metas = np.concatenate(([0], np.array(self._meta_of, dtype=np.int64)))
        places = np.flatnonzero(metas != metas[owners])
        both = metas[places] << 32 | metas[owners[places]]
        pairs, at, which = np.unique(both, return_index=True, return_inverse=True)
        counts = np.bincount(which, rows[places], minlength=len(pairs))
        for pair in np.argsort(at).tolist():
            meta, first = divmod(int(pairs[pair]), 1 << 32)
            yield Differing(self._text(meta), self._text(first), int(counts[pair]))

    def _text(self, number: int) -> str:
        row = self._spool.row(_TEXT, (number,))
        assert row is not None
        return str(row[0])


def _column(name: str) -> str:
    """The values of a column as a query, one of each meta."""
    path = f'$."{name}"'.replace("'", "''")
    return f"SELECT CAST(json_extract(text, '{path}') AS TEXT) FROM metas ORDER BY no"  # noqa: S608
