"""A store in a SQLite file.

The file has a write-ahead log, so that readers and the writer never wait for each other; where the
system does not let processes share memory, as on some network file systems, there can be none, and
the store is refused. A run is claimed by `flock` on a file beside the store, which the
system unlocks however the process ends. Before each commit the writer looks if the file is still
where its name leads: one that was moved or deleted would take rows that nobody finds.

The store's own file is never opened here except by SQLite: its locks belong to the process, and the
system drops all of them when the process closes any descriptor of the file.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evenhand.errors import StoreError
from evenhand.limits import (
    BUSY_LOOK_SECONDS,
    BUSY_SECONDS,
    CHECKPOINT_PAGES,
    LOG_BYTES,
    PAGE_CACHE_KILOBYTES,
    PAGE_ROWS,
)
from evenhand.store.archive import Archive
from evenhand.store.ledger import Store
from evenhand.store.session import (
    VERSION,
    Row,
    Statements,
    Values,
    other_version,
    schema,
    schema_names,
)
from evenhand.words import Sentence

APPLICATION = 0x45564E48
"""`EVNH` in the header of the file: by this a store is told from other programs' databases."""
SMALLEST = 512
"""Bytes of the smallest database: SQLite takes a shorter file for an empty one."""
LOCK_ERRORS = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_IOERR_LOCK,
)
_creating = threading.Lock()
"""Held while a file is made: its descriptor must be closed before SQLite locks it."""


def sqlite_store(path: Path | None) -> Store:
    """Return the store in a file, which is made if there is none; without a path, one that vanishes
    when it is closed. Raises StoreError."""
    if path is not None:
        file = SqliteFile(path)
        return Store(Archive(file.connect()), file.connect)
    folder = tempfile.mkdtemp(prefix="evenhand-")
    file = SqliteFile(Path(folder, "store.db"), is_temporary=True)
    end = partial(shutil.rmtree, folder, ignore_errors=True)
    return Store(Archive(file.connect()), file.connect, end)


def sqlite_archive(path: Path) -> Archive:
    """Return the archive in a file, for reading alone; raises StoreError."""
    return Archive(SqliteFile(path).connect())


