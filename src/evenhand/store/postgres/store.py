"""A store in a schema of a PostgreSQL database: its ports put together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

from evenhand.store.batches import Batches
from evenhand.store.beside import Unrecorded
from evenhand.store.ports import Ledger, Store
from evenhand.store.postgres.address import read_address
from evenhand.store.postgres.archive import PostgresArchive
from evenhand.store.postgres.ledger import PostgresLedger
from evenhand.store.postgres.server import Server
from evenhand.store.postgres.session import LoopThread, PostgresSession
from evenhand.store.sql.batches import SqlBatches


def postgres_store(url: str, *, must_exist: bool = False) -> Store:
    """The store behind an address, which is made if there is none, unless it must exist; raises
    StoreError."""
    server = _prepared(url, must_exist=must_exist)
    archive = PostgresArchive(server)
    unrecorded = Unrecorded(state_folder() / f"postgres-{server.address.fingerprint}")

    @asynccontextmanager
    async def ledger() -> AsyncIterator[Ledger]:
        opened = PostgresLedger(server, unrecorded)
        await opened.open()
        try:
            yield opened
        finally:
            await opened.close()

    @asynccontextmanager
    async def batches() -> AsyncIterator[Batches]:
        session = await asyncio.to_thread(PostgresSession, server, is_reader=False)
        opened = SqlBatches(session, session.close)
        try:
            yield opened
        finally:
            await asyncio.to_thread(opened.close)

    return Store(archive, ledger, archive.close, batches)


def postgres_archive(url: str) -> PostgresArchive:
    """The archive behind an address, for whoever only reads; raises StoreError."""
    return PostgresArchive(_prepared(url, must_exist=True))


@contextmanager
def postgres_session(url: str) -> Iterator[PostgresSession]:
    """A session that writes to the store behind an address, which is made if there is none; raises
    StoreError."""
    with closing(PostgresSession(_prepared(url, must_exist=False), is_reader=False)) as session:
        yield session


def _prepared(url: str, *, must_exist: bool) -> Server:
    server = Server(read_address(url))
    thread = LoopThread()
    try:
        thread.run(server.prepare(must_exist=must_exist))
    finally:
        thread.close()
    return server


def state_folder() -> Path:
    """The user's folder for what Evenhand has to remember."""
    setting = os.environ.get("XDG_STATE_HOME", "")
    base = Path(setting) if Path(setting).is_absolute() else Path.home() / ".local" / "state"
    return base / "evenhand"
