"""Stores where they cannot be written: a read-only file system or folder, a full disk.

Mounts are made in a name space of a child process, and end with it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.suites import EVENHAND, environment, evenhand_here, write_suite
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
can_mount = pytest.mark.skipif(
    subprocess.run(
        ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0"', "/mnt"],
        check=False,
        stderr=subprocess.DEVNULL,
    ).returncode
    != 0
    if shutil.which("unshare")
    else True,
    reason="this user may not mount",
)
READERS = ("runs", "show", "store verify", "report -o ../report.html", "export -o -")


def unshared(script, *arguments, cwd):
    """A shell script among mounts of its own."""
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, *arguments],
        cwd=cwd,
        env=environment({"PYTHONPATH": str(ROOT)}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture
def folder(tmp_path):
    """A folder with a finished run."""
    folder = tmp_path / "finished"
    folder.mkdir()
    write_suite(folder, 3)
    assert evenhand_here("run", cwd=folder).returncode == 0
    return folder


@can_mount
def test_a_finished_store_is_read_where_nothing_can_be_written(folder):
    for command in READERS:
        outcome = unshared(READ_ONLY, str(folder), EVENHAND, *command.split(), cwd=folder)
        assert outcome.returncode == 0, (command, outcome.stderr)


KILLED = """
import os, sys
from pathlib import Path
from evenhand.store.sqlite import SqliteFile
session = SqliteFile(Path(sys.argv[1])).connect()
session.rows("UPDATE runs SET name='in the log'")
os.kill(os.getpid(), 9)
"""


@can_mount
@pytest.mark.parametrize("index", [True, False])
def test_what_a_killed_process_left_in_the_log_is_read_there_too(folder, index):
    store = folder / "evenhand.db"
    subprocess.run([sys.executable, "-c", KILLED, str(store)], check=False)
    assert Path(f"{store}-wal").stat().st_size
    if not index:
        Path(f"{store}-shm").unlink()
    outcome = unshared(READ_ONLY, str(folder), EVENHAND, "runs", cwd=folder)
    assert (outcome.returncode, "in the log" in outcome.stdout) == (0, True), outcome.stderr


@can_mount
def test_whoever_writes_is_told_that_it_cannot_be(folder):
    for command in ("run", "settle"):
        outcome = unshared(READ_ONLY, str(folder), EVENHAND, command, cwd=folder)
        assert (outcome.returncode, "read-only" in outcome.stderr) == (6, True), outcome.stderr


@pytest.fixture
def shared_folder(folder):
    """The same where another user may read it, but not write."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "finished"
        shutil.copytree(folder, place)
        Path(name).chmod(0o755)
        place.chmod(0o555)
        (place / "evenhand.db").chmod(0o444)
        yield place


AS_NOBODY = """
import os, sys
from contextlib import suppress
from evenhand.cli.main import main
os.chdir(sys.argv.pop(1))
with suppress(SystemExit):
    main()  # loads what that user may not be allowed to
os.setgid(65534)
os.setuid(65534)
assert not os.access("evenhand.db", os.W_OK)
main()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("command", [("runs",), ("show",), ("store", "verify")], ids=" ".join)
def test_a_store_of_somebody_else_is_read(shared_folder, command):
    outcome = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(shared_folder), *command],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr


FULL = """
import subprocess, sys
from pathlib import Path
from tests.suites import evenhand_here

folder, disk = Path(sys.argv[1]), Path(sys.argv[2])
for kilobytes in (4, 16, 64, 96, 112, 128, 144, 160, 192, 224, 320, 4096):
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(disk)]
    subprocess.run(mount, check=True)
    store = ("--store", f"sqlite:{disk / 'evenhand.db'}")
    outcome = evenhand_here("run", *store, cwd=folder)
    says = "cannot be" in outcome.stderr or "full" in outcome.stderr
    if outcome.returncode == 6 and kilobytes >= 128:
        assert evenhand_here("runs", *store, cwd=folder).returncode in (0, 6)
    print(kilobytes, outcome.returncode, says)
    if outcome.returncode not in (0, 6) or (outcome.returncode and not says):
        print(outcome.stderr)
    subprocess.run(["umount", str(disk)], check=True)
"""


@can_mount
def test_a_full_disk_is_told_whenever_it_is_full(tmp_path):
    """Before there is a store, while it is made, while units are taken in or judged."""
    write_suite(tmp_path, 60)
    (tmp_path / "disk").mkdir()
    script = 'exec "$0" -c "$@"'
    arguments = (sys.executable, FULL, str(tmp_path), str(tmp_path / "disk"))
    outcome = unshared(script, *arguments, cwd=tmp_path)
    lines = [line.split() for line in outcome.stdout.splitlines()]
    assert outcome.returncode == 0, outcome.stderr
    assert all(line[1:] in (["6", "True"], ["0", "False"]) for line in lines), outcome.stdout
    assert lines[0][1] == "6" and lines[-1][1] == "0"
