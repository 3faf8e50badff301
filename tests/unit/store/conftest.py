"""A store in a file with a ledger."""

import pytest

from evenhand.store.ledger import Ledger
from evenhand.store.sqlite import SqliteFile


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
async def ledger(path):
    with Ledger(SqliteFile(path).connect) as opened:
        yield opened
