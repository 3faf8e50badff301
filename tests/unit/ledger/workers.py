"""A store on a real server with a run that workers share; where time must pass, it is the server's
own clock that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from evenhand.ledger.coordination import Lease, Work
from evenhand.ledger.ports import IncomingUnit, Scope, Store
from evenhand.ledger.postgres.address import read_address
from evenhand.ledger.postgres.coordination import PostgresWorker, joined
from evenhand.ledger.postgres.server import Connection, Server
from evenhand.ledger.postgres.store import postgres_store
from tests.contract.stores import begun
from tests.postgres import new_store_url

UNITS = 40
LONG = 3600.0
EPOCH = 1_800_000_000


class ClockedServer(Server):
    """A server whose clock stands still until a test moves it."""

    async def connect(self) -> Connection:
        connection = await super().connect()
        schema = self.address.schema
        await connection.execute(f'SET search_path = "{schema}", pg_catalog')
        return connection

    async def stop_clock(self) -> None:
        connection = await super().connect()
        await connection.execute(
            "CREATE TABLE test_clock (at TIMESTAMPTZ NOT NULL);"
            f"INSERT INTO test_clock VALUES (to_timestamp({EPOCH}));"
            f'CREATE FUNCTION "{self.address.schema}".clock_timestamp() RETURNS TIMESTAMPTZ'
            " LANGUAGE sql VOLATILE AS 'SELECT at FROM test_clock'"
        )
        await connection.close()


@dataclass
class Place:
    """A store with a run of 40 units."""

    store: Store
    server: ClockedServer
    scope: Scope
    control: Connection
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def move_clock(self, seconds: float) -> None:
        await self.control.execute(
            "UPDATE test_clock SET at = at + make_interval(secs => $1)", seconds
        )

    async def set_clock(self, seconds: float) -> None:
        await self.control.execute("UPDATE test_clock SET at = to_timestamp($1)", EPOCH + seconds)

    @asynccontextmanager
    async def workers(
        self, number: int, seconds: float = 10
    ) -> AsyncIterator[list[PostgresWorker]]:
        async with AsyncExitStack() as ends:
            workers = [
                await ends.enter_async_context(joined(self.server, seconds)) for _ in range(number)
            ]
            for worker in workers:
                await worker.beat(self.scope.run, Work())
            yield workers

    async def lease(
        self, worker: PostgresWorker, most: int = 10, *, again: bool = False
    ) -> Sequence[Lease]:
        return await worker.lease(self.scope.run, 0, 0, most, again=again)

    async def used(self) -> int:
        """What is spent or reserved, at one moment."""
        sql = (
            "SELECT (SELECT coalesce(sum(cost), 0) FROM calls)"
            " + (SELECT coalesce(sum(amount), 0) FROM reservations)"
        )
        async with self.turn:
            return int(await self.control.fetchval(sql))


@asynccontextmanager
async def shared_run() -> AsyncIterator[Place]:
    """A new store with such a run, whose clock stands still."""
    url = new_store_url()
    store = postgres_store(url)
    server = ClockedServer(read_address(url))
    await server.stop_clock()
    async with store.ledger() as ledger:
        scope = await begun(ledger, [IncomingUnit(f"u{n}", "f", "{}") for n in range(UNITS)])
    control = await server.connect()
    try:
        yield Place(store, server, scope, control)
    finally:
        await control.close()
        store.close()
