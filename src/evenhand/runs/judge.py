"""What a command does with a run: judge it, settle it again; and the summary of each.

In every summary planned = verdicts + failures + pending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from evenhand.engine.ask import CallPath
from evenhand.engine.attempt import Endpoint
from evenhand.engine.budget import Budget
from evenhand.engine.pace import Pace
from evenhand.engine.prices import dollars
from evenhand.engine.retry import Patience
from evenhand.engine.run import BASIS, Engine, Everything, JudgeGroup, Pool, asking, routed, settle
from evenhand.engine.stop import Stop, Stopped
from evenhand.engine.tally import Tally
from evenhand.errors import EvenhandError, StoppedEarly, UsageError
from evenhand.exchange import Question, Reply
from evenhand.judgment import RETRIED_BY_NEXT_RUN
from evenhand.ledger.keys import call_keys
from evenhand.ledger.store import Call, Counts, Scope, Spent, Store, StoredJudgment, StoredUnit
from evenhand.limits import BACKOFF_FIRST, BATCH_ROWS
from evenhand.runs.prepare import Prepared, Recorded, Seat, budget_cap

if TYPE_CHECKING:
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
    decided: SequentialTest | None = None
    """How the comparison stands that ends the run, where one does."""

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        counts, spent = self.counts, self.spent
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
            "usage": {"input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens},
        } | ({} if self.decided is None else {"decided": self.decided.json()})

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
    notice: Callable[[str], None] = lambda said: None
    budget: Budget | None = None
    """Money that is shared with other runs; else what the suite says is the run's own."""
    backoff_first: float = BACKOFF_FIRST
    """The longest first pause before a lost call is tried again, in seconds."""


async def judge_run(prepared: Prepared, store: Store, options: Options | None = None) -> Summary:
    """Judge what is open of a suite. Nothing is sent before all of the data was read and found
    good, and nothing is kept of a run whose judge has no key. A stop is told in the summary, not
    raised: what was judged until then stands."""
    from evenhand.runs.forecast import require_keys

    options = options or Options()
    if options.budget:
        prepared.know_prices()
    # A run that another process holds may be tried again: its judges are not closed by that.
    with store.claim(prepared.run):
        async with aclosing(prepared):
            again = options.retry_failures
            await require_keys(prepared, store, options.limit, retry_failures=again)
            units = prepared.units(options.limit)
            manifest = _remembering(prepared, store)
            scope = store.begin(prepared.run, prepared.suite.file.name, manifest, units)
            if options.retry_failures:
                store.set_aside(scope, tuple(RETRIED_BY_NEXT_RUN), prepared.bad_tries)
            schedule = run_schedule(prepared, store, scope, manifest)
            return await _judged(prepared, store, scope, schedule, options)


def _remembering(prepared: Prepared, store: Store) -> Mapping[str, Any]:
    """The manifest, with what an earlier start that was to stop early leaves to be minded."""
    before = next((row for row in store.runs() if row.id == prepared.run), None)
    if before is None or not before.manifest.keys() & {"stop", "waves"}:
        return prepared.manifest
    from evenhand.runs.early_stop import waves

    return {**prepared.manifest, "waves": waves(store, Recorded(before))}


def run_schedule(
    prepared: Prepared, store: Store, scope: Scope, manifest: Mapping[str, Any]
) -> Everything | UntilDecided:
    """Everything, or as much as decides what the suite wants decided; raises UsageError."""
    if not (prepared.suite.file.stop and prepared.suite.file.stop.until_decided):
        return Everything(store, scope)
    from evenhand.runs.early_stop import schedule

    width = prepared.suite.file.limits.concurrency
    return schedule(store, scope, prepared.judging, prepared.judge_groups, manifest, width)


async def _judged(
    prepared: Prepared,
    store: Store,
    scope: Scope,
    schedule: Everything | UntilDecided,
    options: Options,
) -> Summary:
    stop, tally = Stop(), Tally()
    limits = prepared.suite.file.limits
    before = store.counts(scope, prepared.judgments_per_unit, BASIS)
    # What is judged again is counted when it is.
    again = sum(before.failed_calls.get(reason, 0) for reason in RETRIED_BY_NEXT_RUN)
    tally.cached, tally.verdicts = before.calls - again, before.verdicts
    tally.failures = sum(n for r, n in before.failures.items() if r not in RETRIED_BY_NEXT_RUN)
    spent = store.spent(prepared.run)
    own = Budget(budget_cap(prepared.suite), _used(prepared, spent))
    budget = options.budget or own
    paces = {
        seat.judge.account: Pace(stop, limits.requests_per_minute, limits.tokens_per_minute)
        for seat in prepared.seats
    }
    call_paths = [
        _call_path(prepared, seat, store, stop, paces[seat.judge.account], budget, tally, options)
        for seat in prepared.seats
    ]
    pools = [
        Pool(group=group, call_paths=seated, width=_width(limits.concurrency, seated))
        for group, seated in seated(prepared.judge_groups, call_paths)
    ]
    engine = Engine(
        kind=prepared.judging,
        store=store,
        schedule=schedule,
        pools=pools,
        stop=stop,
        tally=tally,
    )
    with options.watch(tally, before.planned, stop):
        await _in_time(engine, stop, limits.run_seconds)
    counts = store.counts(scope, prepared.judgments_per_unit, BASIS)
    return Summary(
        run=prepared.run,
        scope=scope,
        counts=counts,
        spent=store.spent(prepared.run),
        tally=tally,
        stopped=stop.cause,
        decided=None if isinstance(schedule, Everything) else schedule.result(),
    )


