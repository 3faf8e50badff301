"""A PostgreSQL server that holds a store: connected to, recognised, made or brought up to date.

The tables stand in a schema of their own, so that other programs' tables of the same names are
never mistaken for ours. A commit is durable before anybody hears of it: a server or a user for whom
`synchronous_commit` is off has it switched on for our sessions.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import asyncpg
from asyncpg import exceptions as pg

from evenhand.errors import StoreError, StoreMissing
from evenhand.limits import CONNECT_SECONDS, STATEMENT_SECONDS
from evenhand.store.postgres.address import Address
from evenhand.store.postgres.schema import MIGRATIONS
from evenhand.store.postgres.seal import sealed, unsealed

Connection = Any
"""An asyncpg.Connection: the driver brings no types."""

LOST = (
    *(pg.PostgresConnectionError, pg.InterfaceError, pg.InternalClientError, OSError, TimeoutError),
    *(pg.AdminShutdownError, pg.CrashShutdownError, pg.CannotConnectNowError),
    *(pg.ReadOnlySQLTransactionError, pg.TooManyConnectionsError, pg.IdleSessionTimeoutError),
    *(pg.TransactionRollbackError, pg.TargetServerAttributeNotMatched),
)
"""What may be over in a moment, on another connection: it was cut, the server starts anew, the one
that answers is a standby, two writers were in each other's way."""
FAILED = (*LOST, asyncpg.PostgresError, ValueError, OverflowError)
"""Whatever the driver says is wrong."""
PROGRAM = "evenhand"
"""How our sessions are called in the server's lists, before the process and its machine."""
OLDEST = 13
"""The first version with all that is used here."""
_MAKING = 0x45564E48
"""The advisory lock under which tables are made: `EVNH`."""
_TABLES = "SELECT relname FROM pg_class WHERE relnamespace=to_regnamespace($1) AND relkind='r'"
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
MEND = "See to the server, then run the same command again; it continues where it stopped."
ANOTHER = "Name another store with --store"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Server:
    """The server behind an address. Connections belong to the event loop that opens them."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._name = f"{PROGRAM} {os.getpid()}@{socket.gethostname()}"[:63]

    async def connect(self) -> Connection:
        """One more connection; raises whatever the driver does."""
        schema = self.address.schema
        settings = {"search_path": f'"{schema}"', "jit": "off", "application_name": self._name}
        settings |= _KEEPALIVE
        connection = await asyncpg.connect(
            self.address.dsn,
            timeout=CONNECT_SECONDS,
            command_timeout=STATEMENT_SECONDS,
            server_settings=settings,
        )
        try:
            await connection.set_type_codec(
                "text", schema="pg_catalog", encoder=sealed, decoder=unsealed, format="text"
            )
            await connection.execute(_DURABLE)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def opened(self) -> Connection:
        """The same; raises StoreError."""
        try:
            return await self.connect()
        except FAILED as error:
            raise self.closed(error) from None

    async def prepare(self, *, must_exist: bool = False) -> None:
        """Make the tables that are missing, unless the store must exist; refuse what is not ours.
        Raises StoreError."""
        connection = await self.opened()
        try:
            async with self.in_use():
                await self._require_fit(connection)
                applied = await self._applied(connection)
                if applied is None and must_exist:
                    raise StoreMissing(
                        "there is no such store",
                        where=self.where,
                        advice="Judge something first: evenhand run --store",
                    )
                if applied != {name for name, _ in MIGRATIONS}:
                    await self._migrate(connection)
        finally:
            await closed(connection)

    async def _require_fit(self, connection: Connection) -> None:
        """Refuse a server that cannot hold a store."""
        version = connection.get_server_version().major
        if version < OLDEST:
            raise self._unfit(f"the server is PostgreSQL {version}; {OLDEST} is the oldest that is")
        encoding = await connection.fetchval("SHOW server_encoding")
        if encoding != "UTF8":
            raise self._unfit(f"the database is encoded in {encoding}; UTF8 is the one that is")

    def _unfit(self, what: str) -> StoreError:
        return StoreError(f"{what} fit for a store", where=self.where, advice=ANOTHER)

    async def _applied(self, connection: Connection) -> set[str] | None:
        """The migrations of a store; None where there is none yet. Raises StoreError where the
        schema holds something else."""
        schema = self.address.schema
        tables = {row[0] for row in await connection.fetch(_TABLES, schema)}
        if not tables:
            return None
        names: set[str] = set()
        if {"migrations", "calls", "judgments", "units"} <= tables:
            names = {row[0] for row in await connection.fetch("SELECT name FROM migrations")}
        if MIGRATIONS[0][0] not in names:
            raise StoreError(
                f"the schema {schema} holds tables of another program",
                where=self.where,
                advice="Name a schema of its own: --store 'postgresql://...?schema=NAME'",
            )
        if unknown := names - {name for name, _ in MIGRATIONS}:
            raise StoreError(
                f"the store was made by a newer evenhand (it has {max(unknown)})",
                where=self.where,
                advice="Upgrade evenhand, or name another schema: ?schema=NAME",
            )
        return names

    async def _migrate(self, connection: Connection) -> None:
        """Apply what is missing; of several processes one does, and the others wait for it."""
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _MAKING)
            applied = await self._applied(connection)
            if applied is None:
                await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{self.address.schema}"')
                await connection.execute("CREATE TABLE migrations (name TEXT PRIMARY KEY, at TEXT)")
            for name, script in MIGRATIONS:
                if name not in (applied or ()):
                    await connection.execute(script)
                    await connection.execute("INSERT INTO migrations VALUES ($1, $2)", name, now())

    @property
    def where(self) -> str:
        return self.address.shown

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """Whatever the driver says is wrong becomes a StoreError."""
        try:
            yield
        except FAILED as error:
            raise self.unusable(error) from None

    def unusable(self, error: BaseException) -> StoreError:
        """The error for a server that does not do what it is to do."""
        return StoreError(
            f"the store cannot be used: {reason(error)}", where=self.where, advice=MEND
        )

    def closed(self, error: BaseException) -> StoreError:
        """The error for a server that cannot be connected to."""
        return StoreError(
            f"the store cannot be opened: {reason(error)}",
            where=self.where,
            advice="Look whether the server runs, and whether host, user, password (PGPASSWORD,"
            " .pgpass) and database are right.",
        )


def reason(error: BaseException) -> str:
    """What went wrong, in words that hold nothing of the address."""
    if isinstance(error, asyncpg.PostgresError):
        return str(getattr(error, "message", None) or error)
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, OSError):
        return error.strerror or "the connection was lost"
    if isinstance(error, pg.ClientConfigurationError | ValueError | OverflowError):
        return "a setting of its address is wrong"
    if isinstance(error, pg.TargetServerAttributeNotMatched):
        return "none of its hosts is what target_session_attrs asks for"
    return "the connection was lost"


async def closed(connection: Connection) -> None:
    """Close a connection, whatever state it is in."""
    try:
        await asyncio.shield(connection.close(timeout=CONNECT_SECONDS))
    except FAILED:
        connection.terminate()
