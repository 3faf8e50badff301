"""The SQLite store as a file: damage, a full disk, a move, and the writer behind it."""

import asyncio
import os
import shutil
import sqlite3
import threading
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import pytest

from evenhand.errors import StoreError
from evenhand.judgment import JudgmentText
from evenhand.manifest import JudgingRecord, Manifest
from evenhand.store.batches import RESERVE
from evenhand.store.intake import JOIN_RUN, WaitingUnits
from evenhand.store.ports import StoredJudgment
from evenhand.store.rows import digest
from evenhand.store.session import VERSION, GroupWriter, Statement, Write
from evenhand.store.sqlite import APPLICATION, SqliteFile, sqlite_archive, sqlite_store
from evenhand.store.verify import verify
from tests.contract.ledger_rows import call, key, units_of
from tests.contract.stores import begun, begun_in
from tests.sentences import refused


@pytest.fixture
def archive(path):
    opened = sqlite_archive(path)
    yield opened
    opened.close()


def changed_beside(path, sql):
    """Another hand in the file."""
    with sqlite3.connect(path) as beside:
        beside.execute(sql)
    beside.close()


def fill_up(ledger):
    """From now on the disk is full."""
    for session in (ledger._writing, ledger._bulk_session):
        [(used,)] = session.rows("PRAGMA page_count")
        session.rows(f"PRAGMA max_page_count = {used}")


async def test_replies_are_written_to_the_disk_before_they_count(ledger):
    assert ledger._writing.rows("PRAGMA journal_mode") == [("wal",)]
    assert ledger._writing.rows("PRAGMA synchronous") == [(2,)]


# Where SQLite cannot keep a log


class WithoutSharedMemory(sqlite3.Connection):
    """A connection on a file system where processes share no memory: SQLite cannot keep a log
    there, and answers with the journal mode that it stays in."""

    mode = "DELETE"

    def execute(self, sql, *values):
        return super().execute(sql.replace("= WAL", f"= {self.mode}"), *values)


def without_log(monkeypatch, mode):
    connect = sqlite3.connect
    monkeypatch.setattr(WithoutSharedMemory, "mode", mode)
    monkeypatch.setattr(
        "evenhand.store.sqlite.sqlite3.connect",
        lambda *values, **named: connect(*values, **named, factory=WithoutSharedMemory),
    )


@pytest.mark.parametrize("mode", ["DELETE", "MEMORY", "OFF"])
def test_a_file_without_a_log_is_refused(path, monkeypatch, mode):
    without_log(monkeypatch, mode)
    with refused(StoreError, "store.no_log", mode.lower()):
        sqlite_store(path)


# A full disk and a damaged file


async def test_after_a_failed_commit_every_later_write_fails(ledger):
    await ledger.record(call(1))
    fill_up(ledger)
    with refused(StoreError, "store.cannot_write", "full"):
        await ledger.record(call(2, text="x" * 100_000))
    ledger._writing.rows("PRAGMA max_page_count = 1000000")
    for late in (ledger.record(call(3)), ledger.reserve("run", "k", "a", 1), ledger.flush()):
        with refused(StoreError, "store.cannot_write", "full"):
            await late
    assert await ledger.find(call(1).key)
    assert await ledger.find(call(2).key) is None
    assert await ledger.find(call(3).key) is None


async def test_an_intake_on_a_full_disk_is_a_store_problem(ledger, archive):
    fill_up(ledger)
    with refused(StoreError, "store.cannot_use", "full"):
        await begun(ledger, units_of(100, "x" * 1000))
    assert archive.runs() == []


async def test_whatever_cannot_be_written_is_told_and_nobody_waits_for_ever(
    ledger,
):
    with refused(StoreError, "store.cannot_write", "too large"):
        await asyncio.wait_for(ledger.reserve("run", "k", "a", 10**30), 30)


async def test_a_group_of_which_one_reply_is_refused_is_not_written_at_all(ledger, archive):
    await ledger.reserve("run1", "k", "a", 9)
    nameless = None
    replies = [call(number) for number in range(40)]
    replies[35] = replies[35]._replace(judge=nameless)
    records = [ledger.record(reply, attempt="a") for reply in replies]
    await ledger.release("k", "a")
    told = await asyncio.gather(*records, return_exceptions=True)
    assert all("NOT NULL" in str(error) for error in told)
    assert archive.spent("run1").reserved == 9
    assert not any([await ledger.find(reply.key) for reply in replies])


