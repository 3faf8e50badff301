"""A store is copied into another one, maybe into a server at which others are at work: what they
write at the same moment is waited for. Money that is held open is held in the copy, until a later
copy finds it released."""

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing

import pytest

from evenhand.runs.stores import copy_store
from evenhand.store.address import read_address
from evenhand.store.postgres import Server
from tests.postgres import new_store_url
from tests.suites import judged, write_suite

_WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event_type='Lock' AND $1 = ANY(pg_blocking_pids(pid))"
)
_STARTED = (
    "INSERT INTO runs (id, name, judging, manifest, created, started, starts)"
    " SELECT 'busy', name, judging, manifest, created, started, starts + 1"
    " FROM runs ORDER BY starts DESC LIMIT 1"
)


def _copied(source, url):
    return copy_store(f"sqlite:{source}", url, lambda *_: None)


async def _copied_beside(server, source, url, *statements, after="SELECT 1"):
    """Copy while the statements are made in a transaction that ends once the copy waits for it, and
    a last one is made."""
    async with _connected(server) as busy, _connected(server) as watch:
        transaction = busy.transaction()
        await transaction.start()
        for statement in statements:
            await busy.execute(statement)
        copying = asyncio.create_task(asyncio.to_thread(_copied, source, url))
        pid = await busy.fetchval("SELECT pg_backend_pid()")
        while not copying.done() and not await watch.fetchval(_WAITING, pid):
            await asyncio.sleep(0.01)
        await busy.execute(after)
        await transaction.commit()
        return await copying


@asynccontextmanager
async def _connected(server):
    connection = await server.open()
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
def url(tmp_path):
    """A store on a server, with a run."""
    address = new_store_url()
    write_suite(tmp_path / "there", 2, name="there")
    asyncio.run(judged(tmp_path / "there"))
    _copied(tmp_path / "there" / "evenhand.db", address)
    return address


@pytest.fixture
def source(tmp_path):
    """A store with another run."""
    write_suite(tmp_path / "here", 3, name="here")
    asyncio.run(judged(tmp_path / "here"))
    return tmp_path / "here" / "evenhand.db"


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target.db"


async def test_a_run_that_starts_meanwhile_has_a_number_of_its_own(url, source):
    server = Server(read_address(url))
    lock = "LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE"
    copied = await _copied_beside(server, source, url, lock, _STARTED)
    assert copied.runs == 2, "the copied one, and the one that started"
    async with _connected(server) as connection:
        starts = await connection.fetch("SELECT starts FROM runs ORDER BY starts")
    assert [row[0] for row in starts] == [1, 2, 3]


async def test_a_call_that_is_recorded_meanwhile_is_there_once(url, source):
    server = Server(read_address(url))
    await asyncio.to_thread(_copied, source, url)
    async with _connected(server) as connection:
        calls = await connection.fetchval("SELECT count(*) FROM calls")
        await connection.execute("CREATE TABLE lost AS SELECT * FROM calls; DELETE FROM calls")
    again = "INSERT INTO calls OVERRIDING SYSTEM VALUE SELECT * FROM lost"
    await _copied_beside(server, source, url, again)
    async with _connected(server) as connection:
        assert await connection.fetchval("SELECT count(*) FROM calls") == calls


async def test_money_that_is_held_on_the_server_stays_held(url, source):
    """The run is judged on the server too: there are a call under way, and an attempt that was lost
    before another was answered."""
    server = Server(read_address(url))
    await asyncio.to_thread(_copied, source, url)
    async with _connected(server) as connection:
        await connection.execute(
            "INSERT INTO reservations (key, attempt, run, amount)"
            " SELECT k, 'x', r.id, 5 FROM runs r, unnest(ARRAY['open',"
            " (SELECT max(key) FROM calls)]) k WHERE r.name = 'here'"
        )
        await asyncio.to_thread(_copied, source, url)
        rows = await connection.fetch("SELECT attempt, amount FROM reservations")
    assert [tuple(row) for row in rows] == [("x", 5)] * 2


