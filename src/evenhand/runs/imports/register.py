"""What is known of keys that come again and again. The last some thousand are at hand; the others
wait in a file, and go into a database only where one of them may have come back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec.msgpack import Decoder, Encoder

from evenhand.limits import BATCH_ROWS
from evenhand.runs.imports.memo import MEMO_ENTRIES
from evenhand.runs.imports.met import Met
from evenhand.runs.imports.packedfile import PackedFile
from evenhand.runs.imports.spool import Spool

CHARS_AT_HAND = 1 << 24
"""Characters of keys and entries that are kept at hand."""
_TABLES = {"entries": ("key PRIMARY KEY", "entry")}
_ENTRY = "SELECT entry FROM entries WHERE key=?"

_pack = Encoder().encode
_unpack = Decoder().decode

K = TypeVar("K", bound=Hashable)
E = TypeVar("E")


class Register(Generic[K, E]):
    """Entries by their keys, both of texts and numbers; `restored` makes an entry of what comes
    back of it, of a tuple a list."""

    def __init__(self, restored: Callable[[Any], E]) -> None:
        self._restored = restored
        self._fresh: dict[K, E] = {}
        self._recalled: dict[K, E] = {}
        """Entries at hand: those that are nowhere else yet, and those that came back."""
        self._chars = 0
        self._away = PackedFile()
        """Entries that are not at hand, and which keys these have."""
        self._met: Met | None = None
        self._spool: Spool | None = None
        self._indexed = 0
        """How far the file is in the database."""

    def entries(self, keys: Sequence[K]) -> list[E | None]:
        """The entry of each key; None where it is new."""
        entries: list[E | None] = list(map(self._fresh.get, keys))
        if self._met is not None and None in entries:
            self._recall([key for key, entry in zip(keys, entries, strict=True) if entry is None])
            entries = [
                self._recalled.get(key) if entry is None else entry
                for key, entry in zip(keys, entries, strict=True)
            ]
        return entries

    def add(self, entries: Mapping[K, E], chars: int) -> None:
        """Keep the entries of new keys, which hold so many characters."""
        if len(self._fresh) >= MEMO_ENTRIES or self._chars >= CHARS_AT_HAND:
            self._put_away()
        self._fresh.update(entries)
        self._chars += chars

    def close(self) -> None:
        if self._spool is not None:
            self._spool.close()

    def _put_away(self) -> None:
        if self._met is None:
            self._met = Met()
        self._met.add(self._fresh)
        waiting = list(self._fresh.items())
        for start in range(0, len(waiting), BATCH_ROWS):
            self._away.add(waiting[start : start + BATCH_ROWS])
        self._fresh.clear()
        self._chars = 0

    def _recall(self, keys: Sequence[K]) -> None:
        """Have those at hand that were put away."""
        assert self._met is not None
        if len(self._recalled) >= MEMO_ENTRIES:
            self._recalled.clear()
        missing = [key for key in dict.fromkeys(keys) if key not in self._recalled]
        for key, is_met in zip(missing, self._met.has(missing), strict=True):
            if is_met and (row := self._index().row(_ENTRY, (_pack(key),))):
                self._recalled[key] = self._restored(_unpack(row[0]))

    def _index(self) -> Spool:
        """The database, with all that was put away."""
        if self._spool is None:
            self._spool = Spool(_TABLES)
        if self._indexed < self._away.end:
            for batch in self._away.since(self._indexed):
                rows = [(_pack(key), _pack(entry)) for key, entry in batch]
                self._spool.write({"entries": rows})
            self._indexed = self._away.end
        return self._spool