async def test_half_a_character_is_told_and_nobody_waits_for_ever(ledger):
    for attempt in ("first", "second"):
        await ledger.release("\ud800", attempt)
        with refused(StoreError, "store.cannot_write"):
            await asyncio.wait_for(ledger.flush(), 30)


async def test_a_store_in_the_place_of_another_is_not_written_to(ledger, path):
    await ledger.record(call(1))
    other = path.with_name("other.db")
    sqlite_store(other).close()
    other.rename(path)
    with refused(StoreError, "store.moved"):
        await ledger.record(call(2))
    with refused(StoreError, "store.moved"):
        await begun(ledger, units_of(1))


def test_a_damaged_file_is_told_by_verify_and_by_reading(path):
    store = sqlite_store(path)
    scope = begun_in(store, units_of(500, "x" * 500))
    store.close()
    data = bytearray(path.read_bytes())
    for at in range(4096 * 32, len(data) - 4096, 4096):
        data[at : at + 200] = b"\xff" * 200
    path.write_bytes(data)
    store = sqlite_store(path)
    assert "store.damaged" in {fault.key for fault in verify(store.archive)}
    with refused(StoreError, "store.cannot_use", "malformed"):
        list(store.archive.units(scope))
    store.close()


# What verify finds


async def test_verify_finds_an_altered_reply(ledger, archive):
    await ledger.record(call(1, text="honest"))
    ledger._writing.rows("UPDATE calls SET reply='altered'")
    assert found(archive) == [("altered_reply", key(1))]


TEXT = digest("Judge.")
JUDGING = JudgingRecord(protocol="p", texts={"prompts/en.md": "Judge."})
BODY = '{"calls":[]}'
VERDICT = JudgmentText("verdict", None, BODY)
FAULTS = {
    "UPDATE units SET body='[1]' WHERE id='u1'": [("altered_unit", "u1")],
    "UPDATE units SET id='u9' WHERE id='u1'": [("altered_unit", "u9")],
    "UPDATE texts SET text='Praise.'": [("altered_text", TEXT)],
    "DELETE FROM texts": [("missing_text", f"{JUDGING.id} prompts/en.md")],
    "UPDATE judgings SET record=replace(record, '\"seed\":0', '\"seed\":1')": [
        ("altered_judging", JUDGING.id)
    ],
    "UPDATE judgings SET record='{'": [("judging_problem", JUDGING.id)],
    "UPDATE runs SET name='other'": [("altered_run", "")],
    "DELETE FROM run_units WHERE position=2": [("altered_run", ""), ("lost_units", "1")],
    "DELETE FROM units WHERE id='u1'": [
        ("altered_run", ""),
        ("empty_places", "1"),
        ("lost_judgments", "1"),
    ],
    "DELETE FROM runs": [("lost_places", "3")],
    "DELETE FROM judgings": [("lost_runs", "1"), ("lost_judgings", "3")],
    f"INSERT INTO judgments VALUES (1, 99, 0, 0, 'verdict', NULL, 0, 0, '{BODY}', '[]', '')": [
        ("altered_judgment", "99 0"),
        ("lost_judgments", "1"),
    ],
    f"INSERT INTO judgments VALUES (7, 1, 0, 0, 'verdict', NULL, 0, 0, '{BODY}', '[]', '')": [
        ("altered_judgment", "u0 0"),
        ("lost_judgings", "1"),
    ],
    "UPDATE judgments SET status='failure' WHERE unit=1": [
        ("altered_judgment", "u0 0"),
        ("no_status", "1"),
    ],
    'UPDATE judgments SET body=\'{"calls":["gone"]}\' WHERE unit=1': [
        ("altered_judgment", "u0 0"),
        ("missing_call", "gone u0"),
    ],
}


def found(archive):
    """What is wrong: the key of each problem, and its values one after the other."""
    return [
        (one.key.removeprefix("store."), " ".join(map(str, one.values.values())))
        for one in verify(archive)
    ]


