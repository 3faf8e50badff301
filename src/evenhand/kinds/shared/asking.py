"""Ask, check, and ask again for what only the judge knows: the same for every kind.

Conversations that do not wait for each other are held together, and work that grows with a text is
done aside: how is the matter of whoever supplies `ask`, for a kind has no event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from evenhand.errors import CallError
from evenhand.exchange import Ask, Question, Reply, Style
from evenhand.judgment import Failure, Pass, Problem
from evenhand.kinds.check import Checked, V
from evenhand.kinds.prompt import Prompt
from evenhand.kinds.protocol import Words
from evenhand.limits import PROBLEMS_SHOWN


class Try(NamedTuple, Generic[V]):
    """One question, the reply to it, and what the contract says of it."""

    question: Question
    reply: Reply
    checked: Checked[V]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """As a judgment keeps them: so many, and without what the judge was told of them."""
        return tuple(
            replace(problem, wording="") for problem in self.checked.problems[:PROBLEMS_SHOWN]
        )

    @property
    def record(self) -> Pass:
        """As a judgment keeps it among its passes."""
        return Pass(
            reask=self.question.reask,
            problems=self.problems,
            odds={path: dict(odds) for path, odds in self.reply.odds.items()},
            sampling=dict(self.reply.sampling),
            uncut=dict(self.checked.uncut),
        )


class Conversation(NamedTuple, Generic[V]):
    """A question and its re-asks, until a reply keeps the contract or no more can be had. `loss`
    is what took the place of the last reply."""

    tries: Sequence[Try[V]]
    loss: CallError | None = None

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The record of each reply, in the order of asking."""
        return tuple(attempt.record for attempt in self.tries)

    @property
    def failure(self) -> Failure | None:
        """The failure of a conversation without a good reply; None where the last one is good."""
        if self.loss is not None:
            return Failure(reason=self.loss.reason, detail=str(self.loss), passes=self.passes)
        last = self.tries[-1].checked
        if not last.problems:
            return None
        first = last.problems[0]
        return Failure(
            reason=first.code, detail=first.message, fixes=last.fixes, passes=self.passes
        )


Converse = Callable[[], Awaitable[Conversation[V]]]


class Together(Protocol):
    """Holds conversations that do not wait for each other, and returns them in the order given. All
    of them are brought to their end before an exception of one is raised, the first in that
    order."""

    async def __call__(self, conversations: Sequence[Converse[V]]) -> Sequence[Conversation[V]]: ...


async def in_turn(conversations: Sequence[Converse[V]]) -> Sequence[Conversation[V]]:
    """One after the other: for replies that are there already."""
    ended: list[Conversation[V]] = []
    stops: list[Exception] = []
    for begin in conversations:
        try:
            ended.append(await begin())
        except Exception as stop:
            stops.append(stop)
    if stops:
        raise stops[0]
    return ended


T = TypeVar("T")


class Aside(Protocol):
    """Does work that goes through `size` characters where it keeps no other judgment waiting, and
    returns what comes of it."""

    def __call__(self, work: Callable[[], T], size: int) -> Awaitable[T]: ...


async def at_once(work: Callable[[], T], size: int) -> T:
    """Here and now: where no other judgment is under way."""
    return work()


class Asking(Struct, frozen=True, kw_only=True):
    """Who judges a unit: one judge, or those of a relay, of which the k-th is asked in round k."""

    ask: Ask
    together: Together = in_turn
    aside: Aside = at_once
    judges: Sequence[str] = ("",)
    styles: Sequence[Style] = ("full",)
    turn: int = 0
    """Which of the unit's judgments this is, over all judges and repeats."""


async def converse(
    asking: Asking,
    question: Question,
    check: Callable[[Reply], Checked[V]],
    prompt: Prompt,
    words: Words,
    repairs: int,
    size: int = 0,
) -> Conversation[V]:
    """Ask until a reply keeps the contract, the repairs are used up, or a call is lost. `size` is
    how many characters a check may go through beside the reply's."""
    tries: list[Try[V]] = []
    while True:
        try:
            reply = await asking.ask(question)
        except CallError as loss:
            return Conversation(tries, loss)
        checked = await asking.aside(partial(check, reply), size + len(reply.text))
        tries.append(Try(question, reply, checked))
        problems = checked.problems
        if not problems or question.reask >= repairs:
            return Conversation(tries)
        complaint = words.complaint(problems[:PROBLEMS_SHOWN])
        question = question.again(reply.text, prompt.again.fill({"problems": complaint}))
