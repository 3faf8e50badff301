"""Requests and tokens a minute of an account that several workers share.

The store gives each request its moment, by its own clock; here only spans of time are measured, so
that it does not matter what time it is here. A moment that was missed, because the process was
stopped or the store was slow, is given back, and another one asked for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from time import monotonic

from msgspec import Struct

from evenhand.engine.signal import Signal
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import StoppedEarly, StoreError
from evenhand.ledger.coordination import Rates, Worker
from evenhand.limits import LEASED_UNITS, LOOK_AGAIN_MOST, PACE_LATE_SECONDS


class _Request(Struct, eq=False):
    """A request that waits for its moment: the second it is counted in, and since when it may be
    sent, at the earliest and for sure, by the clock here."""

    tokens: int
    second: int = 0
    earliest: float = 0.0
    due: float | None = None


class Meter:
    """The moments of one account, whichever judges of this process share it."""

    def __init__(
        self,
        worker: Worker,
        account: str,
        rates: Rates,
        stop: Stop,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._worker, self._account, self._rates = worker, account, rates
        self._stop, self._clock = stop, clock
        self._waiting: list[_Request] = []
        self._corrections: Counter[tuple[int, str]] = Counter()
        self._told = Signal()
        self._exchange: asyncio.Task[None] | None = None

    async def admit(self, tokens: int) -> int:
        """Wait until a request may be sent; the second that it is counted in. Raises Stopped, and
        StoppedEarly for one that may never be sent."""
        self._require_room(tokens)
        while True:
            request = _Request(tokens)
            await self._moment(request)
            if self._clock() - request.earliest <= PACE_LATE_SECONDS:
                return request.second
            self.correct(request.second, 1, tokens)

    def correct(self, second: int, requests: int, tokens: int) -> None:
        """Take out of a second what was counted in it and not sent."""
        self._corrections[second, "requests"] += requests
        self._corrections[second, "tokens"] += tokens
        self._begin()

    async def settle(self) -> None:
        """Wait until the store has heard of all corrections, when nobody waits any more."""
        if self._exchange is not None:
            await self._exchange

    async def _moment(self, request: _Request) -> None:
        self._waiting.append(request)
        self._begin()
        try:
            while request.due is None:
                await self._stop.sleep(None, self._told)
            while (pause := request.due - self._clock()) > 0:
                await self._stop.sleep(pause)
        except BaseException:
            if request in self._waiting:
                self._waiting.remove(request)
            if request.due is not None:
                self.correct(request.second, 1, request.tokens)
            raise

    def _require_room(self, tokens: int) -> None:
        most = self._rates.tokens
        if most is not None and tokens > most:
            raise StoppedEarly(
                f"one request may take {tokens} tokens, more than tokens_per_minute allows",
                advice=f"Raise tokens_per_minute from {most}, or lower max_tokens.",
            )

    def _begin(self) -> None:
        if self._exchange is None:
            self._exchange = asyncio.create_task(self._exchanged())

    async def _exchanged(self) -> None:
        """Tell and ask the store, until nobody waits any more."""
        try:
            while self._waiting or self._corrections:
                await self._correct()
                if self._waiting:
                    await self._stop.sleep(min(await self._ask(), LOOK_AGAIN_MOST))
        except StoreError as error:
            self._stop.throw(error)
        except Stopped:
            return
        finally:
            self._exchange = None

    async def _correct(self) -> None:
        corrections, self._corrections = self._corrections, Counter()
        for second in {second for second, _ in corrections}:
            counts = corrections[second, "requests"], corrections[second, "tokens"]
            if any(counts):
                await self._worker.correct(self._account, second, *counts)

    async def _ask(self) -> float:
        """Ask for those who wait; after how many seconds to ask again."""
        requests, before = self._waiting[:LEASED_UNITS], self._clock()
        tokens = [request.tokens for request in requests]
        admission = await self._worker.admit(self._account, self._rates, tokens)
        after = self._clock()
        for request, slot in zip(requests, admission.slots, strict=False):
            if request not in self._waiting:  # it was given up meanwhile
                self.correct(slot.second, 1, request.tokens)
                continue
            self._waiting.remove(request)
            request.second = slot.second
            request.earliest, request.due = before + slot.wait, after + slot.wait
        self._told.give()
        return admission.pause
