"""Workers at one store: units are taken by one, judgments under an old fence are refused, and what
a worker leaves behind is another's."""

from __future__ import annotations

import asyncio
import time

import pytest

from evenhand.engine.group import JudgeGroup
from evenhand.engine.leases import LeasedWork
from evenhand.engine.stop import Stop
from evenhand.engine.tally import Tally
from evenhand.errors import UsageError
from evenhand.judgment import JudgmentText
from evenhand.ledger.coordination import Lease, Work
from evenhand.ledger.ports import IncomingUnit, StoredJudgment
from evenhand.ledger.postgres.coordination import VARIABLE, lease_seconds
from tests.contract.stores import begun
from tests.unit.ledger.workers import LONG, UNITS, Place
from tests.waiting import PATIENCE


def judged(lease: Lease, text: str = "{}") -> tuple[int, StoredJudgment]:
    verdict = JudgmentText("verdict", None, text)
    return lease.fence, StoredJudgment(lease.unit.no, lease.judge, lease.repeat, (), 0, verdict)


async def test_every_unit_is_taken_by_one_worker(place: Place) -> None:
    run = place.scope.run
    async with place.workers(4) as workers:
        await workers[0].open_run(run, None, "{}", None)
        units: list[int] = []
        while pages := await asyncio.gather(*(place.lease(worker) for worker in workers)):
            if not any(pages):
                break
            for worker, page in zip(workers, pages, strict=True):
                units += [lease.unit.no for lease in page]
                refused = (
                    await worker.settle(run, [judged(lease) for lease in page]) if page else ()
                )
                assert not refused
        assert sorted(units) == sorted(set(units)) and len(units) == UNITS
        assert await workers[1].close_run(run, 1)
        assert not await workers[1].open_runs()
    counts = place.store.archive.counts(place.scope, 1)
    assert (counts.planned, counts.verdicts, counts.pending) == (UNITS, UNITS, 0)


async def test_pages_become_small_towards_the_end(place: Place) -> None:
    async with place.workers(2) as workers:
        await workers[0].open_run(place.scope.run, None, "{}", None)
        sizes = []
        while page := await place.lease(workers[len(sizes) % 2], 32):
            sizes.append(len(page))
        assert sizes[0] == UNITS // 4 and sizes[-1] == 1 and sum(sizes) == UNITS


async def test_to_lease_a_page_no_more_is_read_than_the_page(place: Place) -> None:
    """However much of the run is judged, and though the server has counted none of its rows."""
    async with place.store.ledger() as ledger:
        run = (await begun(ledger, [IncomingUnit(f"m{n}", "f", "{}") for n in range(900)])).run
    read = (
        "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables"
        " WHERE relname IN ('units', 'run_units', 'judgments')"
    )
    async with place.workers(1) as [worker]:
        await worker.open_run(run, None, "{}", None)
        assert worker._connection is not None
        for _ in range(13):
            async with worker._connection.transaction():
                before = await worker.value(read)
                page = await worker.lease(run, 0, 0, 30)
                rows = await worker.value(read) - (before or 0)
            assert len(page) == 30 and rows <= 3 * len(page)
            await worker.settle(run, [judged(lease) for lease in page])


async def test_who_joins_while_another_leases_keeps_what_it_took(place: Place) -> None:
    """Who is alive, and what they hold, is seen at one moment."""
    run = place.scope.run
    async with place.workers(1) as [first]:
        await first.open_run(run, None, "{}", None)
        async with place.control.transaction():
            await place.control.execute("LOCK TABLE leases IN ACCESS EXCLUSIVE MODE")
            leasing = asyncio.create_task(place.lease(first, 2))
            await _blocked(place)
            await place.control.execute(
                "INSERT INTO workers SELECT 'late', host, process, run, note, began, seen, until"
                " FROM workers WHERE id=$1",
                first.id,
            )
            await place.control.execute(
                "INSERT INTO leases SELECT o.judging, m.unit, 0, 0, nextval('fences'), 'late'"
                " FROM open_runs o JOIN run_units m ON m.run=o.number WHERE m.position <= 2"
            )
        assert [lease.unit.position for lease in await leasing] == [3, 4]


