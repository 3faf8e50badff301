"""Money that is held open in a store is held in its copy, until a later copy finds it released."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evenhand.runs.stores import copy_store
from tests.suites import judged, write_suite


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A store with a run."""
    write_suite(tmp_path / "here", 2, name="here")
    asyncio.run(judged(tmp_path / "here"))
    return tmp_path / "here" / "evenhand.db"


def _do(store: Path, sql: str) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(sql)


def _hold(store: Path, attempt: str, key: str = "(SELECT max(key) FROM calls)") -> None:
    columns = "key, attempt, run, amount"
    _do(store, f"INSERT INTO reservations ({columns}) SELECT {key}, '{attempt}', id, 7 FROM runs")


def _copy(source: Path, target: Path) -> None:
    copy_store(f"sqlite:{source}", f"sqlite:{target}", lambda *_: None)


def _attempts(store: Path) -> list[str]:
    """The attempts that money is held for."""
    with closing(sqlite3.connect(store)) as connection:
        rows = connection.execute("SELECT attempt FROM reservations ORDER BY attempt").fetchall()
    return [attempt for (attempt,) in rows]


def test_what_the_source_released_is_released(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    _hold(source, "lost")
    _hold(source, "unsent", "'never answered'")
    _copy(source, target)
    _copy(source, target)
    assert _attempts(target) == ["lost", "unsent"]
    _do(source, "DELETE FROM reservations WHERE attempt='unsent'")
    _copy(source, target)
    assert _attempts(target) == ["lost"]


def test_what_the_target_lost_stays_held_when_the_source_has_the_answer(
    source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.db"
    _copy(source, target)
    _hold(target, "lost there")
    _copy(source, target)
    assert _attempts(target) == ["lost there"]


def test_what_came_from_another_store_stays_held(source: Path, tmp_path: Path) -> None:
    other, target = tmp_path / "other.db", tmp_path / "target.db"
    _copy(source, other)
    _hold(other, "lost in the other")
    _hold(source, "lost here")
    for store in (source, other, source):
        _copy(store, target)
    assert _attempts(target) == ["lost here", "lost in the other"]


def test_nothing_is_held_twice_after_a_way_back(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    _hold(source, "lost")
    for _ in range(2):
        _copy(source, target)
        _copy(target, source)
    assert _attempts(target) == _attempts(source) == ["lost"]


def test_a_source_in_an_earlier_state_releases_nothing(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    _hold(source, "lost after the backup")
    _copy(source, target)
    _do(source, "DELETE FROM reservations")
    _do(source, "DELETE FROM calls WHERE no=(SELECT max(no) FROM calls)")
    _copy(source, target)
    assert _attempts(target) == ["lost after the backup"]


def test_what_is_held_for_a_batch_follows_the_batch(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    batch = "'b', id, 'j', 'p', 'i', 'waiting', '', 'now', NULL"
    _do(source, f"INSERT INTO batches SELECT {batch} FROM runs")
    _hold(source, "b")
    _hold(source, "b", "'open'")
    _copy(source, target)
    _do(source, "DELETE FROM reservations WHERE key='open'")
    _copy(source, target)
    with closing(sqlite3.connect(target)) as connection:
        ((key, attempt),) = connection.execute("SELECT key, attempt FROM reservations").fetchall()
    assert attempt == "b" and key != "open"


def test_a_batch_that_has_ended_in_the_target_stays_so(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    batch = "'b', id, 'j', 'p', 'i', 'waiting', '', 'now', NULL"
    _do(source, f"INSERT INTO batches SELECT {batch} FROM runs")
    _hold(source, "b")
    _copy(source, target)
    _do(target, "UPDATE batches SET stage='ended'")
    _do(target, "DELETE FROM reservations WHERE attempt='b'")
    _copy(source, target)
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("SELECT stage FROM batches").fetchall() == [("ended",)]
    assert "b" not in _attempts(target)
