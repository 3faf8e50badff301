"""A run's money where several workers spend it: each takes a little at a time from the store.

What a worker has taken and not reserved is lost to it as soon as it is no longer alive, and free
for others; every reservation is noted under the condition that this is not so. What was granted =
what is free + what is held for calls + what is spent, at any moment.
"""

from __future__ import annotations

import asyncio

from evenhand.engine.budget import ADVICE, Hold
from evenhand.engine.prices import usd
from evenhand.engine.signal import Signal
from evenhand.engine.stop import Stop
from evenhand.errors import RunOver
from evenhand.ledger.coordination import Grant, Worker
from evenhand.limits import ALLOTTED_CALLS, LOOK_AGAIN_MOST


class Allotments:
    """What one worker has taken of the money of a run."""

    def __init__(self, worker: Worker, run: str, cap: int | None) -> None:
        self.cap, self._worker, self._run = cap, worker, run
        self._number = 0
        self._granted = self._free = self._spent = self._held = 0
        self._asking, self._freed = asyncio.Lock(), Signal()

    async def reserve(self, amount: int, stop: Stop) -> Hold:
        """Hold an amount of what was taken, taking more where it is not enough."""
        while self._free < amount:
            await self._take(amount, stop)
        self._free -= amount
        self._held += amount
        return Hold(amount, self._number)

    async def note(self, hold: Hold, key: str, attempt: str, stop: Stop) -> None:
        """Note what is held in the store; taken anew where it is no longer this worker's."""
        while hold.amount:
            if hold.allotment == self._number:
                if await self._worker.reserve(self._run, key, attempt, hold.amount):
                    return
                self._void(hold.allotment)
            hold.allotment = (await self.reserve(hold.amount, stop)).allotment

    def spend(self, hold: Hold, cost: int) -> None:
        """Give a held amount back for what the call did cost."""
        if hold.allotment == self._number:
            self._held -= hold.amount
            self._free += hold.amount - cost
            self._spent += cost
        self._freed.give()

    async def end(self) -> None:
        """Give back what is free, so that this worker can take anew when it comes back."""
        async with self._asking:
            if self.cap is not None:
                await self._forgo()

    async def _take(self, amount: int, stop: Stop) -> None:
        """Take enough for a call, and for some more if there is enough; wait where calls under way
        may free it, else raise RunOver."""
        async with self._asking:
            if self._free >= amount:
                return
            grant = await self._ask(amount * ALLOTTED_CALLS)
            if grant in ("wait", "exhausted"):
                grant = await self._ask(amount - self._free)
            if grant in ("wait", "exhausted") and not self._held and self._free:
                # Two who wait for each other's rest would wait for ever.
                await self._give_back()
                grant = await self._ask(amount)
            if grant == "exhausted" and not self._held:
                raise self._exhausted(amount)
        if grant in ("wait", "exhausted"):
            await stop.sleep(LOOK_AGAIN_MOST, self._freed)

    async def _ask(self, amount: int) -> Grant:
        grant = await self._worker.allot(self._run, self._granted, amount, self._spent)
        if grant == "granted":
            self._granted += amount
            self._free += amount
        elif grant == "void":
            await self._forgo()
        return grant

    async def _forgo(self) -> None:
        """Let the store forget what was taken, and begin anew: where it knows of more or of less
        than is known here, no later word would fit."""
        number = self._number
        await self._worker.forgo(self._run)
        self._void(number)

    async def _give_back(self) -> None:
        if self._free:
            await self._ask(-self._free)

    def _void(self, number: int) -> None:
        """Begin anew: what was free is not this worker's any more. What is held stays noted in the
        store, and is not given back to what is taken from now on."""
        if number == self._number:
            self._number += 1
            self._granted = self._free = self._spent = self._held = 0

    def _exhausted(self, amount: int) -> RunOver:
        return RunOver(
            f"the budget of ${usd(self.cap or 0)} is reached by all workers together: the next call"
            f" may cost ${usd(amount)}",
            advice=ADVICE,
        )
