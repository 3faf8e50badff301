"""Units to judgments by the batch, wave after wave.

`ask` answers from the ledger; what is not there is gathered, and its unit waits. When no unit can
move any more, what has gathered is sent: first rounds, both orders and repeats in the first wave,
re-asks and contradictions in those after it. No unit is held meanwhile: when a batch has ended, the
units are judged again, and the ledger answers. So memory does not grow with a run, and a command
that dies is continued by the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from evenhand.engine.aside import one_aside
from evenhand.engine.ask import routed
from evenhand.engine.attempt import Endpoint
from evenhand.engine.batches import BatchDesk, Purse
from evenhand.engine.futility import note_outcome, stop_if_futile
from evenhand.engine.group import JudgeGroup
from evenhand.engine.prices import token_bound, usd
from evenhand.engine.schedule import Schedule
from evenhand.engine.settle import Settled, settle
from evenhand.engine.stop import Stop, Stopped
from evenhand.engine.tally import Tally
from evenhand.errors import NothingRecorded, StoppedEarly
from evenhand.exchange import Judge, Question
from evenhand.kinds.conversation import Offload
from evenhand.kinds.kind import ReadyKind
from evenhand.limits import BATCH_LOOK_FIRST, BATCH_LOOK_MOST
from evenhand.store.batches import Batches, OpenBatch
from evenhand.store.keys import call_keys
from evenhand.store.ports import Call, Ledger, StoredUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveGroup:
    """A group, and the desk of each of its judges; None for one that cannot be asked by the
    batch."""

    group: JudgeGroup
    judges: Sequence[Judge]
    desks: Sequence[BatchDesk | None]


@dataclass(slots=True, kw_only=True)
class Waves:
    """Everything one command needs to judge a scope of units by the batch."""

    kind: ReadyKind
    ledger: Ledger
    book: Batches
    run_id: str
    schedule: Schedule
    groups: Sequence[WaveGroup]
    stop: Stop
    tally: Tally
    purse: Purse
    used: Callable[[], int]
    """What the run has spent or holds, in picodollars."""
    then_live: int
    """Fewer questions than these are not worth a batch."""
    tell: Callable[[str], None]
    look_first: float = BATCH_LOOK_FIRST
    aside: Offload = field(default_factory=one_aside)
    open: dict[str, OpenBatch] = field(default_factory=dict[str, OpenBatch])
    """Batches that are waited for, by their names."""
    left: int = 0
    """Questions of the last wave that were not sent: too few, or not to be had by the batch."""
    _is_first: bool = True
    _needed: set[str] = field(default_factory=set[str])
    """Batches of other runs that hold questions of this one."""

    async def run(self) -> None:
        """Judge by waves until too little is left for one, or the switch is thrown."""
        try:
            await self._attach()
            while True:
                await self._wait()
                if not await self._wave():
                    break
        except Stopped:
            if not self.stop.thrown:
                raise
        finally:
            await self.ledger.flush()

    @property
    def _desks(self) -> list[BatchDesk]:
        return [desk for group in self.groups for desk in group.desks if desk is not None]

    def _desk_of(self, batch: OpenBatch) -> BatchDesk | None:
        """The desk that can ask for a batch: of its judge, else of any at the same place."""
        there = [desk for desk in self._desks if desk.path.place == batch.place]
        same = [desk for desk in there if desk.path.judge.name == batch.judge]
        return next(iter(same or there), None)

    async def _attach(self) -> None:
        """Go on with batches that were made before: those of this run, and those of others that
        were surely made, for they may answer the same questions."""
        for batch in await self.book.open_batches():
            desk, is_own = self._desk_of(batch), batch.run == self.run_id
            if desk is None or not (is_own or batch.ident):
                continue
            found = batch if batch.ident else await desk.recover(batch)
            if found is not None:
                self.open[found.name] = found
                if is_own:
                    self.tell(f"going on with batch {found.ident} of {found.size:,} questions")

    async def _wait(self) -> None:
        """Wait until every batch of this run has ended, and take in what each has. Those of other
        runs are looked at as well, and waited for where this run needs their answers."""
        pause = self.look_first
        while self.open:
            for batch in list(self.open.values()):
                desk = self._desk_of(batch)
                assert desk is not None
                if waiting := await desk.look(batch):
                    self.open[batch.name] = waiting
                    continue
                del self.open[batch.name]
                await self.ledger.flush()
            if not any(map(self._is_needed, self.open.values())):
                return
            await self.stop.sleep(pause)
            pause = min(BATCH_LOOK_MOST, 1.5 * pause)

    async def _wave(self) -> bool:
        """Judge every open unit as far as the ledger answers, and send what it cannot; whether
        there is something to wait for."""
        self.purse.count(self.used())
        self.left, self._needed = 0, set()
        for desk in self._desks:
            desk.begin()
        for group in self.groups:
            await self._judge(group)
        self._is_first = False
        await self.ledger.flush()
        # Not sooner: what the last batch answered is paid for.
        for group in self.groups:
            stop_if_futile(self.stop, self.tally, group.group)
        self.stop.check()
        gathered = sum(desk.gathered for desk in self._desks)
        if gathered >= max(1, self.then_live) or any(desk.sent for desk in self._desks):
            for desk in self._desks:
                self._opened(await desk.flush())
        else:
            self.left += gathered
        self.open = {name: it for name, it in self.open.items() if self._is_needed(it)}
        if self.open:
            return True
        self._require_progress()
        return False

    def _is_needed(self, batch: OpenBatch) -> bool:
        return batch.run == self.run_id or batch.name in self._needed

    def _opened(self, batches: Sequence[OpenBatch]) -> None:
        for batch in batches:
            self.open[batch.name] = batch

    def _require_progress(self) -> None:
        """Throw the switch where something is left that no further wave would send."""
        if self.purse.is_short and self.purse.cap is not None:
            self.stop.throw(
                StoppedEarly(
                    f"the budget of ${usd(self.purse.cap)} is reached: ${usd(self.purse.used)}"
                    " spent or reserved, and the next question may cost more than is left",
                    advice="Raise [limits] budget_usd and run again: nothing is paid for twice.",
                )
            )
        elif any(desk.is_full for desk in self._desks):
            self.stop.throw(
                StoppedEarly(
                    "the provider takes no batch for now",
                    advice="Wait a while and run the same command again: it continues where it"
                    " stopped.",
                )
            )

    async def _judge(self, members: WaveGroup) -> None:
        """All open units of a group, one after the other."""
        scratch = Tally()
        endpoint = routed(
            [
                self._endpoint(judge, desk, scratch)
                for judge, desk in zip(members.judges, members.desks, strict=True)
            ]
        )
        async with aclosing(self.schedule.work(members.group)) as work:
            async for repeat, units in work:
                for unit in units:
                    await self._settle(members.group, repeat, unit, endpoint, scratch)
        if self._is_first:
            self.tally.cached += scratch.cached

    async def _settle(
        self, group: JudgeGroup, repeat: int, unit: StoredUnit, endpoint: Endpoint, scratch: Tally
    ) -> None:
        """One unit, as far as the ledger answers."""
        self.stop.check()
        try:
            settled = await settle(
                self.kind, group, repeat, unit, endpoint, scratch, aside=self.aside
            )
        except (Stopped, NothingRecorded):
            self.stop.check()
        else:
            await self._keep(group, settled)
        await asyncio.sleep(0)  # Ctrl-C is heard

    async def _keep(self, group: JudgeGroup, settled: Settled) -> None:
        stored, judgment, reply = settled
        note_outcome(self.tally, group, judgment, reply)
        self.tally.verdicts += judgment.status == "verdict"
        self.tally.failures += judgment.status == "failure"
        self.tally.left_out += judgment.status == "left_out"
        self.tally.reasks += stored.reasks
        await self.ledger.settle(self.run_id, stored)
        self.schedule.note(stored.unit, stored.judge, stored.repeat, judgment)

    def _endpoint(self, judge: Judge, desk: BatchDesk | None, scratch: Tally) -> Endpoint:
        """`ask` over the ledger; what it cannot answer is gathered, and Stopped is raised."""
        key_of = call_keys(judge.identity)

        async def ask(question: Question) -> Call:
            key = key_of(question)
            call = await self.ledger.find(key)
            if call is not None:
                scratch.cached += 1
                return call
            if desk is not None and key in desk.refused:
                raise desk.refused[key]
            if desk is None or await self.book.was_left(key):
                self.left += 1
                raise Stopped
            waiting = self.open.keys() & set(await self.book.waiting_in(key))
            self._needed |= waiting
            if not waiting:
                self._opened(await desk.add(key, question, token_bound(question)))
            raise Stopped

        return ask
