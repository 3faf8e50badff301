"""A run from its plan to its summary: begun on its data, judged by an engine, counted.

In every summary planned = verdicts + failures + pending.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from evenhand.engine.call import CallStack, RetryPolicy
from evenhand.engine.pacing import Pacer, SentLog, account_name, ages
from evenhand.engine.prices import CallBudget, dollars
from evenhand.engine.progress import Tally
from evenhand.engine.run import Engine, FileOrder, Pool, Schedule, failure_advice
from evenhand.engine.stop import Stop
from evenhand.errors import EvenhandError, NoVerdicts, StoppedEarly, StoreBusy
from evenhand.judgment import RETRIED_BY_NEXT_RUN
from evenhand.kinds import ANSWERS
from evenhand.limits import BACKOFF_FIRST
from evenhand.manifest import Manifest
from evenhand.runs.differences import judging_differences
from evenhand.runs.plan import Plan
from evenhand.runs.recorded import recorded_run, split_by_group
from evenhand.store.archive import Archive
from evenhand.store.batches import BatchRow
from evenhand.store.ledger import Ledger, Store
from evenhand.store.ports import (
    Changes,
    Counts,
    RunRow,
    Scope,
    SentRequest,
    Spent,
    StoredUnit,
)
from evenhand.store.rows import run_id
from evenhand.words import Sentence

if TYPE_CHECKING:
    from evenhand.runs.batch import BatchOptions
    from evenhand.runs.early_stop import UntilDecided
    from evenhand.stats.comparison import SequentialTest

Watch = Callable[[Tally, int, Stop], AbstractContextManager[None]]
"""Shows progress while a run is judged: tally, judgments planned in all, and the switch."""


class RunContext(NamedTuple):
    """The run that a command judges, and the parts to judge it with."""

    plan: Plan
    store: Store
    ledger: Ledger
    scope: Scope
    schedule: Schedule
    stop: Stop
    tally: Tally


class RemoteEngine(NamedTuple):
    """The engine that judges a run on other machines, and what it needs beside the manifest."""

    terms: str
    judge: Callable[[RunContext], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The state of a run after a command."""

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
    finishes: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many answers ended in which way, where answers were made."""
    answers: Summary | None = None
    """Of the answers that were made first, where the suite makes its own."""

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        counts, spent = self.counts, self.spent
        more: dict[str, Any] = {}
        if self.changed is not None:
            more["changed"] = self.changed._asdict()
        if self.decided is not None:
            more["decided"] = self.decided.json()
        if self.finishes:
            more["finish"] = dict(self.finishes)
        if self.answers is not None:
            more["answers"] = self.answers.json()
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
            "reasks": counts.reasks,
            "cost_usd": None if spent.unpriced else dollars(spent.cost),
            "spent_usd": None if self.tally.unpriced else dollars(self.tally.cost),
            "usage": spent.usage,
            **more,
        }

    @property
    def has_no_verdict(self) -> bool:
        """Return True if nothing could be judged: something was planned, and there is no
        verdict."""
        return self.counts.planned > 0 and not self.counts.verdicts

    @property
    def no_verdicts(self) -> NoVerdicts | None:
        """Return why there are no verdicts, and what to change; None if there are some."""
        if not self.has_no_verdict:
            return None
        failures = self.counts.failures
        most = max(failures, key=lambda reason: failures[reason], default="")
        what = Sentence(
            "runs.nothing_judged" if most else "runs.all_pending",
            failures=sum(failures.values()),
            pending=self.counts.pending,
            reason=most,
        )
        return NoVerdicts(what, advice=failure_advice(most))

    @property
    def is_resumable(self) -> bool:
        """Return True if the same command would judge more: what is pending, or was lost on its
        way."""
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
    """The options of a command beyond the suite."""

    limit: int | None = None
    retry_failures: bool = False
    watch: Watch = _quiet
    notice: Callable[[str], None] = lambda message: None
    tell_changes: Callable[[Changes, Sequence[str]], None] | None = None
    """Told before anything is sent how the data differ from those of the last run of the name, and
    what of the judging does; they are compared only where somebody is to be told."""
    budget: CallBudget | None = None
    """Money that is shared with other runs; else what the suite says is the run's own."""
    backoff_first: float = BACKOFF_FIRST
    """The longest first pause before a lost call is tried again, in seconds."""
    batch: BatchOptions | None = None
    """That questions are to be asked by the batch, and how."""
    note: str = ""
    tags: tuple[str, ...] = ()
    remote_engine: RemoteEngine | None = None
    """Those who judge the run in the place of this process, which drives them."""


