"""A store that is removed, moved, locked or robbed of its log in mid-run: the run stops with words,
pays for nothing that it cannot record, and loses nothing that it has paid for."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.crash.watching import counts, ended, kept, until
from tests.provider import child
from tests.suites import at, environment, evenhand, started, write_suite

UNITS, WIDE = 200, 8
STORE = "evenhand.db"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A provider that takes its time, and a suite for it."""
    with child(delay=0.03) as address:
        write_suite(tmp_path, UNITS, at(address), limits={"concurrency": WIDE})
        yield address


def under_way(folder: Path, url: str) -> subprocess.Popen[str]:
    """A run that has recorded some replies."""
    process = started("run", cwd=folder)
    assert until(lambda: counts(url)["answered"] >= 30, process)
    return process


def stopped(process: subprocess.Popen[str], url: str, asked: int) -> str:
    """What a run says that ends by itself, with exit code 6 and soon after `asked` calls."""
    code, _, message = ended(process)
    assert code == 6, message
    assert counts(url)["calls"] <= asked + 3 * WIDE
    return message


def finished(folder: Path, url: str) -> None:
    """The same command judges the rest, and has paid for nothing twice."""
    outcome = evenhand("run", cwd=folder)
    assert outcome.returncode == 0, outcome.stderr
    assert counts(url)["calls"] == UNITS == len(kept(folder))
    assert evenhand("store", "verify", cwd=folder).returncode == 0


def files(folder: Path) -> set[str]:
    return {file.name for file in folder.glob(f"{STORE}*")}


def test_a_store_that_is_removed_is_saved(tmp_path: Path, url: str) -> None:
    process = under_way(tmp_path, url)
    asked = counts(url)["calls"]
    (tmp_path / STORE).unlink()
    message = stopped(process, url, asked)
    rescued = tmp_path / f"{STORE}.rescued"
    assert f"was removed while the run used it; all that it held was saved to {rescued}" in message
    assert files(tmp_path) == {rescued.name}
    rescued.rename(tmp_path / STORE)
    finished(tmp_path, url)


def test_a_store_that_is_replaced_is_saved(tmp_path: Path, url: str) -> None:
    process = under_way(tmp_path, url)
    asked = counts(url)["calls"]
    (tmp_path / "another").write_text("somebody's file")
    (tmp_path / "another").replace(tmp_path / STORE)
    assert "was saved to" in stopped(process, url, asked)
    assert (tmp_path / STORE).read_text() == "somebody's file"
    (tmp_path / f"{STORE}.rescued").replace(tmp_path / STORE)
    finished(tmp_path, url)


def test_a_store_that_is_moved_is_told_with_its_new_name(tmp_path: Path, url: str) -> None:
    process = under_way(tmp_path, url)
    asked = counts(url)["calls"]
    (tmp_path / STORE).rename(tmp_path / "moved.db")
    message = stopped(process, url, asked)
    assert f"was moved to {tmp_path / 'moved.db'}" in message
    assert files(tmp_path) == set()
    (tmp_path / "moved.db").rename(tmp_path / STORE)
    finished(tmp_path, url)


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_log_that_is_removed_loses_nothing(tmp_path: Path, url: str, end: str) -> None:
    process = under_way(tmp_path, url)
    asked = counts(url)["calls"]
    (tmp_path / f"{STORE}{end}").unlink()
    message = stopped(process, url, asked)
    assert "log of the store was removed" in message
    assert "what was recorded is in the store" in message
    finished(tmp_path, url)


def test_a_log_that_is_lost_after_a_kill_is_noticed(tmp_path: Path, url: str) -> None:
    process = under_way(tmp_path, url)
    process.kill()
    ended(process)
    recorded = len(kept_apart(tmp_path, with_log=True))
    left = len(kept_apart(tmp_path, with_log=False))
    (tmp_path / f"{STORE}-wal").unlink()
    asked = counts(url)["calls"]
    outcome = evenhand("run", cwd=tmp_path)
    assert outcome.returncode == 6
    missing = re.search("([0-9]+) recorded replies are missing", outcome.stderr)
    assert missing and 0 < int(missing[1]) <= recorded - left
    assert "recorded replies are missing" in evenhand("store", "verify", cwd=tmp_path).stdout
    assert counts(url)["calls"] == asked
    (tmp_path / f"{STORE}-tally").unlink()
    outcome = evenhand("run", cwd=tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    assert files(tmp_path) == {STORE}


def kept_apart(folder: Path, *, with_log: bool) -> dict[str, str]:
    """The replies in a copy of a store, which stays as it is."""
    apart = folder / f"apart-{with_log}"
    apart.mkdir()
    for end in ("", "-wal") if with_log else ("",):
        (apart / f"{STORE}{end}").write_bytes((folder / f"{STORE}{end}").read_bytes())
    return kept(apart)


def test_what_is_recorded_soon_lies_in_the_store_itself(tmp_path: Path) -> None:
    """A log that is lost takes a second along, not all that was ever recorded."""
    with child(delay=0.05) as url:
        write_suite(tmp_path, UNITS, at(url), limits={"concurrency": 2})
        process = started("run", cwd=tmp_path)
        assert until(lambda: counts(url)["answered"] >= 4, process)
        number = 0

        def is_moved() -> bool:
            nonlocal number
            number += 1
            (tmp_path / str(number)).mkdir()
            copy = tmp_path / str(number) / STORE
            copy.write_bytes((tmp_path / STORE).read_bytes())
            return len(kept(copy.parent)) >= 4

        assert until(is_moved, process), "the run ended before"
        process.kill()
        ended(process)


IMPATIENT = """
from evenhand.store.sqlite import connection
connection.BUSY_MILLISECONDS = 1500
from evenhand.cli.main import main
main()
"""


def test_a_store_that_is_locked_for_good_is_not_paid_for(tmp_path: Path, url: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, "run"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert until(lambda: counts(url)["answered"] >= 30, process)
    with closing(sqlite3.connect(tmp_path / STORE, isolation_level=None, timeout=60)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        recorded = len(kept(tmp_path))
        code, _, message = ended(process)
        assert code == 6, message
        assert f"is locked by pid {os.getpid()}" in message
        assert counts(url)["calls"] <= recorded + WIDE
        assert f"kept in {STORE}-unrecorded" in message
        assert len(kept(tmp_path)) == recorded
    finished(tmp_path, url)
    assert files(tmp_path) == {STORE}
