"""Ask, check, and ask again for what only the judge knows: the same for every kind.

A kind has no event loop. Whoever supplies `ask` also supplies the way to hold several conversations
at the same time, and to run work that grows with a text off the loop.
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
        """The record of each reply, in the order of context."""
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


class GatherConversations(Protocol):
    """Hold several conversations and return them in the order given. All are brought to their end
    before the first exception, in that order, is raised."""

    async def __call__(self, conversations: Sequence[Converse[V]]) -> Sequence[Conversation[V]]: ...


async def gather_in_order(conversations: Sequence[Converse[V]]) -> Sequence[Conversation[V]]:
    """Hold one conversation after the other: for replies that are there already."""
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


class Offload(Protocol):
    """Run work that goes through `size` characters off the event loop and return its result."""

    def __call__(self, work: Callable[[], T], size: int) -> Awaitable[T]: ...


async def run_inline(work: Callable[[], T], size: int) -> T:
    """Run work here and now: where no other judgment is under way."""
    return work()


class JudgingContext(Struct, frozen=True, kw_only=True):
    """All that a kind gets of the world: `ask`, and who is asked. There is one judge, or those of a
    relay, of which the k-th is asked in round k."""

    ask: Ask
    gather_conversations: GatherConversations = gather_in_order
    offload: Offload = run_inline
    judges: Sequence[str] = ("",)
    styles: Sequence[Style] = ("full",)
    judgment_index: int = 0
    """The index of this judgment among those of the unit, over all judges and repeats."""


async def converse(
    context: JudgingContext,
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
            reply = await context.ask(question)
        except CallError as loss:
            return Conversation(tries, loss)
        checked = await context.offload(partial(check, reply), size + len(reply.text))
        tries.append(Try(question, reply, checked))
        problems = checked.problems
        if not problems or question.reask >= repairs:
            return Conversation(tries)
        complaint = words.complaint(problems[:PROBLEMS_SHOWN])
        question = question.again(reply.text, prompt.again.fill({"problems": complaint}))
