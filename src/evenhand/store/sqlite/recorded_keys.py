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
"""So many calls are read for this at the most when it is first looked, and so many more at a later
look: beyond that every question is looked up in the file."""
FINDS_BEFORE = 256
"""Whoever asks less than that is not worth reading all keys: a single question must cost the same
however many went before."""
_LAST = "SELECT COALESCE(MAX(no), 0) FROM calls"
# As bytes: one damaged key must not keep the others from being found. The index has all of them,
# and is much smaller than the table, of which the last rows alone are read.
_ALL = "SELECT CAST(key AS BLOB) FROM calls INDEXED BY calls_by_key WHERE no <= ?"
_LATER = "SELECT no, CAST(key AS BLOB) FROM calls WHERE no > ? ORDER BY no LIMIT ?"


class RecordedKeys:
    """The keys of all calls that a connection can see; those of others too, once it has looked.
    Calls are never deleted, so that what is new has a higher number than all before."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        [(self._last,)] = connection.execute(_LAST)
        self.are_known = self._last <= CALLS_READ
        """Whether they are kept here."""
        self._bits = bytearray(BITS // 8 if self.are_known else 0)
        if self.are_known:
            for (key,) in connection.execute(_ALL, (self._last,)):
                self._mark(key)

    def look(self) -> None:
        """Learn of the calls that were recorded since the last look, whoever recorded them."""
        calls = self._connection.execute(_LATER, (self._last, CALLS_READ + 1)).fetchall()
        self.are_known = len(calls) <= CALLS_READ
        for number, key in calls:
            self._mark(key)
            self._last = number

    def may_have(self, key: str) -> bool:
        """Whether a call of this key may have been there at the last look."""
        place = hash(key.encode()) % BITS
        return bool(self._bits[place >> 3] & (1 << (place & 7)))

    def _mark(self, key: bytes) -> None:
        place = hash(key) % BITS
        self._bits[place >> 3] |= 1 << (place & 7)
