"""Claims on runs: by the file itself, whatever leads to it, and in the system's hands alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from evenhand.errors import StoreBusy, StoreError
from evenhand.store.sqlite.connection import StoreFile
from evenhand.store.sqlite.inode import Inode, leave, use

HOLDER = """
import sys
from pathlib import Path
from evenhand.errors import StoreBusy, StoreError
from evenhand.store.sqlite.connection import StoreFile

file = StoreFile(Path(sys.argv[1]))
connection = file.connect()
try:
    with file.claimed("run", connection.inode):
        print("held", flush=True)
        sys.stdin.read()
except StoreBusy as error:
    print(error, flush=True)
connection.close()
"""


def holder(path: Path, cwd: Path | None = None) -> subprocess.Popen[str]:
    """A process that holds the run until it is told to end, or says why it cannot."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def spellings(path: Path) -> dict[str, tuple[Path, Path]]:
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
        "dots": (folder / "deep" / ".." / "store.db", folder),
        "a relative path": (Path("../store.db"), folder / "deep"),
    }


def test_a_run_is_held_however_its_store_is_spelt(path: Path) -> None:
    with holder(path) as first:
        assert said(first) == "held\n"
        for name, (spelling, cwd) in spellings(path).items():
            with holder(spelling, cwd) as second:
                assert f"pid {first.pid}" in said(second), name
        first.communicate("")
    with holder(path) as third:
        assert said(third) == "held\n"
        third.communicate("")


def test_a_killed_process_holds_nothing(path: Path) -> None:
    with holder(path) as first:
        assert said(first) == "held\n"
        first.kill()
    with holder(path) as second:
        assert said(second) == "held\n"
        second.communicate("")


def test_nothing_beside_the_store_holds_a_claim(path: Path) -> None:
    """So that nothing beside it can be removed, replaced by a link, or stand in the way."""
    treasure = path.parent / "treasure.txt"
    treasure.write_text("mine")
    locks = Path(f"{path}-locks")
    locks.mkdir()
    (locks / "run").symlink_to(treasure)
    with holder(path) as first:
        assert said(first) == "held\n"
        (locks / "run").unlink()
        locks.rmdir()
        locks.write_text("a file in the place of a folder")
        with holder(path) as second:
            assert f"pid {first.pid}" in said(second)
        first.communicate("")
    assert treasure.read_text() == "mine"


def test_one_of_many_threads_holds_a_run(path: Path) -> None:
    free, errors = threading.Lock(), []
    file = StoreFile(path)

    def claim() -> None:
        connection = file.connect()
        for _ in range(50):
            try:
                with file.claimed("run", connection.inode):
                    if not free.acquire(blocking=False):
                        errors.append("two hold it")
                        break
                    free.release()
            except StoreBusy:
                continue
            except BaseException as error:
                errors.append(repr(error))
        connection.close()

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.parametrize("is_taken_again", [False, True])
def test_a_run_that_is_let_go_of_meanwhile_is_claimed(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_taken_again: bool
) -> None:
    file = StoreFile(path)
    connection = file.connect()
    inode = connection.inode
    look = Inode.holder
    assert inode.claim("run")

    def let_go(of: Inode, run: str) -> int | None:
        of.release(run)
        process = look(of, run)
        if is_taken_again:
            assert of.claim(run)
        return process

    monkeypatch.setattr(Inode, "holder", let_go)
    if is_taken_again:
        with pytest.raises(StoreError, match="no process holds it"), file.claimed("run", inode):
            pass
    else:
        with file.claimed("run", inode):
            assert not inode.claim("run")
    connection.close()


def test_one_file_is_open_once_and_until_its_last_user_leaves(path: Path) -> None:
    """SQLite's locks end when any descriptor of the file is closed."""
    file = StoreFile(path)
    first, second = file.connect(), file.connect()
    inode = first.inode
    assert second.inode is inode
    StoreFile(path)
    first.close()
    os.fstat(inode.descriptor)
    second.close()
    with pytest.raises(OSError):
        os.fstat(inode.descriptor)
    again = use(path)
    assert again is not inode
    leave(again)


def test_whoever_opens_a_store_leaves_the_locks_of_this_process(path: Path) -> None:
    """A reader in the same process must not take away the locks of a writer: another process would
    then believe itself alone, and drop the log."""
    file = StoreFile(path)
    writer = file.connect()
    writer.execute("BEGIN IMMEDIATE")
    StoreFile(path).connect().close()
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(
            [sys.executable, "-c", EXCLUSIVE, str(path)], check=True, stderr=subprocess.DEVNULL
        )
    writer.close()


EXCLUSIVE = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], timeout=0).execute("PRAGMA journal_mode = DELETE")
"""
