"""Rows on their way, as numbers: of which unit, by which judge, and what they say. They come back
unit by unit, those of one judge together, in the order in which they came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROW = np.dtype(
    [("unit", "<u4"), ("judge", "<u4"), ("said", "<i4"), ("number", "<f8"), ("further", "<i8")]
)
BLOCK_ROWS = 1 << 14
"""Rows that are brought into their order at a time."""
NOTHING = -1
"""Where a row says nothing further."""

Numbers = NDArray[np.integer[Any]]


class JudgedRows(NamedTuple):
    """The rows of one judge on one unit: what they say, in words and as a number, and where it is
    kept what else they say."""

    unit: int
    judge: int
    said: tuple[int | str, ...]
    numbers: tuple[float | None, ...]
    further: tuple[int, ...] | None


class WaitingRows:
    """Rows in the order in which they were added."""

    def __init__(self) -> None:
        self._parts: list[NDArray[Any]] = []

    def add(
        self,
        units: Sequence[int],
        judges: Sequence[int],
        said: Sequence[int],
        numbers: Sequence[float | None],
        further: Sequence[int],
        size: int,
    ) -> None:
        """Have so many rows wait."""
        rows = np.empty(size, dtype=_ROW)
        rows["unit"], rows["judge"], rows["said"] = units, judges, said
        is_number = numbers.count(None) < size
        rows["number"] = numbers if is_number else np.nan
        rows["further"] = further
        self._parts.append(rows)

    def rows(self) -> NDArray[Any]:
        """Return all rows in the order in which they came."""
        if len(self._parts) != 1:
            self._parts = [np.concatenate([np.empty(0, dtype=_ROW), *self._parts])]
        return self._parts[0]

    def judged(self, owners: Numbers | None = None) -> Iterator[list[JudgedRows]]:
        """The rows of one unit after the other, by judge; with `owners`, of the units that those
        they name are of."""
        rows = self.rows()
        units = rows["unit"].copy() if owners is None else owners[rows["unit"]]
        order = None
        if np.any(units[1:] < units[:-1]):
            order = np.argsort(units, kind="stable")
            units = units[order]
        start = 0
        while start < len(units):
            end = min(start + BLOCK_ROWS, len(units))
            end = int(np.searchsorted(units, units[end - 1], side="right"))
            block = rows[start:end] if order is None else rows[order[start:end]]
            yield from _judged(units[start:end], block)
            start = end


def _judged(units: Numbers, block: NDArray[Any]) -> Iterator[list[JudgedRows]]:
    """The same of rows of whole units, which stand together."""
    keys = units.astype(np.int64) << 32 | block["judge"]
    if np.any(keys[1:] < keys[:-1]):
        order = np.argsort(keys, kind="stable")
        keys, block = keys[order], block[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    numbers: tuple[float | None, ...] = (None,) * len(keys)
    if not np.all(np.isnan(block["number"])):
        numbers = tuple([None if n != n else n for n in block["number"].tolist()])  # noqa: PLR0124
    unit_of = keys[starts] >> 32
    stretches = list(map(slice, starts.tolist(), [*starts[1:].tolist(), len(keys)]))
    judged = list(
        map(
            JudgedRows,
            unit_of.tolist(),
            block["judge"][starts].tolist(),
            map(tuple(block["said"].tolist()).__getitem__, stretches),
            map(numbers.__getitem__, stretches),
            _further(block["further"], starts, stretches),
        )
    )
    opening = np.flatnonzero(np.diff(unit_of, prepend=-1)).tolist()
    return map(judged.__getitem__, map(slice, opening, [*opening[1:], len(judged)]))


def _further(
    column: Numbers, starts: Numbers, stretches: Sequence[slice]
) -> Iterable[tuple[int, ...] | None]:
    """Where it is kept what else is said in stretches of rows; None where nothing is."""
    are_more = np.logical_or.reduceat(column != NOTHING, starts)
    if not np.any(are_more):
        return repeat(None, len(stretches))
    further = tuple(column.tolist())
    return [
        further[stretch] if is_more else None
        for stretch, is_more in zip(stretches, are_more.tolist(), strict=True)
    ]
