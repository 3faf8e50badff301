"""What readers see of a SQLite store, through a connection of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from evenhand.errors import StoreError
from evenhand.store.sql.archive import SqlArchive
from evenhand.store.sql.verify import faults
from evenhand.store.sqlite.connection import LOG, StoreFile
from evenhand.store.sqlite.session import SqliteSession
from evenhand.store.sqlite.upkeep import lost_replies


class SqliteArchive(SqlArchive):
    """An archive in one file."""

    def __init__(self, file: StoreFile) -> None:
        self._file = file
        self._reading = file.connect()
        super().__init__(SqliteSession(file, self._reading))

    def is_claimed(self, run: str) -> bool:
        return self._reading.inode.holder(run) is not None

    def state(self) -> int:
        [(number,)] = self._rows("PRAGMA data_version")
        return int(number)

    def is_there(self) -> bool:
        return self._reading.inode.is_at(self._file.place)

    def freeze(self) -> None:
        # Without a log a reader would keep the writer waiting: there each statement sees one state.
        [(mode,)] = self._rows("PRAGMA journal_mode")
        if mode == LOG and not self._reading.in_transaction:
            self._rows("BEGIN")
            self._rows("SELECT COUNT(*) FROM migrations")  # the state is that of the first look

    def thaw(self) -> None:
        if self._reading.in_transaction:
            self._rows("COMMIT")

    def verify(self) -> list[str]:
        try:
            return list(self._faults())
        except (sqlite3.Error, StoreError) as error:
            return [f"the file is damaged: {getattr(error, 'what', error)}"]

    def _faults(self) -> Iterator[str]:
        """What is wrong, in words, most basic first."""
        if loss := lost_replies(self._file.place, self._reading):
            yield loss
        for (line,) in self._rows("PRAGMA integrity_check"):
            if line != "ok":
                yield f"the file is damaged: {line}"
        [(calls, last)] = self._rows("SELECT COUNT(*), coalesce(MAX(no), 0) FROM calls")
        if last > calls:
            yield f"{last - calls} calls are missing"
        yield from faults(self._session)

    def close(self) -> None:
        self._reading.close()
