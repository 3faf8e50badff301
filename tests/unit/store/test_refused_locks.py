"""Locks that are refused, or never let go of: a bounded wait, then exit 6 with the file and advice.

No file system here refuses locks, so `flock` is replaced in the process."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.suites import environment, evenhand, write_suite
from tests.waiting import PATIENCE

STORE = "evenhand.db"
IMPATIENT = """
import errno, fcntl, os
from evenhand.store import sqlite
sqlite.BUSY_SECONDS = 0.3
"""
REFUSED = """
def refuse(*_):
    raise OSError(errno.{code}, os.strerror(errno.{code}))
fcntl.flock = refuse
"""
MAIN = "from evenhand.cli.main import main\nmain()\n"
FROM_PYTHON = """
import evenhand, sys
try:
    evenhand.score("Question?", "An answer.", rubric="Is it right?", judge="python/judge:good",
                   store="sqlite:evenhand.db")
except evenhand.EvenhandError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


def ended(folder: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process in which the script was carried out first; raises TimeoutExpired if it hangs."""
    return subprocess.run(
        [sys.executable, "-c", IMPATIENT + script, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def require_told(said: subprocess.CompletedProcess[str], name: str = STORE) -> None:
    assert said.returncode == 6, said.stderr
    assert name in said.stderr
    assert "disk of this machine" in said.stderr


@pytest.mark.parametrize("code", ["ENOLCK", "EACCES"])
def test_a_run_that_cannot_be_claimed_is_told(tmp_path: Path, code: str) -> None:
    write_suite(tmp_path)
    said = ended(tmp_path, REFUSED.format(code=code) + MAIN, "run")
    require_told(said)
    assert "another process" not in said.stderr


def test_a_question_from_python_is_told_that_nothing_can_be_claimed(tmp_path: Path) -> None:
    write_suite(tmp_path)
    require_told(ended(tmp_path, REFUSED.format(code="ENOLCK") + FROM_PYTHON))


def test_readers_need_no_claim(tmp_path: Path) -> None:
    assert evenhand("run", cwd=write_suite(tmp_path)).returncode == 0
    refused = REFUSED.format(code="ENOLCK")
    for command in ("runs", "show"):
        said = ended(tmp_path, refused + MAIN, command)
        assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("lock", ["EXCLUSIVE", "IMMEDIATE"])
def test_a_store_that_another_process_keeps_locked_is_told(tmp_path: Path, lock: str) -> None:
    assert evenhand("run", "--limit", "1", cwd=write_suite(tmp_path)).returncode == 0
    with closing(sqlite3.connect(tmp_path / STORE, isolation_level=None)) as holder:
        holder.execute(f"BEGIN {lock}")
        said = ended(tmp_path, MAIN, "run")
    require_told(said)
    assert "locked" in said.stderr


@pytest.mark.parametrize("code", ["SQLITE_PROTOCOL", "SQLITE_IOERR_LOCK", "SQLITE_BUSY"])
def test_locks_that_sqlite_is_refused_are_told(tmp_path: Path, code: str) -> None:
    """What SQLite says where the system refuses it a lock."""
    write_suite(tmp_path)
    script = f"""
import sqlite3
def refuse(self, *_):
    error = sqlite3.OperationalError("locking protocol")
    error.sqlite_errorcode = sqlite3.{code}
    raise error
sqlite.SqliteFile._open = refuse
"""
    require_told(ended(tmp_path, script + MAIN, "run"))
