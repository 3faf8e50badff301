"""One call, from the question to the durable reply: the whole stack behind `ask`.

    ask        the reply that the ledger has, else one call for equal questions asked at once
    _ask_once  one process asks a question, where several share a store
    _retry     further attempts at a lost call; a judge that is down stops the run
    _attempt   money reserved, a permit to send, one request, the reply recorded

Whatever an attempt takes (money, a permit) it gives back when it ends, however it ends: with a
durable reply, a loss, a cancellation, a store that fails. Money and permit belong to an attempt,
not to a call: every attempt counts against the minute, and may be billed.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from evenhand.engine.loop import offloader
from evenhand.engine.pacing import Pacer
from evenhand.engine.prices import CallBudget, Price, price_call, token_bound
from evenhand.engine.progress import Tally
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import (
    AskAgain,
    CallError,
    CallLost,
    CallRejected,
    EvenhandError,
    JudgeCrashed,
    NothingRecorded,
    StoppedEarly,
)
from evenhand.exchange import Judge, Question, Reply, Usage
from evenhand.kinds.conversation import Offload
from evenhand.limits import (
    ATTEMPT_SECONDS,
    ATTEMPTS,
    BACKOFF_FIRST,
    BACKOFF_MOST,
    CALL_SECONDS,
    LOOK_AGAIN_FIRST,
    LOOK_AGAIN_MOST,
    LOST_IN_A_ROW,
    RETRY_AFTER_MOST,
    UNREACHABLE_SECONDS,
    UNREACHABLE_TRIES,
)
from evenhand.store.ledger import Ledger
from evenhand.store.ports import Call
from evenhand.store.rows import call_keys
from evenhand.words import Sentence

AskFn = Callable[[Question], Awaitable[Call]]
"""A question in, a durable call out. Raises CallError, NothingRecorded, or Stopped."""


def route(asks: Sequence[AskFn]) -> AskFn:
    """Return one `ask` for the judges of a group."""
    if len(asks) == 1:
        return asks[0]

    async def ask(question: Question) -> Call:
        return await asks[question.judge_index](question)

    return ask


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """The time for one call with all its attempts and the pauses between them, without the time it
    waits for money or for a permit."""

    call_seconds: float = CALL_SECONDS
    attempt_seconds: float = ATTEMPT_SECONDS
    """After which a judge ends an attempt by itself."""
    backoff_first: float = BACKOFF_FIRST

    def is_counted(self, loss: CallLost) -> bool:
        """Return True if a loss uses up an attempt: one with a pause that the provider asked for
        does not, unless that is so short that it bounds nothing."""
        return (loss.retry_after or 0) < self.backoff_first

    def pause(self, loss: CallLost, attempts: int) -> float:
        """Return the seconds to wait: what the provider asked for, else full jitter."""
        asked = loss.retry_after or 0
        if not self.is_counted(loss):
            return asked
        most = min(BACKOFF_MOST, self.backoff_first * 2 ** (attempts - 1))
        return max(asked, random.uniform(0, most))  # noqa: S311 - jitter, not a secret


class _Request(Struct):
    """A question on its way to the judge."""

    question: Question
    key: str
    prompt_tokens: int
    """The most tokens that the prompt can have."""
    sent_at: float | None = None
    """When the present attempt was sent, by the monotonic clock; None before that."""


class _Reservation(Struct):
    """Money for one attempt, in picodollars."""

    most: int
    name: str = ""
    """Its name in the store; empty without a budget."""
    cost: int | None = None
    """The price of the reply; None until there is one, and where the price is unknown."""


class CallStack:
    """Asks one judge."""

    def __init__(
        self,
        *,
        judge: Judge,
        run: str,
        ledger: Ledger,
        stop: Stop,
        tally: Tally,
        pacer: Pacer,
        retry: RetryPolicy,
        budget: CallBudget,
        price: Price | None,
        max_tokens: int,
        notice: Callable[[str], None] = lambda message: None,
        offload: Offload | None = None,
    ) -> None:
        self.judge, self._run, self._ledger = judge, run, ledger
        self._stop, self._tally, self._notice = stop, tally, notice
        self._pacer, self._policy, self._budget = pacer, retry, budget
        self._price, self._max_tokens = price, max_tokens
        self._offload = offload or offloader()
        self._breaker = Breaker(stop, tally, judge.name)
        self._key_of = call_keys(judge.identity)
        self._in_flight: dict[str, asyncio.Future[Call]] = {}

    # The cache

    async def ask(self, question: Question) -> Call:
        """Return the recorded call for a question, asking the judge if there is none. An error that
        ends the command requests the stop, so that calls under way are waited for."""
        request = await self._offload(partial(self._address, question), question.size)
        key = request.key
        if key in self._in_flight:
            self._tally.cached += 1
            return await asyncio.shield(self._in_flight[key])
        # Known to others before the ledger is asked: whoever misses it here finds it there.
        outcome = self._in_flight[key] = asyncio.get_running_loop().create_future()
        try:
            call = await self._find(key)
            if call is None:
                call = await self._ask_once(request)
            else:
                # A run that the ledger answers must still hear Ctrl-C and draw its progress.
                await asyncio.sleep(0)
        except BaseException as error:
            # Who waits for the same question fails for the same reason, if it is the question's.
            is_shared = isinstance(error, CallError | Stopped | NothingRecorded)
            outcome.set_exception(error if is_shared else Stopped())
            outcome.exception()  # nobody may be waiting for it
            if not isinstance(error, EvenhandError):
                raise
            self._stop.request(error)
            raise Stopped from None
        else:
            outcome.set_result(call)
            return call
        finally:
            del self._in_flight[key]

    def _address(self, question: Question) -> _Request:
        return _Request(question, self._key_of(question), token_bound(question))

    async def _find(self, key: str) -> Call | None:
        call = await self._ledger.find(key)
        self._tally.cached += call is not None
        return call

    async def _ask_once(self, request: _Request) -> Call:
        """Ask under the question's lock, where other processes share the store."""
        locks, pause = self._ledger.questions, LOOK_AGAIN_FIRST
        if locks is None:
            return await self._retry(request)
        while not await locks.take(request.key):
            await self._stop.sleep(pause)
            pause = min(2 * pause, LOOK_AGAIN_MOST)
        try:
            # Another process may have recorded the reply since the ledger was asked.
            return await self._find(request.key) or await self._retry(request)
        finally:
            locks.give_back(request.key)

    # Attempts

    async def _retry(self, request: _Request) -> Call:
        """Attempt a call until there is a reply, or its attempts or its time are used up."""
        policy, attempts, left = self._policy, 0, self._policy.call_seconds
        while True:
            self._stop.check()
            try:
                return await self._attempt(request, left)
            except AskAgain:
                continue  # the judge has learnt another form of request
            except CallRejected:
                self._breaker.note_answer()
                raise
            except JudgeCrashed as crash:
                self._breaker.note_loss(crash)
                raise
            except CallLost as loss:
                self._require_short_wait(loss)
                attempts += policy.is_counted(loss)
                pause = policy.pause(loss, attempts)
                left -= monotonic() - (request.sent_at or monotonic()) + pause
                is_over = attempts >= ATTEMPTS or left <= 0 or loss.is_final
                passed = policy.call_seconds - left
                is_long = attempts >= UNREACHABLE_TRIES or passed >= UNREACHABLE_SECONDS
                if loss.is_unreachable and (is_over or is_long):
                    self._breaker.note_absence(loss)
                    self._stop.check()
                if is_over:
                    self._breaker.note_loss(loss)
                    raise
                self._notice(str(loss))
                await self._stop.sleep(pause)

    def _require_short_wait(self, loss: CallLost) -> None:
        """Raise StoppedEarly where the provider asks for a pause that is too long to wait."""
        seconds = loss.retry_after or 0
        if seconds > RETRY_AFTER_MOST:
            what = Sentence("engine.asked_to_wait", seconds=round(seconds), reason=str(loss))
            raise StoppedEarly(what) from None

    async def _attempt(self, request: _Request, seconds: float) -> Call:
        """Send one request within the seconds left, and record its reply. Raises CallError,
        AskAgain, EvenhandError or Stopped."""
        async with self._reserve(request) as reservation:
            async with self._pacer.permit(request.prompt_tokens + self._max_tokens) as permit:
                self._stop.check()
                self._tally.sent += 1
                request.sent_at, permit.is_sent = monotonic(), True
                reply = await self._send(request.question, seconds)
                reply = replace(reply, seconds=round(monotonic() - request.sent_at, 3))
                permit.count_tokens(reply.usage)
            self._breaker.note_answer()
            call = self._price_reply(request, reply, reservation)
            await self._ledger.record(call, reservation.name)
            return call

    async def _send(self, question: Question, seconds: float) -> Reply:
        answer = self.judge.answer(question)
        if seconds > self._policy.attempt_seconds:
            return await answer
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise CallLost("timeout", "no answer within call_seconds", billed=True) from None

    # Money

    @asynccontextmanager
    async def _reserve(self, request: _Request) -> AsyncIterator[_Reservation]:
        """Reserve what an attempt may cost at most, in the budget and in the store, until its price
        is known and its reply durable. What was not sent or is not billed costs nothing; without a
        reply, what may have been billed counts as the most it can be, and stays reserved."""
        most = self._price.bound(request.prompt_tokens, self._max_tokens) if self._price else 0
        await self._budget.reserve(most, self._stop)
        request.sent_at, reservation = None, _Reservation(most)
        try:
            if self._budget.cap is not None:
                reservation.name = os.urandom(6).hex()
                await self._ledger.reserve(self._run, request.key, reservation.name, most)
            yield reservation
        except BaseException as error:
            if reservation.cost is not None:
                self._budget.release(most, reservation.cost)
            elif _may_be_billed(request, error):
                self._budget.release(most, most)
                await self._note_lost_money(request, reservation)
            else:
                self._budget.release(most, 0)
                if reservation.name:
                    await self._ledger.release(request.key, reservation.name)
            raise
        else:
            self._budget.release(most, reservation.cost or 0)

    async def _note_lost_money(self, request: _Request, reservation: _Reservation) -> None:
        """Note money of a lost call that no budget had reserved, for a later run with a budget. The
        judge may have a price then that it does not have now."""
        if reservation.name:
            return
        name, key, run = os.urandom(6).hex(), request.key, self._run
        if reservation.most:
            await self._ledger.reserve(run, key, name, reservation.most)
        else:
            tokens = Usage(input_tokens=request.prompt_tokens, output_tokens=self._max_tokens)
            await self._ledger.reserve(run, key, name, 0, self.judge.name, tokens)

    def _price_reply(self, request: _Request, reply: Reply, reservation: _Reservation) -> Call:
        """Return the call to record, its price noted; stop the run where it was overcharged."""
        tokens, usage = request.prompt_tokens, reply.usage
        priced = price_call(self._price, usage, tokens, self._max_tokens)
        reservation.cost = priced.cost
        self._tally.unpriced += priced.cost is None
        self._tally.cost += priced.cost or 0
        if self._budget.cap is not None and priced.overcharge:
            self._stop.request(priced.overcharge)
        return Call(request.key, self._run, self.judge.name, reply, priced.cost, priced.most)


