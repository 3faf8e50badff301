"""One question on its way to a judge, and the form that all layers on that way have.

A layer is a callable around the next: an attempt in, a reply out. What it takes on the way (money,
a turn) it has the attempt hold, and the attempt gives it back when it ends, however it ends: with a
reply that is durable, with a loss, a cancellation, or a store that cannot be written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct, field

from evenhand.exchange import Question, Reply, Usage
from evenhand.store.ports import Call

NO_TOKENS = Usage()
GiveBack = Callable[[BaseException | None], Awaitable[None] | None]
"""Gives back what an attempt held; called with what ended it, if not a reply that is durable. What
it returns is waited for, where there is anything to wait for."""


class Attempt(Struct):
    """A question, and what the present try to have it answered holds: as many tries as it takes,
    one after the other."""

    question: Question
    key: str
    prompt_tokens: int
    """The most tokens that the prompt can have."""
    seconds: float | None = None
    """The time for an answer; None where the judge's own is short enough."""
    sent_at: float | None = None
    """When it was sent, by the monotonic clock; None before that."""
    reservation: str = ""
    """The name of its money in the store; empty where none is reserved there."""
    cost: int | None = None
    """What the reply cost, in picodollars; None where the price is not known."""
    most: Usage = NO_TOKENS
    """How many tokens it can have taken, where neither a price nor a full count is known."""
    _holdings: list[GiveBack] = field(default_factory=list)

    def hold(self, give_back: GiveBack) -> None:
        """Take care of what a layer has taken for this try."""
        self._holdings.append(give_back)

    def renew(self, seconds: float | None) -> None:
        """Begin a new try, with so much time for its answer."""
        self.seconds, self.sent_at, self.reservation, self.cost = seconds, None, "", None

    async def end(self, error: BaseException | None) -> None:
        """End the present try: give back what it holds, the last first."""
        while self._holdings:
            giving = self._holdings.pop()(error)
            if giving is not None:
                await giving


Layer = Callable[[Attempt], Awaitable[Reply]]

Endpoint = Callable[[Question], Awaitable[Call]]
"""The outermost layer: a question in, a durable call out."""
