"""The SQLite store as a file: damage, a full disk, a move, and the writer behind it."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import StoreError
from evenhand.exchange import Reply
from evenhand.judgment import JudgmentText
from evenhand.manifest import JudgingRecord, Manifest
from evenhand.store.archive import Archive
from evenhand.store.batches import RESERVE
from evenhand.store.intake import JOIN_RUN, WaitingUnits
from evenhand.store.ledger import Ledger
from evenhand.store.ports import Call, IncomingUnit, StoredJudgment
from evenhand.store.rows import CALL_TAG, digest
from evenhand.store.session import GroupWriter, Statement, Write
from evenhand.store.sqlite import SqliteFile, sqlite_archive, sqlite_store
from evenhand.store.verify import verify
from tests.contract.stores import begun, begun_in


@pytest.fixture
def archive(path: Path) -> Any:
    opened = sqlite_archive(path)
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


def fill_up(ledger: Ledger) -> None:
    """From now on the disk is full."""
    for session in (ledger._writing, ledger._bulk_session):
        [(used,)] = session.rows("PRAGMA page_count")
        session.rows(f"PRAGMA max_page_count = {used}")


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, but long enough to be read" * 9)
    for name in ("text.db", "no/such/folder.db", "."):
        with pytest.raises(StoreError, match="cannot be opened"):
            sqlite_store(tmp_path / name)


async def test_replies_are_written_to_the_disk_before_they_count(ledger: Ledger) -> None:
    assert ledger._writing.rows("PRAGMA journal_mode") == [("wal",)]
    assert ledger._writing.rows("PRAGMA synchronous") == [(2,)]


# Where SQLite cannot keep a log


class WithoutSharedMemory(sqlite3.Connection):
    """A connection on a file system where processes share no memory: SQLite cannot keep a log
    there, and answers with the journal mode that it stays in."""

    mode = "DELETE"

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        return super().execute(sql.replace("= WAL", f"= {self.mode}"), *values)


def without_log(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(WithoutSharedMemory, "mode", mode)
    monkeypatch.setattr(
        "evenhand.store.sqlite.sqlite3.connect",
        lambda *values, **named: connect(*values, **named, factory=WithoutSharedMemory),
    )


@pytest.mark.parametrize("mode", ["DELETE", "MEMORY", "OFF"])
def test_a_file_without_a_log_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    without_log(monkeypatch, mode)
    with pytest.raises(StoreError, match=f"journal mode {mode.lower()} only") as told:
        sqlite_store(path)
    assert "disk of this machine" in told.value.advice


# A full disk and a damaged file


async def test_after_a_failed_commit_every_later_write_fails(ledger: Ledger) -> None:
    await ledger.record(call(1))
    fill_up(ledger)
    with pytest.raises(StoreError, match="full"):
        await ledger.record(call(2, "x" * 100_000))
    ledger._writing.rows("PRAGMA max_page_count = 1000000")
    for late in (ledger.record(call(3)), ledger.reserve("run", "k", "a", 1), ledger.flush()):
        with pytest.raises(StoreError, match="full"):
            await late
    assert await ledger.find(call(1).key)
    assert await ledger.find(call(2).key) is None
    assert await ledger.find(call(3).key) is None


async def test_an_intake_on_a_full_disk_is_a_store_problem(
    ledger: Ledger, archive: Archive
) -> None:
    fill_up(ledger)
    with pytest.raises(StoreError, match="full"):
        await begun(ledger, incoming(100, "x" * 1000))
    assert archive.runs() == []


async def test_whatever_cannot_be_written_is_told_and_nobody_waits_for_ever(
    ledger: Ledger,
) -> None:
    with pytest.raises(StoreError, match="too large"):
        await asyncio.wait_for(ledger.reserve("run", "k", "a", 10**30), 30)


async def test_a_group_of_which_one_reply_is_refused_is_not_written_at_all(
    ledger: Ledger, archive: Archive
) -> None:
    await ledger.reserve("run", "k", "a", 9)
    nameless: Any = None
    replies = [call(number) for number in range(40)]
    replies[35] = replies[35]._replace(judge=nameless)
    records = [ledger.record(reply, attempt="a") for reply in replies]
    await ledger.release("k", "a")
    told = await asyncio.gather(*records, return_exceptions=True)
    assert all("NOT NULL" in str(error) for error in told)
    assert archive.spent("run").reserved == 9
    assert not any([await ledger.find(reply.key) for reply in replies])


async def test_half_a_character_is_told_and_nobody_waits_for_ever(ledger: Ledger) -> None:
    for attempt in ("first", "second"):
        await ledger.release("\ud800", attempt)
        with pytest.raises(StoreError, match="cannot be written"):
            await asyncio.wait_for(ledger.flush(), 30)


async def test_a_store_that_is_moved_takes_no_more_and_keeps_what_it_has(
    ledger: Ledger, path: Path
) -> None:
    moved = path.with_name("moved.db")
    with ledger:
        await ledger.record(call(1))
        path.rename(moved)
        for number in (2, 3):
            with pytest.raises(StoreError, match="moved, replaced or deleted") as told:
                await ledger.record(call(number))
    assert "--store sqlite:FILE" in told.value.advice
    archive = sqlite_archive(moved)
    assert set(archive.calls([call(number).key for number in (1, 2, 3)])) == {call(1).key}
    archive.close()


async def test_a_store_in_the_place_of_another_is_not_written_to(
    ledger: Ledger, path: Path
) -> None:
    await ledger.record(call(1))
    other = path.with_name("other.db")
    sqlite_store(other).close()
    other.rename(path)
    with pytest.raises(StoreError, match="moved, replaced or deleted"):
        await ledger.record(call(2))
    with pytest.raises(StoreError, match="moved, replaced or deleted"):
        await begun(ledger, incoming(1))


def test_a_damaged_file_is_told_by_verify_and_by_reading(path: Path) -> None:
    store = sqlite_store(path)
    scope = begun_in(store, incoming(500, "x" * 500))
    store.close()
    data = bytearray(path.read_bytes())
    for at in range(4096 * 32, len(data) - 4096, 4096):
        data[at : at + 200] = b"\xff" * 200
    path.write_bytes(data)
    store = sqlite_store(path)
    assert any("damaged" in fault for fault in verify(store.archive))
    with pytest.raises(StoreError, match="malformed"):
        list(store.archive.units(scope))
    store.close()


# What verify finds


async def test_verify_finds_an_altered_reply(ledger: Ledger, archive: Archive) -> None:
    await ledger.record(call(1, "honest"))
    ledger._writing.rows("UPDATE calls SET reply='altered'")
    assert verify(archive) == [f"the reply of call {CALL_TAG}1 was altered"]


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
    f"INSERT INTO judgments VALUES (1, 99, 0, 0, 'verdict', NULL, 0, 0, '{BODY}', '[]', '')": [
        "unit 99: the judgment by judge 0 was altered",
        "1 judgments belong to no unit",
    ],
    f"INSERT INTO judgments VALUES (7, 1, 0, 0, 'verdict', NULL, 0, 0, '{BODY}', '[]', '')": [
        "unit u0: the judgment by judge 0 was altered",
        "1 judgments belong to no judging",
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
    ledger: Ledger, archive: Archive, path: Path, sql: str
) -> None:
    scope = await begun(ledger, incoming(3), manifest=Manifest(judging=JUDGING))
    for unit in archive.units(scope):
        await ledger.store_judgment(scope.run, StoredJudgment(unit.no, 0, 0, (), 0, VERDICT))
    await ledger.flush()
    assert verify(archive) == []
    changed_beside(path, sql)
    faults = verify(archive)
    assert len(faults) == len(FAULTS[sql]), faults
    assert all(part in fault for part, fault in zip(FAULTS[sql], faults, strict=True)), faults


def test_a_temporary_store_vanishes() -> None:
    store = sqlite_store(None)
    begun_in(store, incoming(1))
    file = Path(store.archive.session.where)  # type: ignore[attr-defined]
    assert file.exists()
    store.close()
    assert not file.parent.exists()


# The writer

RESERVING = Statement(0, RESERVE)


async def test_many_writes_share_few_commits(path: Path) -> None:
    session, commits = SqliteFile(path).connect(), []
    writer = GroupWriter(session)
    session._connection.set_trace_callback(
        lambda sql: commits.append(sql) if sql == "COMMIT" else None
    )
    rows = [(str(i), "a", "run", 1, "", 0, 0) for i in range(500)]
    await asyncio.gather(*(writer.put(Write(RESERVING, row)) for row in rows))
    writer.stop()
    assert len(commits) < 10
    assert session.rows("SELECT COUNT(*) FROM reservations") == [(500,)]
    session.close()


async def test_rows_put_lazily_are_written_at_the_end(path: Path) -> None:
    session = SqliteFile(path).connect()
    writer = GroupWriter(session)
    writer.put_lazily(Write(RESERVING, ("k", "a", "run", 9, "", 0, 0)))
    writer.stop()
    assert session.rows("SELECT SUM(amount) FROM reservations") == [(9,)]
    session.close()


async def test_a_judgment_settled_and_forgotten_in_one_commit_is_forgotten(
    ledger: Ledger, archive: Archive
) -> None:
    scope = await begun(ledger, incoming(1))
    [unit] = archive.units(scope)
    await ledger.forget(scope.run, unit.no, 0, 0)
    await ledger.store_judgment(scope.run, StoredJudgment(unit.no, 0, 0, (), 0, VERDICT))
    await ledger.forget(scope.run, unit.no, 0, 0)
    await ledger.flush()
    assert archive.counts(scope, 1).pending == 1


def test_units_that_wait_are_found_in_the_store_by_its_index(path: Path) -> None:
    """A column whose type SQLite does not know keeps it from the index, and the time to take in
    units then grows with the square of their number."""
    session = SqliteFile(path).connect()
    WaitingUnits(session)
    plan = session.rows(f"EXPLAIN QUERY PLAN {JOIN_RUN}", {"run": 1})
    session.close()
    steps = [detail for *_, detail in plan]
    assert any("SEARCH u" in step and "(digest=?)" in step for step in steps), steps
