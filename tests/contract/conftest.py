"""A store of each sort, and its ledger."""

import pytest

from tests.contract.stores import STORES


@pytest.fixture(params=STORES)
def opened(request, tmp_path):
    return STORES[request.param](tmp_path)


@pytest.fixture
def store(opened):
    found = opened()
    yield found
    found.close()


@pytest.fixture
async def ledger(store):
    async with store.ledger() as found:
        yield found
