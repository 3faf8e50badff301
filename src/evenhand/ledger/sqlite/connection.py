"""A store's file: recognised, made or brought up to date, and opened.

Where the system lets processes share memory the file has a write-ahead log, so that readers and the
writer never wait for each other. Elsewhere (some network file systems) SQLite's rollback journal
serves: slower, and as durable. A mode that would lose what was committed is refused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from evenhand.errors import StoreError
from evenhand.ledger.sqlite.schema import APPLICATION, MIGRATIONS
from evenhand.limits import BUSY_MILLISECONDS, CHECKPOINT_PAGES

LOG = "wal"
DURABLE = frozenset({LOG, "delete", "truncate", "persist"})
"""Journal modes in which a commit survives a crash."""
_HEADER = 72
"""So many bytes into the file its application id ends."""
ANOTHER = "Name another store with --store sqlite:FILE"
MEND = "Free some space or mend the file, then run the same command again."


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class StoreFile:
    """A file that is a store; opening it makes one where there is none. A `fleeting` one need not
    survive a crash."""

    def __init__(self, path: Path, *, fleeting: bool = False) -> None:
        self.path, self._fleeting = path, fleeting
        try:
            self._recognise()
            self._prepare()
            self._inode = path.stat().st_ino
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"the store cannot be opened: {error}", where=str(path), advice=ANOTHER
            ) from None

    def connect(self) -> sqlite3.Connection:
        """One more connection."""
        connection = self._bare()
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode not in DURABLE:
            connection.close()
            raise StoreError(
                f"SQLite can keep this file in journal mode {mode} only, which loses commits in a"
                " crash",
                where=str(self.path),
                advice="Put the store on a disk of this machine: --store sqlite:FILE",
            )
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        # Without a log the removal of the journal is the commit, and must reach the disk too.
        level = "OFF" if self._fleeting else "FULL" if mode == LOG else "EXTRA"
        connection.execute(f"PRAGMA synchronous = {level}")
        return connection

    def _bare(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        return connection

    def _recognise(self) -> None:
        """Refuse a database that is not ours, and leave it as it is."""
        if not self.path.exists() or not self.path.stat().st_size:
            return
        with self.path.open("rb") as file:
            if file.read(_HEADER)[-4:] == APPLICATION.to_bytes(4, "big"):
                return
        try:
            application, tables = self._head("ro")
        except sqlite3.OperationalError:
            application, tables = self._head("rw")  # a crash left something to be rolled back
        if application == APPLICATION or not (tables or application):
            return
        if {"migrations", "judgments", "calls", "units"} <= tables:
            raise StoreError(
                "this store is of an older form, which this version of evenhand cannot read",
                where=str(self.path),
                advice="Read it with the version that made it; for new runs move the file away, or"
                " name another store with --store sqlite:FILE",
            )
        raise StoreError(
            "this is a database of another program", where=str(self.path), advice=ANOTHER
        )

    def _head(self, mode: str) -> tuple[int, set[str]]:
        """What the file says it is, and the names of its tables; nothing is written."""
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        with closing(sqlite3.connect(address, uri=True)) as file:
            (application,) = file.execute("PRAGMA application_id").fetchone()
            return application, {name for (name,) in file.execute("SELECT name FROM sqlite_master")}

    def _prepare(self) -> None:
        """Apply the migrations that are missing; refuse a store from a newer version."""
        with closing(self._bare()) as connection:
            if _applied(connection) == {name for name, _ in MIGRATIONS}:
                return  # whoever only reads need not wait for a writer
            # In one transaction, and before there is a log: the file is ours from the first byte.
            with transaction(connection):
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at TEXT)"
                )
                self._migrate(connection)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        applied = _applied(connection)
        if unknown := applied - {name for name, _ in MIGRATIONS}:
            raise StoreError(
                f"the store was made by a newer evenhand (it has {max(unknown)})",
                where=str(self.path),
                advice="Upgrade evenhand, or name another store with --store sqlite:FILE",
            )
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        for name, script in MIGRATIONS:
            if name not in applied:
                for statement in filter(str.strip, script.split(";")):
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (name, now()))

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Whatever the database says is wrong becomes a StoreError."""
        try:
            yield
        except sqlite3.Error as error:
            raise self.unusable(error) from None

    def unusable(self, error: sqlite3.Error) -> StoreError:
        return StoreError(f"the store cannot be used: {error}", where=str(self.path), advice=MEND)

    def is_there(self) -> bool:
        """Whether what was opened still is what the path leads to."""
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def lock_of(self, run: str) -> Path:
        """The lock file of a run."""
        return Path(f"{self.path}-locks", run)


def _applied(connection: sqlite3.Connection) -> set[str]:
    try:
        return {name for (name,) in connection.execute("SELECT name FROM migrations")}
    except sqlite3.OperationalError:
        return set()  # a store that is just being made


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it is committed or, on any error, nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
