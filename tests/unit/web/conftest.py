"""One filled store and one server over it for all tests that only read."""

from __future__ import annotations

import pytest

from tests.unit.web.serving import fill, served


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("filled"))


@pytest.fixture(scope="session")
def site(filled):
    with served(filled) as found:
        yield found
