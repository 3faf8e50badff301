"""Which questions a store cannot have answered yet, known without asking it.

Nearly every question of a new run is new, and to be told so by the file takes longer than to render
the question. So a bit is kept here for each key that was ever recorded: where it is not set, no
such call is there. What the bit of another key has set is looked up in the file.
"""

from __future__ import annotations

import sqlite3

BITS = 1 << 23
"""A megabyte: of a hundred new questions one is looked up in vain beside 80,000 calls."""
CALLS_READ = 20_000
"""Of a store with more calls when it is first looked at they are not all read for this."""
_ALL = "SELECT COALESCE(MAX(no), 0) FROM calls"
_LATER = "SELECT no, key FROM calls WHERE no > ? ORDER BY no"


class RecordedKeys:
    """The keys of all calls that a connection can see; those of others too, once it has looked."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, self._last = connection, 0
        [(calls,)] = connection.execute(_ALL)
        self.are_known = calls <= CALLS_READ
        """Whether they are kept here."""
        self._bits = bytearray(BITS // 8 if self.are_known else 0)

    def look(self) -> None:
        """Learn of the calls that were recorded since the last look, whoever recorded them."""
        for number, key in self._connection.execute(_LATER, (self._last,)):
            place = _place(key)
            self._bits[place >> 3] |= 1 << (place & 7)
            self._last = number

    def may_have(self, key: str) -> bool:
        """Whether a call of this key may have been there at the last look."""
        place = _place(key)
        return bool(self._bits[place >> 3] & (1 << (place & 7)))


def _place(key: str) -> int:
    return hash(key) % BITS
