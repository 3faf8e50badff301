"""Time that passes only when everybody waits: minutes of pacing in milliseconds."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable

from evenhand.engine.signal import Signal
from evenhand.engine.stop import Stop

TURNS = 40


class Clock:
    """The time, and who waits for it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = 0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float, *signals: Signal) -> None:
        woken = asyncio.get_running_loop().create_future()
        for signal in signals:
            signal.add(woken)
        self._number += 1
        heapq.heappush(self._waiting, (self.now + seconds, self._number, woken))
        await woken

    async def run(self, *work: Awaitable[object]) -> None:
        """Let `work` end, moving on to the next moment whenever all of it waits."""
        done = asyncio.gather(*work)
        while not done.done():
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if not done.done():
                moment, _, woken = heapq.heappop(self._waiting)
                if not woken.done():
                    self.now = moment
                    woken.set_result(None)
        await done


class VirtualStop(Stop):
    """The switch, whose sleep goes by the virtual clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def sleep(self, seconds: float | None, *signals: Signal) -> None:
        self.check()
        assert seconds is not None
        await self._clock.sleep(seconds, *signals)
        self.check()
