"""Workers at one store keep one pace together, whatever their clocks say."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Sequence

import pytest

from evenhand.engine.meter import Meter
from evenhand.engine.stop import Stop
from evenhand.errors import StoppedEarly
from evenhand.ledger.coordination import Admission, Rates
from evenhand.ledger.postgres.coordination import PostgresWorker
from tests.unit.engine.virtual import Clock, VirtualStop
from tests.unit.ledger.workers import LONG, Place


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
