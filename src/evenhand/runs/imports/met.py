"""Which keys were met before: told without keeping them, and wrong only in that one is sometimes
taken for met that was not."""

from __future__ import annotations

from collections.abc import Hashable

BITS = 27
"""Of a place in the map, which takes 16 MB: of a million keys hardly one is mistaken."""
MARKS = 4
"""Places of each key."""
_WHOLE = (1 << BITS) - 1


class Met:
    """Keys that were met, as marks on a map."""

    def __init__(self) -> None:
        self._map = bytearray(1 << (BITS - 3))

    def add(self, key: Hashable) -> bool:
        """Mark a key; whether it was marked before."""
        marks, whole = self._map, hash(key)
        place, step, is_met = whole & _WHOLE, whole >> BITS | 1, True
        for _ in range(MARKS):
            at, mark = place >> 3, 1 << (place & 7)
            if not marks[at] & mark:
                marks[at] |= mark
                is_met = False
            place = place + step & _WHOLE
        return is_met
