"""A store in a file with a ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from evenhand.store.sqlite.connection import StoreFile
from evenhand.store.sqlite.ledger import SqliteLedger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def ledger(path: Path) -> AsyncIterator[SqliteLedger]:
    with closing(SqliteLedger(StoreFile(path))) as opened:
        yield opened