async def test_who_leases_while_a_run_is_opened_anew_goes_by_its_new_limit(place: Place) -> None:
    """By the old one nothing is left, and all of the run would pass for handed out."""
    run = place.scope.run
    async with place.workers(2) as (one, two):
        await one.open_run(run, 2, "{}", None)
        while page := await place.lease(one):
            await one.settle(run, [judged(lease) for lease in page])
        async with place.control.transaction():
            await place.control.execute("LOCK TABLE retries IN SHARE MODE")
            opening = asyncio.create_task(two.open_run(run, None, "{}", None))
            await _blocked(place)
            leasing = asyncio.create_task(place.lease(one))
            await _blocked(place, 2)
        await opening
        assert [lease.unit.position for lease in await leasing][:1] == [3]


async def _blocked(place: Place, number: int = 1) -> None:
    """Wait until so many wait for a lock."""
    sql = f"SELECT count(*) >= {number} FROM pg_locks WHERE NOT granted"
    end = time.monotonic() + PATIENCE
    while not await place.control.fetchval(sql):
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def test_a_late_judgment_is_fenced_and_its_successor_stands(place: Place) -> None:
    run = place.scope.run
    async with place.workers(2) as (slow, quick):
        await slow.open_run(run, None, "{}", None)
        [late, *_] = await place.lease(slow)
        await quick.beat(run, Work())
        assert not [lease for lease in await place.lease(quick) if lease.unit.no == late.unit.no]
        await place.move_clock(11)
        await quick.beat(run, Work())
        [again, *_] = await place.lease(quick)
        assert again.unit == late.unit and again.fence > late.fence
        assert await slow.settle(run, [judged(late, '{"calls":[],"who":"slow"}')]) == {late.fence}
        assert not await quick.settle(run, [judged(again, '{"calls":[],"who":"quick"}')])
        assert not await slow.beat(run, Work()), "it must hear that it came too late"
        assert late.fence not in await slow.held()
        [(_, kept)] = list(place.store.archive.judgments(place.scope))
        assert "quick" in kept.text.body


async def test_a_worker_that_is_late_may_write_what_nobody_has_taken(place: Place) -> None:
    async with place.workers(1) as [slow]:
        await slow.open_run(place.scope.run, None, "{}", None)
        [lease, *_] = await place.lease(slow)
        await place.move_clock(LONG)
        assert not await slow.settle(place.scope.run, [judged(lease)])


async def test_what_is_handed_back_is_taken_first_and_what_is_dropped_is_not(place: Place) -> None:
    run = place.scope.run
    async with place.workers(2) as (one, two):
        await one.open_run(run, None, "{}", None)
        first, second, third = (await place.lease(one))[:3]
        await one.hand_back([second.fence, third.fence])
        await one.drop([first.fence])
        assert await one.leased_elsewhere(run, 0)
        assert [lease.unit.no for lease in await place.lease(two)] == [
            second.unit.no,
            third.unit.no,
        ]
        rest = [lease.unit.no for _ in range(UNITS) for lease in await place.lease(two)]
        assert first.unit.no not in rest


async def test_a_worker_that_leaves_hands_everything_back(place: Place) -> None:
    async with place.workers(1) as [stays]:
        await stays.open_run(place.scope.run, None, "{}", 100)
        async with place.workers(1) as [leaves]:
            units = [lease.unit.no for lease in await place.lease(leaves)]
            assert await leaves.claim(["k1"]) == {"k1"} and not await stays.claim(["k1"])
            assert await leaves.allot(place.scope.run, 0, 90, 0) == "granted"
        assert [lease.unit.no for lease in await place.lease(stays)] == units
        assert await stays.claim(["k1"]) == {"k1"}
        assert await stays.allot(place.scope.run, 0, 90, 0) == "granted"
        assert [worker.id for worker in place.store.archive.workers()] == [stays.id]


