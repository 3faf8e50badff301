"""Units to judgments: which units are judged in which order, a task group that judges them, and one
unit judged by one group of judges.

Units are read page by page, and at most `concurrency` of each group are under way. A unit whose
question was not sent stays pending. A run whose judgments all fail is stopped before the rest of it
is paid for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol

from msgspec import Struct, field
from msgspec.structs import replace as replace_fields

from evenhand.engine.call import AskFn, CallStack, route
from evenhand.engine.loop import offloader
from evenhand.engine.progress import Tally
from evenhand.engine.stop import Signal, Stop, Stopped
from evenhand.errors import NothingRecorded, NoVerdicts, StoreError
from evenhand.exchange import Ask, Question, Reply, Style
from evenhand.judgment import RETRIED_BY_NEXT_RUN, Judgment, JudgmentText, write_judgment
from evenhand.kinds.conversation import (
    Conversation,
    Converse,
    GatherConversations,
    JudgingContext,
    Offload,
    gather_in_order,
    run_inline,
)
from evenhand.kinds.kind import ReadyKind
from evenhand.kinds.reply import V
from evenhand.limits import FUTILE_JUDGMENTS
from evenhand.manifest import RELAY, number_names
from evenhand.store.ledger import Ledger
from evenhand.store.ports import Call, Scope, StoredJudgment, StoredUnit
from evenhand.words import Code, Sentence, words


class JudgeGroup(Struct, frozen=True, kw_only=True):
    """A judge of a run, or the judges of its relay."""

    index: int
    names: tuple[str, ...]
    styles: tuple[Style, ...]
    caveat: str
    repeats: int
    turn: int
    """The number of judgments of each unit that the groups before this one make."""


def group_names(judge_groups: Sequence[JudgeGroup]) -> list[str]:
    """Return a name for each group: of its judge, or of those of a relay in their order."""
    return number_names([RELAY.join(group.names) for group in judge_groups])


# Which units

Work = AsyncGenerator[tuple[int, Sequence[StoredUnit]], None]
"""Open work of a group, page by page: a repeat, and units of it."""


class Schedule(Protocol):
    """The order of a run. What it answers may change with every judgment it is told of."""

    def work(self, group: JudgeGroup) -> Work:
        """Yield what a group has to judge, in order."""
        ...

    def is_early(self, unit: int) -> bool:
        """Return True if a unit must wait for others to end."""
        ...

    def is_wanted(self, unit: int) -> bool:
        """Return True if a unit is still to be judged."""
        ...

    def note(self, unit: int, judge: int, repeat: int, text: JudgmentText | None) -> None:
        """Note how a judgment ended; None where there is no recorded reply for it."""
        ...


class FileOrder(Struct, frozen=True):
    """All that is open, in the order of the file; last what failed at an earlier start, so that the
    rest is judged before a judge that fails there again stops the run."""

    ledger: Ledger
    scope: Scope

    async def work(self, group: JudgeGroup) -> Work:
        # A byte for each position. Open is also what is under way, or failed just now.
        begun = [bytearray() for _ in range(group.repeats)]
        for again in ((), tuple(RETRIED_BY_NEXT_RUN)):
            for repeat, marks in enumerate(begun):
                after = 0
                while page := await self.ledger.open_work(
                    self.scope, group.index, repeat, again, after
                ):
                    after = page[-1].position
                    marks.extend(bytes(max(0, after + 1 - len(marks))))
                    if units := [unit for unit in page if not marks[unit.position]]:
                        for unit in units:
                            marks[unit.position] = 1
                        yield repeat, units

    def is_early(self, unit: int) -> bool:
        return False

    def is_wanted(self, unit: int) -> bool:
        return True

    def note(self, unit: int, judge: int, repeat: int, text: JudgmentText | None) -> None:
        """Nothing depends on it."""


# One unit


class UnitResult(NamedTuple):
    """A unit's judgment, as the store keeps it and as it is."""

    stored: StoredJudgment
    judgment: Judgment
    reply: str | None
    """The last reply it rests on, a re-ask where there was one; None where there is none."""