async def judge_run(plan: Plan, store: Store, options: Options | None = None) -> Summary:
    """Judge what is open of a suite. Nothing is sent before all of the data was read and found
    good, and nothing is kept of a run whose judge has no key. A stop is told in the summary, not
    raised: what was judged until then stands. A suite that makes its own answers makes those
    first."""
    options = options or Options()
    if options.budget:
        plan.know_prices()
    if options.batch:
        from evenhand.runs.batch import require_batches

        require_batches(plan)
    async with _closing(plan):
        if plan.answers is None:
            return await judge_open(plan, store, options)
        from evenhand.runs.answers import answer_and_judge

        return await answer_and_judge(plan, plan.answers, store, options)


async def judge_open(
    plan: Plan,
    store: Store,
    options: Options,
    budgeted: Callable[[Plan, str], Plan] = lambda plan, run: plan,
) -> Summary:
    """Judge what is open of a run; its plan, and its id, are first handed to `budgeted`."""
    async with (
        store.ledger() as ledger,
        _begun(plan, store.archive, ledger, options) as begun,
    ):
        plan = budgeted(plan, begun.scope.run)
        if options.retry_failures:
            retried = tuple(RETRIED_BY_NEXT_RUN)
            await ledger.set_aside(begun.scope, retried, plan.bad_tries)
        changes = _told_changes(store.archive, begun, options)
        summary = await _judge_begun(plan, store, ledger, begun, options)
        return replace(summary, changed=changes)


@asynccontextmanager
async def _closing(plan: Plan) -> AsyncIterator[None]:
    """Give back what the judges hold in the end; where another process holds the run, it may be
    tried again, and they stay open."""
    try:
        yield
    except StoreBusy:
        raise
    except BaseException:
        await plan.aclose()
        raise
    await plan.aclose()


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
    """Yield the run of a plan and its data, begun and held for as long as the block lasts."""
    from evenhand.runs.forecast import require_keys

    for setup in plan.setups:
        setup.judge.load()
    again = options.retry_failures
    await require_keys(plan, archive, options.limit, retry_failures=again)
    _require_decision(plan, options)
    before = next(iter(archive.runs(plan.name, limit=1)), None)
    intake = await ledger.intake(plan.units(plan.judging))
    run = run_id(plan.name, plan.manifest.judging.id, intake.content)
    terms = options.remote_engine.terms if options.remote_engine else ""
    manifest = structs.replace(_remembering(plan, archive, options), terms=terms)
    async with ledger.begin(run, plan.name, manifest, intake):
        yield Begun(Scope(run, options.limit), manifest, before)


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
    """Return the manifest, with what an earlier start that was to stop early leaves to be
    minded."""
    manifest = structs.replace(
        plan.manifest, limit=options.limit, note=options.note, tags=options.tags
    )
    before = next(iter(archive.runs(plan.name, plan.manifest.judging.id, 1)), None)
    if before is None:
        return manifest
    recorded = recorded_run(archive, before)
    if recorded.manifest.stop is None and not recorded.manifest.waves:
        return manifest
    from evenhand.runs.early_stop import waves

    return structs.replace(manifest, waves=waves(archive, recorded))


def run_schedule(
    plan: Plan, archive: Archive, ledger: Ledger, begun: Begun
) -> FileOrder | UntilDecided:
    """Everything, or as much as decides what the suite wants decided; raises UsageError."""
    if not begun.manifest.is_sequential:
        return FileOrder(ledger, begun.scope)
    from evenhand.runs.early_stop import schedule

    width = plan.suite.file.limits.concurrency
    return schedule(archive, begun.scope, plan.judging, plan.judge_groups, begun.manifest, width)


async def _judge_begun(
    plan: Plan, store: Store, ledger: Ledger, begun: Begun, options: Options
) -> Summary:
    """Judge a run that this command holds, here or by a remote engine."""
    scope, stop, archive = begun.scope, Stop(), store.archive
    schedule = run_schedule(plan, archive, ledger, begun)
    before = archive.counts(scope, plan.judgments_per_unit)
    tally = _tally_so_far(before)
    tally.is_answering = plan.protocol.kind == ANSWERS
    budget = options.budget or CallBudget(plan.budget_cap, plan.used(archive.spent(scope.run)))
    context = RunContext(plan, store, ledger, scope, schedule, stop, tally)
    pacers = make_pacers(plan, archive, ledger, stop, backoff_first=options.backoff_first)
    engine = make_engine(context, budget, pacers, options.notice, options.backoff_first)
    with options.watch(tally, before.planned, stop):
        async with _in_time(stop, plan.suite.file.limits.run_seconds):
            if options.batch:
                from evenhand.runs.batch import ask_by_batch

                await ask_by_batch(context, options.batch, options.backoff_first, options.notice)
                budget.used = plan.used(archive.spent(scope.run))
            remote = options.remote_engine
            await (remote.judge(context) if remote else engine.run())
    summary = _summary(plan, archive, scope, tally, stop)
    decided = None if isinstance(schedule, FileOrder) else schedule.result()
    return replace(summary, decided=decided)


