"""The SQLite store as a file: migrations, damage, a full disk, and the writer behind it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import StoreError
from evenhand.exchange import Reply
from evenhand.judgment import JudgmentText
from evenhand.limits import BUSY_MILLISECONDS
from evenhand.manifest import JudgingRecord, Manifest
from evenhand.store.keys import CALL_TAG, digest
from evenhand.store.ports import Call, IncomingUnit, StoredJudgment
from evenhand.store.sql import intake
from evenhand.store.sql.intake import WaitingUnits
from evenhand.store.sqlite import connection as connections
from evenhand.store.sqlite import ledger as ledgers
from evenhand.store.sqlite import sqlite_store
from evenhand.store.sqlite.archive import SqliteArchive
from evenhand.store.sqlite.connection import StoreConnection, StoreFile
from evenhand.store.sqlite.inode import leave, use
from evenhand.store.sqlite.ledger import SqliteLedger
from evenhand.store.sqlite.schema import MIGRATIONS
from evenhand.store.sqlite.session import SqliteSession
from evenhand.store.sqlite.writer import GroupWriter
from tests.contract.stores import begun, begun_in
from tests.suites import judged, write_suite


@pytest.fixture
def archive(path: Path) -> Any:
    opened = SqliteArchive(StoreFile(path))
    yield opened
    opened.close()


def incoming(number: int, body: str = "{}") -> list[IncomingUnit]:
    return [IncomingUnit(f"u{i}", f"a:{i + 1}", body) for i in range(number)]


def changed_beside(path: Path, sql: str) -> None:
    """Another hand in the file."""
    with sqlite3.connect(path) as beside:
        beside.execute(sql)
    beside.close()


def call(number: int, text: str = "reply") -> Call:
    return Call(f"{CALL_TAG}{number}", "run", "judge", Reply(text=text), 1)


def fill_up(ledger: SqliteLedger) -> None:
    """From now on the disk is full."""
    (used,) = ledger._writing.execute("PRAGMA page_count").fetchone()
    ledger._writing.execute(f"PRAGMA max_page_count = {used}")


def test_migrations_are_applied_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sqlite_store(path).close()
    more = (*MIGRATIONS, ("0002_more", "CREATE TABLE more (a); INSERT INTO more VALUES (1)"))
    monkeypatch.setattr(connections, "MIGRATIONS", more)
    for _ in range(2):
        sqlite_store(path).close()
    with sqlite3.connect(path) as beside:
        assert beside.execute("SELECT * FROM more").fetchall() == [(1,)]
    beside.close()


def test_a_migration_that_fails_leaves_nothing_behind(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite_store(path).close()
    broken = (*MIGRATIONS, ("0002_broken", "CREATE TABLE half (a); SELECT nonsense"))
    monkeypatch.setattr(connections, "MIGRATIONS", broken)
    with pytest.raises(StoreError, match="nonsense"):
        sqlite_store(path)
    monkeypatch.undo()
    sqlite_store(path).close()
    with sqlite3.connect(path) as beside:
        assert not beside.execute("SELECT 1 FROM sqlite_master WHERE name='half'").fetchall()
    beside.close()


def test_a_newer_store_is_refused(path: Path) -> None:
    sqlite_store(path).close()
    with sqlite3.connect(path) as beside:
        beside.execute("INSERT INTO migrations VALUES ('9999_later', '')")
    beside.close()
    with pytest.raises(StoreError, match=r"newer evenhand .*9999_later"):
        sqlite_store(path)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, but long enough to be read" * 9)
    for name in ("text.db", "no/such/folder.db", "."):
        with pytest.raises(StoreError, match="cannot be opened"):
            sqlite_store(tmp_path / name)


async def test_replies_are_written_to_the_disk_before_they_count(ledger: SqliteLedger) -> None:
    assert ledger._writing.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ledger._writing.execute("PRAGMA synchronous").fetchone() == (2,)


# Where SQLite cannot keep a log


class WithoutSharedMemory(StoreConnection):
    """A connection on a file system where processes share no memory: SQLite cannot keep a log
    there, and answers with the journal mode that it stays in."""

    mode = "DELETE"

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        return super().execute(sql.replace("= WAL", f"= {self.mode}"), *values)


def without_log(monkeypatch: pytest.MonkeyPatch, mode: str = "DELETE") -> None:
    monkeypatch.setattr(WithoutSharedMemory, "mode", mode)
    monkeypatch.setattr(connections, "StoreConnection", WithoutSharedMemory)


async def test_without_a_log_a_run_is_judged_and_as_durable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_log(monkeypatch)
    monkeypatch.setattr(ledgers, "LOOKS_PER_CHECK", 1)
    store = sqlite_store(path)
    async with store.ledger() as ledger:
        assert isinstance(ledger, SqliteLedger)
        assert ledger._writing.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert ledger._writing.execute("PRAGMA synchronous").fetchone() == (3,)
        scope = await begun(ledger, incoming(50))
        for number in range(50):
            assert await ledger.find(f"{CALL_TAG}{number}") is None
            await ledger.record(call(number))
            assert await ledger.find(f"{CALL_TAG}{number}")
        await begun(ledger, incoming(51))
        await ledger.set_aside(scope, (), lambda stored: stored.calls)
    assert store.archive.spent("run").calls == 50
    assert store.archive.verify() == []
    assert not Path(f"{path}-wal").exists()
    store.close()


async def test_without_a_log_many_workers_judge_a_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_log(monkeypatch)
    monkeypatch.setattr(ledgers, "LOOKS_PER_CHECK", 1)
    write_suite(tmp_path, 60, {"model": "python/judge:good", "repeats": 2})
    first = await judged(tmp_path)
    assert (first.counts.verdicts, first.counts.pending) == (120, 0)
    assert (await judged(tmp_path)).tally.sent == 0
    assert not (tmp_path / "evenhand.db-wal").exists()


@pytest.mark.parametrize("mode", ["MEMORY", "OFF"])
def test_a_mode_that_loses_commits_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    without_log(monkeypatch, mode)
    with pytest.raises(StoreError, match=f"journal mode {mode.lower()} only") as told:
        sqlite_store(path)
    assert "disk of this machine" in told.value.advice


# A full disk and a damaged file


async def test_after_a_failed_commit_every_later_write_fails(ledger: SqliteLedger) -> None:
    await ledger.record(call(1))
    fill_up(ledger)
    with pytest.raises(StoreError, match="full"):
        await ledger.record(call(2, "x" * 100_000))
    ledger._writing.execute("PRAGMA max_page_count = 1000000")
    for late in (ledger.record(call(3)), ledger.reserve("run", "k", "a", 1), ledger.flush()):
        with pytest.raises(StoreError, match="full"):
            await late
    assert await ledger.find(call(1).key)
    assert await ledger.find(call(2).key) is None
    assert await ledger.find(call(3).key) is None


async def test_an_intake_on_a_full_disk_is_a_store_problem(
    ledger: SqliteLedger, archive: SqliteArchive
) -> None:
    fill_up(ledger)
    with pytest.raises(StoreError, match="full"):
        await begun(ledger, incoming(100, "x" * 1000))
    assert archive.runs() == []


async def test_whatever_cannot_be_written_is_told_and_nobody_waits_for_ever(
    ledger: SqliteLedger,
) -> None:
    with pytest.raises(StoreError, match="too large"):
        await asyncio.wait_for(ledger.reserve("run", "k", "a", 10**30), 30)


async def test_a_group_of_which_one_reply_is_refused_is_not_written_at_all(
    ledger: SqliteLedger, archive: SqliteArchive
) -> None:
    await ledger.reserve("run", "k", "a", 9)
    nameless: Any = None
    replies = [call(number) for number in range(40)]
    replies[35] = replies[35]._replace(judge=nameless)
    records = [ledger.record(reply, attempt="a") for reply in replies]
    await ledger.release("k", "a")
    told = await asyncio.gather(*records, return_exceptions=True)
    assert all("NOT NULL" in str(error) for error in told)
    assert not ledger._writing.in_transaction
    assert archive.spent("run").reserved == 9
    assert not any([await ledger.find(reply.key) for reply in replies])


async def test_what_can_be_kept_nowhere_is_told_and_nobody_waits_for_ever(
    ledger: SqliteLedger,
) -> None:
    """Half a character is neither text for SQLite nor for the file beside it."""
    for attempt in ("first", "second"):
        await ledger.release("\ud800", attempt)
        with pytest.raises(StoreError, match="nor could the replies"):
            await asyncio.wait_for(ledger.flush(), 30)


async def test_a_log_that_cannot_be_shortened_is_a_store_problem(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "LOG_BYTES", 1)
    monkeypatch.setattr(ledgers, "LOOKS_PER_CHECK", 1)
    await ledger.record(call(1))

    def refused(action: int, name: str | None, value: str | None, *_: object) -> int:
        is_checkpoint = action == sqlite3.SQLITE_PRAGMA and name == "wal_checkpoint"
        return sqlite3.SQLITE_DENY if is_checkpoint else sqlite3.SQLITE_OK

    ledger._reading.set_authorizer(refused)
    with pytest.raises(StoreError, match="the store cannot be used"):
        await ledger.find(call(1).key)
    assert ledger._reading.execute("PRAGMA busy_timeout").fetchone() == (BUSY_MILLISECONDS,)


@pytest.mark.parametrize("fails", [1, 2, 3])
def test_a_ledger_that_cannot_be_opened_leaves_nothing_open(
    path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    file = StoreFile(path)
    connect, connections_made = file.connect, 0

    def failing() -> StoreConnection:
        nonlocal connections_made
        connections_made += 1
        if connections_made == fails:
            raise StoreError("no more files can be opened")
        connection = connect()
        if fails == 3:  # both are made, and neither can be used
            connection.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
        return connection

    monkeypatch.setattr(file, "connect", failing)
    with pytest.raises(StoreError):
        SqliteLedger(file)
    inode = use(path)
    assert inode.users == 1
    leave(inode)


def test_a_damaged_file_is_told_by_verify_and_by_reading(path: Path) -> None:
    store = sqlite_store(path)
    scope = begun_in(store, incoming(500, "x" * 500))
    store.close()
    data = bytearray(path.read_bytes())
    for at in range(4096 * 32, len(data) - 4096, 4096):
        data[at : at + 200] = b"\xff" * 200
    path.write_bytes(data)
    store = sqlite_store(path)
    assert any("damaged" in fault for fault in store.archive.verify())
    with pytest.raises(StoreError, match="malformed"):
        list(store.archive.units(scope))
    store.close()


# What verify finds


async def test_verify_finds_an_altered_reply(ledger: SqliteLedger, archive: SqliteArchive) -> None:
    await ledger.record(call(1, "honest"))
    ledger._writing.execute("UPDATE calls SET reply='altered'")
    assert archive.verify() == [f"the reply of call {CALL_TAG}1 was altered"]


TEXT = digest("Judge.")
JUDGING = JudgingRecord(protocol="p", texts={"prompts/en.md": "Judge."})
BODY = '{"calls":[]}'
VERDICT = JudgmentText("verdict", None, BODY)
FAULTS = {
    "UPDATE units SET body='[1]' WHERE id='u1'": ["unit u1 was altered"],
    "UPDATE units SET id='u9' WHERE id='u1'": ["unit u9 was altered"],
    "UPDATE texts SET text='Praise.'": [f"text {TEXT} was altered"],
    "DELETE FROM texts": [f"judging {JUDGING.id}: the text of prompts/en.md is missing"],
    "UPDATE judgings SET record=replace(record, '\"seed\":0', '\"seed\":1')": [
        f"judging {JUDGING.id} was altered"
    ],
    "UPDATE judgings SET record='{'": [
        f"judging {JUDGING.id}: a judging in the store cannot be read"
    ],
    "UPDATE runs SET name='other'": ["not those that it began with"],
    "DELETE FROM run_units WHERE position=2": [
        "not those that it began with",
        "1 units belong to no run",
    ],
    "DELETE FROM units WHERE id='u1'": [
        "not those that it began with",
        "1 places of runs hold no unit",
        "1 judgments belong to no unit",
    ],
    "DELETE FROM runs": ["3 places belong to no run"],
    "DELETE FROM judgings": ["1 runs belong to no judging", "3 judgments belong to no judging"],
    f"INSERT INTO judgments VALUES (1, 99, 0, 0, 'verdict', NULL, 0, 0, '{BODY}', NULL)": [
        "1 judgments belong to no unit"
    ],
    f"INSERT INTO judgments VALUES (7, 1, 0, 0, 'verdict', NULL, 0, 0, '{BODY}', NULL)": [
        "1 judgments belong to no judging"
    ],
    "UPDATE judgments SET status='failure' WHERE unit=1": [
        "unit u0: the judgment by judge 0 was altered",
        "1 judgments are neither a verdict nor",
    ],
    'UPDATE judgments SET body=\'{"calls":["gone"]}\' WHERE unit=1': [
        "unit u0: the judgment by judge 0 was altered",
        f"judging {JUDGING.id}, unit u0: call gone is missing",
    ],
}


@pytest.mark.parametrize("sql", FAULTS, ids=lambda sql: " ".join(sql.split()[:4]))
async def test_verify_finds_what_does_not_hold_together(
    ledger: SqliteLedger, archive: SqliteArchive, path: Path, sql: str
) -> None:
    scope = await begun(ledger, incoming(3), manifest=Manifest(judging=JUDGING))
    for unit in archive.units(scope):
        await ledger.settle(scope.run, StoredJudgment(unit.no, 0, 0, (), 0, VERDICT))
    await ledger.flush()
    assert archive.verify() == []
    changed_beside(path, sql)
    faults = archive.verify()
    assert len(faults) == len(FAULTS[sql]), faults
    assert all(part in fault for part, fault in zip(FAULTS[sql], faults, strict=True)), faults


def test_a_temporary_store_vanishes() -> None:
    store = sqlite_store(None)
    begun_in(store, incoming(1))
    file = Path(str(store.archive._file.path))  # type: ignore[attr-defined]
    assert file.exists()
    store.close()
    assert not file.parent.exists()


# The writer


async def test_many_writes_share_few_commits(ledger: SqliteLedger, archive: SqliteArchive) -> None:
    commits: list[str] = []
    writer, connection = GroupWriter(ledger._writing, ledger._upkeep), ledger._writing
    connection.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    sql = "INSERT INTO reservations VALUES (?, ?, 'run', 1)"
    await asyncio.gather(*(writer.put((sql, (str(i), "a"))) for i in range(500)))
    connection.set_trace_callback(None)
    writer.stop()
    assert len(commits) < 10
    assert archive.spent("run").reserved == 500


async def test_what_was_put_lazily_is_written_at_the_end(
    ledger: SqliteLedger, archive: SqliteArchive
) -> None:
    writer = GroupWriter(ledger._writing, ledger._upkeep)
    writer.put_lazily("INSERT INTO reservations VALUES ('k', 'a', 'run', 9)", ())
    writer.stop()
    assert archive.spent("run").reserved == 9


async def test_the_log_stays_short_although_somebody_always_reads(
    ledger: SqliteLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "LOG_BYTES", 1 << 20)
    monkeypatch.setattr(ledgers, "LOOKS_PER_CHECK", 4)
    longest, done = 0, False

    async def read() -> None:
        nonlocal longest
        while not done:
            await ledger.find(f"{CALL_TAG}0")
            time.sleep(0.002)  # this turn goes on for a while, and its reader with it
            longest = max(longest, Path(f"{path}-wal").stat().st_size)
            await asyncio.sleep(0)

    await ledger.record(call(0))
    reader = asyncio.create_task(read())
    for start in range(40, 2040, 40):
        group = [ledger.record(call(n, "x" * 16000)) for n in range(start, start + 40)]
        await asyncio.gather(*group)
    done = True
    await reader
    assert longest < path.stat().st_size / 2


def test_units_that_wait_are_found_in_the_store_by_its_index(path: Path) -> None:
    """A column whose type SQLite does not know keeps it from the index, and the time to take in
    units then grows with the square of their number."""
    file = StoreFile(path)
    connection = file.connect()
    waiting = WaitingUnits(SqliteSession(file, connection))
    plan = connection.execute(f"EXPLAIN QUERY PLAN {intake._JOIN}", {"run": 1}).fetchall()
    waiting.clear()
    connection.close()
    steps = [detail for *_, detail in plan]
    assert any("SEARCH u" in step and "(digest=?)" in step for step in steps), steps


def _spilled() -> list[str]:
    """Files of SQLite's own, without a name, that this process has open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(descriptor.readlink()))
    return [place for place in found if "etilqs" in place]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed on Linux")
def test_a_few_thousand_units_wait_in_memory(path: Path) -> None:
    """Each page of a file would be written, and read again for every look at them."""

    async def scenario() -> list[str]:
        ledger = SqliteLedger(StoreFile(path))
        units = (IncomingUnit(f"u{i}", f"a:{i}", f'"{i:01000}"') for i in range(4000))
        await ledger.intake(units)
        spilled = _spilled()
        ledger.close()
        return spilled

    assert not asyncio.run(scenario())
