"""Each question is asked by one process at a time: session-level advisory locks of the server.

They end with the connection, however that ends, so a process that died holds nothing. All locks of
a ledger are on one connection, and those of a moment are taken in one statement.
"""

from __future__ import annotations

import asyncio
from functools import partial

from evenhand.errors import StoreError
from evenhand.store.postgres.claims import lock_number
from evenhand.store.postgres.link import Link
from evenhand.store.postgres.server import FAILED, Connection, Server

_TAKE = "SELECT n, pg_try_advisory_lock(n) FROM unnest($1::bigint[]) AS n"
_GIVE_BACK = "SELECT pg_advisory_unlock(n) FROM unnest($1::bigint[]) AS n"


class PostgresQuestionLocks:
    """The questions that one ledger has locked, or waits to lock."""

    def __init__(self, server: Server) -> None:
        self._server, self.link = server, Link(server, self._restore)
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._held: dict[str, int] = {}
        self._ended: list[int] = []
        self._task: asyncio.Task[None] | None = None

    async def take(self, key: str) -> bool:
        """Lock a question; False where another process is asking it. Raises StoreError."""
        if key in self._held:
            return False
        outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[key] = outcome
        self._begin()
        return await outcome

    def give_back(self, key: str) -> None:
        """Unlock a question, soon."""
        self._ended.append(self._held.pop(key))
        self._begin()

    async def _restore(self, connection: Connection) -> None:
        """Lock on a new connection what the lost one had locked."""
        self._ended.clear()
        if self._held:
            await connection.fetch(_TAKE, list(self._held.values()))

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(), name="evenhand-questions")

    async def _work(self) -> None:
        """Take and give back what has gathered, until there is no more."""
        while self._waiting or self._ended:
            waiting, self._waiting = self._waiting, {}
            try:
                taken = await self.link.do(partial(self._exchange, waiting))
            except FAILED as error:
                self._ended.clear()  # the locks are gone with the connection
                _fail(waiting, self._server.unusable(error))
                continue
            for key, outcome in waiting.items():
                if number := taken.get(key):
                    self._held[key] = number
                if not outcome.done():
                    outcome.set_result(key in taken)
                elif number:  # whoever asked has gone
                    self.give_back(key)

    async def _exchange(
        self, waiting: dict[str, asyncio.Future[bool]], connection: Connection
    ) -> dict[str, int]:
        """Return the questions that were locked, with the numbers of their locks."""
        ended, self._ended = self._ended, []
        if ended:
            await connection.fetch(_GIVE_BACK, ended)
        if not waiting:
            return {}
        numbers = {key: lock_number(self._server.address.schema, key) for key in waiting}
        rows = dict(tuple(row) for row in await connection.fetch(_TAKE, list(numbers.values())))
        return {key: number for key, number in numbers.items() if rows[number]}


def _fail(waiting: dict[str, asyncio.Future[bool]], error: StoreError) -> None:
    for outcome in waiting.values():
        if not outcome.done():
            outcome.set_exception(error)
