"""The layer of the ledger: what was answered before is not asked again, and a reply is durable
before anybody uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from evenhand.engine.attempt import Attempt, Endpoint, Layer
from evenhand.engine.prices import token_bound
from evenhand.engine.stop import Stop, Stopped
from evenhand.engine.tally import Tally
from evenhand.errors import CallError, NothingRecorded, StoreError
from evenhand.exchange import Judge, Question
from evenhand.kinds.conversation import Offload
from evenhand.limits import LOOK_AGAIN_FIRST, LOOK_AGAIN_MOST
from evenhand.store.keys import call_keys
from evenhand.store.ports import Call, Ledger, QuestionLocks


def recorded(
    inner: Layer,
    *,
    judge: Judge,
    run: str,
    ledger: Ledger,
    stop: Stop,
    tally: Tally,
    aside: Offload,
) -> Endpoint:
    """Ask the ledger first, and pay once for equal questions at once, those of other processes too
    where they share the store. A store that fails throws the switch, so that what is under way is
    waited for: the ledger keeps it where it can."""
    key_of = call_keys(judge.identity)
    under_way: dict[str, asyncio.Future[Call]] = {}

    async def ask(question: Question) -> Call:
        size = question.size
        key, bound = await aside(partial(_addressed, key_of, question), size)
        if key in under_way:
            tally.cached += 1
            return await asyncio.shield(under_way[key])
        # Known to others before the ledger is asked: whoever misses it here finds it there.
        outcome = under_way[key] = asyncio.get_running_loop().create_future()
        try:
            call = await ledger.find(key)
            if call is not None:
                tally.cached += 1
                # A run that the ledger answers must still hear Ctrl-C and draw its progress.
                await asyncio.sleep(0)
            elif ledger.questions is None:
                call = await sent(question, key, bound)
            else:
                call = await sent_once(ledger.questions, question, key, bound)
            outcome.set_result(call)
            return call
        except BaseException as error:
            _share_failure(outcome, error)
            if not isinstance(error, StoreError):
                raise
            stop.throw(error)
            raise Stopped from None
        finally:
            del under_way[key]

    async def sent_once(questions: QuestionLocks, question: Question, key: str, bound: int) -> Call:
        pause = LOOK_AGAIN_FIRST
        while not await questions.take(key):
            await stop.sleep(pause)
            pause = min(2 * pause, LOOK_AGAIN_MOST)
        try:
            # Another process may have had the reply since the ledger was looked at.
            call = await ledger.find(key)
            tally.cached += call is not None
            return call or await sent(question, key, bound)
        finally:
            questions.give_back(key)

    async def sent(question: Question, key: str, bound: int) -> Call:
        attempt = Attempt(question, key, bound)
        try:
            reply = await inner(attempt)
            call = Call(key, run, judge.name, reply, attempt.cost, attempt.most)
            await ledger.record(call, attempt.reservation)
        except BaseException as error:
            await attempt.end(error)
            raise
        await attempt.end(None)
        return call

    return ask


def _addressed(key_of: Callable[[Question], str], question: Question) -> tuple[str, int]:
    """The key of a question, and the most tokens that its prompt can have."""
    return key_of(question), token_bound(question)


def _share_failure(outcome: asyncio.Future[Call], error: BaseException) -> None:
    """Have those who wait for the same question fail for the same reason, where it is one of the
    question; where it is one of whoever asked it, they are stopped."""
    is_shared = isinstance(error, CallError | Stopped | NothingRecorded)
    outcome.set_exception(error if is_shared else Stopped())
    outcome.exception()  # nobody may be waiting for it
