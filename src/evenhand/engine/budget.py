"""A hard cap in money. What a call may cost at most is reserved before it is sent; a reservation
left open by a crash, or by an answer that never came, counts as spent."""

from __future__ import annotations

import os
from collections.abc import Awaitable
from functools import partial

from evenhand.engine.attempt import Attempt, Layer
from evenhand.engine.prices import Price, usd
from evenhand.engine.signal import Signal
from evenhand.engine.stop import Stop, Stopped
from evenhand.engine.tally import Tally
from evenhand.errors import (
    AskAgain,
    CallLost,
    CallRejected,
    EvenhandError,
    LimitReached,
    StoppedEarly,
)
from evenhand.exchange import Reply, Usage
from evenhand.limits import TOKENS_A_MESSAGE
from evenhand.store.keys import unpriced_attempt
from evenhand.store.ports import Ledger

ADVICE = "Raise [limits] budget_usd and run again: nothing is paid for twice."


class Budget:
    """Picodollars that one run may spend, or several, also one after the other in event loops of
    their own; without a cap everything is let through."""

    def __init__(self, cap: int | None = None, used: int = 0, advice: str = ADVICE) -> None:
        self.cap, self.used, self._reserved, self._advice = cap, used, 0, advice
        self._freed = Signal()

    async def reserve(self, amount: int, stop: Stop) -> None:
        """Hold an amount, waiting for calls under way where they may free enough; else raise
        LimitReached. It is to be given back by `spend`."""
        while self.cap is not None and self.used + self._reserved + amount > self.cap:
            if not self._reserved:
                raise budget_reached(self.cap, self.used, amount, self._advice)
            await stop.sleep(None, self._freed)
        self._reserved += amount

    def spend(self, amount: int, cost: int) -> None:
        """Give a held amount back for what the call did cost."""
        self._reserved -= amount
        self.used += cost
        self._freed.give()


def budget_reached(cap: int, used: int, amount: int, advice: str = ADVICE) -> LimitReached:
    """Return the error for a budget that does not allow the next call."""
    return LimitReached(
        f"the budget of ${usd(cap)} is reached: ${usd(used)} spent or reserved,"
        f" and the next call may cost ${usd(amount)}",
        advice=advice,
        amount=amount,
    )


def budgeted(
    inner: Layer,
    *,
    budget: Budget,
    ledger: Ledger,
    run: str,
    judge: str,
    price: Price | None,
    max_tokens: int,
    stop: Stop,
    tally: Tally,
) -> Layer:
    """Hold what an attempt may cost at most, in the budget and in the store, until the price of its
    reply is known and the reply is durable."""

    async def pay(attempt: Attempt) -> Reply:
        most = price.bound(attempt.prompt_tokens, max_tokens) if price else 0
        if budget.cap is not None:
            await budget.reserve(most, stop)
            attempt.hold(partial(give_back, attempt, most))
            attempt.reservation = os.urandom(6).hex()
            await ledger.reserve(run, attempt.key, attempt.reservation, most)
        else:
            attempt.hold(partial(note_loss, attempt, most))
        reply = await inner(attempt)
        if not most:
            attempt.most = most_tokens(reply.usage, attempt.prompt_tokens, max_tokens)
        if price is None:
            tally.unpriced += 1
        else:
            cost = price.cost(reply.usage)
            # Without a count from the provider, it is the most that it can have been.
            attempt.cost = most if cost is None else cost
            tally.cost += attempt.cost
        if budget.cap is not None:
            excess = excess_of(reply.usage, attempt.prompt_tokens, max_tokens)
            if excess or (attempt.cost or 0) > most:
                stop.throw(beyond(excess, attempt.cost or 0, most))
        return reply

    def give_back(
        attempt: Attempt, amount: int, error: BaseException | None
    ) -> Awaitable[None] | None:
        """What was not sent or is not billed costs nothing; without a reply, what may have been
        billed counts as the most it can be, and stays reserved in the store."""
        if attempt.cost is not None:
            budget.spend(amount, attempt.cost)
            return None
        if _may_be_billed(attempt, error):
            budget.spend(amount, amount)
            return None
        budget.spend(amount, 0)
        return ledger.release(attempt.key, attempt.reservation)

    def note_loss(
        attempt: Attempt, most: int, error: BaseException | None
    ) -> Awaitable[None] | None:
        """Without a cap nothing is held; but what was lost and may be billed counts, should the run
        go on with one. It may have a price then that it does not have now."""
        if error is None or attempt.cost is not None or not _may_be_billed(attempt, error):
            return None
        tokens = attempt.prompt_tokens, max_tokens
        name = os.urandom(6).hex() if most else unpriced_attempt(judge, *tokens)
        return ledger.reserve(run, attempt.key, name, most)

    return pay


def excess_of(usage: Usage, prompt_tokens: int, max_tokens: int) -> str:
    """What was counted beyond all that a call was allowed, in words; empty if nothing was. A few
    tokens more are how a provider counts, and the money for them is part of the prompt's bound."""
    written, read = usage.output_tokens or 0, usage.input_tokens or 0
    if written > max_tokens + TOKENS_A_MESSAGE:
        return f"{written:,} output tokens, where max_tokens allows {max_tokens:,}"
    if read > prompt_tokens:
        return f"{read:,} prompt tokens, where the prompt can have {prompt_tokens:,} at most"
    return ""


def beyond(excess: str, cost: int, most: int) -> StoppedEarly:
    """Why no further call is sent once one was billed beyond what was held for it."""
    counted = f"counted {excess}" if excess else "counted more than was allowed"
    return StoppedEarly(
        f"the budget cannot be kept: the provider {counted}; the call cost ${usd(cost)}, and at"
        f" most ${usd(most)} was held for it",
        advice="Ask the provider what it bills; then raise max_tokens of this judge to what it"
        " really takes, or take budget_usd out, and run again.",
    )


def most_tokens(usage: Usage, prompt_tokens: int, max_tokens: int) -> Usage:
    """The most tokens of a reply whose usage is not fully known; nothing of one whose is."""
    if usage.input_tokens is not None and usage.output_tokens is not None:
        return Usage()
    return Usage(input_tokens=prompt_tokens, output_tokens=max_tokens)


def _may_be_billed(attempt: Attempt, error: BaseException | None) -> bool:
    """Whether a request without a reply may have reached the model."""
    if attempt.sent_at is None or (isinstance(error, CallLost) and not error.billed):
        return False
    return not isinstance(error, CallRejected | EvenhandError | AskAgain | Stopped)
