"""Units to judgments by the batch, wave after wave.

`ask` answers from the ledger; what is not there is gathered, and its unit waits. When no unit can
move any more, what was gathered is sent: first rounds, both orders and repeats in the first wave,
re-asks and contradictions in those after it. No unit is held meanwhile: when a batch has ended, the
units are judged again, and the ledger answers. So memory does not grow with a run, and a command
that dies is continued by the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from evenhand.engine.batch import BatchSender
from evenhand.engine.call import AskFn, route
from evenhand.engine.loop import offloader
from evenhand.engine.prices import BatchBudget, token_bound, usd
from evenhand.engine.progress import Tally
from evenhand.engine.run import JudgeGroup, Schedule, judge_unit, note_outcome, stop_if_futile
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import NothingRecorded, StoppedEarly
from evenhand.exchange import Judge, Question
from evenhand.kinds.conversation import Offload
from evenhand.kinds.kind import ReadyKind
from evenhand.limits import BATCH_LOOK_FIRST, BATCH_LOOK_MOST
from evenhand.store.batches import Batches, BatchRow
from evenhand.store.ledger import Ledger
from evenhand.store.ports import Call, StoredUnit
from evenhand.store.rows import call_keys
from evenhand.words import Sentence, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveGroup:
    """A group, and the sender of each of its judges; None for one that has no batches."""

    group: JudgeGroup
    judges: Sequence[Judge]
    senders: Sequence[BatchSender | None]


@dataclass(slots=True, kw_only=True)
class Waves:
    """Everything one command needs to judge a scope of units by the batch."""

    kind: ReadyKind
    ledger: Ledger
    batch_store: Batches
    run_id: str
    schedule: Schedule
    groups: Sequence[WaveGroup]
    stop: Stop
    tally: Tally
    budget: BatchBudget
    used: Callable[[], int]
    """Returns what the run has spent or reserved, in picodollars."""
    then_live: int
    """Fewer questions than these are not worth a batch."""
    tell: Callable[[str], None]
    look_first: float = BATCH_LOOK_FIRST
    offload: Offload = field(default_factory=offloader)
    open: dict[str, BatchRow] = field(default_factory=dict[str, BatchRow])
    """Batches that are waited for, by their names."""
    left: int = 0
    """Questions of the last wave that were not sent: too few, or of a judge without batches."""
    _is_first: bool = True
    _needed: set[str] = field(default_factory=set[str])
    """Batches of other runs that hold questions of this one."""

    async def run(self) -> None:
        """Judge by waves until too little is left for one, or the stop is requested."""
        try:
            await self._attach()
            await self._wait()
            while await self._send_wave():
                await self._wait()
        except Stopped:
            if not self.stop.requested:
                raise
        finally:
            await self.ledger.flush()

    @property
    def _senders(self) -> list[BatchSender]:
        return [sender for group in self.groups for sender in group.senders if sender is not None]

    def _sender_of(self, batch: BatchRow) -> BatchSender | None:
        """Return the sender that can ask for a batch: its judge's, else any at the same place."""
        there = [sender for sender in self._senders if sender.place == batch.place]
        same = [sender for sender in there if sender.judge.name == batch.judge]
        return next(iter(same or there), None)

    async def _attach(self) -> None:
        """Go on with batches that were created before: those of this run, and those of others that
        were surely created, for they may answer the same questions."""
        for batch in await self.batch_store.open_batches():
            sender, is_own = self._sender_of(batch), batch.run == self.run_id
            if sender is None or not (is_own or batch.ident):
                continue
            found = batch if batch.ident else await sender.recover(batch)
            if found is not None:
                self.open[found.name] = found
                if is_own:
                    about: dict[str, Value] = {"batch": found.ident, "n": found.requests}
                    self.tell(Sentence("engine.batch_continued", **about))

    async def _wait(self) -> None:
        """Wait for every batch of this run and those it needs, and take in what each has."""
        pause = self.look_first
        while self.open:
            for batch in list(self.open.values()):
                sender = self._sender_of(batch)
                assert sender is not None
                if waiting := await sender.poll(batch):
                    self.open[batch.name] = waiting
                    continue
                del self.open[batch.name]
                await self.ledger.flush()
            if not any(map(self._is_needed, self.open.values())):
                return
            await self.stop.sleep(pause)
            pause = min(BATCH_LOOK_MOST, 1.5 * pause)

    async def _send_wave(self) -> bool:
        """Judge every open unit as far as the ledger answers, and send what it cannot; return True
        if there is something to wait for."""
        self.budget.restart(self.used())
        self.left, self._needed = 0, set()
        for sender in self._senders:
            sender.begin_wave()
        for group in self.groups:
            await self._judge_group(group)
        self._is_first = False
        await self.ledger.flush()
        # Not sooner: what the last batch answered is paid for.
        for group in self.groups:
            stop_if_futile(self.stop, self.tally, group.group)
        self.stop.check()
        gathered = sum(sender.gathered for sender in self._senders)
        if gathered >= max(1, self.then_live) or any(sender.sent for sender in self._senders):
            for sender in self._senders:
                self._add_open(await sender.flush())
        else:
            self.left += gathered
        self.open = {name: it for name, it in self.open.items() if self._is_needed(it)}
        if not self.open:
            self._require_progress()
        return bool(self.open)

    def _is_needed(self, batch: BatchRow) -> bool:
        return batch.run == self.run_id or batch.name in self._needed

    def _add_open(self, batches: Sequence[BatchRow]) -> None:
        self.open |= {batch.name: batch for batch in batches}

    def _require_progress(self) -> None:
        """Stop the run where something is left that no further wave would send."""
        if self.budget.is_short and self.budget.cap is not None:
            self.stop.request(
                StoppedEarly(
                    Sentence(
                        "engine.budget_used_up",
                        cap=float(usd(self.budget.cap)),
                        used=float(usd(self.budget.used)),
                    )
                )
            )
        elif any(sender.is_full for sender in self._senders):
            self.stop.request(StoppedEarly(Sentence("engine.no_batch_for_now")))

    async def _judge_group(self, members: WaveGroup) -> None:
        """Judge all open units of a group, one after the other."""
        scratch = Tally()
        pairs = zip(members.judges, members.senders, strict=True)
        ask = route([self._ask_fn(judge, sender, scratch) for judge, sender in pairs])
        async with aclosing(self.schedule.work(members.group)) as work:
            async for repeat, units in work:
                for unit in units:
                    await self._judge(members.group, repeat, unit, ask, scratch)
        if self._is_first:
            self.tally.cached += scratch.cached

    async def _judge(
        self, group: JudgeGroup, repeat: int, unit: StoredUnit, ask: AskFn, scratch: Tally
    ) -> None:
        """Judge one unit, if the ledger answers all its questions."""
        self.stop.check()
        try:
            stored, judgment, reply = await judge_unit(
                self.kind, group, repeat, unit, ask, scratch, offload=self.offload
            )
        except (Stopped, NothingRecorded):
            self.stop.check()
        else:
            note_outcome(self.tally, group, judgment, reply)
            self.tally.count_judgment(judgment.status)
            self.tally.reasks += stored.reasks
            await self.ledger.store_judgment(self.run_id, stored)
            self.schedule.note(stored.unit, stored.judge, stored.repeat, stored.text)
        await asyncio.sleep(0)  # Ctrl-C is heard

    def _ask_fn(self, judge: Judge, sender: BatchSender | None, scratch: Tally) -> AskFn:
        """Return `ask` over the ledger; what it cannot answer is gathered, and Stopped raised."""
        key_of = call_keys(judge.identity)

        async def ask(question: Question) -> Call:
            key = key_of(question)
            call = await self.ledger.find(key)
            if call is not None:
                scratch.cached += 1
                return call
            if sender is not None and key in sender.refused:
                raise sender.refused[key]
            if sender is None or await self.batch_store.was_unanswered(key):
                self.left += 1
                raise Stopped
            waiting = self.open.keys() & set(await self.batch_store.waiting_in(key))
            self._needed |= waiting
            if not waiting:
                self._add_open(await sender.add(key, question, token_bound(question)))
            raise Stopped

        return ask
