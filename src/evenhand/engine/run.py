"""Units to judgments: a pool of workers a judge, streaming, bounded, resumable.

Which unit comes next is the schedule's matter; each worker settles one unit at a time. A unit whose
question was not sent stays pending.
"""

from __future__ import annotations

import asyncio
from collections import Counter as Count
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, Protocol

from evenhand.engine.aside import one_aside
from evenhand.engine.ask import CallPath
from evenhand.engine.attempt import Endpoint
from evenhand.engine.stop import Stop, Stopped
from evenhand.engine.tally import Tally
from evenhand.engine.together import together
from evenhand.errors import NothingRecorded
from evenhand.exchange import Ask, Question, Reply, Style
from evenhand.judgment import RETRIED_BY_NEXT_RUN, Judgment, write_judgment
from evenhand.kinds.kind import Judging
from evenhand.kinds.shared.asking import Aside, Asking, Together, at_once, in_turn
from evenhand.ledger.ports import Call, Ledger, Scope, StoredJudgment, StoredUnit

LOOK_SECONDS = 0.05
"""How often a worker that is ahead of the others looks if it may go on."""

Work = AsyncGenerator[tuple[int, StoredUnit], None]
"""What a group has to judge: repeat and unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeGroup:
    """A judge of a run, or the judges of its relay: who they are, and their place in the run."""

    index: int
    names: tuple[str, ...]
    styles: tuple[Style, ...]
    caveat: str
    repeats: int
    turn: int
    """How many judgments of each unit the judge_groups before this one make."""


def group_names(judge_groups: Sequence[JudgeGroup]) -> list[str]:
    """Who judges, a name each: a judge, or those of a relay in their order. Judges of one name
    that differ in their parameters are counted."""
    names: list[str] = []
    seen: Count[str] = Count()
    for name in (" > ".join(group.names) for group in judge_groups):
        seen[name] += 1
        names.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return names


class Schedule(Protocol):
    """Which units are judged, in which order, and when it is enough."""

    def work(self, group: JudgeGroup) -> Work:
        """What a group has to judge, one after the other."""
        ...

    def is_early(self, unit: int) -> bool:
        """Whether a unit must wait for others to end."""
        ...

    def is_wanted(self, unit: int) -> bool:
        """Whether a unit is still to be judged."""
        ...

    def note(self, unit: int, judge: int, repeat: int, judgment: Judgment | None) -> None:
        """Hear how a judgment ended; None where there is none to be had."""
        ...


@dataclass(frozen=True, slots=True)
class Everything:
    """All that is open, in the order of the file: read page by page, and never held."""

    ledger: Ledger
    scope: Scope

    async def work(self, group: JudgeGroup) -> Work:
        again = tuple(RETRIED_BY_NEXT_RUN)
        for repeat in range(group.repeats):
            after = 0
            while units := await self.ledger.open_work(
                self.scope, group.index, repeat, again, after
            ):
                for unit in units:
                    yield repeat, unit
                after = units[-1].position

    def is_early(self, unit: int) -> bool:
        return False

    def is_wanted(self, unit: int) -> bool:
        return True

    def note(self, unit: int, judge: int, repeat: int, judgment: Judgment | None) -> None:
        """Nothing hangs on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One group and the workers that ask it."""

    group: JudgeGroup
    call_paths: Sequence[CallPath]
    width: int


def routed(endpoints: Sequence[Endpoint]) -> Endpoint:
    """One endpoint to the judges of a group."""
    if len(endpoints) == 1:
        return endpoints[0]

    async def ask(question: Question) -> Call:
        return await endpoints[question.seat](question)

    return ask


def in_slots(endpoint: Endpoint, slots: int) -> Endpoint:
    """The endpoint with so many questions at once: a unit may ask several."""
    free = asyncio.Semaphore(slots)

    async def ask(question: Question) -> Call:
        async with free:
            return await endpoint(question)

    return ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Everything one command needs to judge a scope of units."""

    kind: Judging
    ledger: Ledger
    run_id: str
    schedule: Schedule
    pools: Sequence[Pool]
    stop: Stop
    tally: Tally
    aside: Aside = field(default_factory=one_aside)

    async def run(self) -> None:
        """Judge until the schedule is run or the stop is thrown; then everything is durable."""
        try:
            async with AsyncExitStack() as ending, asyncio.TaskGroup() as group:
                for pool in self.pools:
                    endpoint = routed(
                        [
                            in_slots(
                                path.endpoint(), min(pool.width, path.judge.slots or pool.width)
                            )
                            for path in pool.call_paths
                        ]
                    )
                    work = await ending.enter_async_context(
                        aclosing(self.schedule.work(pool.group))
                    )
                    turn = asyncio.Lock()
                    for _ in range(pool.width):
                        group.create_task(self._worker(pool.group, work, turn, endpoint))
        except* Exception as failed:
            raise failed.exceptions[0] from failed.exceptions[0].__cause__
        finally:
            await self.ledger.flush()

    async def _worker(
        self, group: JudgeGroup, work: Work, turn: asyncio.Lock, endpoint: Endpoint
    ) -> None:
        while (due := await _next(work, turn)) is not None:
            repeat, unit = due
            try:
                while self.schedule.is_early(unit.no):
                    await self.stop.sleep(LOOK_SECONDS)
                self.stop.check()
                if self.schedule.is_wanted(unit.no):
                    settled = await settle(
                        *(self.kind, group, repeat, unit, endpoint, self.tally),
                        together=together,
                        aside=self.aside,
                    )
                    await self._keep(settled)
            except Stopped:
                return
            except NothingRecorded:
                self.schedule.note(unit.no, group.index, repeat, None)

    async def _keep(self, settled: Settled) -> None:
        stored, judgment = settled
        self.tally.verdicts += judgment.status == "verdict"
        self.tally.failures += judgment.status == "failure"
        self.tally.left_out += judgment.status == "left_out"
        await self.ledger.settle(self.run_id, stored)
        self.schedule.note(stored.unit, stored.judge, stored.repeat, judgment)


