"""Figures are made once a state of the store, and nobody waits for them longer than said."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.errors import StoreError, UsageError
from evenhand.ledger.store import IncomingUnit, Store
from evenhand.runs.prepare import open_store
from evenhand.web.stores import Kept, Stores


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "store.db"
    open_store(f"sqlite:{made}").close()
    return made


@pytest.fixture
def stores(path: Path) -> Iterator[Stores]:
    made = Stores(lambda: open_store(f"sqlite:{path}", must_exist=True))
    yield made
    made.close()


@pytest.fixture
def kept(stores: Stores) -> Iterator[Kept]:
    made = Kept(stores)
    yield made
    made.close()


def change(path: Path) -> None:
    store = open_store(f"sqlite:{path}")
    store.begin("run", "name", {}, [IncomingUnit("u", "a:1", "{}")])
    store.close()


def test_a_store_is_lent_to_one_at_a_time_and_used_again(stores: Stores) -> None:
    with stores.lent() as one, stores.lent() as other:
        assert one is not other
    with stores.lent() as again:
        assert again in (one, other)


def test_a_store_that_is_gone_is_not_lent(stores: Stores, path: Path) -> None:
    with stores.lent():
        pass
    path.unlink()
    with pytest.raises(StoreError, match="no such store"), stores.lent():
        pass


def test_a_figure_is_made_once_until_the_store_changes(kept: Kept, path: Path) -> None:
    made: list[int] = []

    def count(store: Store) -> int:
        made.append(len(store.runs()))
        return made[-1]

    assert [kept.get("runs", count, 60) for _ in range(3)] == [0, 0, 0]
    change(path)
    while kept.get("runs", count, 60) == 0:
        """The pause that a figure's making took may not be over."""
    assert made == [0, 1]


def test_nobody_waits_longer_than_said(kept: Kept) -> None:
    go = threading.Event()

    def slow(store: Store) -> int:
        go.wait()
        return 7

    assert kept.get("slow", slow, 0.01) is None
    assert kept.get("slow", slow, 0) is None
    go.set()
    assert kept.get("slow", slow, 60) == 7


def test_the_last_figure_stays_while_the_next_is_made(kept: Kept, path: Path) -> None:
    go = threading.Event()
    go.set()

    def waiting(store: Store) -> int:
        go.wait()
        return len(store.runs())

    assert kept.get("x", waiting, 60) == 0
    go.clear()
    change(path)
    assert kept.get("x", waiting, 0.01) == 0
    go.set()
    while kept.get("x", waiting, 60) == 0:
        """It is being made."""
    assert kept.get("x", waiting, 60) == 1


def test_what_making_a_figure_raises_is_raised(kept: Kept) -> None:
    def wrong(store: Store) -> int:
        raise UsageError("no such thing")

    def broken(store: Store) -> int:
        raise ZeroDivisionError

    with pytest.raises(UsageError, match="no such thing"):
        kept.get("wrong", wrong, 60)
    with pytest.raises(Exception, match="cannot be computed: ZeroDivisionError"):
        kept.get("broken", broken, 60)
