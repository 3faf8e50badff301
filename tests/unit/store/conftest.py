"""A store in a file with a ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evenhand.store.ledger import Ledger
from evenhand.store.sqlite import SqliteFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def ledger(path: Path) -> AsyncIterator[Ledger]:
    with Ledger(SqliteFile(path).connect) as opened:
        yield opened
