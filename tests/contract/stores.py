"""The stores that keep the contract: one factory each. A new store is one more line."""

import asyncio
from collections.abc import Callable

from evenhand.manifest import JudgingRecord, Manifest
from evenhand.store.ledger import Store
from evenhand.store.ports import Scope
from evenhand.store.postgres import postgres_store
from evenhand.store.rows import run_id
from evenhand.store.sqlite import sqlite_store
from tests.postgres import new_store_url

Open = Callable[[], Store]
"""Opens the same store each time it is called."""


def sqlite_file(folder):
    return lambda: sqlite_store(folder / "store.db")


def postgres_schema(folder):
    url = new_store_url()
    return lambda: postgres_store(url)


STORES = {"sqlite": sqlite_file, "postgres": postgres_schema}


async def begun(
    ledger,
    units,
    name="name",
    manifest=None,
):
    """A run of these units that was started, and is held no more."""
    manifest = manifest or Manifest(judging=JudgingRecord(protocol="p"))
    intake = await ledger.intake(units)
    run = run_id(name, manifest.judging.id, intake.content)
    async with ledger.begin(run, name, manifest, intake):
        return Scope(run)


def begun_in(
    store,
    units,
    name="name",
    manifest=None,
):
    """The same, outside of an event loop."""

    async def work():
        async with store.ledger() as ledger:
            return await begun(ledger, units, name, manifest)

    return asyncio.run(work())
