"""What stands beside a store, and what becomes of a store that is not where it was."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.json import encode

from evenhand.errors import StoreError
from evenhand.exchange import Reply
from evenhand.store.beside import Unrecorded, tallied_calls
from evenhand.store.codec import call_row
from evenhand.store.keys import CALL_TAG, row_digest
from evenhand.store.ports import Call
from evenhand.store.sqlite import sqlite_store
from evenhand.store.sqlite.connection import StoreFile
from evenhand.store.sqlite.ledger import SqliteLedger


def call(number: int, text: str = "reply") -> Call:
    return Call(f"{CALL_TAG}{number}", "run", "judge", Reply(text=text), 1)


def row(number: int) -> tuple[str, tuple[object, ...]]:
    return "call", call_row(call(number), f"2026-01-01T00:00:0{number}")


def recorded(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as beside:
        return [key.removeprefix(CALL_TAG) for (key,) in beside.execute("SELECT key FROM calls")]


# Replies that could not be written


async def test_replies_that_wait_are_taken_in_once(path: Path) -> None:
    sqlite_store(path).close()
    waiting = Unrecorded(path)
    waiting.keep([row(1), row(2)])
    waiting.keep([row(3)])
    before = waiting.path.read_bytes()
    SqliteLedger(StoreFile(path)).close()
    assert recorded(path) == ["1", "2", "3"]
    assert not waiting.path.exists()
    # Killed after the commit, before the file was removed: they are not taken in again.
    waiting.path.write_bytes(before)
    SqliteLedger(StoreFile(path)).close()
    assert recorded(path) == ["1", "2", "3"]
    store = sqlite_store(path)
    assert store.archive.verify() == []
    store.close()


def test_a_line_that_was_cut_short_is_left_out(path: Path) -> None:
    sqlite_store(path).close()
    waiting = Unrecorded(path)
    waiting.keep([row(1), row(2)])
    waiting.path.write_bytes(waiting.path.read_bytes()[:-40])
    SqliteLedger(StoreFile(path)).close()
    assert recorded(path) == ["1"]


def test_a_line_after_one_that_was_cut_short_is_taken_in(path: Path) -> None:
    sqlite_store(path).close()
    waiting = Unrecorded(path)
    waiting.keep([row(1), row(2)])
    waiting.path.write_bytes(waiting.path.read_bytes()[:-40])
    waiting.keep([row(3)])
    SqliteLedger(StoreFile(path)).close()
    assert recorded(path) == ["1", "3"]


def waiting_line(**changes: object) -> bytes:
    """A reply that waits, with some of its columns changed and its digest made anew."""
    changed = call_row(call(2), "2026-01-01T00:00:02")._replace(**changes)  # type: ignore[arg-type]
    stamped = changed._replace(digest=row_digest(*changed[:-2], changed.at))
    return encode(["call", list(stamped)])


BAD_LINES = {
    "an unknown statement": b'["zzz",["a","b"]]',
    "too few columns": b'["call",["a"]]',
    "no columns": b'["release",[]]',
    "too many columns": b'["release",["a","b","c"]]',
    "a number too large": waiting_line(input_tokens=2**63),
    "no key": waiting_line(key=None),
    "a key that is a list": b'["release",[["a"],"b"]]',
    "a number in place of a reply": waiting_line(reply=7),
    "another reply than was recorded": encode(row(2)).replace(b'"reply"', b'"forged"'),
    "no list": b"7",
    "no JSON": b"[[[",
    "no UTF-8": b'["release",["\xff","b"]]',
    "half a character": rb'["release",["\ud800","b"]]',
}


@pytest.mark.parametrize("bad", BAD_LINES.values(), ids=BAD_LINES)
def test_a_line_that_is_no_reply_is_put_aside(
    path: Path, bad: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    sqlite_store(path).close()
    waiting = Unrecorded(path)
    waiting.keep([row(1)])
    waiting.path.write_bytes(waiting.path.read_bytes() + bad + b"\n")
    waiting.keep([row(3)])
    for _ in range(2):
        SqliteLedger(StoreFile(path)).close()
        assert recorded(path) == ["1", "3"]
        assert Path(f"{waiting.path}.bad").read_bytes() == bad + b"\n"
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "1 line of store.db-unrecorded cannot be taken in" in message
    assert "store.db-unrecorded.bad" in message
    assert not waiting.path.exists()


def test_a_bad_line_that_cannot_be_put_aside_stays_and_hinders_nobody(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sqlite_store(path).close()
    waiting = Unrecorded(path)
    waiting.keep([row(1)])
    waiting.path.write_bytes(waiting.path.read_bytes() + b"7\n")
    Path(f"{waiting.path}.bad").mkdir()
    before = waiting.path.read_bytes()
    for _ in range(2):
        SqliteLedger(StoreFile(path)).close()
        assert recorded(path) == ["1"]
        assert waiting.path.read_bytes() == before
        assert "cannot be written" in capsys.readouterr().err


def test_the_name_of_a_new_file_of_replies_reaches_the_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    waiting = Unrecorded(path)
    waiting.keep([row(1)])
    assert synced == [waiting.path, path.parent]
    waiting.keep([row(2)])
    assert synced[2:] == [waiting.path]


def test_what_a_full_disk_refuses_is_taken_in_by_the_next(path: Path) -> None:
    async def work() -> None:
        ledger = SqliteLedger(StoreFile(path))
        await ledger.record(call(1))
        (used,) = ledger._writing.execute("PRAGMA page_count").fetchone()
        ledger._writing.execute(f"PRAGMA max_page_count = {used}")
        with pytest.raises(StoreError, match="full") as refused:
            await ledger.record(call(2, "x" * 100_000))
        assert "store.db-unrecorded" in refused.value.advice
        with pytest.raises(StoreError):
            await ledger.record(call(3))
        ledger.close()

    asyncio.run(work())
    assert recorded(path) == ["1"]
    SqliteLedger(StoreFile(path)).close()
    assert recorded(path) == ["1", "2", "3"]


# Files of others by the same names


@pytest.mark.parametrize("end", ["-tally", "-unrecorded"])
@pytest.mark.parametrize("kind", ["file", "link", "folder", "pipe"])
async def test_a_file_of_somebody_elses_is_left_as_it_is(path: Path, end: str, kind: str) -> None:
    beside, treasure = Path(f"{path}{end}"), path.parent / "treasure.txt"
    treasure.write_text("mine")
    if kind == "file":
        beside.write_text("mine")
    elif kind == "link":
        beside.symlink_to(treasure)
    elif kind == "folder":
        beside.mkdir()
    else:
        os.mkfifo(beside)
    ledger = SqliteLedger(StoreFile(path))
    await ledger.record(call(1))
    with_row = Unrecorded(path)
    if end == "-unrecorded":
        with pytest.raises(OSError):
            with_row.keep([row(2)])
    ledger.close()
    assert recorded(path) == ["1"]
    assert treasure.read_text() == "mine"
    assert beside.exists() and (kind != "file" or beside.read_text() == "mine")


# The tally


async def test_the_tally_is_there_while_something_lies_in_the_log_alone(path: Path) -> None:
    ledger = SqliteLedger(StoreFile(path))
    for number in range(3):
        await ledger.record(call(number))
    assert tallied_calls(Path(f"{path}-tally")) == 3
    ledger.close()
    assert [file.name for file in path.parent.iterdir()] == ["store.db"]


async def test_an_older_copy_in_the_place_of_a_store_is_noticed(path: Path) -> None:
    ledger = SqliteLedger(StoreFile(path))
    await ledger.record(call(1))
    ledger._upkeep._move()
    copy = path.read_bytes()
    await ledger.record(call(2))
    tally = Path(f"{path}-tally").read_bytes()
    ledger.close()
    path.write_bytes(copy)
    Path(f"{path}-tally").write_bytes(tally)
    for _ in range(2):
        with pytest.raises(StoreError, match="1 recorded replies are missing"):
            SqliteLedger(StoreFile(path))
    Path(f"{path}-tally").unlink()
    SqliteLedger(StoreFile(path)).close()


# A store that is not where it was


async def test_a_store_whose_folder_is_removed_is_saved_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    ledger = SqliteLedger(StoreFile(folder / "store.db"))
    await ledger.record(call(1))
    shutil.rmtree(folder)
    with pytest.raises(StoreError, match=f"saved to {elsewhere}/store.db.rescued"):
        await ledger.record(call(2))
    # What was under way is still taken, and saved with the rest.
    with pytest.raises(StoreError, match="was removed"):
        await ledger.record(call(3))
    ledger.close()
    assert recorded(elsewhere / "store.db.rescued") == ["1", "2", "3"]
    assert [file.name for file in elsewhere.iterdir()] == ["store.db.rescued"]


async def test_a_store_in_a_folder_that_is_not_utf_8_is_saved_too(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    ledger = SqliteLedger(StoreFile(folder / "store.db"))
    await ledger.record(call(1))
    (folder / "store.db").unlink()
    with pytest.raises(StoreError, match=r"saved to .*store\.db\.rescued"):
        await ledger.record(call(2))
    with pytest.raises(StoreError, match="was removed"):
        await ledger.record(call(3))
    ledger.close()
    (folder / "store.db.rescued").rename(tmp_path / "saved.db")
    assert recorded(tmp_path / "saved.db") == ["1", "2", "3"]


async def test_an_earlier_copy_that_was_saved_is_not_overwritten(path: Path) -> None:
    Path(f"{path}.rescued").write_text("an earlier one")
    ledger = SqliteLedger(StoreFile(path))
    await ledger.record(call(1))
    path.unlink()
    with pytest.raises(StoreError, match=r"saved to .*\.rescued-2"):
        await ledger.record(call(2))
    ledger.close()
    assert Path(f"{path}.rescued").read_text() == "an earlier one"
    assert recorded(Path(f"{path}.rescued-2")) == ["1", "2"]


async def test_what_comes_after_a_move_is_in_the_moved_file(path: Path) -> None:
    ledger = SqliteLedger(StoreFile(path))
    await ledger.record(call(1))
    path.rename(path.with_name("moved.db"))
    for number in (2, 3):
        with pytest.raises(StoreError, match=r"moved to .*moved\.db"):
            await ledger.record(call(number))
    ledger.close()
    assert recorded(path.with_name("moved.db")) == ["1", "2", "3"]
    assert [file.name for file in path.parent.iterdir()] == ["moved.db"]
