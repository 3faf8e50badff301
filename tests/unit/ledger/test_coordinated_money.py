"""Workers at one store spend no more than one budget together, whoever of them dies or is late."""

from __future__ import annotations

import asyncio
import random

import pytest

from evenhand.engine.allotment import Allotments
from evenhand.engine.stop import Stop
from evenhand.errors import RunOver
from evenhand.exchange import Reply, Usage
from evenhand.ledger.coordination import Work
from evenhand.ledger.ports import Call
from evenhand.ledger.postgres.coordination import PostgresWorker
from tests.unit.ledger.workers import Place


@pytest.mark.parametrize("kills", [0, 8])
async def test_money_holds_for_32_workers(place: Place, kills: int) -> None:
    """Each call is reserved, then recorded for less; some workers are heard of no more, with money
    taken, and reserved."""
    run, cap, most, chance = place.scope.run, 2000 + 1000 * kills, 100, random.Random(kills)
    async with place.workers(32) as workers, place.store.ledger() as ledger:
        await workers[0].open_run(run, None, "{}", cap)
        sent, stop = 0, Stop()

        async def spend(worker: PostgresWorker, dies_after: int) -> None:
            nonlocal sent
            money = Allotments(worker, run, cap)
            for number in range(1000):
                hold = await money.reserve(most, stop)
                key, cost = f"{worker.id}-{number}", chance.randrange(5, most)
                await money.note(hold, key, "a", stop)
                assert await place.used() <= cap
                sent += 1
                if number == dies_after:
                    return
                call = Call(key, run, "j", Reply(text="{}", usage=Usage()), cost)
                await ledger.record(call, "a")
                money.spend(hold, cost)

        async def until_spent(number: int, worker: PostgresWorker) -> None:
            with pytest.raises(RunOver):
                await spend(worker, dies_after=-1)

        dead = [asyncio.create_task(spend(worker, 0)) for worker in workers[:kills]]
        await asyncio.gather(*dead)
        await place.move_clock(11)
        alive = list(enumerate(workers))[kills:]
        for _, worker in alive:
            await worker.beat(run, Work())
        await asyncio.gather(*(until_spent(number, worker) for number, worker in alive))
        used = await place.used()
        assert cap - most < used <= cap, "nothing beyond, and nothing left that would be enough"
        assert sent > cap // most, "what a call did not cost is spent again"


async def test_money_that_was_given_up_cannot_be_reserved_later(place: Place) -> None:
    """Stopped for longer than its lease: what it had taken is another's, and it takes anew."""
    run, stop = place.scope.run, Stop()
    async with place.workers(2) as (slow, quick):
        await slow.open_run(run, None, "{}", 100)
        money = Allotments(slow, run, 100)
        hold = await money.reserve(10, stop)
        await place.move_clock(11)
        await quick.beat(run, Work())
        assert await quick.allot(run, 0, 100, 0) == "granted"
        assert await quick.reserve(run, "k", "a", 100)
        assert await quick.allot(run, 100, 0, 100) == "granted"  # a loss that may be billed
        with pytest.raises(RunOver):
            await money.note(hold, "late", "a", stop)
        assert await place.used() == 100


async def test_a_worker_takes_money_again_for_a_run_it_comes_back_to(place: Place) -> None:
    """It takes part in a run page by page, and gives back in between; also what was all spent."""
    run, stop = place.scope.run, Stop()
    async with place.workers(2) as (comes_back, other):
        await other.open_run(run, None, "{}", 1000)
        async with asyncio.timeout(30), place.store.ledger() as ledger:
            for number, cost in enumerate((30, 100, 100)):
                money = Allotments(comes_back, run, 1000)
                hold = await money.reserve(100, stop)
                key = f"k{number}"
                await money.note(hold, key, "a", stop)
                call = Call(key, run, "j", Reply(text="{}", usage=Usage()), cost)
                await ledger.record(call, "a")
                money.spend(hold, cost)
                await money.end()
        assert await other.allot(run, 0, 770, 0) == "granted"
        assert await other.allot(run, 770, 1, 0) == "exhausted"


async def test_money_is_asked_for_once_though_the_answer_was_not_heard(place: Place) -> None:
    run = place.scope.run
    async with place.workers(1) as [worker]:
        await worker.open_run(run, None, "{}", 100)
        assert await worker.allot(run, 0, 60, 0) == "granted"
        assert await worker.allot(run, 0, 60, 0) == "granted"
        assert await worker.allot(run, 60, 40, 0) == "granted"
        assert await worker.allot(run, 100, 1, 0) == "exhausted"
        assert await worker.allot(run, 60, 7, 0) == "void"
