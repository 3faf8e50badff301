"""Units to judgments: a pool of workers a judge, streaming, bounded, resumable.

Units are read from the store page by page and never held; each worker settles one unit at a time.
A unit whose question was not sent stays pending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from evenhand.engine.ask import Counter, Door, Tally
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import CallError, NothingRecorded
from evenhand.exchange import Question, Reply, Style
from evenhand.judgment import RETRIED_BY_NEXT_RUN, failure
from evenhand.ledger.store import Scope, Store, StoredJudgment, StoredUnit
from evenhand.protocols.kind import Kind

BASIS = "contract1:"
"""With a unit's digest, what a judgment rests on. A change of the contract changes the tag, and
the next run judges again from the ledger, at no cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One judge and the workers that ask it."""

    index: int
    counter: Counter
    repeats: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Everything one command needs to judge a scope of units."""

    kind: Kind
    store: Store
    scope: Scope
    pools: Sequence[Pool]
    stop: Stop
    tally: Tally

    async def run(self) -> None:
        """Judge until nothing is open or the stop is thrown; then everything is durable."""
        try:
            async with asyncio.TaskGroup() as group:
                for pool in self.pools:
                    work, door = self._work(pool), pool.counter.door()
                    for _ in range(pool.width):
                        group.create_task(self._worker(pool, work, door))
        except* Exception as failed:
            raise failed.exceptions[0] from failed.exceptions[0].__cause__
        finally:
            await self.store.flush()

    def _work(self, pool: Pool) -> Iterator[tuple[int, StoredUnit]]:
        again = tuple(RETRIED_BY_NEXT_RUN)
        for repeat in range(pool.repeats):
            for unit in self.store.open_work(self.scope, pool.index, repeat, BASIS, again):
                yield repeat, unit

    async def _worker(self, pool: Pool, work: Iterator[tuple[int, StoredUnit]], door: Door) -> None:
        for repeat, unit in work:
            if self.stop.thrown:
                return
            judge = pool.counter.judge
            case = Settling(self.kind, pool.index, repeat, judge.style, judge.caveat)
            try:
                self._keep(await settle(case, unit, door, self.tally))
            except Stopped:
                return
            except NothingRecorded:
                continue

    def _keep(self, stored: StoredJudgment) -> None:
        if stored.judgment.status == "verdict":
            self.tally.verdicts += 1
        else:
            self.tally.failures += 1
        self.store.settle(stored)


class Settling(NamedTuple):
    """How a unit is to be judged: the kind, and the judge's place in the run."""

    kind: Kind
    judge: int
    repeat: int
    style: Style
    caveat: str


async def settle(case: Settling, unit: StoredUnit, door: Door, tally: Tally) -> StoredJudgment:
    """One unit's judgment, with the keys of the calls it rests on."""
    keys: list[str] = []
    reasks = 0

    async def ask(question: Question) -> Reply:
        nonlocal reasks
        call = await door(replace(question, repeat=case.repeat) if case.repeat else question)
        keys.append(call.key)
        reasks += question.reask > 0
        tally.reasks += question.reask > 0
        return call.reply

    try:
        judgment = await case.kind.judge(unit.body, ask, case.style)
    except CallError as error:
        judgment = failure(error.reason, str(error))
    if case.caveat:
        judgment = replace(judgment, flags=(*judgment.flags, "not_validated"))
    basis = BASIS + unit.digest
    return StoredJudgment(unit.no, case.judge, case.repeat, basis, tuple(keys), reasks, judgment)
