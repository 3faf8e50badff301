"""The endpoint `ask`, layer by layer: ledger, retry, budget, pace, judge.

Each layer is a small piece around the next. Budget and pace stand inside retry, not around it:
every attempt is a request that counts against the minute and may be billed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from evenhand.engine.budget import Budget
from evenhand.engine.pace import Entry, Pace
from evenhand.engine.prices import Price, believed, token_bounds
from evenhand.engine.retry import Retry
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import AskAgain, CallError, CallLost, CallRejected, EvenhandError
from evenhand.exchange import Judge, Question, Reply
from evenhand.ledger.keys import call_keys
from evenhand.ledger.store import Call, Store

Endpoint = Callable[[Question], Awaitable[Call]]


@dataclass(slots=True)
class Tally:
    """What one command has done so far."""

    sent: int = 0
    cached: int = 0
    reasks: int = 0
    cost: int = 0
    unpriced: int = 0
    verdicts: int = 0
    failures: int = 0
    left_out: int = 0


class _Ticket(NamedTuple):
    """What one attempt holds while it is under way."""

    attempt: str
    amount: int
    entry: Entry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPath:
    """All that a call to one judge passes on its way."""

    judge: Judge
    run: str
    store: Store
    stop: Stop
    pace: Pace
    retry: Retry
    budget: Budget
    price: Price | None
    max_tokens: int
    tally: Tally
    bound: Callable[[Question], int] = field(default_factory=token_bounds)

    def endpoint(self) -> Endpoint:
        """`ask` for this judge: the ledger first, and one payment for equal questions at once."""
        key_of = call_keys(self.judge.identity)
        under_way: dict[str, asyncio.Future[Call]] = {}

        async def ask(question: Question) -> Call:
            key = key_of(question)
            call = self.store.find(key)
            if call is not None:
                self.tally.cached += 1
                # A run that the ledger answers must still hear Ctrl-C and draw its progress.
                await asyncio.sleep(0)
                return call
            if key in under_way:
                self.tally.cached += 1
                return await asyncio.shield(under_way[key])
            paid = under_way[key] = asyncio.get_running_loop().create_future()
            try:
                call = await self._pay(question, key)
                paid.set_result(call)
                return call
            except BaseException as error:
                if not isinstance(error, CallError | Stopped):
                    error = Stopped()
                paid.set_exception(error)
                paid.exception()
                raise
            finally:
                del under_way[key]

        return ask

    async def _pay(self, question: Question, key: str) -> Call:
        """One reply, durable before it is used."""
        last: list[_Ticket] = []

        async def enter() -> _Ticket:
            last[:] = [await self._enter(question, key)]
            return last[0]

        async def answer(ticket: _Ticket) -> Reply:
            return await self._answer(question, key, ticket)

        try:
            reply = await self.retry.until_answered(enter, answer)
        except EvenhandError as error:
            self.stop.throw(error)
            raise Stopped from None
        call = Call(key, self.run, self.judge.name, reply, self._cost(reply, last[0]))
        await self.store.record(call, last[0].attempt)
        if last[0].attempt:
            self.budget.spend(last[0].amount, call.cost or 0)
        return call

    async def _enter(self, question: Question, key: str) -> _Ticket:
        """Wait for money and for a turn."""
        self.stop.check()
        bound = self.bound(question)
        ticket = await self._reserve(key, bound)
        try:
            entry = await self.pace.admit(bound + self.max_tokens)
            self.stop.check()
        except BaseException:
            self._free(key, ticket, 0)
            raise
        return ticket._replace(entry=entry)

    async def _reserve(self, key: str, bound: int) -> _Ticket:
        amount = self.price.bound(bound, self.max_tokens) if self.price else 0
        if self.budget.cap is None:
            return _Ticket("", amount, None)
        await self.budget.hold(amount)
        attempt = os.urandom(6).hex()
        try:
            await self.store.reserve(self.run, key, attempt, amount)
        except BaseException:
            # Others may be waiting for this money: without it they learn that nothing is left.
            self.budget.spend(amount, 0)
            raise
        return _Ticket(attempt, amount, None)

    async def _answer(self, question: Question, key: str, ticket: _Ticket) -> Reply:
        self.tally.sent += 1
        try:
            reply = believed(await self.judge.answer(question))
        except BaseException as error:
            unbilled = isinstance(error, CallLost) and not error.billed
            refused = isinstance(error, CallRejected | EvenhandError | AskAgain)
            self._free(key, ticket, 0 if unbilled or refused else ticket.amount)
            raise
        usage = reply.usage
        if ticket.entry is not None and usage.input_tokens is not None:
            ticket.entry.tokens = usage.input_tokens + (usage.output_tokens or 0)
        return reply

    def _free(self, key: str, ticket: _Ticket, cost: int) -> None:
        """After an attempt without a reply: what may have been billed stays reserved."""
        if ticket.attempt:
            self.budget.spend(ticket.amount, cost)
            if not cost:
                self.store.release(key, ticket.attempt)

    def _cost(self, reply: Reply, ticket: _Ticket) -> int | None:
        """The price of a reply; without a count from the provider, the most it can have been."""
        if self.price is None:
            self.tally.unpriced += 1
            return None
        cost = self.price.cost(reply.usage)
        cost = ticket.amount if cost is None else cost
        self.tally.cost += cost
        return cost
