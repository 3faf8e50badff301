"""Shared statements on a connection to a PostgreSQL server, for whoever waits for each answer.

The connection lives in a thread of its own with an event loop; a session is used by one caller at a
time. A reader whose connection is lost gets another one, unless it reads a frozen state, which is
lost with it.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

from evenhand.limits import PAGE_ROWS
from evenhand.store.postgres.claims import lock_number
from evenhand.store.postgres.seal import sealed
from evenhand.store.postgres.server import FAILED, LOST, Connection, Server, closed
from evenhand.store.sql.session import Row, Values

T = TypeVar("T")

_SPELLINGS = {
    "CROSS JOIN": "JOIN",
    " INDEXED BY judgments_failed": "",
    "instr(": "strpos(",
    " BLOB": " BYTEA",
}
"""What PostgreSQL says in another way than SQLite, or leaves to its planner."""
_HOLD = "SELECT pg_advisory_xact_lock(:number)"
_MARK = re.compile(r"\?|(?<!:):([a-z_][a-z_0-9]*)")


@lru_cache(maxsize=512)
def spoken(sql: str) -> tuple[str, tuple[str, ...]]:
    """A shared statement in PostgreSQL's words, and the names of its values in their order."""
    for there, here in _SPELLINGS.items():
        sql = sql.replace(there, here)
    names: dict[str, int] = {}

    def mark(match: re.Match[str]) -> str:
        name = match[1] or f"?{len(names)}"
        return f"${names.setdefault(name, len(names) + 1)}"

    return _MARK.sub(mark, sql), tuple(names)


class LoopThread:
    """An event loop in a thread, for work that somebody outside of it waits for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="evenhand-postgres", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work, which ends early where the wait for it does."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class PostgresSession:
    """A connection that speaks the shared SQL in PostgreSQL's words."""

    def __init__(self, server: Server, *, is_reader: bool = True) -> None:
        self._server, self._is_reader = server, is_reader
        self._thread = LoopThread()
        self._transaction: Any = None
        try:
            self._connection: Connection = self._thread.run(server.opened())
        except BaseException:
            self._thread.close()
            raise

    @property
    def where(self) -> str:
        return self._server.where

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def rows(self, sql: str, values: Values | None = None) -> list[Any]:
        text, names = spoken(sql)
        arguments = [(values or {})[name] for name in names]
        rows: list[Any] = self._done(lambda connection: connection.fetch(text, *arguments))
        return rows

    def stream(self, sql: str, values: Values | None = None) -> Iterator[Any]:
        text, names = spoken(sql)
        arguments = [(values or {})[name] for name in names]
        cursor = self._done(lambda connection: connection.cursor(text, *arguments))
        while rows := self._done(lambda _: cursor.fetch(PAGE_ROWS)):
            yield from rows

    def write(self, sql: str, rows: Sequence[Row]) -> None:
        if rows:
            text, _ = spoken(sql)
            self._done(lambda connection: connection.executemany(text, rows))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        except BaseException:
            with suppress(*FAILED):
                self._thread.run(self._end(commits=False))
            raise
        self.commit()

    def begin(self, **options: Any) -> None:
        """Open a transaction; `options` are the driver's."""

        async def begun(connection: Connection) -> None:
            transaction = connection.transaction(**options)
            await transaction.start()
            self._transaction = transaction

        self._done(begun)

    def commit(self) -> None:
        """End the transaction."""
        self._done(lambda _: self._end(commits=True))

    async def _end(self, *, commits: bool) -> None:
        transaction, self._transaction = self._transaction, None
        await (transaction.commit() if commits else transaction.rollback())

    def _done(self, work: Callable[[Connection], Any]) -> Any:
        """The result of work on the connection; raises StoreError."""
        try:
            return self._thread.run(self._attempt(work))
        except FAILED as error:
            raise self._server.unusable(error) from None

    async def _attempt(self, work: Callable[[Connection], Any]) -> Any:
        can_retry = self._is_reader and self._transaction is None
        try:
            return await work(self._connection)
        except LOST:
            if not can_retry:
                raise
        self._connection.terminate()
        self._connection = await self._server.connect()
        return await work(self._connection)

    def hold_table(self, name: str) -> None:
        self.rows(f"LOCK TABLE {name} IN SHARE ROW EXCLUSIVE MODE")

    def hold_starts(self) -> None:
        self.rows(_HOLD, {"number": lock_number(self._server.address.schema, "start")})

    def among(self, column: str, name: str) -> str:
        return f"{column} = ANY(:{name})"

    def several(self, values: Sequence[int | str]) -> list[Any]:
        return [sealed(value) if isinstance(value, str) else value for value in values]

    def close(self) -> None:
        self._thread.run(closed(self._connection))
        self._thread.close()
