"""`ask`, folded: ledger(retry(budget(pace(judge)))).

Each layer is a callable around the next, in a module of its own. Budget and pace stand inside
retry, not around it: every attempt is a request that counts against the minute and may be billed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from evenhand.engine.aside import one_aside
from evenhand.engine.attempt import Endpoint
from evenhand.engine.breaker import Breaker
from evenhand.engine.budget import Budget, budgeted
from evenhand.engine.pace import Pace, paced
from evenhand.engine.prices import Price
from evenhand.engine.recent import Recent, account_name
from evenhand.engine.record import recorded
from evenhand.engine.retry import Patience, retried
from evenhand.engine.send import sending
from evenhand.engine.slots import Slots
from evenhand.engine.stop import Stop
from evenhand.engine.tally import Tally
from evenhand.exchange import Judge, Question
from evenhand.kinds.conversation import Offload
from evenhand.store.ports import Call, Ledger


class CallPath(Struct, frozen=True, kw_only=True):
    """All that a call to one judge passes on its way."""

    judge: Judge
    run: str
    ledger: Ledger
    stop: Stop
    pace: Pace
    patience: Patience
    budget: Budget
    price: Price | None
    max_tokens: int
    tally: Tally
    sender: str = ""
    """How the names of its requests begin in the store, where rates are divided."""
    notice: Callable[[str], None] = lambda message: None
    aside: Offload = field(default_factory=one_aside)

    def endpoint(self) -> Endpoint:
        """`ask` for this judge."""
        send = sending(self.judge, self.stop, self.tally)
        recent = Recent(self.ledger, account_name(self.judge.account), self.sender)
        noted = recent if self.pace.is_limited else None
        in_turn = paced(send, self.pace, self.max_tokens, noted)
        pay = budgeted(
            in_turn,
            budget=self.budget,
            ledger=self.ledger,
            run=self.run,
            judge=self.judge.name,
            price=self.price,
            max_tokens=self.max_tokens,
            stop=self.stop,
            tally=self.tally,
        )
        keep_trying = retried(
            pay,
            patience=self.patience,
            stop=self.stop,
            breaker=Breaker(self.stop, self.tally, self.judge.name),
            notice=self.notice,
        )
        return recorded(
            keep_trying,
            judge=self.judge,
            run=self.run,
            ledger=self.ledger,
            stop=self.stop,
            tally=self.tally,
            aside=self.aside,
        )


def routed(endpoints: Sequence[Endpoint]) -> Endpoint:
    """One endpoint to the judges of a group."""
    if len(endpoints) == 1:
        return endpoints[0]

    async def ask(question: Question) -> Call:
        return await endpoints[question.judge_index](question)

    return ask


def in_slots(endpoint: Endpoint, slots: int) -> Endpoint:
    """The endpoint with so many questions at once: a unit may ask several."""
    free = Slots(slots)

    async def ask(question: Question) -> Call:
        if not free.take_at_once():
            await free.take()
        try:
            return await endpoint(question)
        finally:
            free.give_back()

    return ask
