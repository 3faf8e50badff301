"""A store's file: recognised, made or brought up to date, and opened.

Where the system lets processes share memory the file has a write-ahead log, so that readers and the
writer never wait for each other. Elsewhere (some network file systems) SQLite's rollback journal
serves: slower, and as durable. A mode that would lose what was committed is refused. What is not a
store is refused by its first bytes, before anything is written to it or beside it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from evenhand.errors import StoreBusy, StoreError
from evenhand.limits import (
    BUSY_LOOK_SECONDS,
    BUSY_MILLISECONDS,
    CHECKPOINT_PAGES,
    CLAIM_TRIES,
    JOIN_KILOBYTES,
)
from evenhand.store.beside import LOCAL_DISK
from evenhand.store.sqlite.holders import holders
from evenhand.store.sqlite.inode import Identity, Inode, create, leave, use
from evenhand.store.sqlite.schema import APPLICATION, MIGRATIONS

LOG = "wal"
DURABLE = frozenset({LOG, "delete", "truncate", "persist"})
"""Journal modes in which a commit survives a crash."""
_LOOK = "SELECT COUNT(*) FROM sqlite_master"
_MAGIC, _HEADER = b"SQLite format 3\0", 72
"""How a database begins, and so many bytes into it its application id ends."""
ANOTHER = "Name another store with --store sqlite:FILE"
MEND = "Free some space or mend the file, then run the same command again."


def now() -> str:
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{milliseconds:03}+00:00"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    """A second of the clock in words: many calls are recorded in each."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class StoreConnection(sqlite3.Connection):
    """A connection to a store, which keeps its file in use."""

    inode: Inode

    @contextmanager
    def larger_cache(self) -> Iterator[None]:
        """Hold more of the file in memory for a while."""
        (usual,) = self.execute("PRAGMA cache_size").fetchone()
        self.execute(f"PRAGMA cache_size = -{JOIN_KILOBYTES}")
        try:
            yield
        finally:
            self.execute(f"PRAGMA cache_size = {usual}")

    def close(self) -> None:
        """Close it; the file is let go of after SQLite has done so."""
        super().close()
        if "inode" in vars(self):
            leave(vars(self).pop("inode"))


