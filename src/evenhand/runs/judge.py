"""What `run` does: the run of a plan and its data is begun and judged; and the summary of it.

In every summary planned = verdicts + failures + pending.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from evenhand.engine.ask import CallPath
from evenhand.engine.budget import Budget
from evenhand.engine.pace import Pace
from evenhand.engine.prices import dollars
from evenhand.engine.recent import account_name, ages
from evenhand.engine.retry import Patience
from evenhand.engine.run import Engine, Pool
from evenhand.engine.schedule import Everything
from evenhand.engine.stop import Stop
from evenhand.engine.tally import Tally
from evenhand.errors import EvenhandError, StoppedEarly, StoreBusy
from evenhand.judgment import RETRIED_BY_NEXT_RUN
from evenhand.ledger.batches import BatchRow
from evenhand.ledger.keys import run_id
from evenhand.ledger.ports import (
    Archive,
    Changes,
    Counts,
    Ledger,
    RunRow,
    Scope,
    Spent,
    Store,
    StoredUnit,
)
from evenhand.limits import BACKOFF_FIRST
from evenhand.manifest import Manifest
from evenhand.runs.differences import judging_differences
from evenhand.runs.plan import Plan, Seat
from evenhand.runs.recorded import recorded_run, seated

if TYPE_CHECKING:
    from evenhand.runs.batch import BatchOptions
    from evenhand.runs.early_stop import UntilDecided
    from evenhand.stats.decision.decision import SequentialTest

Watch = Callable[[Tally, int, Stop], AbstractContextManager[None]]
"""Shows progress while a run is judged: tally, judgments planned in all, and the switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How a run stands after a command."""

    run: str
    scope: Scope
    counts: Counts
    spent: Spent
    tally: Tally
    stopped: EvenhandError | None = None
    changed: Changes | None = None
    """How its units differ from those of the last run of its name, where somebody was to be told;
    None if that is this run."""
    decided: SequentialTest | None = None
    """How the comparison stands that ends the run, where one does."""
    open_batches: Sequence[BatchRow] = ()
    """Batches of the run that have not ended."""

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        counts, spent = self.counts, self.spent
        more: dict[str, Any] = {}
        if self.changed is not None:
            more["changed"] = self.changed._asdict()
        if self.decided is not None:
            more["decided"] = self.decided.json()
        if self.open_batches:
            more["batches"] = [batch.json() for batch in self.open_batches]
        return {
            "run": self.run,
            "planned": counts.planned,
            "verdicts": counts.verdicts,
            "failures": dict(sorted(counts.failures.items())),
            "pending": counts.pending,
            "left_out": counts.left_out,
            "calls": self.tally.sent,
            "cached": self.tally.cached,
            "reasks": self.tally.reasks,
            "cost_usd": None if spent.unpriced else dollars(spent.cost),
            "spent_usd": None if self.tally.unpriced else dollars(self.tally.cost),
            "usage": spent.usage,
            **more,
        }

    @property
    def is_barren(self) -> bool:
        """Whether nothing could be judged: something was planned, and there is no verdict."""
        return self.counts.planned > 0 and not self.counts.verdicts

    @property
    def is_resumable(self) -> bool:
        """Whether the same command would judge more: what is pending, or was lost on its way."""
        lost = self.counts.failures.keys() & RETRIED_BY_NEXT_RUN
        return self.counts.pending > 0 or bool(lost)

    @property
    def failure_rate(self) -> float:
        """Failures among what was judged."""
        failed = sum(self.counts.failures.values())
        return failed / (failed + self.counts.verdicts) if failed else 0.0


def _quiet(tally: Tally, planned: int, stop: Stop) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a command says beyond the suite."""

    limit: int | None = None
    retry_failures: bool = False
    watch: Watch = _quiet
    notice: Callable[[str], None] = lambda message: None
    tell_changes: Callable[[Changes, Sequence[str]], None] | None = None
    """Told before anything is sent how the data differ from those of the last run of the name, and
    what of the judging does; they are compared only where somebody is to be told."""
    budget: Budget | None = None
    """Money that is shared with other runs; else what the suite says is the run's own."""
    backoff_first: float = BACKOFF_FIRST
    """The longest first pause before a lost call is tried again, in seconds."""
    batch: BatchOptions | None = None
    """That questions are to be asked by the batch, and how."""


