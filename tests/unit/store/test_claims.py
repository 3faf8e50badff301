"""Claims on runs: one process at a time, whatever path leads to the store."""

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from evenhand.errors import StoreError
from evenhand.store.sqlite import SqliteFile
from tests.sentences import refused
from tests.suites import environment, evenhand_here, write_suite
from tests.waiting import PATIENCE

HOLDER = """
import sys
from pathlib import Path
from evenhand.store.sqlite import SqliteFile

session = SqliteFile(Path(sys.argv[1])).connect()
print("held" if session.try_locks(["run"]) else session.lock_holder("run"), flush=True)
sys.stdin.read()
session.close()
"""


def holder(path, cwd=None):
    """A process that holds the run until it is told to end, or says who else does."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )


def said(process):
    assert process.stdout is not None
    return process.stdout.readline()


def spellings(path):
    """Paths that lead to a file, each with the folder that it is named in."""
    folder = path.parent
    (folder / "deep").mkdir()
    (folder / "link.db").symlink_to(path)
    (folder / "deep" / "relative.db").symlink_to("../store.db")
    (folder / "door").symlink_to(folder)
    return {
        "a link": (folder / "link.db", folder),
        "a link in another folder": (folder / "deep" / "relative.db", folder),
        "a link to the folder": (folder / "door" / "store.db", folder),
        "a relative path": (Path("../store.db"), folder / "deep"),
    }


def test_a_run_is_held_however_its_store_is_spelt(path):
    with holder(path) as first:
        assert said(first) == "held\n"
        for name, (spelling, cwd) in spellings(path).items():
            with holder(spelling, cwd) as second:
                assert said(second) == f"pid {first.pid}\n", name
                second.communicate("")
        first.communicate("")
    with holder(path) as third:
        assert said(third) == "held\n"
        third.communicate("")
    assert not list(path.parent.glob("*.lock"))


def test_a_killed_process_holds_nothing(path):
    with holder(path) as first:
        assert said(first) == "held\n"
        first.kill()
    with closing(SqliteFile(path).connect()) as session:
        assert session.lock_holder("run") is None
        assert session.try_locks(["run"])


def test_a_link_in_the_place_of_a_lock_leads_to_no_file_of_the_users(path):
    treasure = path.parent / "treasure.txt"
    treasure.write_text("mine")
    Path(f"{path}-run.lock").symlink_to(treasure)
    with closing(SqliteFile(path).connect()) as session:
        assert session.lock_holder("run") is None
        with refused(StoreError, "store.cannot_lock"):
            session.try_locks(["run"])
    assert treasure.read_text() == "mine"


def test_one_of_many_threads_holds_a_run(path):
    free, errors, turns = threading.Lock(), [], []
    file = SqliteFile(path)

    def claim():
        with closing(file.connect()) as session:
            for _ in range(100):
                if not session.try_locks(["run"]):
                    continue
                if free.acquire(blocking=False):
                    turns.append(1)
                    free.release()
                else:
                    errors.append("two hold it")
                session.unlock(["run"])

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and turns


def test_whoever_opens_a_store_leaves_the_locks_of_this_process(path):
    """A reader in the same process must not take away the locks of a writer: another process would
    then believe itself alone, and drop the log."""
    writer = SqliteFile(path).connect()
    writer.rows("BEGIN IMMEDIATE")
    SqliteFile(path).connect().close()
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(
            [sys.executable, "-c", EXCLUSIVE, str(path)], check=True, stderr=subprocess.DEVNULL
        )
    writer.close()


EXCLUSIVE = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], timeout=0).execute("PRAGMA journal_mode = DELETE")
"""


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


def ended(folder, script, *arguments):
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


def require_told(said):
    assert said.returncode == 6, said.stderr
    assert STORE in said.stderr
    assert "--store sqlite:FILE" in said.stderr


LOCKING = """
import sqlite3
def refuse(self, *_):
    error = sqlite3.OperationalError("locking protocol")
    error.sqlite_errorcode = sqlite3.{code}
    raise error
sqlite.SqliteFile._open = refuse
"""


@pytest.mark.parametrize(
    ("script", "code", "door"),
    [
        (REFUSED, "ENOLCK", MAIN),
        (REFUSED, "EACCES", MAIN),
        (REFUSED, "ENOLCK", FROM_PYTHON),
        # What SQLite says where the system refuses it a lock.
        *((LOCKING, f"SQLITE_{code}", MAIN) for code in ("PROTOCOL", "IOERR_LOCK", "BUSY")),
    ],
)
def test_a_run_that_cannot_be_claimed_is_told(tmp_path, script, code, door):
    write_suite(tmp_path)
    require_told(ended(tmp_path, script.format(code=code) + door, "run"))


def test_readers_need_no_claim(tmp_path):
    assert evenhand_here("run", cwd=write_suite(tmp_path)).returncode == 0
    refused = REFUSED.format(code="ENOLCK")
    for command in ("runs", "show"):
        said = ended(tmp_path, refused + MAIN, command)
        assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("lock", ["EXCLUSIVE", "IMMEDIATE"])
def test_a_store_that_another_process_keeps_locked_is_told(tmp_path, lock):
    assert evenhand_here("run", "--limit", "1", cwd=write_suite(tmp_path)).returncode == 0
    with closing(sqlite3.connect(tmp_path / STORE, isolation_level=None)) as holder:
        holder.execute(f"BEGIN {lock}")
        said = ended(tmp_path, MAIN, "run")
    require_told(said)
    assert "locked" in said.stderr
