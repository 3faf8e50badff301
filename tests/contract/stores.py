"""The stores that keep the contract: one factory each. A new store is one more line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evenhand.ledger.sqlite import SqliteStore
from evenhand.ledger.store import Store

Open = Callable[[], Store]
"""Opens the same store each time it is called."""


def sqlite_file(folder: Path) -> Open:
    return lambda: SqliteStore(folder / "store.db")


STORES: dict[str, Callable[[Path], Open]] = {"sqlite": sqlite_file}