async def judge_run(plan: Plan, store: Store, options: Options | None = None) -> Summary:
    """Judge what is open of a suite. Nothing is sent before all of the data was read and found
    good, and nothing is kept of a run whose judge has no key. A stop is told in the summary, not
    raised: what was judged until then stands."""
    options = options or Options()
    if options.budget:
        plan.know_prices()
    if options.batch:
        from evenhand.runs.batch import require_batches

        require_batches(plan)
    async with store.ledger() as ledger, _begun(plan, store.archive, ledger, options) as begun:
        if options.retry_failures:
            retried = tuple(RETRIED_BY_NEXT_RUN)
            await ledger.set_aside(begun.scope, retried, plan.bad_tries)
        changes = _told_changes(store.archive, begun, options)
        schedule = run_schedule(plan, store.archive, ledger, begun)
        summary = await _judged(plan, store, ledger, begun.scope, schedule, options)
        return replace(summary, changed=changes)


class Begun(NamedTuple):
    """A run that this command holds: the units it is about, what it recorded of itself, and the
    last run of its name before it."""

    scope: Scope
    manifest: Manifest
    before: RunRow | None = None


@asynccontextmanager
async def _begun(
    plan: Plan, archive: Archive, ledger: Ledger, options: Options
) -> AsyncIterator[Begun]:
    """The run of a plan and its data, begun and held."""
    from evenhand.runs.forecast import require_keys

    try:
        for seat in plan.seats:
            seat.judge.load()
        again = options.retry_failures
        await require_keys(plan, archive, options.limit, retry_failures=again)
        _require_decision(plan, options)
        intake = await ledger.intake(plan.units(plan.judging))
        run = run_id(plan.name, plan.manifest.judging.id, intake.content)
        before = archive.last_run(plan.name)
        manifest = _remembering(plan, archive, options)
        async with ledger.begin(run, plan.name, manifest, intake):
            yield Begun(Scope(run, options.limit), manifest, before)
    except StoreBusy:
        raise  # a run that another process holds may be tried again: its judges stay open
    except BaseException:
        await plan.aclose()
        raise
    await plan.aclose()


def _require_decision(plan: Plan, options: Options) -> None:
    """Refuse to begin a run that is to stop once something is decided that cannot be; raises
    UsageError."""
    if not plan.manifest.is_sequential:
        return
    from evenhand.runs.early_stop import require_decision

    def units() -> Iterator[StoredUnit]:
        for number, unit in enumerate(islice(plan.units(plan.judging), options.limit), 1):
            yield StoredUnit(number, number, unit.id, unit.body)

    require_decision(plan.judging, plan.manifest, units)


def _told_changes(archive: Archive, begun: Begun, options: Options) -> Changes | None:
    before = begun.before
    if options.tell_changes is None or before is None or before.id == begun.scope.run:
        return None
    changes = archive.changes(begun.scope.run, before.id)
    recorded = recorded_run(archive, before)
    is_judged_here = not recorded.imported
    differences = judging_differences(begun.manifest, recorded.manifest) if is_judged_here else []
    options.tell_changes(changes, differences)
    return changes


def _remembering(plan: Plan, archive: Archive, options: Options) -> Manifest:
    """The manifest, with what an earlier start that was to stop early leaves to be minded."""
    manifest = msgspec.structs.replace(plan.manifest, limit=options.limit)
    before = archive.last_run(plan.name, plan.manifest.judging.id)
    if before is None:
        return manifest
    recorded = recorded_run(archive, before)
    if recorded.manifest.stop is None and not recorded.manifest.waves:
        return manifest
    from evenhand.runs.early_stop import waves

    return msgspec.structs.replace(manifest, waves=waves(archive, recorded))


def run_schedule(
    plan: Plan, archive: Archive, ledger: Ledger, begun: Begun
) -> Everything | UntilDecided:
    """Everything, or as much as decides what the suite wants decided; raises UsageError."""
    if not begun.manifest.is_sequential:
        return Everything(ledger, begun.scope)
    from evenhand.runs.early_stop import schedule

    width = plan.suite.file.limits.concurrency
    return schedule(archive, begun.scope, plan.judging, plan.judge_groups, begun.manifest, width)