async def judge_unit(
    kind: ReadyKind,
    group: JudgeGroup,
    repeat: int,
    unit: StoredUnit,
    ask: AskFn,
    tally: Tally,
    gather: GatherConversations = gather_in_order,
    offload: Offload = run_inline,
) -> UnitResult:
    """Return one unit's judgment. Its calls are in the order of their conversations, whichever was
    answered first. Raises what `ask` raises, except CallError."""
    conversations: dict[tuple[int, int, str], list[str]] = {}
    reasks, is_usage_plausible = 0, True
    last: tuple[int, str] | None = None

    async def ask_and_note(question: Question) -> Reply:
        nonlocal reasks, is_usage_plausible, last
        place = question.round, question.judge_index, question.order
        keys = conversations.setdefault(place, [])
        call = await ask(replace_fields(question, repeat=repeat) if repeat else question)
        keys.append(call.key)
        reasks += question.reask > 0
        is_usage_plausible &= not call.reply.usage.implausible
        tally.reasks += question.reask > 0
        if last is None or question.reask >= last[0]:
            last = question.reask, call.reply.text
        return call.reply

    context = judging_context(group, repeat, ask_and_note, gather, offload)
    loaded = await offload(partial(kind.load, unit.body), len(unit.body))
    judgment = await kind.judge(loaded, context)
    calls = tuple(chain.from_iterable(conversations.values()))
    if not is_usage_plausible:
        judgment = replace(judgment, flags=(*judgment.flags, "usage_not_believed"))
    if group.caveat and calls:
        judgment = replace(judgment, flags=(*judgment.flags, "not_validated"))
    text = write_judgment(judgment, calls, kind.observe(unit.body, judgment))
    stored = StoredJudgment(unit.no, group.index, repeat, calls, reasks, text)
    return UnitResult(stored, judgment, last and last[1])


def judging_context(
    group: JudgeGroup,
    repeat: int,
    ask: Ask,
    gather: GatherConversations = gather_in_order,
    offload: Offload = run_inline,
) -> JudgingContext:
    """Return what a kind is given to judge a unit with."""
    return JudgingContext(
        ask=ask,
        gather_conversations=gather,
        offload=offload,
        judges=group.names,
        styles=group.styles,
        judgment_index=group.turn + repeat,
    )


async def gather_conversations(conversations: Sequence[Converse[V]]) -> Sequence[Conversation[V]]:
    """Hold conversations at the same time; raise the first exception once all have ended, for a
    call under way is paid for."""
    if len(conversations) == 1:
        return [await conversations[0]()]
    work = (begin() for begin in conversations)
    ended = await asyncio.gather(*work, return_exceptions=True)
    results: list[Conversation[V]] = []
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
        results.append(outcome)
    return results


# All units


class Pool(Struct, frozen=True, kw_only=True):
    """One group, and the calls to its judges."""

    group: JudgeGroup
    stacks: Sequence[CallStack]
    concurrency: int

    @property
    def width(self) -> int:
        """Return the number of units under way at once. A judge that takes few requests bounds its
        own group, but not a relay, in which it may never be asked."""
        slots = self.stacks[0].judge.slots if len(self.stacks) == 1 else None
        return min(self.concurrency, slots or self.concurrency)

    @property
    def is_recorded(self) -> bool:
        """Return True if all its judges only have recorded replies, which cost nothing."""
        return all(stack.judge.identity.get("provider") == "replay" for stack in self.stacks)

    def ask_fn(self) -> AskFn:
        """Return `ask` for the whole group. A unit may ask several questions at once: each judge
        gets as many as it takes."""
        return route([_bound(stack, self.width) for stack in self.stacks])


def _bound(stack: CallStack, width: int) -> AskFn:
    permits = asyncio.Semaphore(min(width, stack.judge.slots or width))

    async def ask(question: Question) -> Call:
        async with permits:
            return await stack.ask(question)

    return ask


