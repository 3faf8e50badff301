"""Units to judgments: which units are judged in which order, and a task group that judges them.

Units are read page by page, and at most `concurrency` of each group are under way. A unit whose
question was not sent stays pending.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol

from msgspec import Struct, field

from evenhand.engine.call import AskFn, CallStack, route
from evenhand.engine.loop import offloader
from evenhand.engine.progress import Tally
from evenhand.engine.stop import Signal, Stop, Stopped
from evenhand.engine.unit import (
    JudgeGroup,
    gather_conversations,
    judge_unit,
    note_outcome,
    stop_if_futile,
)
from evenhand.errors import NothingRecorded, StoreError
from evenhand.exchange import Question
from evenhand.judgment import RETRIED_BY_NEXT_RUN, Judgment
from evenhand.kinds.conversation import Offload
from evenhand.kinds.kind import ReadyKind
from evenhand.manifest import RELAY
from evenhand.store.ports import Call, Ledger, Scope, StoredUnit

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

    def note(self, unit: int, judge: int, repeat: int, judgment: Judgment | None) -> None:
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

    def note(self, unit: int, judge: int, repeat: int, judgment: Judgment | None) -> None:
        """Nothing depends on it."""


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
        group, sent, judgment = pool.group, self.tally.sent, None
        try:
            result = await judge_unit(
                *(self.kind, group, repeat, unit, ask, self.tally),
                gather=gather_conversations,
                offload=self.offload,
            )
        except NothingRecorded:
            self.tally.unrecorded[RELAY.join(group.names)] += 1
        else:
            judgment = result.judgment
            self.tally.count_judgment(judgment.status)
            await self.ledger.store_judgment(self.run_id, result.stored)
            # What the ledger answers costs nothing.
            if not pool.is_recorded and self.tally.sent > sent:
                note_outcome(self.tally, group, judgment, result.reply)
                stop_if_futile(self.stop, self.tally, group)
        self.schedule.note(unit.no, group.index, repeat, judgment)
        self._moved.notify_all()
