"""Both ports in one SQLite file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

from evenhand.store.batches import Batches
from evenhand.store.ports import Ledger, Store
from evenhand.store.sql.batches import SqlBatches
from evenhand.store.sqlite.archive import SqliteArchive
from evenhand.store.sqlite.connection import StoreFile
from evenhand.store.sqlite.ledger import SqliteLedger
from evenhand.store.sqlite.session import SqliteSession


def sqlite_store(path: Path | None) -> Store:
    """The store in a file, which is made if there is none; without a path, one that vanishes when
    it is closed. Raises StoreError."""
    folder = tempfile.mkdtemp(prefix="evenhand-") if path is None else None
    file = StoreFile(path or Path(str(folder), "store.db"), fleeting=path is None)
    archive = SqliteArchive(file)

    @asynccontextmanager
    async def ledger() -> AsyncIterator[Ledger]:
        opened = SqliteLedger(file)
        try:
            yield opened
        finally:
            opened.close()

    @asynccontextmanager
    async def batches() -> AsyncIterator[Batches]:
        file.require_writable()
        with file.in_use():
            connection = file.connect()
        opened = SqlBatches(SqliteSession(file, connection), connection.close)
        try:
            yield opened
        finally:
            opened.close()

    def close() -> None:
        archive.close()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)

    return Store(archive, ledger, close, batches)


def sqlite_archive(path: Path) -> SqliteArchive:
    """The archive in a file, for whoever only reads; raises StoreError."""
    return SqliteArchive(StoreFile(path))


@contextmanager
def sqlite_session(path: Path) -> Iterator[SqliteSession]:
    """A session that writes to the store in a file, which is made if there is none; raises
    StoreError."""
    file = StoreFile(path)
    file.require_writable()
    with closing(file.connect()) as connection:
        yield SqliteSession(file, connection)
