"""A store to import into."""

from __future__ import annotations

from contextlib import closing

import pytest

from evenhand.runs.stores import open_store
from tests.unit.runs.importing import Importer


@pytest.fixture
def store(tmp_path):
    with closing(open_store("sqlite:store.db", tmp_path)) as opened:
        yield opened


@pytest.fixture
def imported(store, tmp_path):
    return Importer(store, tmp_path)