class StoreFile:
    """A file that is a store; opening it makes one where there is none. A `fleeting` one need not
    survive a crash."""

    def __init__(self, path: Path, *, fleeting: bool = False) -> None:
        self.path, self.fleeting = path, fleeting
        self.place = Path(os.path.realpath(path))
        """The path without links: what belongs to the store lies beside it."""
        self._log = Path(f"{self.place}-wal")
        self.is_linked = False
        """Whether the file has a second name: then it is read, and nothing is written beside it."""
        try:
            _require_plain_file(self.place)
            with _in_use(self.place) as inode:
                # A log and its index need a folder that takes them.
                is_open_folder = os.access(self.place.parent, os.W_OK)
                self.is_read_only = not (inode.is_writable and is_open_folder)
                self._recognise(inode)
                self._prepare()
                self.identity: Identity = inode.identity
        except (sqlite3.Error, OSError) as error:
            raise self._no_store(error) from None

    def connect(self) -> StoreConnection:
        """One more connection."""
        # Where another writes before there is a log, SQLite refuses at once to begin one.
        patience = time.monotonic() + BUSY_MILLISECONDS / 1000
        while True:
            try:
                return self._connect()
            except (sqlite3.Error, OSError) as error:
                if not _is_busy(error) or time.monotonic() >= patience:
                    raise self._no_store(error) from None
            time.sleep(BUSY_LOOK_SECONDS)

    def _connect(self) -> StoreConnection:
        connection = self._bare()
        if self.is_read_only or self.is_linked:
            return connection
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode not in DURABLE:
                raise StoreError(
                    f"SQLite can keep this file in journal mode {mode} only, which loses commits"
                    " in a crash",
                    where=str(self.path),
                    advice="Put the store on a disk of this machine: --store sqlite:FILE",
                )
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            # Without a log the removal of the journal is the commit, and must reach the disk too.
            level = "OFF" if self.fleeting else "FULL" if mode == LOG else "EXTRA"
            connection.execute(f"PRAGMA synchronous = {level}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _second_name(self) -> StoreError:
        return StoreError(
            "the file has a second name (a hard link), under which its log is not seen",
            where=self._where,
            advice="Remove the other name, or make a copy instead: cp keeps files apart.",
        )

    def require_writable(self) -> None:
        """Refuse to write where that cannot be; raises StoreError."""
        if self.is_linked:
            raise self._second_name()
        if self.is_read_only:
            raise StoreError(
                "the store can be read here, but not written: the file or its folder is read-only",
                where=self._where,
                advice="Make both writable, or go on with a copy of it: --store sqlite:FILE",
            )

    def _bare(self) -> StoreConnection:
        if self.is_linked and not self._log.exists():
            return self._opened("immutable=1")
        if not self.is_read_only and not self.is_linked:
            return self._opened("mode=rw")
        try:
            return self._opened("mode=ro")
        except sqlite3.OperationalError:
            # Nobody can write there now, or SQLite would have found the index of the log: without
            # locks the index is kept in memory, and what the log holds is read with the rest.
            if _size(self._log):
                return self._opened("mode=ro&vfs=unix-none", "PRAGMA locking_mode = EXCLUSIVE")
            return self._opened("immutable=1")

    def _opened(self, options: str, *first: str) -> StoreConnection:
        inode = use(self.place)
        try:
            if getattr(self, "identity", inode.identity) != inode.identity:
                raise StoreError("another file has taken the place of the store", where=self._where)
            connection = sqlite3.connect(
                f"{self.place.as_uri()}?{options}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                factory=StoreConnection,
            )
        except BaseException:
            leave(inode)
            raise
        connection.inode = inode
        try:
            for sql in (f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}", *first, _LOOK):
                connection.execute(sql).fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _recognise(self, inode: Inode) -> None:
        """Refuse what is not a store, and leave it as it is."""
        head = inode.head(_HEADER)
        if not head:
            return self._require_no_log(inode)
        if not head.startswith(_MAGIC):
            raise self._no_store(OSError("this is not a database"))
        self.is_linked = inode.names > 1
        if self.is_linked and (_size(self._log) or _size(Path(f"{self.place}-journal"))):
            raise self._second_name()
        application = int.from_bytes(head[-4:])
        if application == APPLICATION:
            return None
        tables, migrations = self._tables()
        if application == 0 and MIGRATIONS[0][0] in migrations:
            return None  # a copy made by way of SQL has no application id: it is given one
        if {"migrations", "judgments", "calls", "units"} <= tables:
            raise StoreError(
                "this store is of an older form, which this version of evenhand cannot read",
                where=self._where,
                advice="Read it with the version that made it; for new runs move the file away, or"
                " name another store with --store sqlite:FILE",
            )
        raise StoreError("this is a database of another program", where=self._where, advice=ANOTHER)

    def _require_no_log(self, inode: Inode) -> None:
        """An empty file becomes a store, unless it was one: SQLite would drop its log."""
        # Somebody else may just be making the store.
        if _size(self._log) and not inode.head(1):
            raise StoreError(
                f"the file is empty, and the log {self._log.name} beside it is not",
                where=self._where,
                advice="Something has cut the store short: put back a copy of it. To begin anew,"
                " remove both.",
            )

    def _tables(self) -> tuple[set[str], set[str]]:
        """The names of the tables and of the migrations in a file; nothing is written to it or
        beside it, and no log is read."""
        address = f"{self.place.as_uri()}?immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as file:
            return {name for (name,) in file.execute("SELECT name FROM sqlite_master")}, _applied(
                file
            )

    def _prepare(self) -> None:
        """Apply the migrations that are missing; refuse a store from a newer version."""
        with closing(self._bare()) as connection:
            if _is_stamped(connection) and _applied(connection) == {name for name, _ in MIGRATIONS}:
                return  # whoever only reads need not wait for a writer
            self._require_changeable()
            # In one transaction, and before there is a log: the file is ours from the first byte.
            with transaction(connection):
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at TEXT)"
                )
                self._migrate(connection)

    def _require_changeable(self) -> None:
        """Refuse a store that would have to be changed before it can be read, and cannot be."""
        if self.is_linked:
            raise self._second_name()
        if self.is_read_only:
            raise StoreError(
                "the store is of an earlier version and must be brought up to date, but cannot be"
                " written here",
                where=self._where,
                advice="Make the file and its folder writable, or copy it to where it can be"
                " written and read the copy: --store sqlite:FILE",
            )

    def _migrate(self, connection: sqlite3.Connection) -> None:
        applied = _applied(connection)
        if unknown := applied - {name for name, _ in MIGRATIONS}:
            raise StoreError(
                f"the store was made by a newer evenhand (it has {max(unknown)})",
                where=self._where,
                advice="Upgrade evenhand, or name another store with --store sqlite:FILE",
            )
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        for name, script in MIGRATIONS:
            if name not in applied:
                for statement in filter(str.strip, script.split(";")):
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (name, now()))

    @contextmanager
    def claimed(self, run: str, inode: Inode) -> Iterator[None]:
        """Hold a run for this process; raises StoreBusy naming the one that holds it."""
        self._claim(run, inode)
        try:
            yield
        finally:
            inode.release(run)

    def _claim(self, run: str, inode: Inode) -> None:
        """Claim a run; raises StoreBusy if another process holds it, and StoreError if it is
        refused although nobody does."""
        for _ in range(CLAIM_TRIES):
            try:
                if inode.claim(run):
                    return
            except OSError as error:
                raise self._no_lock(error.strerror or str(error)) from None
            if (holder := inode.holder(run)) is not None:
                raise StoreBusy(
                    f"run {run} is being judged by another process (pid {holder})",
                    where=self._where,
                    advice="Wait until it has ended, or stop it; then run this command again.",
                )
            time.sleep(BUSY_LOOK_SECONDS)  # whoever held it may have let go of it since
        raise self._no_lock("refused, although no process holds it")

    def _no_lock(self, reason: str) -> StoreError:
        return StoreError(
            f"the file system does not keep a lock on the store: {reason}",
            where=self._where,
            advice=LOCAL_DISK,
        )

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Whatever the database says is wrong becomes a StoreError."""
        try:
            yield
        except sqlite3.Error as error:
            raise self.unusable(error) from None

    def unusable(self, error: sqlite3.Error) -> StoreError:
        advice = LOCAL_DISK if is_lock_error(error) else MEND
        what = f"the store cannot be used: {self._told(error)}"
        return StoreError(what, where=self._where, advice=advice)

    def _told(self, error: Exception) -> str:
        """Return what went wrong, and who keeps the store locked where that is it. The path is
        named beside it."""
        reason = getattr(error, "strerror", None) or str(error)
        by = " and ".join(holders(self.place)) if is_lock_error(error) else ""
        return f"{reason} by {by}" if by else reason

    def _no_store(self, error: Exception) -> StoreError:
        return StoreError(
            f"the store cannot be opened: {self._told(error)}",
            where=self._where,
            advice=LOCAL_DISK if is_lock_error(error) else ANOTHER,
        )

    @property
    def _where(self) -> str:
        return str(self.path)


_LOCK_ERRORS = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_IOERR_LOCK,
        sqlite3.SQLITE_IOERR_RDLOCK,
        sqlite3.SQLITE_IOERR_UNLOCK,
        sqlite3.SQLITE_IOERR_SHMLOCK,
        sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
    }
)


def is_lock_error(error: Exception) -> bool:
    """Return True if a lock could not be had."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code in _LOCK_ERRORS or code & 0xFF in _LOCK_ERRORS


def _is_busy(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


@contextmanager
def _in_use(path: Path) -> Iterator[Inode]:
    """The file at a path, made where there is none."""
    create(path)
    inode = use(path)
    try:
        yield inode
    finally:
        leave(inode)


def _require_plain_file(path: Path) -> None:
    """Refuse a folder, a pipe or a device, which may never answer; raises OSError."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise OSError("it is not a plain file")


def _size(path: Path) -> int:
    """How long a file is; 0 where there is none."""
    return path.stat().st_size if path.exists() else 0


def _is_stamped(connection: sqlite3.Connection) -> bool:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return bool(application == APPLICATION)


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
