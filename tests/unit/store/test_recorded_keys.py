"""What a store cannot have answered yet is known without asking it, and never wrongly."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from evenhand.errors import StoreError
from evenhand.store.sqlite import ledger as ledgers
from evenhand.store.sqlite import recorded_keys
from evenhand.store.sqlite.connection import StoreFile
from evenhand.store.sqlite.ledger import SqliteLedger
from tests.contract.ledger_rows import call


@pytest.fixture(autouse=True)
def keys_from_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys are read for whoever asks at all."""
    monkeypatch.setattr(ledgers, "FINDS_BEFORE", 0)


@pytest.fixture
async def other(path: Path, ledger: SqliteLedger) -> AsyncIterator[SqliteLedger]:
    """Another process's ledger in the same file."""
    with closing(SqliteLedger(StoreFile(path))) as opened:
        yield opened


def statements(ledger: SqliteLedger) -> list[str]:
    """The statements that lookups take from now on."""
    traced: list[str] = []
    ledger._reading.set_trace_callback(traced.append)
    return traced


async def test_new_questions_are_not_looked_up_one_by_one(ledger: SqliteLedger) -> None:
    await ledger.record(call(0))
    assert await ledger.find(call(1).key) is None
    traced = statements(ledger)
    assert [await ledger.find(call(i).key) for i in range(1, 100)] == [None] * 99
    assert len(traced) <= 1


async def test_few_questions_read_no_keys(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "FINDS_BEFORE", 3)
    await ledger.record(call(0))
    for number in range(3):
        assert (await ledger.find(call(number).key) is None) == (number > 0)
        await asyncio.sleep(0)
    assert ledger._keys is None
    assert await ledger.find(call(0).key) == call(0) and ledger._keys is not None
    assert await ledger.find(call(4).key) is None


async def test_what_anybody_recorded_is_found_in_the_next_turn(
    ledger: SqliteLedger, other: SqliteLedger
) -> None:
    for number in range(20):
        assert await ledger.find(call(number).key) is None
        await (other if number % 2 else ledger).record(call(number))
        await asyncio.sleep(0)
        assert await ledger.find(call(number).key) == call(number)


async def test_what_shares_its_bit_with_another_key_is_looked_up(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_keys, "BITS", 8)
    await asyncio.gather(*(ledger.record(call(number)) for number in range(0, 60, 2)))
    assert await ledger.find(call(0).key) == call(0)
    found = [await ledger.find(call(number).key) for number in range(60)]
    assert found == [None if number % 2 else call(number) for number in range(60)]


async def test_the_calls_of_a_large_store_are_found_where_they_are(
    ledger: SqliteLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_keys, "CALLS_READ", 5)
    await asyncio.gather(*(ledger.record(call(number)) for number in range(6)))
    later = SqliteLedger(StoreFile(path))
    try:
        found = [await later.find(call(number).key) for number in range(8)]
        await asyncio.sleep(0)
        await ledger.record(call(7))
        assert await later.find(call(7).key) == call(7)
    finally:
        later.close()
    assert found == [*map(call, range(6)), None, None]


async def test_a_look_that_fails_hides_nothing_from_whoever_asks_next(
    ledger: SqliteLedger, other: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await ledger.find(call(0).key) is None
    await other.record(call(0))
    await asyncio.sleep(0)
    look, failures = recorded_keys.RecordedKeys.look, [sqlite3.OperationalError("disk I/O error")]

    def failing(keys: recorded_keys.RecordedKeys) -> None:
        if failures:
            raise failures.pop()
        look(keys)

    monkeypatch.setattr(recorded_keys.RecordedKeys, "look", failing)
    key = call(0).key
    failed, found = await asyncio.gather(ledger.find(key), ledger.find(key), return_exceptions=True)
    assert isinstance(failed, StoreError) and found == call(0)


async def test_a_damaged_key_hides_no_other(ledger: SqliteLedger, path: Path) -> None:
    await asyncio.gather(ledger.record(call(0)), ledger.record(call(1)))
    with sqlite3.connect(path) as beside:
        beside.execute("UPDATE calls SET key=CAST(x'ff41' AS TEXT) WHERE no=1")
    beside.close()
    found = [await ledger.find(call(number).key) for number in range(3)]
    assert sorted(map(bool, found)) == [False, False, True]


async def test_many_calls_at_once_from_elsewhere_are_looked_up(
    ledger: SqliteLedger, other: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_keys, "CALLS_READ", 5)
    assert await ledger.find(call(0).key) is None
    await asyncio.gather(*(other.record(call(number)) for number in range(6)))
    await asyncio.sleep(0)
    found = [await ledger.find(call(number).key) for number in range(7)]
    assert found == [*map(call, range(6)), None]


def test_no_statement_deletes_calls() -> None:
    sources = Path(recorded_keys.__file__).parents[2].rglob("*.py")
    assert not [path for path in sources if "DELETE FROM calls" in path.read_text()]