class Settled(NamedTuple):
    """A unit's judgment, as the store keeps it and as it is."""

    stored: StoredJudgment
    judgment: Judgment


async def _next(work: Work, turn: asyncio.Lock) -> tuple[int, StoredUnit] | None:
    """What is due next; the workers of a pool take it one at a time."""
    async with turn:
        return await anext(work, None)


async def settle(
    kind: Judging,
    group: JudgeGroup,
    repeat: int,
    unit: StoredUnit,
    endpoint: Endpoint,
    tally: Tally,
    together: Together = in_turn,
    aside: Aside = at_once,
) -> Settled:
    """One unit's judgment, with the keys of the calls it rests on: conversation by conversation as
    they were begun, whichever was answered first."""
    conversations: dict[tuple[int, int, str], list[str]] = {}
    reasks = 0

    async def ask(question: Question) -> Reply:
        nonlocal reasks
        place = question.round, question.seat, question.order
        keys = conversations.setdefault(place, [])
        call = await endpoint(replace(question, repeat=repeat) if repeat else question)
        keys.append(call.key)
        reasks += question.reask > 0
        tally.reasks += question.reask > 0
        return call.reply

    judgment = await kind.judge(unit.body, asking(group, repeat, ask, together, aside))
    calls = tuple(chain.from_iterable(conversations.values()))
    if group.caveat and calls:
        judgment = replace(judgment, flags=(*judgment.flags, "not_validated"))
    text = write_judgment(judgment, calls)
    stored = StoredJudgment(unit.no, group.index, repeat, calls, reasks, text)
    return Settled(stored, judgment)


def asking(
    group: JudgeGroup,
    repeat: int,
    ask: Ask,
    together: Together = in_turn,
    aside: Aside = at_once,
) -> Asking:
    """A group about to judge a unit."""
    return Asking(
        ask=ask,
        together=together,
        aside=aside,
        judges=group.names,
        styles=group.styles,
        turn=group.turn + repeat,
    )
