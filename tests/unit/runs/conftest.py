"""A store to import into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evenhand.runs.stores import open_store
from evenhand.store.ledger import Store
from tests.unit.runs.importing import Importer


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store("sqlite:store.db", tmp_path)) as opened:
        yield opened


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Importer:
    return Importer(store, tmp_path)