async def test_what_is_being_handed_over_is_waited_for_at_the_end(place: Place) -> None:
    """The task that gives signs of life hands over too, and is ended with the part: a judgment
    that was lost with it would leave its unit with a worker that does not judge it any more."""
    run = place.scope.run
    group = JudgeGroup(index=0, names=("j",), styles=(), caveat="", repeats=1, turn=0)
    async with place.workers(1) as [worker]:
        await worker.open_run(run, None, "{}", None)
        leased = LeasedWork(worker, run, Stop(), Tally(), width=1)
        _, [unit] = await anext(leased.work(group))
        verdict = JudgmentText("verdict", None, "{}")
        await leased.settle(run, StoredJudgment(unit.no, 0, 0, (), 0, verdict))
        leased.note(unit.no, 0, 0, None)
        async with place.control.transaction():
            await place.control.execute("LOCK TABLE leases IN EXCLUSIVE MODE")
            beating = asyncio.create_task(leased.flush())
            await asyncio.sleep(0)
            ending = asyncio.create_task(leased.end())
            await asyncio.wait([ending], timeout=0.1)
            assert not ending.done()
        await asyncio.gather(beating, ending)
        assert await worker.held() == frozenset()


async def test_a_second_opening_begins_again_and_leaves_what_is_under_way(place: Place) -> None:
    run = place.scope.run
    async with place.workers(2) as (one, two):
        await one.open_run(run, None, "{}", None)
        page = await place.lease(one)
        await one.settle(run, [judged(page[0])])
        [first] = await one.open_runs()
        await two.open_run(run, 12, "{}", None)
        [found] = await two.open_runs()
        assert found.limit == 12 and found.opening > first.opening
        units = [lease.unit.position for _ in range(UNITS) for lease in await place.lease(two)]
        assert units == [11, 12], "those of the other worker, and beyond the limit, are left alone"


async def test_a_run_that_is_stopped_is_left_alone(place: Place) -> None:
    async with place.workers(1) as [worker]:
        await worker.open_run(place.scope.run, None, "{}", None)
        await worker.stop_run(place.scope.run, "the budget is reached")
        assert not await place.lease(worker)
        assert await worker.stopped(place.scope.run) == "the budget is reached"
        assert place.store.archive.open_runs() == {place.scope.run: "the budget is reached"}
        await worker.open_run(place.scope.run, None, "{}", None)
        assert await place.lease(worker)


async def test_a_claim_is_taken_over_from_who_is_not_alive(place: Place) -> None:
    async with place.workers(2) as (one, two):
        assert await one.claim(["a", "b", "a"]) == {"a", "b"}
        assert await two.claim(["b", "c"]) == {"c"}
        await one.release(["b"])
        assert await two.claim(["a", "b"]) == {"b"}
        await place.move_clock(11)
        await two.beat("", Work())
        assert await two.claim(["a"]) == {"a"}
        await one.beat("", Work())
        assert not await one.claim(["a"])


async def test_who_is_alive_is_shown_with_the_work_of_all(place: Place) -> None:
    run = place.scope.run
    async with place.workers(2) as (one, two):
        await one.beat(run, Work(verdicts=3, cost=5))
        await two.beat(run, Work(verdicts=4, failures=1, cost=2))
        assert await one.work_of_all(run) == Work(verdicts=7, failures=1, cost=7)
        shown = place.store.archive.workers()
        assert sorted((worker.run, worker.judged) for worker in shown) == [(run, 3), (run, 5)]
        assert all(worker.is_alive for worker in shown)
        assert place.store.archive.is_claimed(run)
        await place.move_clock(5)
        await one.beat(run, Work(verdicts=3, cost=5))
        await place.move_clock(6)
        assert await two.workers_at(run) == 1


async def test_a_lost_connection_is_made_anew_and_nothing_taken_is_forgotten(place: Place) -> None:
    run = place.scope.run
    async with place.workers(1) as [worker]:
        await worker.open_run(run, None, "{}", None)
        first = await place.lease(worker)
        pid = await worker.value("SELECT pg_backend_pid()")
        await place.control.execute("SELECT pg_terminate_backend($1)", pid)
        assert await worker.held() == {lease.fence for lease in first}
        assert not await worker.settle(run, [judged(lease) for lease in first])


