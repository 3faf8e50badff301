"""One question on its way to a judge, and the form that all layers on that way have.

A layer wraps the next: called with an attempt it gives a context in which the reply is there. What
it took before it went on (money, a turn) it gives back when that context ends, however it ends:
with a reply that is durable, with a loss, a cancellation, or a store that cannot be written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from evenhand.exchange import Question, Reply
from evenhand.ledger.store import Call


@dataclass(slots=True)
class Attempt:
    """A question, and what became of the present try to have it answered."""

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

    def renew(self, seconds: float | None) -> None:
        """Begin a new try, with so much time for its answer."""
        self.seconds, self.sent_at, self.reservation, self.cost = seconds, None, "", None


Layer = Callable[[Attempt], AbstractAsyncContextManager[Reply]]

Endpoint = Callable[[Question], Awaitable[Call]]
"""The outermost layer: a question in, a durable call out."""
