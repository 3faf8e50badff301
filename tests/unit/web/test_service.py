"""Figures are made once a state of the store, and nobody waits for them longer than said."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from evenhand.errors import StoreError, UsageError
from evenhand.runs.stores import open_store
from evenhand.store.ports import IncomingUnit
from evenhand.web import service
from evenhand.web.service import FigureCache, StorePool
from tests.contract.stores import begun_in
from tests.sentences import refused
from tests.waiting import PATIENCE


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "store.db"
    open_store(f"sqlite:{file}").close()
    return file


@pytest.fixture
def stores(path):
    lender = StorePool(lambda: open_store(f"sqlite:{path}", must_exist=True))
    yield lender
    lender.close()


PAUSE = 4.0


class Clock:
    """A clock that goes on by as much as it is told."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The only clock that figures are timed by."""
    clock = Clock()
    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


@pytest.fixture
def cache(stores, clock):
    figures = FigureCache(stores, PAUSE)
    yield figures
    figures.close()


def change(path):
    store = open_store(f"sqlite:{path}")
    begun_in(store, [IncomingUnit("u", "a:1", "{}")])
    store.close()


def test_a_store_is_lent_to_one_at_a_time_and_used_again(stores):
    with stores.borrow() as one, stores.borrow() as other:
        assert one is not other
    with stores.borrow() as again:
        assert again in (one, other)


def test_a_store_that_is_gone_is_not_lent(stores, path):
    with stores.borrow():
        pass
    path.unlink()
    with refused(StoreError, "runs.no_store"), stores.borrow():
        pass


def test_a_figure_is_made_once_until_the_store_changes(cache, path):
    counts = []

    def count(store):
        counts.append(len(store.runs()))
        return counts[-1]

    assert [cache.get("runs", count, PATIENCE) for _ in range(3)] == [0, 0, 0]
    change(path)
    assert [cache.get("runs", count, PATIENCE) for _ in range(3)] == [1, 1, 1]
    assert counts == [0, 1]


def test_a_figure_that_took_long_is_made_again_after_a_pause(cache, path, clock):
    """A store that changes all the time does not keep a processor busy with counting."""

    def count(store):
        clock.now += 3
        return len(store.runs())

    assert cache.get("runs", count, PATIENCE) == 0
    change(path)
    clock.now += PAUSE * 3 - 0.1
    assert cache.get("runs", count, PATIENCE) == 0
    clock.now += 0.1
    assert cache.get("runs", count, PATIENCE) == 1


def test_nobody_waits_longer_than_said(cache):
    go = threading.Event()

    def slow(store):
        go.wait()
        return 7

    assert cache.get("slow", slow, 0.01) is None
    assert cache.get("slow", slow, 0) is None
    go.set()
    assert cache.get("slow", slow, PATIENCE) == 7


def test_the_last_figure_stays_while_the_next_is_made(cache, path):
    go = threading.Event()
    go.set()

    def waiting(store):
        go.wait()
        return len(store.runs())

    assert cache.get("x", waiting, PATIENCE) == 0
    go.clear()
    change(path)
    assert cache.get("x", waiting, 0.01) == 0
    go.set()
    assert cache.get("x", waiting, PATIENCE) == 1


def test_what_making_a_figure_raises_is_raised(cache):
    def wrong(store):
        raise UsageError("no such thing")

    def broken(store):
        raise ZeroDivisionError

    with pytest.raises(UsageError, match="no such thing"):
        cache.get("wrong", wrong, PATIENCE)
    with pytest.raises(Exception, match="cannot be computed: ZeroDivisionError"):
        cache.get("broken", broken, PATIENCE)