class SqliteFile:
    """A file that is a store; one is made where there is none. A temporary one need not survive a
    crash."""

    def __init__(self, path: Path, *, is_temporary: bool = False) -> None:
        self.path, self._is_temporary = path, is_temporary
        self.place = Path(os.path.realpath(path))
        """The path without links: the log and the locks lie beside it."""
        self.identity: tuple[int, int] | None = None
        try:
            with _creating:
                _create(self.place)
            self._recognise()
            self.is_read_only = not (
                os.access(self.place, os.W_OK) and os.access(self.place.parent, os.W_OK)
            )
            self._prepare()
        except (sqlite3.Error, OSError) as error:
            raise self.error("cannot_open", error) from None
        self.identity = self.find()

    def find(self) -> tuple[int, int] | None:
        """Return device and inode of the file that the path leads to now."""
        try:
            status = self.place.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def require_present(self) -> None:
        """Raise StoreError if the path does not lead to the file that was opened."""
        if self.identity is not None and self.find() != self.identity:
            raise self._refusal("moved")

    def _recognise(self) -> None:
        """Raise an error for whatever is no store, and leave it as it is."""
        status = self.place.stat()
        if not stat.S_ISREG(status.st_mode):
            raise self._refusal("no_plain_file")
        if not status.st_size:
            self._require_no_log()
            return
        if status.st_size < SMALLEST:
            raise self._refusal("no_database")
        # SQLite reads an immutable file without locks, and writes nothing beside it.
        with closing(sqlite3.connect(f"{self.place.as_uri()}?immutable=1", uri=True)) as file:
            (application,) = file.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION:
            raise self._refusal("other_database")
        if status.st_nlink > 1:
            raise self._refusal("hard_link")

    def _require_no_log(self) -> None:
        """Refuse an empty file that was a store: SQLite would drop its log."""
        log = Path(f"{self.place}-wal")
        # Somebody else may just be making the store.
        if log.exists() and log.stat().st_size and not self.place.stat().st_size:
            raise self._refusal("cut_short", log=log.name)

    def _refusal(self, key: str, **values: str) -> StoreError:
        return StoreError(Sentence(f"store.{key}", **values), where=str(self.path))

    def _prepare(self) -> None:
        """Make the tables of a new store; refuse a store of another version."""
        with closing(self._open()) as connection:
            version = _version(connection)
            if version is None and not self.is_read_only:
                # In one transaction, and before there is a log: the file is ours from its first
                # byte.
                with _transaction(connection):
                    if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                        connection.execute(f"PRAGMA application_id = {APPLICATION}")
                        for statement in schema():
                            connection.execute(statement)
                version = _version(connection)
        if version != VERSION:
            raise StoreError(other_version(version), where=str(self.path))

    def _open(self) -> sqlite3.Connection:
        if not self.is_read_only:
            return self._connect("mode=rw")
        try:
            return self._connect("mode=ro")
        except sqlite3.OperationalError:
            # Nobody can write there now, or SQLite would have found the index of the log: without
            # locks the index is kept in memory, and what the log holds is read with the rest.
            log = Path(f"{self.place}-wal")
            if log.exists() and log.stat().st_size:
                return self._connect("mode=ro&vfs=unix-none", "PRAGMA locking_mode = EXCLUSIVE")
            return self._connect("immutable=1")

    def _connect(self, options: str, *first: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.place.as_uri()}?{options}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_SECONDS,
        )
        try:
            settings = f"PRAGMA cache_size = -{PAGE_CACHE_KILOBYTES}"
            for sql in (*first, settings, "SELECT COUNT(*) FROM sqlite_master"):
                connection.execute(sql).fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def connect(self) -> SqliteSession:
        """Return one more session; raises StoreError."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self.require_present()
                connection = self._open()
                try:
                    if not self.is_read_only:
                        self._set_up(connection)
                except BaseException:
                    connection.close()
                    raise
                return SqliteSession(self, connection)
            except (sqlite3.Error, OSError) as error:
                # Where another writes before there is a log, SQLite refuses at once to begin one.
                is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() >= deadline:
                    raise self.error("cannot_open", error) from None
            time.sleep(BUSY_LOOK_SECONDS)

    def _set_up(self, connection: sqlite3.Connection) -> None:
        """Begin the log of a connection that writes."""
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise self._refusal("no_log", mode=mode)
        level = "OFF" if self._is_temporary else "FULL"
        connection.execute(f"PRAGMA synchronous = {level}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}").fetchall()

    def error(self, key: str, error: Exception) -> StoreError:
        """Return an error of the database in our words; the path is named beside it."""
        reason = getattr(error, "strerror", None) or str(error)
        is_locked = getattr(error, "sqlite_errorcode", 0) in LOCK_ERRORS
        advice = Sentence("store.locked_advice") if is_locked else ""
        what = Sentence(f"store.{key}", reason=reason)
        return StoreError(what, where=str(self.path), advice=advice)


def _create(path: Path) -> None:
    """Make an empty file that its owner alone may read, unless there is a file; raises OSError."""
    with suppress(FileExistsError):
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        os.close(os.open(path, flags, 0o600))


def _version(connection: sqlite3.Connection) -> int | None:
    """Return the version of a store's tables; None if there is none."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='store'").fetchone():
        return None
    row = connection.execute("SELECT version FROM store").fetchone()
    return int(row[0]) if row else None


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit everything or, on any error, nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class SqliteSession:
    """A connection to a store's file."""

    is_remote = False

    def __init__(self, file: SqliteFile, connection: sqlite3.Connection) -> None:
        self._file, self._connection = file, connection
        self._locks: dict[str, RunLock] = {}

    @property
    def where(self) -> str:
        return str(self._file.path)

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._file.error("cannot_use", error) from None

    def rows(self, sql: str, values: Values | None = None) -> list[Any]:
        with self._in_use():
            return self._connection.execute(sql, _bound(values)).fetchall()

    def stream(self, sql: str, values: Values | None = None) -> Iterator[Any]:
        with self._in_use():
            cursor = self._connection.execute(sql, _bound(values))
            while rows := cursor.fetchmany(PAGE_ROWS):
                yield from rows

    def write(self, sql: str, rows: Sequence[Row]) -> None:
        with self._in_use():
            self._connection.executemany(sql, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._file.require_present()
        with self._in_use(), _transaction(self._connection):
            yield

    def commit(self, statements: Statements) -> None:
        try:
            self._file.require_present()
        except StoreError:
            # What lies in the log alone would stay behind under the old name.
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            raise
        try:
            with _transaction(self._connection):
                for sql, rows in statements:
                    self._connection.executemany(sql, rows)
        except sqlite3.Error as error:
            raise self._file.error("cannot_write", error) from None

    def lock_table(self, name: str) -> None:
        """Do nothing: a transaction of SQLite writes alone."""

    def require_writable(self) -> None:
        if self._file.is_read_only:
            raise StoreError(Sentence("store.read_only_file"), where=self.where)

    def try_locks(self, names: Sequence[str]) -> set[str]:
        taken: set[str] = set()
        for name in names:
            lock = RunLock(self._lock_path(name))
            try:
                is_taken = lock.take()
            except OSError as error:
                reason = error.strerror or str(error)
                what = Sentence("store.cannot_lock", reason=reason)
                advice = Sentence("store.locked_advice")
                raise StoreError(what, where=str(lock.path), advice=advice) from None
            if is_taken:
                self._locks[name] = lock
                taken.add(name)
        return taken

    def unlock(self, names: Sequence[str]) -> None:
        for name in names:
            self._locks.pop(name).release()

    def lock_holder(self, name: str) -> str | None:
        return RunLock(self._lock_path(name)).holder()

    def _lock_path(self, name: str) -> Path:
        return Path(f"{self._file.place}-{quote(name, safe='')}.lock")

    def state(self) -> int | None:
        if self._file.find() != self._file.identity:
            return None
        [(number,)] = self.rows("PRAGMA data_version")
        return int(number)

    def set_frozen(self, frozen: bool) -> None:
        if not frozen and self._connection.in_transaction:
            self.rows("ROLLBACK")  # nothing was written
        elif frozen and not self._connection.in_transaction:
            self.rows("BEGIN")
            self.rows("SELECT version FROM store")  # the state is that of the first look

    def check_file(self) -> Iterator[str]:
        for (line,) in self.rows("PRAGMA integrity_check"):
            if line != "ok":
                yield Sentence("store.damaged_file", line=line)
        # With views in the schema SQLite itself does not miss an index that was dropped.
        made = {name for (name,) in self.rows("SELECT name FROM sqlite_master")}
        for name in sorted(schema_names() - made):
            yield Sentence("store.missing_table", name=name)
        [(calls, last)] = self.rows("SELECT COUNT(*), coalesce(MAX(no), 0) FROM calls")
        if last > calls:
            yield Sentence("store.missing_calls", n=last - calls)

    def close(self) -> None:
        self.unlock(list(self._locks))
        self._connection.close()


def _bound(values: Values | None) -> Values:
    """Return values as SQLite binds them: a list as JSON."""
    return {
        name: json.dumps(value) if isinstance(value, list | tuple) else value
        for name, value in (values or {}).items()
    }


class RunLock:
    """The lock by which one process at a time judges a run: on a file that holds the id of the
    process, and is removed when the lock is released."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    def take(self) -> bool:
        """Lock the file, without waiting; return False if another holds it. Raises OSError."""
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            descriptor = os.open(self.path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not self._is_at(descriptor):
                    os.close(descriptor)  # whoever held it has just removed it
                    continue
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
            except BlockingIOError:
                os.close(descriptor)
                return False
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor = descriptor
            return True

    def _is_at(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        with suppress(OSError):
            if self._is_at(self._descriptor):
                self.path.unlink()
        os.close(self._descriptor)

    def holder(self) -> str | None:
        """Return the process that holds the lock; None if nobody does, or it is not told."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return f"pid {os.pread(descriptor, 20, 0).decode('ascii', 'replace').strip()}"
        except OSError:
            return None
        else:
            return None
        finally:
            os.close(descriptor)