async def _judged(
    plan: Plan,
    store: Store,
    ledger: Ledger,
    scope: Scope,
    schedule: Everything | UntilDecided,
    options: Options,
) -> Summary:
    stop, tally, archive = Stop(), Tally(), store.archive
    limits = plan.suite.file.limits
    before = archive.counts(scope, plan.judgments_per_unit)
    # What is judged again is counted when it is.
    again = sum(before.failed_calls.get(reason, 0) for reason in RETRIED_BY_NEXT_RUN)
    tally.cached, tally.verdicts = before.calls - again, before.verdicts
    tally.failures = sum(n for r, n in before.failures.items() if r not in RETRIED_BY_NEXT_RUN)
    budget = options.budget or Budget(plan.budget_cap, plan.used(archive.spent(scope.run)))
    paces = _paces(plan, archive, stop, options)
    call_paths = [
        _call_path(
            plan, seat, ledger, scope.run, stop, paces[seat.judge.account], budget, tally, options
        )
        for seat in plan.seats
    ]
    pools = [
        Pool(group=group, call_paths=members, width=_width(limits.concurrency, members))
        for group, members in seated(plan.judge_groups, call_paths)
    ]
    engine = Engine(
        kind=plan.judging,
        ledger=ledger,
        run_id=scope.run,
        schedule=schedule,
        pools=pools,
        stop=stop,
        tally=tally,
    )
    with options.watch(tally, before.planned, stop):
        async with _in_time(stop, limits.run_seconds):
            if options.batch:
                from evenhand.runs.batch import Course, ask_by_batch

                course = Course(plan, store, ledger, scope, schedule, stop, tally)
                await ask_by_batch(course, options.batch, options.backoff_first, options.notice)
                budget.used = plan.used(archive.spent(scope.run))
            await engine.run()
    return Summary(
        run=scope.run,
        scope=scope,
        counts=archive.counts(scope, plan.judgments_per_unit),
        spent=archive.spent(scope.run),
        tally=tally,
        stopped=stop.cause,
        open_batches=[batch for batch in archive.batches(scope.run) if batch.is_open],
        decided=None if isinstance(schedule, Everything) else schedule.result(),
    )


def _paces(plan: Plan, archive: Archive, stop: Stop, options: Options) -> dict[Hashable, Pace]:
    """The pace of each account, which begins with what was sent to it within the last minute."""
    limits, paces = plan.suite.file.limits, dict[Hashable, Pace]()
    for account in {seat.judge.account for seat in plan.seats}:
        paces[account] = pace = Pace(
            stop,
            limits.requests_per_minute,
            limits.tokens_per_minute,
            backoff_first=options.backoff_first,
        )
        if pace.is_limited:
            pace.remember(ages(archive.sendings(account_name(account)), time.time()))
    return paces


def _width(concurrency: int, seated: Sequence[CallPath]) -> int:
    """How many units are under way at once: a judge that takes few requests bounds its own group,
    but not a relay, in which it may never be asked."""
    slots = seated[0].judge.slots if len(seated) == 1 else None
    return min(concurrency, slots or concurrency)


def _call_path(
    plan: Plan,
    seat: Seat,
    ledger: Ledger,
    run: str,
    stop: Stop,
    pace: Pace,
    budget: Budget,
    tally: Tally,
    options: Options,
) -> CallPath:
    limits = plan.suite.file.limits
    return CallPath(
        judge=seat.judge,
        run=run,
        ledger=ledger,
        stop=stop,
        pace=pace,
        patience=Patience(
            call_seconds=limits.call_seconds,
            attempt_seconds=limits.attempt_seconds,
            backoff_first=options.backoff_first,
        ),
        notice=options.notice,
        budget=budget,
        price=seat.price,
        max_tokens=seat.spec.max_tokens,
        tally=tally,
    )


@asynccontextmanager
async def _in_time(stop: Stop, seconds: float | None) -> AsyncIterator[None]:
    """Work to its end, or to the deadline of the run."""
    late = StoppedEarly(
        f"the run's time of {seconds} s is over",
        advice="Run the same command again; it continues where it stopped.",
    )
    loop = asyncio.get_running_loop()
    timer = loop.call_later(seconds, stop.throw, late) if seconds else None
    try:
        yield
    finally:
        if timer:
            timer.cancel()
