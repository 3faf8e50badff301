"""A store in a schema of a PostgreSQL database.

The tables are those of `schema.sql`, in a schema of their own, so that other programs' tables of
the same names are never mistaken for ours. What differs from SQLite: there are no foreign keys
(each would be checked and locked row by row), ids of any length are found by their hash, and the
character NUL, which PostgreSQL refuses, is written as two others.

A commit is durable before anybody hears of it: a server or a user for whom `synchronous_commit` is
off has it switched on for our sessions. Runs and questions are locked by advisory locks, which end
with the session however that ends.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b
from time import monotonic
from typing import Any, TypeVar

import asyncpg
from asyncpg import exceptions as pg

from evenhand.errors import StoreError, StoreMissing
from evenhand.limits import (
    CLAIM_PAUSES,
    CONNECT_SECONDS,
    PAGE_ROWS,
    SERVER_AWAY_SECONDS,
    STATEMENT_SECONDS,
)
from evenhand.store.address import Address, read_address
from evenhand.store.archive import Archive
from evenhand.store.ledger import Store, busy
from evenhand.store.session import (
    VERSION,
    Row,
    Statements,
    Values,
    escape_nul,
    other_version,
    restore_nul,
    schema,
    to_postgres,
    to_postgres_ddl,
)
from evenhand.words import Code, Sentence

T = TypeVar("T")
Connection = Any
"""An asyncpg.Connection: the driver brings no types."""
Work = Callable[[Connection], Awaitable[T]]

LOST = (
    *(pg.PostgresConnectionError, pg.InternalClientError, OSError, TimeoutError),
    *(pg.AdminShutdownError, pg.CrashShutdownError, pg.CannotConnectNowError),
    *(pg.ReadOnlySQLTransactionError, pg.TooManyConnectionsError, pg.IdleSessionTimeoutError),
    pg.TransactionRollbackError,
)
"""Errors that may be over in a moment, on another connection: it was cut, the server starts anew,
the one that answers is a standby, two writers were in each other's way."""
FAILED = (*LOST, asyncpg.PostgresError, pg.InterfaceError, ValueError, OverflowError)
"""All errors of the driver."""
PROGRAM = "evenhand"
"""The name of our sessions in the server's lists, before the process and its machine."""
OLDEST = 13
"""The first version with everything that is used here."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
"""Between tries to connect again, in seconds."""
_KEEPALIVE = {
    "tcp_keepalives_idle": "20",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
}
"""Within a minute the server notices that a machine is gone, and frees the runs that it held."""
_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit')='off'"
)
_TABLES = "SELECT relname FROM pg_class WHERE relnamespace=to_regnamespace($1) AND relkind='r'"
_LOCK = "SELECT n, pg_try_advisory_lock(n) FROM unnest($1::bigint[]) AS n"
_UNLOCK = "SELECT pg_advisory_unlock(n) FROM unnest($1::bigint[]) AS n"
_HOLDER = (
    "SELECT coalesce(a.application_name, '') FROM pg_locks l"
    " LEFT JOIN pg_stat_activity a ON a.pid=l.pid"
    " WHERE l.locktype='advisory' AND l.granted AND l.objsubid=1"
    " AND l.database=(SELECT oid FROM pg_database WHERE datname=current_database())"
    " AND l.classid::bigint=:high AND l.objid::bigint=:low"
)


def postgres_store(url: str, *, must_exist: bool = False) -> Store:
    """Return the store behind an address, which is made if there is none, unless it must exist;
    raises StoreError."""
    server = Server(read_address(url))
    server.prepare(must_exist=must_exist)
    return Store(Archive(server.connect(patience=0)), server.connect)


def postgres_archive(url: str) -> Archive:
    """Return the archive behind an address, for reading alone; raises StoreError."""
    server = Server(read_address(url))
    server.prepare(must_exist=True)
    return Archive(server.connect(patience=0))


def connect(url: str) -> PostgresSession:
    """Return a session of the store behind an address, which is made if there is none; raises
    StoreError."""
    server = Server(read_address(url))
    server.prepare(must_exist=False)
    return server.connect()


class Server:
    """The server behind an address."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._name = f"{PROGRAM} {os.getpid()}@{socket.gethostname()}"[:63]

    def connect(self, patience: float | None = None) -> PostgresSession:
        """Return a session that waits so many seconds for a server that has gone away; raises
        StoreError."""
        return PostgresSession(self, SERVER_AWAY_SECONDS if patience is None else patience)

    async def open(self) -> Connection:
        """Return one more connection; raises the driver's errors."""
        schema = self.address.schema
        settings = {"search_path": f'"{schema}"', "jit": "off", "application_name": self._name}
        connection = await asyncpg.connect(
            self.address.dsn,
            timeout=CONNECT_SECONDS,
            command_timeout=STATEMENT_SECONDS,
            server_settings=settings | _KEEPALIVE,
        )
        try:
            await connection.set_type_codec(
                "text", schema="pg_catalog", encoder=escape_nul, decoder=restore_nul, format="text"
            )
            await connection.execute(_DURABLE)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def prepare(self, *, must_exist: bool) -> None:
        """Make the tables of a new store, unless it must exist; refuse what is no store, or of
        another version. Raises StoreError."""
        session = self.connect(patience=0)
        try:
            session.do(partial(self._prepare, must_exist=must_exist))
        finally:
            session.close()

    async def _prepare(self, connection: Connection, *, must_exist: bool) -> None:
        await self._require_fit(connection)
        version = await self._version(connection)
        if version is None and must_exist:
            raise StoreMissing(Sentence("store.no_such_server_store"), where=self.where)
        if version is None:
            async with connection.transaction():
                # Of several processes one makes the tables, and the others wait for it.
                lock = "SELECT pg_advisory_xact_lock($1)"
                await connection.execute(lock, self.lock_number("tables"))
                version = await self._version(connection)
                if version is None:
                    await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{self.address.schema}"')
                    for statement in map(to_postgres_ddl, schema()):
                        await connection.execute(statement)
                    version = VERSION
        if version != VERSION:
            raise StoreError(other_version(version), where=self.where)

    async def _require_fit(self, connection: Connection) -> None:
        """Refuse a server that cannot hold a store."""
        version = connection.get_server_version().major
        if version < OLDEST:
            what = Sentence("store.old_server", version=Code(version), oldest=Code(OLDEST))
            raise StoreError(what, where=self.where)
        encoding = await connection.fetchval("SHOW server_encoding")
        if encoding != "UTF8":
            what = Sentence("store.other_encoding", encoding=encoding)
            raise StoreError(what, where=self.where)

    async def _version(self, connection: Connection) -> object | None:
        """Return the version of a store's tables; None where there is none yet. Raises StoreError
        if the schema holds something else."""
        schema = self.address.schema
        tables = {row[0] for row in await connection.fetch(_TABLES, schema)}
        if not tables:
            return None
        if {"calls", "judgments", "units"} <= tables:
            known = "store" in tables
            return await connection.fetchval("SELECT version FROM store") if known else "unknown"
        raise StoreError(Sentence("store.other_tables", schema=schema), where=self.where)

    @property
    def where(self) -> str:
        return self.address.shown

    def lock_number(self, name: str) -> int:
        """Return the number of the advisory lock of a run, a question or a step."""
        text = f"{self.address.schema}/{name}".encode()
        hashed = blake2b(text, digest_size=8, person=b"evenhand-lock").digest()
        return int.from_bytes(hashed, signed=True)

    def error(self, key: str, error: BaseException) -> StoreError:
        """Return an error of the driver in words that hold nothing of the address."""
        return StoreError(Sentence(f"store.{key}", reason=_reason(error)), where=self.where)