def _may_be_billed(request: _Request, error: BaseException) -> bool:
    """Return True if a request without a reply may have reached the model."""
    if request.sent_at is None or (isinstance(error, CallLost) and not error.billed):
        return False
    return not isinstance(error, CallRejected | EvenhandError | AskAgain | Stopped)


class Breaker:
    """Stops the run when a judge is down: nobody there from the beginning, or many calls in a row
    without an answer. What was not answered stays pending."""

    def __init__(self, stop: Stop, tally: Tally, judge: str) -> None:
        self._stop, self._tally, self._judge = stop, tally, judge
        self._lost_in_a_row, self._has_answered = 0, False

    def note_answer(self) -> None:
        """Note that the judge is there, whatever it said."""
        self._lost_in_a_row, self._has_answered = 0, True
        self._tally.silent.pop(self._judge, None)

    def note_loss(self, loss: CallError) -> None:
        """Note a call that is lost for good; stop the run at one too many."""
        self._lost_in_a_row += 1
        if isinstance(loss, CallLost) and not self._has_answered:
            self._tally.silent[self._judge] = str(loss)
        if self._lost_in_a_row >= LOST_IN_A_ROW:
            self._stop.request(
                StoppedEarly(Sentence("engine.judge_down", n=self._lost_in_a_row, reason=str(loss)))
            )

    def note_absence(self, loss: CallLost) -> None:
        """Stop the run, unless the judge has answered before: it may be starting anew, and is given
        more time."""
        if self._has_answered:
            return
        self._stop.request(
            StoppedEarly(Sentence("engine.judge_absent", judge=self._judge, reason=str(loss)))
        )