@pytest.mark.parametrize("sql", FAULTS, ids=lambda sql: " ".join(sql.split()[:4]))
async def test_verify_finds_what_does_not_hold_together(ledger, archive, path, sql):
    scope = await begun(ledger, units_of(3), manifest=Manifest(judging=JUDGING))
    for unit in archive.units(scope):
        await ledger.store_judgment(scope.run, StoredJudgment(unit.no, 0, 0, (), 0, VERDICT))
    await ledger.flush()
    assert verify(archive) == []
    changed_beside(path, sql)
    faults = found(archive)
    assert [key for key, _ in faults] == [key for key, _ in FAULTS[sql]], faults
    for (_, said), (_, fault) in zip(FAULTS[sql], faults, strict=True):
        assert set(said.split()) <= set(fault.split())


def test_a_temporary_store_vanishes():
    store = sqlite_store(None)
    begun_in(store, units_of(1))
    file = Path(store.archive.session.where)
    assert file.exists()
    store.close()
    assert not file.parent.exists()


# The writer

RESERVING = Statement(0, RESERVE)


async def test_many_writes_share_few_commits(path):
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


async def test_rows_put_lazily_are_written_at_the_end(path):
    session = SqliteFile(path).connect()
    writer = GroupWriter(session)
    writer.put_lazily(Write(RESERVING, ("k", "a", "run", 9, "", 0, 0)))
    writer.stop()
    assert session.rows("SELECT SUM(amount) FROM reservations") == [(9,)]
    session.close()


async def test_a_judgment_settled_and_forgotten_in_one_commit_is_forgotten(ledger, archive):
    scope = await begun(ledger, units_of(1))
    [unit] = archive.units(scope)
    await ledger.forget(scope.run, unit.no, 0, 0)
    await ledger.store_judgment(scope.run, StoredJudgment(unit.no, 0, 0, (), 0, VERDICT))
    await ledger.forget(scope.run, unit.no, 0, 0)
    await ledger.flush()
    assert archive.counts(scope, 1).pending == 1


def test_units_that_wait_are_found_in_the_store_by_its_index(path):
    """A column whose type SQLite does not know keeps it from the index, and the time to take in
    units then grows with the square of their number."""
    session = SqliteFile(path).connect()
    WaitingUnits(session)
    plan = session.rows(f"EXPLAIN QUERY PLAN {JOIN_RUN}", {"run": 1})
    session.close()
    steps = [detail for *_, detail in plan]
    assert any("SEARCH u" in step and "(digest=?)" in step for step in steps), steps


def written(*statements):
    """A database in which another hand has done this."""

    def write(path):
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            for sql in statements:
                database.execute(sql)

    return write


def in_the_middle_of_a_write(path):
    """A database with a journal that is yet to be rolled back."""
    written("CREATE TABLE bookmarks (url)", "INSERT INTO bookmarks VALUES (zeroblob(9000))")(path)
    work = path.with_name("work.db")
    shutil.copy(path, work)
    with closing(sqlite3.connect(work, isolation_level=None)) as database:
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN")
        database.execute("UPDATE bookmarks SET url = zeroblob(90000)")
        shutil.copy(work, path)
        shutil.copy(f"{work}-journal", f"{path}-journal")
    work.unlink()


FOREIGN = {
    "tables": written("CREATE TABLE bookmarks (url)"),
    "a table called like ours": written("CREATE TABLE runs (id TEXT, name TEXT)"),
    "an application id alone": written("PRAGMA application_id = 7"),
    "nothing in it": written("VACUUM"),
    "a version alone": written("PRAGMA user_version = 3"),
    "a log": written("PRAGMA journal_mode = WAL", "CREATE TABLE moz_places (id INTEGER)"),
    "migrations of its own": written("CREATE TABLE migrations (name)"),
    "a journal to be rolled back": in_the_middle_of_a_write,
}
NOT_DATABASES = {
    "a text": (
        lambda path: path.write_text("no database, but long enough to be read" * 9),
        "no_database",
    ),
    "a short text": (lambda path: path.write_text("x"), "no_database"),
    "a folder": (lambda path: path.mkdir(), "no_plain_file"),
    "a pipe": (os.mkfifo, "no_plain_file"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "cannot_open"),
    "no folder": (lambda path: None, "cannot_open"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "no_plain_file"),
}


