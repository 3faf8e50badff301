"""All callers of a busy provider slow down together, and come back one after the other."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from evenhand.engine.stop import Stopped
from evenhand.errors import CallLost, StoppedEarly
from evenhand.exchange import Reply
from tests import provider as p
from tests.suites import at, judged, write_suite
from tests.unit.engine.virtual import VirtualCalls

CALLS, WIDE = 400, 64
MOST_REQUESTS = 1.5 * CALLS


class Server(VirtualCalls):
    """A provider on a virtual clock, that many ask at once: `refuses` tells whether it is busy."""

    def __init__(self, seconds: float, refuses: Callable[[Server], bool], asked: float = 0) -> None:
        super().__init__(self.answer)
        self.requests: list[float] = []
        self.answers: list[float] = []
        self.under_way = 0
        self._seconds, self._refuses, self._asked = seconds, refuses, asked

    @property
    def now(self) -> float:
        """Seconds since the first request."""
        return self.clock.now - self.requests[0]

    async def answer(self) -> Reply:
        self.requests.append(self.clock.now)
        self.under_way += 1
        try:
            if self._refuses(self):
                await self.clock.sleep(0.01)
                raise CallLost("transport", "429", is_busy=True, retry_after=self._asked or None)
            await self.clock.sleep(self._seconds)
        finally:
            self.under_way -= 1
        self.answers.append(self.clock.now)
        return Reply(text="")

    async def judge(self, calls: int = CALLS, wide: int = WIDE) -> None:
        """Ask so many times, so many at once."""
        left = iter(range(calls))

        async def worker() -> None:
            for _ in left:
                await self.ask()

        await self.clock.run(*(worker() for _ in range(wide)))


def in_an_outage(server: Server) -> bool:
    return server.now < 10


def with_few_places(server: Server) -> bool:
    return server.under_way > 8


def with_few_a_second(server: Server) -> bool:
    return sum(at > server.clock.now - 1 for at in server.requests) > 10


@pytest.mark.parametrize(
    ("refuses", "seconds"),
    [
        (in_an_outage, 0.5),
        (in_an_outage, 5.0),
        (with_few_places, 0.05),
        (with_few_places, 2.0),
        (with_few_a_second, 0.05),
        (with_few_a_second, 3.0),
    ],
)
async def test_a_storm_of_refusals_costs_few_requests(
    refuses: Callable[[Server], bool], seconds: float
) -> None:
    server = Server(seconds, refuses)
    await server.judge()
    assert len(server.answers) == CALLS
    assert len(server.requests) <= MOST_REQUESTS
    assert not server.stop.requested


async def test_after_a_pause_that_is_asked_for_nobody_storms_back() -> None:
    server = Server(5.0, lambda server: server.now < 0.5, asked=1.0)
    await server.judge(162, 162)
    back = [at for at in server.requests if at > server.requests[0]]
    assert min(back) >= server.requests[0] + 1
    assert max(Counter(int(10 * at) for at in back).values()) <= 20
    assert len(server.requests) <= 162 * 2


async def test_a_stray_refusal_slows_nobody_down() -> None:
    """One request in fifty is refused, as under a load that somebody else makes."""
    server = Server(1.0, lambda server: len(server.requests) % 50 == 49)
    await server.judge(1000)
    undisturbed = Server(1.0, lambda server: False)
    await undisturbed.judge(1000)
    assert server.now < 1.5 * undisturbed.now


async def test_once_it_is_over_as_many_are_under_way_as_before() -> None:
    server = Server(1.0, in_an_outage)
    most: list[int] = []
    note = server._refuses

    def noting(server: Server) -> bool:
        most.append(server.under_way)
        return note(server)

    server._refuses = noting
    await server.judge(2000)
    assert max(most[-500:]) == WIDE


async def test_a_provider_that_stays_busy_stops_the_run() -> None:
    server = Server(1.0, lambda server: True)
    with pytest.raises((Stopped, CallLost)):
        await server.judge()
    assert isinstance(server.stop.cause, StoppedEarly)
    assert "stays busy" in str(server.stop.cause)
    assert len(server.requests) <= WIDE + 40
    assert server.now < 300


@pytest.mark.parametrize("asked", [None, "0.05"])
async def test_a_storm_over_http_costs_few_requests(tmp_path: Path, asked: str | None) -> None:
    """The provider serves eight at a time, and the others are told that it is busy."""
    under_way = 0

    async def crowded(call: p.Call) -> web.StreamResponse:
        nonlocal under_way
        under_way += 1
        try:
            await asyncio.sleep(0.005)
            return await (p.busy(asked) if under_way > 8 else p.valid())(call)
        finally:
            under_way -= 1

    async with p.Provider(crowded) as provider:
        limits = {"concurrency": WIDE}
        write_suite(tmp_path, CALLS, at(provider.url), limits=limits)
        summary = await judged(tmp_path, backoff_first=0.02)
    assert (summary.stopped, summary.counts.verdicts) == (None, CALLS)
    assert len(provider.calls) <= MOST_REQUESTS
