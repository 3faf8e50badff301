"""Rows on their way, as numbers: of which unit, by which judge, and what they say. They wait in a
file without a name, and come back unit by unit, those of one judge together, in the order in which
they came. Where rows of a unit lie apart, memory holds some 20 bytes of each row, else nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from evenhand.packedfile import kept_on_the_way, unnamed_file

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
    said: list[int]
    numbers: list[float | None]
    further: list[int] | None


class WaitingRows:
    """Rows in the order in which they were added."""

    def __init__(self) -> None:
        self._file: IO[bytes] = unnamed_file()
        finalize(self, self._file.close)

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
        columns = (units, judges, said, numbers, further)
        for name, column in zip(_ROW.names or (), columns, strict=True):
            rows[name] = column
        with kept_on_the_way():
            self._file.write(rows.tobytes())

    def rows(self) -> NDArray[Any]:
        """All rows, as they lie in the file."""
        self._file.flush()
        if not self._file.tell():
            return np.empty(0, dtype=_ROW)
        return np.memmap(self._file, dtype=_ROW, mode="r")

    def judged(self, owners: Numbers | None = None) -> Iterator[JudgedRows]:
        """The rows by unit and judge; with `owners`, by the unit that the one they name is of."""
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


def _judged(units: Numbers, block: NDArray[Any]) -> Iterator[JudgedRows]:
    """The same of rows of whole units, which stand together."""
    keys = units.astype(np.int64) << 32 | block["judge"]
    if np.any(keys[1:] < keys[:-1]):
        order = np.argsort(keys, kind="stable")
        keys, block = keys[order], block[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    said, further = block["said"].tolist(), block["further"].tolist()
    numbers: list[float | None] = [None] * len(keys)
    if not np.all(np.isnan(block["number"])):
        numbers = [None if number != number else number for number in block["number"].tolist()]  # noqa: PLR0124
    has_further = np.logical_or.reduceat(block["further"] != NOTHING, starts).tolist()
    ends = [*starts[1:].tolist(), len(keys)]
    opening = (keys[starts] >> 32).tolist(), block["judge"][starts].tolist()
    for unit, judge, start, end, is_more in zip(
        *opening, starts.tolist(), ends, has_further, strict=True
    ):
        yield JudgedRows(
            *(unit, judge, said[start:end], numbers[start:end]),
            further[start:end] if is_more else None,
        )