def make_engine(
    context: RunContext,
    budget: CallBudget,
    pacers: Mapping[Hashable, Pacer],
    notice: Callable[[str], None] = lambda message: None,
    backoff_first: float = BACKOFF_FIRST,
) -> Engine:
    """Return the engine that judges a run in this process, or, in an actor, a part of it."""
    plan, ledger, stop, tally = context.plan, context.ledger, context.stop, context.tally
    limits = plan.suite.file.limits
    stacks = [
        CallStack(
            judge=setup.judge,
            run=context.scope.run,
            ledger=ledger,
            stop=stop,
            tally=tally,
            pacer=pacers[setup.judge.account],
            retry=RetryPolicy(
                call_seconds=limits.call_seconds,
                attempt_seconds=limits.attempt_seconds,
                backoff_first=backoff_first,
            ),
            budget=budget,
            price=setup.price,
            max_tokens=setup.spec.max_tokens,
            notice=notice,
        )
        for setup in plan.setups
    ]
    pools = [
        Pool(group=group, stacks=members, concurrency=limits.concurrency)
        for group, members in split_by_group(plan.judge_groups, stacks)
    ]
    return Engine(
        kind=plan.judging,
        ledger=ledger,
        run_id=context.scope.run,
        schedule=context.schedule,
        pools=pools,
        stop=stop,
        tally=tally,
    )


def make_pacers(
    plan: Plan,
    archive: Archive,
    ledger: Ledger,
    stop: Stop,
    *,
    backoff_first: float = BACKOFF_FIRST,
    sender: str = "",
    counted: Callable[[Sequence[SentRequest]], Sequence[SentRequest]] = lambda sent: sent,
) -> dict[Hashable, Pacer]:
    """Return the pacer of each account, which begins with the requests of the last minute; of these
    with those that `counted` returns. Names of new requests begin with `sender`."""
    limits, pacers = plan.suite.file.limits, dict[Hashable, Pacer]()
    rates = limits.requests_per_minute, limits.tokens_per_minute
    for account in {setup.judge.account for setup in plan.setups}:
        log = SentLog(ledger, account_name(account), sender)
        pacers[account] = pacer = Pacer(stop, *rates, log=log, backoff_first=backoff_first)
        if pacer.is_limited:
            sent_requests = counted(archive.sent_requests(log.account))
            pacer.remember(ages(sent_requests, time.time()))
    return pacers


def _summary(plan: Plan, archive: Archive, scope: Scope, tally: Tally, stop: Stop) -> Summary:
    counts = archive.counts(scope, plan.judgments_per_unit)
    # With the last unit judged there was nothing left to stop.
    is_complete = isinstance(stop.cause, NoVerdicts) and not counts.pending
    return Summary(
        run=scope.run,
        scope=scope,
        counts=counts,
        spent=archive.spent(scope.run),
        tally=tally,
        stopped=None if is_complete else stop.cause,
        open_batches=[batch for batch in archive.batches(scope.run) if batch.is_open],
    )


def _tally_so_far(before: Counts) -> Tally:
    """Return the tally of what was done before. What is judged again is counted when it is."""
    again = sum(before.failed_calls.get(reason, 0) for reason in RETRIED_BY_NEXT_RUN)
    failures = sum(n for r, n in before.failures.items() if r not in RETRIED_BY_NEXT_RUN)
    return Tally(cached=before.calls - again, verdicts=before.verdicts, failures=failures)


@asynccontextmanager
async def _in_time(stop: Stop, seconds: float | None) -> AsyncIterator[None]:
    """Work to its end, or to the deadline of the run."""
    timer = None
    if seconds:
        late = StoppedEarly(Sentence("runs.time_over", seconds=seconds))
        timer = asyncio.get_running_loop().call_later(seconds, stop.request, late)
    try:
        yield
    finally:
        if timer:
            timer.cancel()
