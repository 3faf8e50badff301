"""A hard cap in money: what a call may cost at most is reserved before it is sent."""

from __future__ import annotations

from typing import NamedTuple

from evenhand.engine.prices import Price, usd
from evenhand.engine.stop import Signal, Stop
from evenhand.errors import LimitReached, StoppedEarly
from evenhand.exchange import Usage
from evenhand.limits import TOKENS_A_MESSAGE

ADVICE = "Raise [limits] budget_usd and run again: nothing is paid for twice."


class CallBudget:
    """Picodollars that one run may spend, or several, also one after the other in event loops of
    their own. Without a cap every reservation is granted."""

    def __init__(self, cap: int | None = None, used: int = 0, advice: str = ADVICE) -> None:
        self.cap, self.used, self._reserved, self._advice = cap, used, 0, advice
        self._released = Signal()

    async def reserve(self, amount: int, stop: Stop) -> None:
        """Reserve an amount until `release`. Where calls under way may release enough, wait for
        them; else raise LimitReached. Raises Stopped."""
        while self.cap is not None and self.used + self._reserved + amount > self.cap:
            if not self._reserved:
                raise budget_reached(self.cap, self.used, amount, self._advice)
            await stop.sleep(None, self._released)
        self._reserved += amount

    def release(self, amount: int, cost: int) -> None:
        """Release a reserved amount, and count what the call did cost."""
        self._reserved -= amount
        self.used += cost
        self._released.notify_all()


class BatchBudget:
    """Picodollars for whole batches: what one may cost is not there for the next."""

    def __init__(self, cap: int | None) -> None:
        self.cap, self.used = cap, 0
        self.is_short = False
        """True if a question was turned away since the last `restart`."""

    def restart(self, used: int) -> None:
        """Begin a wave with what was spent or reserved until now."""
        self.used, self.is_short = used, False

    def try_reserve(self, amount: int) -> bool:
        """Reserve an amount; return False if it would exceed the cap."""
        if self.cap is not None and self.used + amount > self.cap:
            self.is_short = True
            return False
        self.used += amount
        return True


def budget_reached(cap: int, used: int, amount: int, advice: str = ADVICE) -> LimitReached:
    """Return the error for a budget that does not allow the next call."""
    return LimitReached(
        f"the budget of ${usd(cap)} is reached: ${usd(used)} spent or reserved,"
        f" and the next call may cost ${usd(amount)}",
        advice=advice,
        amount=amount,
    )


class PricedCall(NamedTuple):
    """The cost of a call in picodollars, None where no price is known; the most tokens that it can
    have taken, where it has no price above zero and its usage is not fully known; and the error
    for a call that was billed beyond its reservation."""

    cost: int | None
    most: Usage
    overcharge: StoppedEarly | None


def price_call(
    price: Price | None, usage: Usage, prompt_tokens: int, max_tokens: int
) -> PricedCall:
    """Return the price of a reply. Without a count from the provider, it is the most that it can
    have been."""
    if price is None:
        error = _overcharge(usage, prompt_tokens, max_tokens, 0, 0)
        return PricedCall(None, most_tokens(usage, prompt_tokens, max_tokens), error)
    most, cost = price.bound(prompt_tokens, max_tokens), price.cost(usage)
    cost = most if cost is None else cost
    bound = Usage() if most else most_tokens(usage, prompt_tokens, max_tokens)
    return PricedCall(cost, bound, _overcharge(usage, prompt_tokens, max_tokens, cost, most))


def _overcharge(
    usage: Usage, prompt_tokens: int, max_tokens: int, cost: int, most: int
) -> StoppedEarly | None:
    """Return the error for a call that was billed beyond its reservation, else None. A few tokens
    more are how a provider counts, and the prompt's bound has money for them."""
    written, read = usage.output_tokens or 0, usage.input_tokens or 0
    if written > max_tokens + TOKENS_A_MESSAGE:
        counted = f"{written:,} output tokens, where max_tokens allows {max_tokens:,}"
    elif read > prompt_tokens:
        counted = f"{read:,} prompt tokens, where the prompt can have {prompt_tokens:,} at most"
    elif cost > most:
        counted = "more than was allowed"
    else:
        return None
    return StoppedEarly(
        f"the budget cannot be kept: the provider counted {counted}; the call cost ${usd(cost)},"
        f" and at most ${usd(most)} was held for it",
        advice="Ask the provider what it bills; then raise max_tokens of this judge to what it"
        " really takes, or take budget_usd out, and run again.",
    )


def most_tokens(usage: Usage, prompt_tokens: int, max_tokens: int) -> Usage:
    """Return the most tokens that a reply can have taken, if its usage is not fully known; else an
    empty usage."""
    if usage.input_tokens is not None and usage.output_tokens is not None:
        return Usage()
    return Usage(input_tokens=prompt_tokens, output_tokens=max_tokens)