def contents(folder):
    """All files of a folder, each with a hash and the time of its last change."""
    return {
        file.name: f"{file.stat().st_mtime_ns} {blake2b(file.read_bytes()).hexdigest()}"
        for file in folder.iterdir()
        if file.is_file() and not file.is_symlink()
    }


@pytest.mark.parametrize("make", FOREIGN)
def test_a_database_of_another_program_is_refused_untouched(path, make):
    FOREIGN[make](path)
    before = contents(path.parent)
    for opening in (sqlite_store, sqlite_archive):
        with refused(StoreError, "store.other_database") as caught:
            opening(path)
    assert caught.value.exit_code == 6
    assert contents(path.parent) == before


@pytest.mark.parametrize("make", NOT_DATABASES)
def test_what_is_no_database_is_refused_untouched(path, make):
    make_it, key = NOT_DATABASES[make]
    make_it(path)
    before = contents(path.parent)
    with refused(StoreError, f"store.{key}") as caught:
        sqlite_store(path / "no" / "such.db" if make == "no folder" else path)
    assert caught.value.exit_code == 6
    assert contents(path.parent) == before


def test_a_store_says_whose_it_is(path):
    sqlite_store(path).close()
    assert path.read_bytes()[68:72] == APPLICATION.to_bytes(4) == b"EVNH"


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (f"UPDATE store SET version={VERSION + 1}", f" {VERSION + 1},"),
        ("DROP TABLE store", " [?],"),
    ],
    ids=["a later one", "from before there were versions"],
)
def test_a_store_of_another_version_is_refused_untouched(path, sql, told):
    sqlite_store(path).close()
    written(sql)(path)
    before = contents(path.parent)
    for opening in (sqlite_store, sqlite_archive):
        with refused(StoreError, "store.other_version", told) as caught:
            opening(path)
    assert caught.value.exit_code == 6
    assert contents(path.parent).items() >= before.items()


def test_an_empty_file_becomes_a_store(path):
    path.touch()
    store = sqlite_store(path)
    assert store.archive.runs() == []
    store.close()


def test_a_store_that_was_emptied_does_not_lose_its_log_as_well(path):
    path.touch()
    Path(f"{path}-wal").write_bytes(b"what was recorded last")
    before = contents(path.parent)
    with refused(StoreError, "store.cut_short"):
        sqlite_store(path)
    assert contents(path.parent) == before


def test_a_store_with_a_second_name_is_refused(path):
    """SQLite keeps a log beside each name, and neither is seen under the other."""
    sqlite_store(path).close()
    snapshot = path.with_name("snapshot.db")
    os.link(path, snapshot)
    before = contents(path.parent)
    for name in (path, snapshot):
        with refused(StoreError, "store.hard_link"):
            sqlite_archive(name)
    assert contents(path.parent) == before
    snapshot.unlink()
    begun_in(sqlite_store(path), units_of(4))


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_link_beside_a_store_leads_to_no_file_of_the_users(path, end):
    sqlite_store(path).close()
    treasure = path.parent / "treasure.txt"
    treasure.write_text("mine")
    Path(f"{path}{end}").symlink_to(treasure)
    try:
        store = sqlite_store(path)
        begun_in(store, units_of(1))
        store.close()
    except StoreError as error:
        assert error.exit_code == 6
    assert treasure.read_text() == "mine"


def test_who_writes_before_there_is_a_log_is_waited_for(path):
    sqlite_store(path).close()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN IMMEDIATE")
        ending = threading.Timer(0.3, other.execute, ["COMMIT"])
        ending.start()
        store = sqlite_store(path)
        ending.join()
    begun_in(store, units_of(1))
    store.close()


def test_many_make_one_store_at_the_same_time(path):
    errors = []
    start = threading.Barrier(8)

    def make():
        start.wait()
        try:
            begun_in(sqlite_store(path), units_of(3))
        except StoreError as error:
            if error.key != "store.busy_with":
                errors.append(error)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    store = sqlite_store(path)
    assert len(store.archive.runs()) == 1
    assert verify(store.archive) == []
    store.close()
