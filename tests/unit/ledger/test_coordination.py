"""Workers at one store: units are taken by one, judgments under an old fence are refused, money and
pace hold for all together. A real server; where time must pass, it is the server's own clock that a
test moves."""

from __future__ import annotations

import asyncio
import heapq
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from evenhand.engine.allotment import Allotments
from evenhand.engine.group import JudgeGroup
from evenhand.engine.leases import LeasedWork
from evenhand.engine.meter import Meter
from evenhand.engine.stop import Stop
from evenhand.engine.tally import Tally
from evenhand.errors import RunOver, StoppedEarly, UsageError
from evenhand.exchange import Reply, Usage
from evenhand.judgment import JudgmentText
from evenhand.ledger.coordination import Admission, Lease, Rates, Work
from evenhand.ledger.ports import Call, IncomingUnit, Scope, Store, StoredJudgment
from evenhand.ledger.postgres.address import read_address
from evenhand.ledger.postgres.coordination import (
    VARIABLE,
    PostgresWorker,
    joined,
    lease_seconds,
)
from evenhand.ledger.postgres.server import Connection, Server
from evenhand.ledger.postgres.store import postgres_store
from tests.contract.stores import begun
from tests.postgres import new_store_url
from tests.unit.engine.virtual import Clock, VirtualStop
from tests.waiting import PATIENCE

UNITS = 40
LONG = 3600.0
EPOCH = 1_800_000_000


class ClockedServer(Server):
    """A server whose clock stands still until a test moves it."""

    async def connect(self) -> Connection:
        connection = await super().connect()
        schema = self.address.schema
        await connection.execute(f'SET search_path = "{schema}", pg_catalog')
        return connection

    async def stop_clock(self) -> None:
        connection = await super().connect()
        await connection.execute(
            "CREATE TABLE test_clock (at TIMESTAMPTZ NOT NULL);"
            f"INSERT INTO test_clock VALUES (to_timestamp({EPOCH}));"
            f'CREATE FUNCTION "{self.address.schema}".clock_timestamp() RETURNS TIMESTAMPTZ'
            " LANGUAGE sql VOLATILE AS 'SELECT at FROM test_clock'"
        )
        await connection.close()


@dataclass
class Place:
    """A store with a run of 40 units."""

    store: Store
    server: ClockedServer
    scope: Scope
    control: Connection
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def move_clock(self, seconds: float) -> None:
        await self.control.execute(
            "UPDATE test_clock SET at = at + make_interval(secs => $1)", seconds
        )

    async def set_clock(self, seconds: float) -> None:
        await self.control.execute("UPDATE test_clock SET at = to_timestamp($1)", EPOCH + seconds)

    @asynccontextmanager
    async def workers(
        self, number: int, seconds: float = 10
    ) -> AsyncIterator[list[PostgresWorker]]:
        async with AsyncExitStack() as ends:
            workers = [
                await ends.enter_async_context(joined(self.server, seconds)) for _ in range(number)
            ]
            for worker in workers:
                await worker.beat(self.scope.run, Work())
            yield workers

    async def lease(self, worker: PostgresWorker, most: int = 10) -> Sequence[Lease]:
        return await worker.lease(self.scope.run, 0, 0, ("transport",), most)

    async def used(self) -> int:
        """What is spent or reserved, at one moment."""
        sql = (
            "SELECT (SELECT coalesce(sum(cost), 0) FROM calls)"
            " + (SELECT coalesce(sum(amount), 0) FROM reservations)"
        )
        async with self.turn:
            return int(await self.control.fetchval(sql))


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    url = new_store_url()
    store = postgres_store(url)
    server = ClockedServer(read_address(url))
    await server.stop_clock()
    async with store.ledger() as ledger:
        scope = await begun(ledger, [IncomingUnit(f"u{n}", "f", "{}") for n in range(UNITS)])
    control = await server.connect()
    try:
        yield Place(store, server, scope, control)
    finally:
        await control.close()
        store.close()


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
                page = await worker.lease(run, 0, 0, (), 30)
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


async def _blocked(place: Place) -> None:
    """Wait until somebody waits for a lock."""
    sql = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)"
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
        _, unit = await anext(leased.work(group))
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
        await two.open_run(run, 12, "{}", None)
        [found] = await two.open_runs()
        assert (found.limit, found.opening) == (12, 2)
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


class SkewedWorker:
    """A worker whose store hears the virtual time; the clock waits for the store."""

    def __init__(self, worker: PostgresWorker, place: Place, clock: BusyClock) -> None:
        self._worker, self._place, self._clock = worker, place, clock

    async def admit(self, account: str, rates: Rates, tokens: Sequence[int]) -> Admission:
        async with self._clock.busy:
            await self._place.set_clock(self._clock.now)
            return await self._worker.admit(account, rates, tokens)

    async def correct(self, account: str, second: int, requests: int, tokens: int) -> None:
        async with self._clock.busy:
            await self._worker.correct(account, second, requests, tokens)


class BusyClock(Clock):
    """Does not move on while somebody waits for the server."""

    def __init__(self) -> None:
        super().__init__()
        self.busy = asyncio.Lock()

    async def run(self, *work: object) -> None:
        done = asyncio.gather(*work)  # type: ignore[call-overload]
        while not done.done():
            for _ in range(40):
                await asyncio.sleep(0)
            while self.busy.locked():
                await asyncio.sleep(0.0005)
            if not done.done() and not self.busy.locked():
                self.move_on()
        await done

    def move_on(self) -> None:
        if self._waiting:
            moment, _, woken = heapq.heappop(self._waiting)
            if not woken.done():
                self.now = max(self.now, moment)
                woken.set_result(None)


class WaitingStop(VirtualStop):
    async def sleep(self, seconds: float | None, *signals: object) -> None:
        await super().sleep(1e9 if seconds is None else seconds, *signals)  # type: ignore[arg-type]


def most_in_a_minute(sent: Sequence[tuple[float, int]]) -> int:
    return max(sum(n for at, n in sent if start <= at < start + 60) for start, _ in sent)


@pytest.mark.parametrize("rates", [Rates(60, None), Rates(None, 3000), Rates(90, 5000)])
async def test_pace_holds_for_32_workers_whose_clocks_differ(place: Place, rates: Rates) -> None:
    clock, chance, sent = BusyClock(), random.Random(7), list[tuple[float, int]]()
    async with place.workers(32, LONG) as workers:

        async def send(worker: PostgresWorker) -> None:
            offset, rate = chance.uniform(-1e6, 1e6), chance.uniform(0.99, 1.01)
            stop = WaitingStop(clock)
            skewed = SkewedWorker(worker, place, clock)
            meter = Meter(
                skewed,  # type: ignore[arg-type]
                "account",
                rates,
                stop,
                lambda: offset + rate * clock.now,
            )
            for _ in range(3):
                tokens = chance.randrange(10, 60)
                second = await meter.admit(100)
                meter.correct(second, 0, 100 - tokens)
                sent.append((clock.now, tokens))
                await clock.sleep(chance.uniform(0, 3))

        await clock.run(*(send(worker) for worker in workers))
    assert len(sent) == 32 * 3
    if rates.requests:
        assert most_in_a_minute([(at, 1) for at, _ in sent]) <= rates.requests
    if rates.tokens:
        assert most_in_a_minute(sent) <= rates.tokens


async def test_a_request_that_never_fits_is_told(place: Place) -> None:
    async with place.workers(1) as [worker]:
        with pytest.raises(StoppedEarly, match="tokens_per_minute"):
            await Meter(worker, "account", Rates(None, 99), Stop()).admit(100)


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
