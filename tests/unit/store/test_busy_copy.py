"""A store is copied into a server at which others are at work: what they write at the same moment
is waited for, and neither they nor the copy fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evenhand.runs.stores import copy_store
from evenhand.store.address import read_address
from evenhand.store.copy import Copied
from evenhand.store.postgres import Connection, Server
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


def _copied(source: Path, url: str) -> Copied:
    return copy_store(f"sqlite:{source}", url, lambda *_: None)


async def _copied_beside(
    server: Server, source: Path, url: str, *statements: str, after: str = "SELECT 1"
) -> Copied:
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
async def _connected(server: Server) -> AsyncIterator[Connection]:
    connection = await server.open()
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store on a server, with a run."""
    address = new_store_url()
    write_suite(tmp_path / "there", 2, name="there")
    asyncio.run(judged(tmp_path / "there"))
    _copied(tmp_path / "there" / "evenhand.db", address)
    return address


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A store with another run."""
    write_suite(tmp_path / "here", 3, name="here")
    asyncio.run(judged(tmp_path / "here"))
    return tmp_path / "here" / "evenhand.db"


async def test_a_run_that_starts_meanwhile_has_a_number_of_its_own(url: str, source: Path) -> None:
    server = Server(read_address(url))
    lock = "LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE"
    copied = await _copied_beside(server, source, url, lock, _STARTED)
    assert copied.runs == 2, "the copied one, and the one that started"
    async with _connected(server) as connection:
        starts = await connection.fetch("SELECT starts FROM runs ORDER BY starts")
    assert [row[0] for row in starts] == [1, 2, 3]


async def test_a_call_that_is_recorded_meanwhile_is_there_once(url: str, source: Path) -> None:
    server = Server(read_address(url))
    await asyncio.to_thread(_copied, source, url)
    async with _connected(server) as connection:
        calls = await connection.fetchval("SELECT count(*) FROM calls")
        await connection.execute("CREATE TABLE lost AS SELECT * FROM calls; DELETE FROM calls")
    again = "INSERT INTO calls OVERRIDING SYSTEM VALUE SELECT * FROM lost"
    await _copied_beside(server, source, url, again)
    async with _connected(server) as connection:
        assert await connection.fetchval("SELECT count(*) FROM calls") == calls


async def test_money_that_is_held_on_the_server_stays_held(url: str, source: Path) -> None:
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


async def test_units_that_are_written_meanwhile_in_another_order_are_no_deadlock(
    url: str, source: Path
) -> None:
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