@pytest.mark.parametrize("setting", ["soon", "0", "1e9", "nan"])
def test_seconds_of_a_lease_that_are_none_are_told(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv(VARIABLE, setting)
    with pytest.raises(UsageError, match="no number of seconds"):
        lease_seconds()
    monkeypatch.setenv(VARIABLE, "5")
    assert lease_seconds() == 5


def failed(lease: Lease, reason: str = "transport") -> tuple[int, StoredJudgment]:
    failure = JudgmentText("failure", reason, "{}")
    return lease.fence, StoredJudgment(lease.unit.no, lease.judge, lease.repeat, (), 0, failure)


async def test_what_failed_before_the_opening_is_taken_apart_and_once(place: Place) -> None:
    """Units that fail at every start would else keep the others from being judged."""
    run = place.scope.run
    async with place.workers(2) as (one, two):
        await one.open_run(run, None, "{}", None)
        lost, crashed, refused, handed_back, *rest = await place.lease(one)
        assert not await place.lease(one, again=True), "nothing has failed yet"
        outcomes = [failed(lost), failed(crashed, "judge_crash"), failed(refused, "schema")]
        await one.settle(run, outcomes)
        assert not await place.lease(one, again=True), "what fails now is left to the next start"
        await one.hand_back([lease.fence for lease in (handed_back, *rest)])

        await two.open_run(run, None, "{}", None, again=("transport", "judge_crash"))
        fresh = [lease for _ in range(UNITS) for lease in await place.lease(two)]
        assert [lease.unit.position for lease in fresh] == [*range(4, UNITS + 1)]
        await two.settle(run, [failed(fresh[0]), *map(judged, fresh[1:])])
        assert not await two.close_run(run, 1), "what failed before is not tried yet"
        [first] = await place.lease(one, again=True)
        [second] = await place.lease(two, again=True)
        assert (first.unit.no, second.unit.no) == (lost.unit.no, crashed.unit.no)

        await one.hand_back([first.fence])
        assert not await place.lease(two), "what is handed back of it is taken in its turn, too"
        [first] = await place.lease(two, again=True)
        await two.settle(run, [failed(first), judged(second)])
        assert not await place.lease(two) and not await place.lease(two, again=True)
        assert await two.close_run(run, 1)


async def test_a_failure_that_was_mended_in_another_run_is_not_tried_again(place: Place) -> None:
    run = place.scope.run
    async with place.workers(1) as [worker]:
        await worker.open_run(run, None, "{}", None)
        mended, beyond = (await place.lease(worker, 2))[:2]
        await worker.settle(run, [failed(mended), failed(beyond)])
        await worker.open_run(run, 1, "{}", None, again=("transport",))
        await place.control.execute(
            "UPDATE judgments SET status='verdict', reason=NULL WHERE unit=$1", mended.unit.no
        )
        assert not await place.lease(worker, again=True), "one is judged, one beyond the limit"
        assert not await place.lease(worker)
        assert await worker.close_run(run, 1)


async def test_a_store_from_before_is_brought_up_to_date(place: Place) -> None:
    await place.control.execute(
        "DROP FUNCTION lease_units; DROP TABLE retries; ALTER TABLE walks DROP COLUMN retried;"
        "CREATE FUNCTION lease_units(TEXT, TEXT, BIGINT, BIGINT, TEXT[], BIGINT)"
        " RETURNS TABLE (unit BIGINT, place BIGINT, fence BIGINT) LANGUAGE sql"
        " AS 'SELECT 1::BIGINT, 1::BIGINT, 1::BIGINT';"
        "DELETE FROM migrations WHERE name = 'coordination_0002_retries'"
    )
    await place.server.prepare()
    async with place.workers(1) as [worker]:
        await worker.open_run(place.scope.run, None, "{}", None, again=("transport",))
        assert len(await place.lease(worker)) == 10


async def test_a_run_that_was_closed_and_is_opened_again_is_not_taken_for_the_same(
    place: Place,
) -> None:
    """A worker that stays would go on under the limits that it knows."""
    run = place.scope.run
    async with place.workers(1) as [worker]:
        await worker.open_run(run, 1, "{}", None)
        first = await worker.opening(run)
        [lease] = await place.lease(worker, 1)
        await worker.settle(run, [judged(lease)])
        assert not await place.lease(worker) and await worker.close_run(run, 1)
        assert await worker.opening(run) is None
        await worker.open_run(run, None, '{"limits":{}}', 100)
        assert await worker.opening(run) not in (None, first)
