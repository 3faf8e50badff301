"""The loop of a worker: it judges what is open in a store, run after run, until it is told to leave
or has had nothing to do for a while. Any number may come and go at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from evenhand.cluster.plan import OpenPlan, Surroundings, open_plan
from evenhand.engine.stop import Stop, Stopped
from evenhand.engine.tally import Tally
from evenhand.errors import EvenhandError, Interrupted, OpenedAnew, StoreError, UsageError
from evenhand.ledger.coordination import OpenRun, Work, Worker
from evenhand.ledger.ports import Ledger, Store
from evenhand.limits import LOOK_AGAIN_MOST
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.share import Share, work_of
from evenhand.runs.terms import read_terms

NOTE_CHARS = 500
"""Of why a worker leaves a run to others, so much is kept."""


def _quiet(line: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a worker is to do: judge one run (its id) to its end, or whatever is open; and leave
    after so many seconds without work."""

    run: str | None = None
    idle_exit: float | None = None
    tell: Callable[[str], None] = _quiet
    notice: Callable[[str], None] = _quiet


@dataclass(slots=True)
class _OpenWork:
    """An open run as this worker knows it."""

    opening: int
    run: Recorded
    ready: OpenPlan
    tally: Tally = field(default_factory=Tally)
    refused: EvenhandError | None = None

    @property
    def note(self) -> str:
        """Why this worker leaves it, or a part of it, to others; empty where it does not."""
        refusal = [] if self.refused is None else [str(self.refused)]
        absent = [f"{judge}: {reason}" for judge, reason in self.ready.absent.items()]
        return "; ".join([*refusal, *absent])[:NOTE_CHARS]


class WorkerLoop:
    """One worker at a store that workers share."""

    def __init__(self, store: Store, here: Surroundings, orders: Orders) -> None:
        if store.coordination is None:
            raise UsageError(
                "workers share a store in PostgreSQL, and this one is a file",
                advice="Name it with --store postgresql://...; a file is judged by one"
                " process: evenhand run",
            )
        self._join, self._store, self._here, self._orders = store.coordination, store, here, orders
        self._leaving, self._stop = Stop(), Stop()
        self._works: dict[str, _OpenWork] = {}
        self._done = 0

    def leave(self, cause: EvenhandError) -> bool:
        """End soon: nothing new is sent, what is under way is waited for, the rest handed back.
        False where that was said before."""
        is_first = not self._leaving.thrown
        self._leaving.throw(cause)
        self._stop.throw(cause)
        return is_first

    async def work(self) -> EvenhandError | None:
        """Judge until there is nothing to do; what ended it early, if something did."""
        async with self._join() as worker, self._store.ledger() as ledger:
            try:
                await self._work(worker, ledger)
            except Stopped:
                return self._leaving.cause
            finally:
                for work in self._works.values():
                    await work.ready.plan.aclose()
        refusals = [work.refused for work in self._works.values() if work.refused]
        return refusals[0] if self._orders.run and refusals else None

    async def _work(self, worker: Worker, ledger: Ledger) -> None:
        idle_since, patience = monotonic(), self._orders.idle_exit
        while True:
            await worker.beat("", Work())
            runs = [run for run in await worker.open_runs() if not run.stopped]
            if self._orders.run is not None:
                runs = [run for run in runs if run.run == self._orders.run]
                # Whoever begins it may be about to open it.
                if not runs and (self._works or patience is None):
                    self._orders.tell(f"run {self._orders.run} is not open: nothing to judge")
                    return
            before = self._done
            for run in runs:
                await self._take_part(run, worker, ledger)
            if self._done > before:
                idle_since = monotonic()
                continue
            if runs and self._orders.run and all(work.refused for work in self._works.values()):
                return
            if patience is not None and monotonic() - idle_since >= patience:
                return
            await self._leaving.sleep(LOOK_AGAIN_MOST)

    async def _take_part(self, open_run: OpenRun, worker: Worker, ledger: Ledger) -> None:
        """Judge what can be taken of a run now."""
        work = await self._known(open_run)
        if work.refused:
            await worker.beat(open_run.run, work_of(work.tally), work.note)
            return
        self._leaving.check()
        self._stop = Stop()
        share = Share(
            plan=work.ready.plan,
            run=open_run.run,
            worker=worker,
            ledger=ledger,
            stop=self._stop,
            opening=open_run.opening,
            groups=work.ready.groups,
            waits=False,
            notice=self._orders.notice,
            tally=work.tally,
        )
        before = _settled(work.tally)
        await share.judge()
        self._done += _settled(work.tally) - before
        self._leaving.check()
        cause = self._stop.cause
        if isinstance(cause, StoreError):
            raise cause
        if isinstance(cause, OpenedAnew) or await share.is_opened_anew():
            return  # whatever stopped it was said of the terms before
        if cause is not None and not isinstance(cause, Interrupted):
            work.refused = cause
            self._orders.tell(f"run {open_run.run}: {cause}")
        if note := work.note:
            await worker.beat(open_run.run, work_of(work.tally), note)

    async def _known(self, open_run: OpenRun) -> _OpenWork:
        """What this worker knows of a run; anew where it was opened again."""
        work = self._works.get(open_run.run)
        if work is not None and work.opening == open_run.opening:
            return work
        tally = Tally() if work is None else work.tally
        if work is not None:
            await work.ready.plan.aclose()
        archive = self._store.archive
        run = find_run(archive, open_run.run)
        ready = await asyncio.to_thread(open_plan, run, read_terms(open_run.terms), self._here)
        self._works[run.id] = work = _OpenWork(open_run.opening, run, ready, tally)
        for judge, reason in ready.absent.items():
            self._orders.tell(f"run {run.id}: what {judge} judges is left to others: {reason}")
        if not ready.groups:
            work.refused = UsageError(f"no judge of run {run.id} can judge here")
        return work


def _settled(tally: Tally) -> int:
    return tally.verdicts + tally.failures + tally.left_out
