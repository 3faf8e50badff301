"""Units to judgments: a pool of workers a judge, streaming, bounded, resumable.

Which unit comes next is the course's matter; each worker settles one unit at a time. A unit whose
question was not sent stays pending.
"""

from __future__ import annotations

import asyncio
from collections import Counter as Count
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from evenhand.engine.ask import Counter, Door, Tally
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import CallError, NothingRecorded
from evenhand.exchange import Ask, Question, Reply, Style
from evenhand.judgment import RETRIED_BY_NEXT_RUN, Judgment, failure
from evenhand.kinds.kind import Kind
from evenhand.kinds.shared.asking import Sitting
from evenhand.ledger.store import Call, Scope, Store, StoredJudgment, StoredUnit

LOOK_SECONDS = 0.05
"""How often a worker that is ahead of the others looks if it may go on."""

BASIS = "contract1:"
"""With a unit's digest, what a judgment rests on. A change of the contract changes the tag, and
the next run judges again from the ledger, at no cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A judge of a run, or the judges of its relay: who they are, and their place in the run."""

    index: int
    names: tuple[str, ...]
    styles: tuple[Style, ...]
    caveat: str
    repeats: int
    turn: int
    """How many judgments of each unit the benches before this one make."""


def bench_names(benches: Sequence[Bench]) -> list[str]:
    """Who judges, a name each: a judge, or those of a relay in their order. Judges of one name
    that differ in their parameters are counted."""
    names: list[str] = []
    seen: Count[str] = Count()
    for name in (" > ".join(bench.names) for bench in benches):
        seen[name] += 1
        names.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return names


class Course(Protocol):
    """Which units are judged, in which order, and when it is enough."""

    def work(self, bench: Bench) -> Iterator[tuple[int, StoredUnit]]:
        """What a bench has to judge: repeat and unit."""
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

    store: Store
    scope: Scope

    def work(self, bench: Bench) -> Iterator[tuple[int, StoredUnit]]:
        again = tuple(RETRIED_BY_NEXT_RUN)
        for repeat in range(bench.repeats):
            for unit in self.store.open_work(self.scope, bench.index, repeat, BASIS, again):
                yield repeat, unit

    def is_early(self, unit: int) -> bool:
        return False

    def is_wanted(self, unit: int) -> bool:
        return True

    def note(self, unit: int, judge: int, repeat: int, judgment: Judgment | None) -> None:
        """Nothing hangs on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One bench and the workers that ask it."""

    bench: Bench
    counters: Sequence[Counter]
    width: int


def routed(doors: Sequence[Door], slots: Sequence[int | None]) -> Door:
    """One door to the judges of a bench, each with as many requests at once as it takes."""
    if len(doors) == 1:
        return doors[0]
    turns = [asyncio.Semaphore(number) if number else None for number in slots]

    async def ask(question: Question) -> Call:
        async with AsyncExitStack() as held:
            turn = turns[question.seat]
            if turn is not None:
                await held.enter_async_context(turn)
            return await doors[question.seat](question)

    return ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Everything one command needs to judge a scope of units."""

    kind: Kind
    store: Store
    course: Course
    pools: Sequence[Pool]
    stop: Stop
    tally: Tally

    async def run(self) -> None:
        """Judge until the course is run or the stop is thrown; then everything is durable."""
        try:
            async with asyncio.TaskGroup() as group:
                for pool in self.pools:
                    slots = [counter.judge.slots for counter in pool.counters]
                    door = routed([counter.door() for counter in pool.counters], slots)
                    work = self.course.work(pool.bench)
                    for _ in range(pool.width):
                        group.create_task(self._worker(pool.bench, work, door))
        except* Exception as failed:
            raise failed.exceptions[0] from failed.exceptions[0].__cause__
        finally:
            await self.store.flush()

    async def _worker(
        self, bench: Bench, work: Iterator[tuple[int, StoredUnit]], door: Door
    ) -> None:
        for repeat, unit in work:
            try:
                while self.course.is_early(unit.no):
                    await self.stop.sleep(LOOK_SECONDS)
                self.stop.check()
                if self.course.is_wanted(unit.no):
                    self._keep(await settle(self.kind, bench, repeat, unit, door, self.tally))
            except Stopped:
                return
            except NothingRecorded:
                self.course.note(unit.no, bench.index, repeat, None)

    def _keep(self, stored: StoredJudgment) -> None:
        self.tally.verdicts += stored.judgment.status == "verdict"
        self.tally.failures += stored.judgment.status == "failure"
        self.tally.left_out += stored.judgment.status == "left_out"
        self.store.settle(stored)
        self.course.note(stored.unit, stored.judge, stored.repeat, stored.judgment)


async def settle(
    kind: Kind, bench: Bench, repeat: int, unit: StoredUnit, door: Door, tally: Tally
) -> StoredJudgment:
    """One unit's judgment, with the keys of the calls it rests on."""
    keys: list[str] = []
    reasks = 0

    async def ask(question: Question) -> Reply:
        nonlocal reasks
        call = await door(replace(question, repeat=repeat) if repeat else question)
        keys.append(call.key)
        reasks += question.reask > 0
        tally.reasks += question.reask > 0
        return call.reply

    try:
        judgment = await kind.judge(unit.body, sitting(bench, repeat, ask))
    except CallError as error:
        judgment = failure(error.reason, str(error))
    if bench.caveat and keys:
        judgment = replace(judgment, flags=(*judgment.flags, "not_validated"))
    basis = BASIS + unit.digest
    return StoredJudgment(unit.no, bench.index, repeat, basis, tuple(keys), reasks, judgment)


def sitting(bench: Bench, repeat: int, ask: Ask) -> Sitting:
    """A bench about to judge a unit."""
    return Sitting(ask=ask, judges=bench.names, styles=bench.styles, turn=bench.turn + repeat)
