"""A run that several workers judge at once: what one of them does of it.

Whoever begins a run on a store that workers share opens it for all, and is the first of them. What
is shown is the work of all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Hashable
from contextlib import asynccontextmanager, suppress

from msgspec import Struct, field

from evenhand.engine.allotment import Allotments
from evenhand.engine.claims import Claims
from evenhand.engine.leases import LeasedWork
from evenhand.engine.meter import Meter
from evenhand.engine.pace import Pace
from evenhand.engine.recent import account_name
from evenhand.engine.stop import Stop, Stopped
from evenhand.engine.tally import Tally
from evenhand.errors import OpenedAnew, RunOver, StoreError
from evenhand.ledger.coordination import Rates, Work, Worker
from evenhand.ledger.ports import Ledger
from evenhand.limits import BACKOFF_FIRST, BEAT_SECONDS, LOOK_AGAIN_MOST
from evenhand.runs.assembly import Parts
from evenhand.runs.plan import Plan


class Share(Struct, frozen=True, kw_only=True):
    """What one worker does of an open run. `tally` counts what it does itself, `shown` what all do,
    beyond what was there when it began."""

    plan: Plan
    run: str
    worker: Worker
    ledger: Ledger
    stop: Stop
    opening: int | None = None
    """The opening of the run whose terms the plan has; None for who opened it."""
    groups: Collection[int] | None = None
    """Those that judge here, by their index; None for all."""
    waits: bool = True
    """Whether to wait for what others have under way, and to see the run to its end."""
    judges: bool = True
    """Whether this process is one of those that judge, or only watches them."""
    notice: Callable[[str], None] = lambda message: None
    backoff_first: float = BACKOFF_FIRST
    tally: Tally = field(default_factory=Tally)
    shown: Tally = field(default_factory=Tally)

    async def judge(self) -> None:
        """Judge until nothing is left of the run for this worker, or the stop is thrown; then all
        that it holds is handed back."""
        limits = self.plan.suite.file.limits
        leased = LeasedWork(
            *(self.worker, self.run, self.stop, self.tally),
            width=limits.concurrency,
            waits=self.waits,
        )
        purse = Allotments(self.worker, self.run, self.plan.budget_cap)
        parts = Parts(
            plan=self.plan,
            run=self.run,
            ledger=self.ledger,
            stop=self.stop,
            tally=self.tally,
            schedule=leased,
            judgments=leased,
            purse=purse,
            paces=metered_paces(self.plan, self.worker, self.stop, self.backoff_first),
            claims=Claims(self.worker, self.ledger, self.stop, self.tally),
            groups=self.groups,
            notice=self.notice,
            backoff_first=self.backoff_first,
        )
        async with self._alive(leased):
            try:
                await self._to_the_end(parts)
            except BaseException:
                with suppress(StoreError):  # what is not handed back is free before long
                    await self._hand_back(leased, purse)
                raise
            await self._hand_back(leased, purse)
        if isinstance(self.stop.cause, RunOver) and not await self.is_opened_anew():
            await self.worker.stop_run(self.run, self.stop.cause.what)

    async def watch(self) -> None:
        """Wait until others have judged the run, or the stop is thrown."""
        work = LeasedWork(self.worker, self.run, self.stop, self.tally, width=1)
        async with self._alive(work):
            with suppress(Stopped):
                while not await self.worker.close_run(self.run, self.plan.judgments_per_unit):
                    await self.stop.sleep(LOOK_AGAIN_MOST)
        if isinstance(self.stop.cause, RunOver):
            await self.worker.stop_run(self.run, self.stop.cause.what)

    async def _hand_back(self, leased: LeasedWork, purse: Allotments) -> None:
        await self.ledger.flush()
        await leased.end()
        await purse.end()

    async def _to_the_end(self, parts: Parts) -> None:
        """Judge, and again should somebody have handed something back meanwhile."""
        while True:
            await parts.engine().run()
            await parts.judgments.flush()
            if self.stop.thrown:
                return
            is_closed = await self.worker.close_run(self.run, self.plan.judgments_per_unit)
            if is_closed or not self.waits:
                return
            try:
                await self.stop.sleep(LOOK_AGAIN_MOST)
            except Stopped:
                return

    @asynccontextmanager
    async def _alive(self, leased: LeasedWork) -> AsyncIterator[None]:
        """Give signs of life while the run is judged, and show what all have done."""
        await self._beat(leased)
        base, start = work_of(self.shown), await self.worker.work_of_all(self.run)
        beating = asyncio.create_task(self._keep_beating(leased, base, start))
        try:
            yield
        finally:
            beating.cancel()
            with suppress(StoreError):
                await self._beat(leased)
                await self._show(base, start)

    async def _keep_beating(self, leased: LeasedWork, base: Work, start: Work) -> None:
        try:
            while True:
                await asyncio.sleep(min(BEAT_SECONDS, self.worker.lease_seconds / 4))
                await leased.flush()
                await self._beat(leased)
                await self._show(base, start)
                if reason := await self.worker.stopped(self.run):
                    self.stop.throw(RunOver(reason, advice="Run the same command again to go on."))
                if await self.is_opened_anew():
                    self.stop.throw(
                        OpenedAnew("it was opened anew", advice="It goes on as it is open now.")
                    )
        except StoreError as error:
            self.stop.throw(error)

    async def is_opened_anew(self) -> bool:
        """Whether the run has other terms by now than the plan: another budget, perhaps."""
        if self.opening is None:
            return False
        return await self.worker.opening(self.run) not in (None, self.opening)

    async def _beat(self, leased: LeasedWork) -> None:
        if not await self.worker.beat(self.run, work_of(self.tally)):
            await leased.look_again()

    async def _show(self, base: Work, start: Work) -> None:
        """Count what all have done since this worker began, and who is at work."""
        done = await self.worker.work_of_all(self.run)
        for name, before, first, now in zip(Work._fields, base, start, done, strict=True):
            setattr(self.shown, name, before + max(0, now - first))
        self.shown.workers = await self.worker.workers_at(self.run) - (0 if self.judges else 1)


def metered_paces(
    plan: Plan, worker: Worker, stop: Stop, backoff_first: float
) -> dict[Hashable, Pace]:
    """The pace of each account, which all who use it at a store share."""
    limits = plan.suite.file.limits
    rates = Rates(limits.requests_per_minute, limits.tokens_per_minute)
    return {
        account: Pace(
            stop,
            backoff_first=backoff_first,
            meter=Meter(worker, account_name(account), rates, stop) if limits.has_rates else None,
        )
        for account in {seat.judge.account for seat in plan.seats}
    }


def work_of(tally: Tally) -> Work:
    """What a tally says was done."""
    return Work(*(getattr(tally, name) for name in Work._fields))
