"""Units to judgments: a pool of workers per group, streaming, bounded, resumable.

Which unit comes next is the schedule's matter; each worker settles one unit at a time. A unit whose
question was not sent stays pending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing

from msgspec import Struct, field

from evenhand.engine.aside import one_aside
from evenhand.engine.ask import CallPath, in_slots, routed
from evenhand.engine.attempt import Endpoint
from evenhand.engine.futility import note_outcome, stop_if_futile
from evenhand.engine.group import JudgeGroup
from evenhand.engine.schedule import Schedule, Work
from evenhand.engine.settle import Settled, settle
from evenhand.engine.signal import Signal
from evenhand.engine.stop import Stop, Stopped
from evenhand.engine.tally import Tally
from evenhand.engine.together import gather_conversations
from evenhand.errors import NothingRecorded, StoreError
from evenhand.judgment import Judgment
from evenhand.kinds.conversation import Offload
from evenhand.kinds.kind import ReadyKind
from evenhand.store.ports import Ledger, StoredUnit


class Pool(Struct, frozen=True, kw_only=True):
    """One group and the workers that ask it."""

    group: JudgeGroup
    call_paths: Sequence[CallPath]
    width: int

    def endpoint(self) -> Endpoint:
        """`ask` for the whole group, each judge with as many questions at once as it takes."""
        slots = [path.judge.slots or self.width for path in self.call_paths]
        return routed(
            [
                in_slots(path.endpoint(), min(self.width, most))
                for path, most in zip(self.call_paths, slots, strict=True)
            ]
        )


class Engine(Struct, frozen=True, kw_only=True):
    """Everything one command needs to judge a scope of units."""

    kind: ReadyKind
    ledger: Ledger
    run_id: str
    schedule: Schedule
    pools: Sequence[Pool]
    stop: Stop
    tally: Tally
    recorded: Collection[int] = ()
    """Groups of judges that only have recorded replies, by their index: they cost nothing."""
    aside: Offload = field(default_factory=one_aside)
    _moved: Signal = field(default_factory=Signal)

    async def run(self) -> None:
        """Judge until the schedule is run or the stop is thrown; then everything is durable."""
        try:
            async with AsyncExitStack() as ending, asyncio.TaskGroup() as workers:
                for pool in self.pools:
                    work = aclosing(self.schedule.work(pool.group))
                    units = _Queue(await ending.enter_async_context(work))
                    endpoint = pool.endpoint()
                    for _ in range(pool.width):
                        workers.create_task(self._worker(pool.group, units, endpoint))
        except* Exception as failed:
            raise failed.exceptions[0] from failed.exceptions[0].__cause__
        finally:
            await self.ledger.flush()
        if isinstance(self.stop.cause, StoreError):
            raise self.stop.cause

    async def _worker(self, group: JudgeGroup, units: _Queue, endpoint: Endpoint) -> None:
        try:
            while (due := units.at_hand() or await units.next()) is not None:
                await self._judge(group, *due, endpoint)
        except Stopped:
            return
        except StoreError as error:
            # What is under way is paid for, and waited for: a store keeps it where it can.
            self.stop.throw(error)

    async def _judge(
        self, group: JudgeGroup, repeat: int, unit: StoredUnit, endpoint: Endpoint
    ) -> None:
        """Settle one unit, in its turn; raises Stopped."""
        while self.schedule.is_early(unit.no):
            await self.stop.sleep(None, self._moved)
        self.stop.check()
        if not self.schedule.is_wanted(unit.no):
            return
        sent = self.tally.sent
        try:
            settled = await settle(
                *(self.kind, group, repeat, unit, endpoint, self.tally),
                gather_conversations=gather_conversations,
                aside=self.aside,
            )
        except NothingRecorded:
            self.tally.unrecorded[" > ".join(group.names)] += 1
            self._note(unit.no, group.index, repeat, None)
        else:
            await self._keep(settled)
            # What the ledger answers costs nothing.
            if group.index not in self.recorded and self.tally.sent > sent:
                note_outcome(self.tally, group, settled.judgment, settled.reply)
                stop_if_futile(self.stop, self.tally, group)

    async def _keep(self, settled: Settled) -> None:
        stored, judgment, _ = settled
        status = judgment.status
        self.tally.verdicts += status == "verdict"
        self.tally.failures += status == "failure"
        self.tally.left_out += status == "left_out"
        await self.ledger.settle(self.run_id, stored)
        self._note(stored.unit, stored.judge, stored.repeat, judgment)

    def _note(self, unit: int, judge: int, repeat: int, judgment: Judgment | None) -> None:
        """Tell the schedule, and those who wait for it to move on."""
        self.schedule.note(unit, judge, repeat, judgment)
        self._moved.give()


class _Queue:
    """What a group has to judge; the workers of a pool take it one at a time."""

    def __init__(self, work: Work) -> None:
        self._work, self._turn = work, asyncio.Lock()
        self._repeat = 0
        self._page: Iterator[StoredUnit] = iter(())

    def at_hand(self) -> tuple[int, StoredUnit] | None:
        """Repeat and unit that are due next; None at the end of a page."""
        unit = next(self._page, None)
        return None if unit is None else (self._repeat, unit)

    async def next(self) -> tuple[int, StoredUnit] | None:
        """The same, of the next page too; None at the end of all."""
        async with self._turn:
            while (due := self.at_hand()) is None:
                page = await anext(self._work, None)
                if page is None:
                    return None
                self._repeat, self._page = page[0], iter(page[1])
            return due
