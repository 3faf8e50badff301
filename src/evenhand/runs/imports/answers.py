"""Which answers were scored: a place is a unit with one meta, and the key, which may be found out
only when all rows are there, says which places are one unit."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic_core import from_json

from evenhand.jsontext import as_text
from evenhand.runs.imports.waiting_rows import Numbers

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
        self._metas: dict[str, int] = {}
        self._places: dict[PlaceKey, int] = {}
        self._idents: dict[str, int] = {}
        self._ident_of, self._meta_of = array("I"), array("I")
        """Of each place the number of its id, as far as it was known then, and of its meta."""
        self.openings: list[Opening] = []
        """What is known of each place, in the order of their numbers."""

    def __len__(self) -> int:
        return len(self._meta_of)

    def meta(self, text: str) -> int:
        """Return the number of a meta, which is JSON."""
        return self._metas.setdefault(text, len(self._metas) + 1)

    def places(self, keys: Sequence[PlaceKey]) -> list[int | None]:
        """Return the numbers of places; None where one is new."""
        return [self._places.get(key) for key in keys]

    def add(self, places: Mapping[PlaceKey, tuple[str, Opening]]) -> dict[PlaceKey, int]:
        """Return the numbers of new places, each with its id."""
        numbers = dict(zip(places, range(len(self) + 1, len(self) + len(places) + 1), strict=True))
        idents = self._idents
        self._ident_of.extend(
            [idents.setdefault(ident, len(idents) + 1) for ident, _ in places.values()]
        )
        self._meta_of.extend([meta for _, meta in places])
        self._places.update(numbers)
        self.openings += [opening for _, opening in places.values()]
        return numbers

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
        for text in self._metas:
            value = from_json(text).get(column)
            name = None if value is None else as_text(value)
            of_meta.append(numbers.setdefault(name, len(numbers)))
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
        texts = list(self._metas)
        for pair in np.argsort(at).tolist():
            meta, first = divmod(int(pairs[pair]), 1 << 32)
            yield Differing(texts[meta - 1], texts[first - 1], int(counts[pair]))
