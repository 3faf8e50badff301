"""A hard cap in money. What a call may cost at most is reserved before it is sent; a reservation
left open by a crash, or by an answer that never came, counts as spent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from evenhand.engine.attempt import Attempt, Layer
from evenhand.engine.prices import Price, usd
from evenhand.engine.stop import Stopped
from evenhand.engine.tally import Tally
from evenhand.errors import AskAgain, CallLost, CallRejected, EvenhandError, StoppedEarly
from evenhand.exchange import Reply
from evenhand.ledger.store import Store

ADVICE = "Raise [limits] budget_usd and run again: nothing is paid for twice."


@dataclass(slots=True)
class Money:
    """Picodollars that one attempt holds, and what of them it has cost so far."""

    amount: int
    cost: int = 0


class Budget:
    """Picodollars that one run may spend, or several, also one after the other in event loops of
    their own; without a cap everything is let through."""

    def __init__(self, cap: int | None = None, used: int = 0, advice: str = ADVICE) -> None:
        self.cap, self.used, self._reserved, self._advice = cap, used, 0, advice
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def reserve(self, amount: int) -> AsyncIterator[Money]:
        """Hold an amount, waiting for calls under way where they may free enough; else
        StoppedEarly. In the end what it has cost is used, and the rest is given back."""
        await self._wait_for(amount)
        self._reserved += amount
        money = Money(amount)
        try:
            yield money
        finally:
            self._reserved -= amount
            self.used += money.cost
            # A new one for the next wait: an event belongs to the loop that first waited for it.
            self._freed.set()
            self._freed = asyncio.Event()

    async def _wait_for(self, amount: int) -> None:
        while self.cap is not None and self.used + self._reserved + amount > self.cap:
            if not self._reserved:
                raise self._exhausted(self.cap, amount)
            await self._freed.wait()

    def _exhausted(self, cap: int, amount: int) -> StoppedEarly:
        return StoppedEarly(
            f"the budget of ${usd(cap)} is reached: ${usd(self.used)} spent or reserved,"
            f" and the next call may cost ${usd(amount)}",
            advice=self._advice,
        )


def budgeted(
    inner: Layer,
    *,
    budget: Budget,
    store: Store,
    run: str,
    price: Price | None,
    max_tokens: int,
    tally: Tally,
) -> Layer:
    """Hold what an attempt may cost at most, in the budget and in the store, until the price of its
    reply is known and the reply is durable."""

    @asynccontextmanager
    async def pay(attempt: Attempt) -> AsyncIterator[Reply]:
        most = price.bound(attempt.prompt_tokens, max_tokens) if price else 0
        is_answered = False
        async with budget.reserve(most) as money:
            try:
                await reserve(attempt, most)
                async with inner(attempt) as reply:
                    is_answered = True
                    attempt.cost = cost_of(reply, most)
                    money.cost = attempt.cost or 0
                    yield reply
            except BaseException as error:
                if not is_answered:
                    money.cost = most if _may_be_billed(attempt, error) else 0
                    release(attempt, money)
                raise

    async def reserve(attempt: Attempt, amount: int) -> None:
        if budget.cap is not None:
            attempt.reservation = os.urandom(6).hex()
            await store.reserve(run, attempt.key, attempt.reservation, amount)

    def release(attempt: Attempt, money: Money) -> None:
        """What may have been billed stays reserved in the store."""
        if attempt.reservation and not money.cost:
            store.release(attempt.key, attempt.reservation)

    def cost_of(reply: Reply, most: int) -> int | None:
        """The price of a reply; without a count from the provider, the most it can have been."""
        if price is None:
            tally.unpriced += 1
            return None
        cost = price.cost(reply.usage)
        cost = most if cost is None else cost
        tally.cost += cost
        return cost

    return pay


def _may_be_billed(attempt: Attempt, error: BaseException) -> bool:
    """Whether a request without a reply may have reached the model."""
    if attempt.sent_at is None or (isinstance(error, CallLost) and not error.billed):
        return False
    return not isinstance(error, CallRejected | EvenhandError | AskAgain | Stopped)
