"""Which keys were met before: told without keeping them, and wrong only in that one is sometimes
taken for met that was not."""

from __future__ import annotations

from collections.abc import Hashable

BITS = 27
"""Of a place in the map, which takes 16 MB: of a million keys one in a hundred is mistaken."""


class Met:
    """Keys that were met, as marks on a map."""

    def __init__(self) -> None:
        self._map = bytearray(1 << (BITS - 3))

    def add(self, key: Hashable) -> bool:
        """Mark a key; whether it was marked before."""
        place = hash(key) & ((1 << BITS) - 1)
        at, mark = place >> 3, 1 << (place & 7)
        if self._map[at] & mark:
            return True
        self._map[at] |= mark
        return False
