"""A store of each sort, and its ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from evenhand.store.ledger import Ledger, Store
from tests.contract.stores import STORES, Open


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return STORES[request.param](tmp_path)


@pytest.fixture
def store(opened: Open) -> Iterator[Store]:
    found = opened()
    yield found
    found.close()


@pytest.fixture
async def ledger(store: Store) -> AsyncIterator[Ledger]:
    async with store.ledger() as found:
        yield found
