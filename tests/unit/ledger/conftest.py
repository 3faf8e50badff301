"""A store in a file with a ledger, and one on a server that workers share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from evenhand.ledger.sqlite.connection import StoreFile
from evenhand.ledger.sqlite.ledger import SqliteLedger
from tests.unit.ledger.workers import Place, shared_run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def ledger(path: Path) -> AsyncIterator[SqliteLedger]:
    with closing(SqliteLedger(StoreFile(path))) as opened:
        yield opened


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with shared_run() as opened:
        yield opened