async def test_units_that_are_written_meanwhile_in_another_order_are_no_deadlock(url, source):
    server = Server(read_address(url))
    await asyncio.to_thread(_copied, source, url)
    async with _connected(server) as connection:
        await connection.execute("CREATE TABLE lost AS SELECT * FROM units; DELETE FROM units")
        units = await connection.fetchval("SELECT count(*) FROM lost")
    again = "INSERT INTO units OVERRIDING SYSTEM VALUE SELECT * FROM lost WHERE no"
    last = "(SELECT max(no) FROM lost)"
    await _copied_beside(server, source, url, f"{again} = {last}", after=f"{again} < {last}")
    async with _connected(server) as connection:
        assert await connection.fetchval("SELECT count(*) FROM units") == units


def _do(store, sql):
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(sql)


def _rows(store, sql):
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute(sql).fetchall()


def _hold(store, attempt, key="(SELECT max(key) FROM calls)"):
    columns = "key, attempt, run, amount"
    _do(store, f"INSERT INTO reservations ({columns}) SELECT {key}, '{attempt}', id, 7 FROM runs")


def _begin_batch(store):
    batch = "'b', id, 'j', 'p', 'i', 'waiting', '', 'now', NULL"
    _do(store, f"INSERT INTO batches SELECT {batch} FROM runs")
    _hold(store, "b")


def _copy(source, target):
    copy_store(f"sqlite:{source}", f"sqlite:{target}", lambda *_: None)


def _attempts(store):
    """The attempts that money is held for."""
    return [attempt for (attempt,) in _rows(store, "SELECT attempt FROM reservations ORDER BY 1")]


def test_what_the_source_released_is_released(source, target):
    _hold(source, "lost")
    _hold(source, "unsent", "'never answered'")
    _copy(source, target)
    _copy(source, target)
    assert _attempts(target) == ["lost", "unsent"]
    _do(source, "DELETE FROM reservations WHERE attempt='unsent'")
    _copy(source, target)
    assert _attempts(target) == ["lost"]


def test_what_the_target_lost_stays_held_when_the_source_has_the_answer(source, target):
    _copy(source, target)
    _hold(target, "lost there")
    _copy(source, target)
    assert _attempts(target) == ["lost there"]


def test_what_came_from_another_store_stays_held(source, target):
    other = target.with_name("other.db")
    _copy(source, other)
    _hold(other, "lost in the other")
    _hold(source, "lost here")
    for store in (source, other, source):
        _copy(store, target)
    assert _attempts(target) == ["lost here", "lost in the other"]


def test_nothing_is_held_twice_after_a_way_back(source, target):
    _hold(source, "lost")
    for _ in range(2):
        _copy(source, target)
        _copy(target, source)
    assert _attempts(target) == _attempts(source) == ["lost"]


def test_a_source_in_an_earlier_state_releases_nothing(source, target):
    _hold(source, "lost after the backup")
    _copy(source, target)
    _do(source, "DELETE FROM reservations")
    _do(source, "DELETE FROM calls WHERE no=(SELECT max(no) FROM calls)")
    _copy(source, target)
    assert _attempts(target) == ["lost after the backup"]


def test_what_is_held_for_a_batch_follows_the_batch(source, target):
    _begin_batch(source)
    _hold(source, "b", "'open'")
    _copy(source, target)
    _do(source, "DELETE FROM reservations WHERE key='open'")
    _copy(source, target)
    [(key, attempt)] = _rows(target, "SELECT key, attempt FROM reservations")
    assert attempt == "b" and key != "open"


def test_a_batch_that_has_ended_in_the_target_stays_so(source, target):
    _begin_batch(source)
    _copy(source, target)
    _do(target, "UPDATE batches SET stage='ended'")
    _do(target, "DELETE FROM reservations WHERE attempt='b'")
    _copy(source, target)
    assert _rows(target, "SELECT stage FROM batches") == [("ended",)]
    assert "b" not in _attempts(target)
