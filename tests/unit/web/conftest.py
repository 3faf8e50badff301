"""One filled store and one server over it for all tests that only read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.web.serving import Site, fill, served


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("filled"))


@pytest.fixture(scope="session")
def site(filled: Path) -> Iterator[Site]:
    with served(filled) as found:
        yield found
