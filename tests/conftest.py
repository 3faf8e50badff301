"""Options and profiles for all tests: `--long` has crash, fuzz, soak and simulation in full."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "short", deadline=None, max_examples=40, derandomize=True, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile(
    "long", deadline=None, max_examples=2000, suppress_health_check=_SLOW_IS_FINE
)


IDS = pytest.StashKey[list[str]]()
"""All tests that were collected, before any is deselected."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="crash, fuzz, soak and simulation in full")


def pytest_configure(config: pytest.Config) -> None:
    is_long = config.getoption("--long")
    settings.load_profile("long" if is_long else "short")
    if is_long:
        # Simulations choose their rounds when they are collected, in every process.
        os.environ["EVENHAND_LONG"] = "1"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[IDS] = [item.nodeid for item in items]


@pytest.fixture(scope="session")
def long(pytestconfig: pytest.Config) -> bool:
    """Whether this is the long form of the tests."""
    return bool(pytestconfig.getoption("--long"))
