"""Which keys were met before: told without keeping them, and wrong only in that one is sometimes
taken for met that was not."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS = 27
"""Of a place in the map, which takes 16 MB: of a million keys hardly one is mistaken."""
MARKS = 4
"""Places of each key."""
_WHOLE = (1 << BITS) - 1
_STEPS = np.arange(MARKS, dtype=np.int64)[:, None]


class Met:
    """Keys that were met, as marks on a map."""

    def __init__(self) -> None:
        self._map = np.zeros(1 << (BITS - 3), dtype=np.uint8)

    def add(self, keys: Collection[Hashable]) -> list[bool]:
        """Mark keys; which of them were marked before."""
        at, marks = _places(keys)
        are_met = self._are_marked(at, marks)
        np.bitwise_or.at(self._map, at, marks)
        return are_met

    def has(self, keys: Collection[Hashable]) -> list[bool]:
        """Which keys were met."""
        return self._are_marked(*_places(keys))

    def _are_marked(self, at: NDArray[Any], marks: NDArray[Any]) -> list[bool]:
        are_marked: list[bool] = np.all(self._map[at] & marks, axis=0).tolist()
        return are_marked


def _places(keys: Collection[Hashable]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The bytes of the map in which the marks of keys are, and the marks in them."""
    hashes = np.fromiter(map(hash, keys), dtype=np.int64, count=len(keys))
    places = (hashes & _WHOLE) + _STEPS * (hashes >> BITS | 1) & _WHOLE
    return places >> 3, np.left_shift(1, places & 7).astype(np.uint8)
