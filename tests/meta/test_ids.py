"""The tests are the same tests every time: their ids hold no clock, chance, address or order of a
set. Workers that run them side by side compare theirs, and begin nothing where they differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import IDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
UNSTABLE = """
import gzip, os, time
import pytest

LETTERS = {"a", "b", "c", "d", "e", "f", "g", "h"}

@pytest.mark.parametrize("value", [gzip.compress(b"well")])
def test_bytes(value): ...

@pytest.mark.parametrize("value", [time.time_ns()])
def test_time(value): ...

@pytest.mark.parametrize("value", [object()], ids=repr)
def test_address(value): ...

@pytest.mark.parametrize("value", [os.urandom(4).hex()])
def test_chance(value): ...

@pytest.mark.parametrize("value", LETTERS)
def test_set(value): ...

@pytest.mark.parametrize("value", sorted(LETTERS))
def test_stable(value): ...
"""


def collected(folder, arguments, seed, **environ):
    """The ids of all tests there, in order, as another process collects them after `seed` days."""
    quiet = ("--collect-only", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.meta.later", *quiet, *arguments],
        cwd=folder,
        env={**os.environ, **environ, "PYTHONPATH": str(ROOT)}
        | {"PYTHONHASHSEED": str(seed), "EVENHAND_DAYS": str(seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(Path(environ["EVENHAND_IDS"]).read_text(encoding="utf-8"))


def test_another_process_collects_the_same_tests_in_the_same_order(pytestconfig, tmp_path):
    """All tests can be collected, and those that this process has collected are among them: these
    are all, where all are run."""
    ids = pytestconfig.stash[IDS]
    long = ["--long"] * pytestconfig.getoption("--long")
    seed = 1 + (os.environ.get("PYTHONHASHSEED") == "1")
    later = collected(ROOT, long, seed, EVENHAND_IDS=str(tmp_path / "ids"))
    is_whole = pytestconfig.args == pytestconfig.getini("testpaths")
    assert sorted(set(ids) - set(later)) == []
    assert not is_whole or sorted(set(later) - set(ids)) == []
    assert not is_whole or ids == later
    assert not [name for name in ids if str(ROOT) in name]


def test_an_id_that_changes_is_noticed(tmp_path):
    (tmp_path / "test_unstable.py").write_text(UNSTABLE)
    environ = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "EVENHAND_IDS": str(tmp_path / "ids")}
    once, again = (collected(tmp_path, [], seed, **environ) for seed in (1, 2))
    changed = {name.partition("[")[0] for name in set(once) ^ set(again)}
    assert changed == {
        f"test_unstable.py::test_{name}" for name in ("bytes", "time", "address", "chance")
    }
    sets = [[name for name in ids if "test_set" in name] for ids in (once, again)]
    assert sorted(sets[0]) == sorted(sets[1])
    assert sets[0] != sets[1]
    assert [name for name in once if "stable[" in name] == [
        name for name in again if "stable[" in name
    ]