class Engine(Struct, frozen=True, kw_only=True):
    """Everything one command needs to judge a scope of units."""

    kind: ReadyKind
    ledger: Ledger
    run_id: str
    schedule: Schedule
    pools: Sequence[Pool]
    stop: Stop
    tally: Tally
    offload: Offload = field(default_factory=offloader)
    _moved: Signal = field(default_factory=Signal)

    async def run(self) -> None:
        """Judge until the schedule is at its end or the stop is requested; then everything is
        durable. Raises StoreError."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for pool in self.pools:
                    tasks.create_task(self._judge_pool(pool, tasks))
        except* Exception as failed:
            raise failed.exceptions[0] from failed.exceptions[0].__cause__
        finally:
            await self.ledger.flush()
        if isinstance(self.stop.cause, StoreError):
            raise self.stop.cause

    async def _judge_pool(self, pool: Pool, tasks: asyncio.TaskGroup) -> None:
        """Start a task for each unit, so many at a time."""
        ask, permits = pool.ask_fn(), asyncio.Semaphore(pool.width)
        try:
            async with aclosing(self.schedule.work(pool.group)) as work:
                async for repeat, units in work:
                    for unit in units:
                        await permits.acquire()
                        self.stop.check()
                        task = tasks.create_task(self._judge(pool, repeat, unit, ask))
                        task.add_done_callback(lambda _: permits.release())
        except Stopped:
            return
        except StoreError as error:
            self.stop.request(error)

    async def _judge(self, pool: Pool, repeat: int, unit: StoredUnit, ask: AskFn) -> None:
        """Judge one unit when it is due, and keep the judgment."""
        try:
            while self.schedule.is_early(unit.no):
                await self.stop.sleep(None, self._moved)
            self.stop.check()
            if self.schedule.is_wanted(unit.no):
                await self._judge_due(pool, repeat, unit, ask)
        except Stopped:
            return
        except StoreError as error:
            # What is under way is paid for, and waited for: a store keeps it where it can.
            self.stop.request(error)

    async def _judge_due(self, pool: Pool, repeat: int, unit: StoredUnit, ask: AskFn) -> None:
        group, sent, text = pool.group, self.tally.sent, None
        try:
            result = await judge_unit(
                *(self.kind, group, repeat, unit, ask, self.tally),
                gather=gather_conversations,
                offload=self.offload,
            )
        except NothingRecorded:
            self.tally.unrecorded[RELAY.join(group.names)] += 1
        else:
            judgment, text = result.judgment, result.stored.text
            self.tally.count_judgment(judgment.status)
            await self.ledger.store_judgment(self.run_id, result.stored)
            # What the ledger answers costs nothing.
            if not pool.is_recorded and self.tally.sent > sent:
                note_outcome(self.tally, group, judgment, result.reply)
                stop_if_futile(self.stop, self.tally, group)
        self.schedule.note(unit.no, group.index, repeat, text)
        self._moved.notify_all()


# Runs in which nothing can be judged

_REPLY_LINES, _REPLY_COLUMNS = 4, 100

_WITHOUT_REPLY = RETRIED_BY_NEXT_RUN | {"filtered", "context_overflow"}


def failure_advice(reason: str) -> str:
    """Return what to change where judgments fail for a reason; empty for an unknown one."""
    key = f"engine.advice_{reason}"
    return Sentence(key) if words("en").has(key) else ""


def note_outcome(tally: Tally, group: JudgeGroup, judgment: Judgment, reply: str | None) -> None:
    """Count a judgment of this command, and keep the last reply of a failure."""
    if judgment.status != "left_out":
        tally.outcomes.setdefault(group.index, Counter())[judgment.reason] += 1
    if judgment.reason is not None:
        is_lost = reply is None or judgment.reason in _WITHOUT_REPLY
        tally.last_failures[group.index] = judgment.detail if is_lost else str(reply)


def stop_if_futile(stop: Stop, tally: Tally, group: JudgeGroup) -> None:
    """Stop the run if this command paid for 20 judgments or more by a judge and none of them is a
    verdict, for whatever reasons they failed."""
    outcomes = tally.outcomes.get(group.index, Counter())
    if outcomes.total() < FUTILE_JUDGMENTS or outcomes[None]:
        return
    reasons = [(reason, number) for reason, number in outcomes.most_common() if reason]
    what = Sentence(
        "engine.no_verdicts",
        n=outcomes.total(),
        judge=RELAY.join(group.names),
        reasons=Code(", ".join(f"{reason} {number:,}" for reason, number in reasons)),
        reply=Code(_cut(tally.last_failures.get(group.index, ""))),
        todo=failure_advice(reasons[0][0]),
    )
    stop.request(NoVerdicts(what))


def _cut(reply: str) -> str:
    """Return the first lines of a reply, each set off by a bar."""
    lines = reply.strip().splitlines() or ["(empty)"]
    kept = [
        line if len(line) <= _REPLY_COLUMNS else line[: _REPLY_COLUMNS - 1] + "…"
        for line in lines[:_REPLY_LINES]
    ]
    more = ["…"] if len(lines) > _REPLY_LINES else []
    return "\n".join(f"    | {line}" for line in [*kept, *more])
