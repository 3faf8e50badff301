"""A worker and a run that is opened anew while it judges: it goes on as the run was opened last."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evenhand.cluster.plan import Surroundings
from evenhand.cluster.worker import Orders, WorkerLoop
from evenhand.judges.trust import Trust, TrustedHosts
from evenhand.ledger.postgres.address import read_address
from evenhand.ledger.postgres.coordination import joined
from evenhand.ledger.postgres.server import Server
from evenhand.runs.stores import open_store
from evenhand.runs.terms import terms_json
from tests.postgres import new_store_url
from tests.suites import JUDGE, judged, prepared, write_suite
from tests.waiting import PATIENCE

UNITS = 400
SLOW = f"""{JUDGE}
import asyncio

async def slow(messages, schema, params):
    await asyncio.sleep(0.05)
    return reply(messages)
"""
HELD = f"""{JUDGE}
import asyncio
from pathlib import Path

async def slow(messages, schema, params):
    Path(__file__).with_name("asked").touch()
    while not Path(__file__).with_name("answered").exists():
        await asyncio.sleep(0.02)
    return reply(messages)
"""
PRICED = {"model": "python/judge:slow", "price": {"input": 1, "output": 1}, "max_tokens": 300}


def write(folder: Path, url: str, limits: Mapping[str, Any], judge: str = SLOW) -> None:
    limits = {"concurrency": 1, **limits}
    write_suite(folder, UNITS, PRICED, judge=judge, store={"url": url}, limits=limits)


async def test_a_budget_that_is_set_while_a_worker_judges_holds_for_it(tmp_path: Path) -> None:
    url = new_store_url()
    write(tmp_path, url, {})
    run = (await judged(tmp_path, limit=1)).run
    store, said = open_store(url, tmp_path), list[str]()
    here = Surroundings(folder=tmp_path, environment={}, trust=Trust(TrustedHosts()))
    orders = Orders(run=run, idle_exit=0.5, tell=said.append)
    async with joined(Server(read_address(url)), 600) as driver:
        await driver.open_run(run, None, terms_json(prepared(tmp_path).suite), None)
        working = asyncio.create_task(WorkerLoop(store, here, orders).work())
        async with asyncio.timeout(PATIENCE):
            while not (await driver.work_of_all(run)).sent:
                await asyncio.sleep(0.05)
        write(tmp_path, url, {"budget_usd": "0.000001"})
        plan = prepared(tmp_path)
        await driver.open_run(run, None, terms_json(plan.suite), plan.budget_cap)
        async with asyncio.timeout(PATIENCE):
            await working
        assert "the budget of" in await driver.stopped(run)
        assert (await driver.work_of_all(run)).verdicts < UNITS // 2
    assert any("the budget of" in line for line in said)
    store.close()


async def test_a_run_that_is_opened_anew_and_done_before_a_worker_looks_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has under way is beyond the new limit: others are done while it waits for that."""
    monkeypatch.setattr("evenhand.runs.share.BEAT_SECONDS", 0.02)
    url = new_store_url()
    write(tmp_path, url, {}, judge=HELD)
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    answered.touch()
    run = (await judged(tmp_path, limit=1)).run
    for mark in (asked, answered):
        mark.unlink()
    store, said = open_store(url, tmp_path), list[str]()
    here = Surroundings(folder=tmp_path, environment={}, trust=Trust(TrustedHosts()))
    async with joined(Server(read_address(url)), 600) as driver:
        terms = terms_json(prepared(tmp_path).suite)
        await driver.open_run(run, None, terms, None)
        orders = Orders(run=run, idle_exit=0.5, tell=said.append)
        working = asyncio.create_task(WorkerLoop(store, here, orders).work())
        try:
            async with asyncio.timeout(PATIENCE):
                while not asked.exists():
                    await asyncio.sleep(0.02)
                await driver.open_run(run, 1, terms, None)
                assert not await driver.lease(run, 0, 0, 10)
                await asyncio.sleep(0.5)  # it has noticed by then
                assert await driver.close_run(run, 1)
        finally:
            answered.touch()
        async with asyncio.timeout(PATIENCE):
            assert await working is None
    assert not any("opened anew" in line for line in said)
    store.close()


async def test_a_budget_that_is_taken_away_stops_nobody(tmp_path: Path) -> None:
    url = new_store_url()
    write(tmp_path, url, {"budget_usd": "100"})
    run = (await judged(tmp_path, limit=1)).run
    store = open_store(url, tmp_path)
    here = Surroundings(folder=tmp_path, environment={}, trust=Trust(TrustedHosts()))
    async with joined(Server(read_address(url)), 600) as driver:
        plan = prepared(tmp_path)
        await driver.open_run(run, None, terms_json(plan.suite), plan.budget_cap)
        orders = Orders(run=run, idle_exit=0.5)
        working = asyncio.create_task(WorkerLoop(store, here, orders).work())
        async with asyncio.timeout(PATIENCE):
            while not (await driver.work_of_all(run)).sent:
                await asyncio.sleep(0.05)
        write(tmp_path, url, {"concurrency": 64})
        await driver.open_run(run, None, terms_json(prepared(tmp_path).suite), None)
        async with asyncio.timeout(PATIENCE):
            await working
        assert (await driver.work_of_all(run)).verdicts == UNITS - 1
    store.close()
