"""A store that is deleted, moved or locked in mid-run: the run stops with words, and sends nothing
that it cannot record."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from tests.crash.watching import counts, ended, kept, until
from tests.provider import child
from tests.sentences import is_told
from tests.suites import at, environment, evenhand_here, started, write_suite

UNITS, WIDE = 200, 8
STORE = "evenhand.db"


@pytest.fixture
def url(tmp_path):
    """A provider that takes its time, and a suite for it."""
    with child(delay=0.03) as address:
        write_suite(tmp_path, UNITS, at(address), limits={"concurrency": WIDE})
        yield address


def under_way(folder, url):
    """A run that has recorded some replies."""
    process = started("run", cwd=folder)
    assert until(lambda: counts(url)["answered"] >= 30, process)
    return process


def stopped(process, url, asked):
    """What a run says that ends by itself, with exit code 6 and soon after `asked` calls."""
    code, _, message = ended(process)
    assert code == 6, message
    assert counts(url)["calls"] <= asked + 3 * WIDE
    return message


def finished(folder, url):
    """The same command judges the rest, and pays again at most for what was in flight."""
    recorded, paid = len(kept(folder)), counts(url)["calls"]
    assert paid - recorded <= 3 * WIDE
    outcome = evenhand_here("run", cwd=folder)
    assert outcome.returncode == 0, outcome.stderr
    assert counts(url)["calls"] - paid == UNITS - recorded
    assert len(kept(folder)) == UNITS
    assert evenhand_here("store", "verify", cwd=folder).returncode == 0
    assert {file.name for file in folder.glob(f"{STORE}*")} == {STORE}


def test_a_store_that_is_moved_is_told_and_nothing_recorded_is_lost(tmp_path, url):
    process = under_way(tmp_path, url)
    asked = counts(url)["calls"]
    (tmp_path / STORE).rename(tmp_path / "moved.db")
    message = stopped(process, url, asked)
    assert is_told(message, "store.moved") and "--store sqlite:FILE" in message
    (tmp_path / "moved.db").rename(tmp_path / STORE)
    assert len(kept(tmp_path)) >= 30 - WIDE
    finished(tmp_path, url)


def test_a_store_that_is_deleted_is_told_and_the_next_run_begins_anew(tmp_path, url):
    process = under_way(tmp_path, url)
    asked = counts(url)["calls"]
    (tmp_path / STORE).unlink()
    assert is_told(stopped(process, url, asked), "store.moved")
    outcome = evenhand_here("run", cwd=tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    assert len(kept(tmp_path)) == UNITS


def test_a_file_in_the_place_of_a_store_is_left_as_it_is(tmp_path, url):
    process = under_way(tmp_path, url)
    asked = counts(url)["calls"]
    (tmp_path / "another").write_text("somebody's file")
    (tmp_path / "another").replace(tmp_path / STORE)
    assert is_told(stopped(process, url, asked), "store.moved")
    assert (tmp_path / STORE).read_text() == "somebody's file"


IMPATIENT = """
from evenhand.store import sqlite
sqlite.BUSY_SECONDS = 1.5
from evenhand.cli.main import main
main()
"""


def test_a_store_that_is_locked_for_good_is_not_paid_for(tmp_path, url):
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
        assert "database is locked" in message
        assert counts(url)["calls"] <= recorded + WIDE
        assert len(kept(tmp_path)) == recorded
    finished(tmp_path, url)