T = TypeVar("T")


def seated(
    judge_groups: Sequence[JudgeGroup], judges: Sequence[T]
) -> Iterator[tuple[JudgeGroup, Sequence[T]]]:
    """Each group with the judges that sit on it."""
    seat = 0
    for group in judge_groups:
        yield group, judges[seat : seat + len(group.names)]
        seat += len(group.names)


def _width(concurrency: int, seated: Sequence[CallPath]) -> int:
    """How many units are under way at once: a judge that takes few requests bounds its own group,
    but not a relay, in which it may never be asked."""
    slots = seated[0].judge.slots if len(seated) == 1 else None
    return min(concurrency, slots or concurrency)


def _used(prepared: Prepared, spent: Spent) -> int:
    """What a run has used of its budget. Calls from before their price was known count as the most
    that the run's tokens can have cost."""
    prices = [seat.price for seat in prepared.seats if seat.price and spent.unpriced]
    bounds = [price.bound(spent.input_tokens, spent.output_tokens) for price in prices]
    return spent.cost + spent.reserved + max(bounds, default=0)


def _call_path(
    prepared: Prepared,
    seat: Seat,
    store: Store,
    stop: Stop,
    pace: Pace,
    budget: Budget,
    tally: Tally,
    options: Options,
) -> CallPath:
    limits = prepared.suite.file.limits
    return CallPath(
        judge=seat.judge,
        run=prepared.run,
        store=store,
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


async def _in_time(engine: Engine, stop: Stop, seconds: float | None) -> None:
    """Run to the end, or to the deadline of the run."""
    late = StoppedEarly(
        f"the run's time of {seconds} s is over",
        advice="Run the same command again; it continues where it stopped.",
    )
    loop = asyncio.get_running_loop()
    timer = loop.call_later(seconds, stop.throw, late) if seconds else None
    try:
        await engine.run()
    finally:
        if timer:
            timer.cancel()


async def settle_run(recorded: Recorded, store: Store) -> Summary:
    """Recompute every judgment of a run from its stored replies, without a call. What would need
    one becomes pending."""
    run, tally = recorded.row.id, Tally()
    if recorded.imported:
        raise UsageError(
            f"run {run} was imported: there are no replies to settle it from",
            advice="Import the file again; how conflicts count is told to leaderboard.",
        )
    scope = Scope(run)
    with store.claim(run):
        for group, judges in seated(recorded.judge_groups, recorded.judges):
            endpoint = _recorded_endpoints(judges, store, tally)
            for repeat in range(group.repeats):
                for unit in store.units(scope):
                    try:
                        settled = await settle(
                            recorded.judging, group, repeat, unit, endpoint, tally
                        )
                        store.settle(settled.stored)
                    except Stopped:
                        store.forget(unit.no, group.index, repeat)
                    if unit.no % BATCH_ROWS == 0:
                        await store.flush()
        await store.flush()
    counts = store.counts(scope, recorded.judgments_per_unit, BASIS)
    return Summary(run=run, scope=scope, counts=counts, spent=store.spent(run), tally=tally)


def _recorded_endpoints(
    judges: Sequence[Mapping[str, Any]], store: Store, tally: Tally
) -> Endpoint:
    """`ask` over the ledger alone."""
    return routed([_recorded_endpoint(judge["identity"], store, tally) for judge in judges])


def _recorded_endpoint(identity: Any, store: Store, tally: Tally) -> Endpoint:
    key_of = call_keys(identity)

    async def ask(question: Question) -> Call:
        call = store.find(key_of(question), aside=True)
        if call is None:
            raise Stopped
        tally.cached += 1
        await asyncio.sleep(0)  # Ctrl-C is heard, and the store is seen anew
        return call

    return ask


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question as it was put, and the reply to it."""

    key: str
    judge: str
    question: Question
    reply: Reply

    def json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "judge": self.judge,
            "round": self.question.round,
            "order": self.question.order,
            "reask": self.question.reask,
            "sampling": dict(self.reply.sampling),
            "messages": [asdict(message) for message in self.question.messages],
            "reply": self.reply.text,
            "finish": self.reply.finish,
            "model": self.reply.model,
            "odds": {path: dict(odds) for path, odds in self.reply.odds.items()},
        }


async def exchanges(
    recorded: Recorded, store: Store, unit: StoredUnit, stored: StoredJudgment
) -> list[Exchange]:
    """The conversation behind one judgment, made again from the ledger: the keys prove that these
    are the prompts that were sent. None of a judgment made elsewhere."""
    if recorded.imported:
        return []
    group, judges = list(seated(recorded.judge_groups, recorded.judges))[stored.judge]
    endpoint = _recorded_endpoints(judges, store, Tally())
    found: list[Exchange] = []

    async def ask(question: Question) -> Reply:
        call = await endpoint(replace(question, repeat=stored.repeat))
        found.append(Exchange(call.key, call.judge, question, call.reply))
        return call.reply

    with suppress(Stopped):
        await recorded.judging.judge(unit.body, asking(group, stored.repeat, ask))
    return found
