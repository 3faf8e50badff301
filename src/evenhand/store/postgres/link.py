"""A connection on the caller's event loop that is made anew where it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from evenhand.limits import SERVER_AWAY_SECONDS
from evenhand.store.postgres.server import LOST, Connection, Server, closed

T = TypeVar("T")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class Link:
    """A connection to a server, for one piece of work at a time.

    Work that is cut off is done again from its beginning on the next connection, so it must be
    such that twice is as good as once. A server that stays away ends it with the driver's error.
    """

    def __init__(
        self, server: Server, prepare: Callable[[Connection], Awaitable[None]] | None = None
    ) -> None:
        """`prepare` is done on each new connection but the first."""
        self._server, self._prepare = server, prepare
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self.is_away = False
        """Whether the server is being waited for."""

    async def open(self) -> None:
        """Connect for the first time; raises StoreError."""
        self._connection = await self._server.opened()

    async def do(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """The result of work on a connection; raises what the driver does."""
        async with self._turn:
            try:
                return await self._attempt(work)
            except LOST as error:
                return await self._again(work, error)
            finally:
                self.is_away = False

    async def _again(self, work: Callable[[Connection], Awaitable[T]], error: Exception) -> T:
        self.is_away = True
        deadline, pause = monotonic() + SERVER_AWAY_SECONDS, _FIRST_PAUSE
        while monotonic() < deadline:
            self._drop()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                return await self._attempt(work)
            except LOST as reason:
                error = reason
        raise error

    async def _attempt(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        if self._connection is None:
            connection = await self._server.connect()
            self._connection = connection
            if self._prepare is not None:
                await self._prepare(connection)
        return await work(self._connection)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def close(self) -> None:
        if self._connection is not None:
            await closed(self._connection)
            self._connection = None
