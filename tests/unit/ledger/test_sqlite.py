"""The SQLite store as a file: migrations, damage, a full disk, and the writer behind it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.errors import StoreError
from evenhand.exchange import Reply
from evenhand.ledger import sqlite
from evenhand.ledger.keys import CALL_TAG
from evenhand.ledger.schema import MIGRATIONS
from evenhand.ledger.sqlite import SqliteStore
from evenhand.ledger.store import Call, IncomingUnit, Scope
from evenhand.ledger.writer import GroupWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(path)
    yield made
    made.close()


def call(number: int, text: str = "reply") -> Call:
    return Call(f"{CALL_TAG}{number}", "run", "judge", Reply(text=text), 1)


def fill_up(store: SqliteStore, pages: int = 0) -> None:
    """From now on the disk is full."""
    (used,) = store._writing.execute("PRAGMA page_count").fetchone()
    store._writing.execute(f"PRAGMA max_page_count = {used + pages}")


def test_migrations_are_applied_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SqliteStore(path).close()
    more = (*MIGRATIONS, ("0002_more", "CREATE TABLE more (a); INSERT INTO more VALUES (1)"))
    monkeypatch.setattr(sqlite, "MIGRATIONS", more)
    for _ in range(2):
        SqliteStore(path).close()
    with sqlite3.connect(path) as beside:
        assert beside.execute("SELECT * FROM more").fetchall() == [(1,)]
    beside.close()


def test_a_migration_that_fails_leaves_nothing_behind(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore(path).close()
    broken = (*MIGRATIONS, ("0002_broken", "CREATE TABLE half (a); SELECT nonsense"))
    monkeypatch.setattr(sqlite, "MIGRATIONS", broken)
    with pytest.raises(StoreError, match="nonsense"):
        SqliteStore(path)
    monkeypatch.undo()
    SqliteStore(path).close()
    with sqlite3.connect(path) as beside:
        assert not beside.execute("SELECT 1 FROM sqlite_master WHERE name='half'").fetchall()
    beside.close()


def test_a_newer_store_is_refused(path: Path) -> None:
    SqliteStore(path).close()
    with sqlite3.connect(path) as beside:
        beside.execute("INSERT INTO migrations VALUES ('9999_later', '')")
    beside.close()
    with pytest.raises(StoreError, match=r"newer evenhand .*9999_later"):
        SqliteStore(path)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, but long enough to be read" * 9)
    for name in ("text.db", "no/such/folder.db", "."):
        with pytest.raises(StoreError, match="cannot be opened"):
            SqliteStore(tmp_path / name)


async def test_replies_are_written_to_the_disk_before_they_count(store: SqliteStore) -> None:
    assert store._writing.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._writing.execute("PRAGMA synchronous").fetchone() == (2,)


async def test_after_a_failed_commit_every_later_write_fails(store: SqliteStore) -> None:
    await store.record(call(1))
    fill_up(store)
    with pytest.raises(StoreError, match="full"):
        await store.record(call(2, "x" * 100_000))
    store._writing.execute("PRAGMA max_page_count = 1000000")
    for late in (store.record(call(3)), store.reserve("run", "k", "a", 1), store._group.flush()):
        with pytest.raises(StoreError, match="full"):
            await late
    assert store.find(call(1).key)
    assert store.find(call(2).key) is None
    assert store.find(call(3).key) is None


def test_an_intake_on_a_full_disk_is_a_store_problem(store: SqliteStore) -> None:
    fill_up(store)
    units = [IncomingUnit(f"u{i}", "a:1", "x" * 1000) for i in range(100)]
    with pytest.raises(StoreError, match="full"):
        store.begin("run", "name", {}, units)
    assert store.runs() == []


async def test_whatever_cannot_be_written_is_told_and_nobody_waits_for_ever(
    store: SqliteStore,
) -> None:
    with pytest.raises(StoreError, match="too large"):
        await asyncio.wait_for(store.reserve("run", "k", "a", 10**30), 30)


def test_a_damaged_file_is_told_by_verify_and_by_reading(path: Path) -> None:
    store = SqliteStore(path)
    store.begin("run", "name", {}, [IncomingUnit(f"u{i}", "a:1", "x" * 500) for i in range(500)])
    store.close()
    data = bytearray(path.read_bytes())
    for at in range(4096 * 12, len(data) - 4096, 4096):
        data[at : at + 200] = b"\xff" * 200
    path.write_bytes(data)
    store = SqliteStore(path)
    assert any("damaged" in fault for fault in store.verify())
    with pytest.raises(StoreError, match="malformed"):
        list(store.units(Scope("run")))
    store.close()


async def test_verify_finds_an_altered_reply(store: SqliteStore) -> None:
    await store.record(call(1, "honest"))
    store._writing.execute("UPDATE calls SET reply='altered'")
    assert store.verify() == [f"the reply of call {CALL_TAG}1 was altered"]


async def test_verify_finds_rows_that_belong_to_nothing(store: SqliteStore) -> None:
    store._writing.execute("INSERT INTO units VALUES (7, 'gone', 'u', 1, '', '', '')")
    store._writing.execute(
        "INSERT INTO judgments VALUES (8, 0, 0, 'failure', NULL, '', 0, 0, '{\"calls\":[]}')"
    )
    assert store.verify() == [
        "1 units belong to no run",
        "1 judgments belong to no unit",
        "1 judgments are neither a verdict nor a failure with a reason",
    ]


def test_a_temporary_store_vanishes() -> None:
    store = SqliteStore(None)
    assert store.path.exists()
    store.close()
    assert not store.path.parent.exists()


async def test_many_writes_share_few_commits(store: SqliteStore) -> None:
    commits: list[str] = []
    writer = GroupWriter(store._writing)
    store._writing.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    sql = "INSERT INTO reservations VALUES (?, ?, 'run', 1)"
    await asyncio.gather(*(writer.put((sql, (str(i), "a"))) for i in range(500)))
    store._writing.set_trace_callback(None)
    writer.stop()
    assert len(commits) < 10
    assert store.spent("run").reserved == 500


async def test_what_was_put_lazily_is_written_at_the_end(store: SqliteStore) -> None:
    writer = GroupWriter(store._writing)
    writer.put_lazily("INSERT INTO reservations VALUES ('k', 'a', 'run', 9)", ())
    writer.stop()
    assert store.spent("run").reserved == 9


def test_claims_come_and_go_without_a_trace(store: SqliteStore, path: Path) -> None:
    """Many at once: exactly one holds the run, and no race of coming and going is an error."""
    held, errors = threading.Lock(), []

    def claim() -> None:
        for _ in range(50):
            try:
                with store.claim("run"):
                    if not held.acquire(blocking=False):
                        errors.append("two hold it")
                        return
                    held.release()
            except StoreError:
                continue
            except BaseException as error:
                errors.append(repr(error))

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert not Path(f"{path}-locks").exists()


async def test_the_log_stays_short_although_somebody_always_reads(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LOG_BYTES", 1 << 20)
    monkeypatch.setattr(sqlite, "LOOKS_PER_CHECK", 4)
    longest, done = 0, False

    async def read() -> None:
        nonlocal longest
        while not done:
            store.find(f"{CALL_TAG}0")
            time.sleep(0.002)  # this turn goes on for a while, and its reader with it
            longest = max(longest, Path(f"{path}-wal").stat().st_size)
            await asyncio.sleep(0)

    reader = asyncio.create_task(read())
    for start in range(0, 2000, 40):
        group = [store.record(call(n, "x" * 16000)) for n in range(start, start + 40)]
        await asyncio.gather(*group)
    done = True
    await reader
    assert longest < path.stat().st_size / 2