def _reason(error: BaseException) -> str:
    if isinstance(error, asyncpg.PostgresError):
        return str(getattr(error, "message", None) or error)
    if isinstance(error, TimeoutError):
        return Sentence("store.no_answer")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, pg.TargetServerAttributeNotMatched):
        return Sentence("store.no_fitting_host")
    if isinstance(error, pg.ClientConfigurationError):
        return Sentence("store.wrong_setting")
    if isinstance(error, ValueError | OverflowError):
        return Sentence("store.wrong_value")
    return Sentence("store.lost_connection")


class DriverThread:
    """An event loop in a thread, for callers that wait for each answer."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="evenhand-postgres", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work, which is cancelled if the caller is interrupted."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class PostgresSession:
    """A connection to a server that is made anew where it was lost, with the locks that it held."""

    is_remote = True

    def __init__(self, server: Server, patience: float) -> None:
        self._server, self._patience = server, patience
        self._thread = DriverThread()
        self._transaction: Any = None
        self._held: dict[str, int] = {}
        self._lost_lock = ""
        try:
            self._turn, self._connection = self._thread.run(self._begin())
        except FAILED as error:
            self._thread.close()
            raise server.error("cannot_connect", error) from None
        except BaseException:
            self._thread.close()
            raise

    async def _begin(self) -> tuple[asyncio.Lock, Connection]:
        return asyncio.Lock(), await self._server.open()

    @property
    def where(self) -> str:
        return self._server.where

    def do(self, work: Work[T], *, is_repeatable: bool = False) -> T:
        """Return the result of work on the connection; raises StoreError. Work that is repeatable
        is done again on a new connection if the first is lost."""
        try:
            return self._thread.run(self._do(work, is_repeatable and self._transaction is None))
        except FAILED as error:
            raise self._server.error("cannot_use_server", error) from None

    async def _do(self, work: Work[T], is_repeatable: bool) -> T:
        async with self._turn:
            deadline, pause = monotonic() + self._patience, 0.0
            while True:
                try:
                    # A transaction ends with its connection, and nothing follows it elsewhere.
                    if self._connection.is_closed() and self._transaction is None:
                        self._connection = await self._server.open()
                        await self._restore_locks(self._connection)
                    return await work(self._connection)
                except FAILED as error:
                    if not (isinstance(error, LOST) or self._connection.is_closed()):
                        raise
                    # One that does not answer may still do what it was told: take a lock, or keep
                    # one.
                    if not isinstance(error, pg.TransactionRollbackError):
                        self._connection.terminate()
                    if not is_repeatable or (pause and monotonic() >= deadline):
                        raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE) or _FIRST_PAUSE

    def rows(self, sql: str, values: Values | None = None) -> list[Any]:
        words, is_reading = _words(sql, values), sql.startswith("SELECT")
        return self.do(lambda at: at.fetch(*words), is_repeatable=is_reading)

    def stream(self, sql: str, values: Values | None = None) -> Iterator[Any]:
        words = _words(sql, values)
        cursor = self.do(lambda at: at.cursor(*words))
        while rows := self.do(lambda _: cursor.fetch(PAGE_ROWS)):
            yield from rows

    def write(self, sql: str, rows: Sequence[Row]) -> None:
        if rows:
            text, _ = to_postgres(sql)
            self.do(lambda at: at.executemany(text, rows))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._start()
        try:
            yield
        except BaseException:
            with suppress(StoreError):
                self.do(lambda _: self._end().rollback())
            raise
        self.do(lambda _: self._end().commit())

    def _start(self, **options: Any) -> None:
        async def start(connection: Connection) -> None:
            transaction = connection.transaction(**options)
            await transaction.start()
            self._transaction = transaction

        self.do(start, is_repeatable=True)

    def _end(self) -> Any:
        transaction, self._transaction = self._transaction, None
        return transaction

    def commit(self, statements: Statements) -> None:
        async def write(connection: Connection) -> None:
            async with connection.transaction():
                for sql, rows in statements:
                    await connection.executemany(to_postgres(sql)[0], rows)

        try:
            self._thread.run(self._do(write, is_repeatable=True))
        except FAILED as error:
            raise self._server.error("cannot_write_server", error) from None
        if self._lost_lock:
            raise busy(self._lost_lock, "", self.where)

    def lock_table(self, name: str) -> None:
        self.rows(f"LOCK TABLE {name} IN SHARE ROW EXCLUSIVE MODE")

    def require_writable(self) -> None:
        if self.do(lambda at: at.fetchval("SHOW transaction_read_only")) == "on":
            raise StoreError(Sentence("store.read_only_server"), where=self.where)

    def try_locks(self, names: Sequence[str]) -> set[str]:
        wanted = {name: self._server.lock_number(name) for name in names if name not in self._held}

        async def lock(connection: Connection) -> set[str]:
            rows = await connection.fetch(_LOCK, list(wanted.values()))
            taken = {number for number, is_taken in rows if is_taken}
            return {name for name, number in wanted.items() if number in taken}

        locked = self.do(lock, is_repeatable=True)
        self._held |= {name: wanted[name] for name in locked}
        return locked

    def unlock(self, names: Sequence[str]) -> None:
        numbers = [self._held.pop(name) for name in names if name in self._held]
        with suppress(StoreError):  # the locks end with the connection
            self.do(lambda at: at.fetch(_UNLOCK, numbers))

    async def _restore_locks(self, connection: Connection) -> None:
        """Take on a new connection the locks that were held on the lost one."""
        missing = dict(self._held)
        for pause in (*CLAIM_PAUSES, 0.0):  # the server may not know yet that the other is lost
            rows = await connection.fetch(_LOCK, list(missing.values())) if missing else []
            taken = {number for number, is_taken in rows if is_taken}
            missing = {name: number for name, number in missing.items() if number not in taken}
            if not missing:
                return
            await asyncio.sleep(pause)
        self._lost_lock = next(iter(missing))

    def lock_holder(self, name: str) -> str | None:
        number = self._server.lock_number(name)
        halves = {"high": (number >> 32) & 0xFFFFFFFF, "low": number & 0xFFFFFFFF}
        for (program,) in self.rows(_HOLDER, halves):
            return str(program).removeprefix(f"{PROGRAM} ")
        return None

    def state(self) -> int | None:
        # Every transaction that writes is a part of the snapshot until it has ended, those of
        # other databases of the server too: the number changes no later than the store.
        try:
            [(snapshot,)] = self.rows("SELECT CAST(pg_current_snapshot() AS TEXT) FROM store")
        except (StoreError, ValueError):
            return None
        return int.from_bytes(blake2b(snapshot.encode(), digest_size=7).digest())

    def set_frozen(self, frozen: bool) -> None:
        if not frozen and self._transaction is not None:
            with suppress(StoreError):  # the state is gone with the connection
                self.do(lambda _: self._end().commit())
        elif frozen and self._transaction is None:
            self._start(isolation="repeatable_read", readonly=True)
            self.rows("SELECT version FROM store")  # the state is that of the first look

    def check_file(self) -> Iterator[str]:
        """Return nothing: a server checks its own files."""
        return iter(())

    def close(self) -> None:
        self._thread.run(self._close())
        self._thread.close()

    async def _close(self) -> None:
        async with self._turn:
            try:
                await self._connection.close(timeout=CONNECT_SECONDS)
            except FAILED:
                self._connection.terminate()


def _words(sql: str, values: Values | None) -> list[Any]:
    """Return a statement and its values as the driver takes them: it does not escape the texts of a
    list."""
    text, names = to_postgres(sql)
    bound = [(values or {})[name] for name in names]
    return [
        text,
        *(
            [escape_nul(item) if isinstance(item, str) else item for item in value]
            if isinstance(value, list | tuple)
            else value
            for value in bound
        ),
    ]
