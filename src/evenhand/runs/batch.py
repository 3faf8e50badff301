"""A run by the batch: the waves of a plan, put together, and batches that are ended early."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from evenhand import limits
from evenhand.engine.batch import BatchSender
from evenhand.engine.call import RetryPolicy
from evenhand.engine.prices import BatchBudget
from evenhand.engine.waves import WaveGroup, Waves
from evenhand.errors import CallLost, StoppedEarly, UsageError
from evenhand.exchange import BatchJudge
from evenhand.runs.batch_files import recorded_judge
from evenhand.runs.judge import RunContext
from evenhand.runs.plan import JudgeSetup, Plan
from evenhand.runs.recorded import find_run, split_by_group
from evenhand.store.archive import Archive
from evenhand.store.batches import Batches, BatchRow
from evenhand.store.ledger import Store
from evenhand.words import Names, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """The options for asking questions by the batch."""

    then_live: int = limits.BATCH_THEN_LIVE
    """Fewer questions than that are asked live; 0: none ever is."""
    requests_most: int = limits.BATCH_REQUESTS
    """The most questions of one batch."""
    look_first: float = limits.BATCH_LOOK_FIRST
    """The first pause before a batch is looked at again, in seconds."""
    tell: Callable[[str], None] = lambda message: None
    """Told what becomes of batches."""


def require_batches(plan: Plan) -> None:
    """Refuse a plan that cannot be judged by the batch; raises UsageError."""
    if plan.manifest.is_sequential:
        raise UsageError(Sentence("runs.no_decision_by_batch"))
    if not any(_is_batched(setup) for setup in plan.setups):
        names = Names(sorted({setup.judge.name for setup in plan.setups}))
        raise UsageError(Sentence("runs.no_batch_judge", names=names))


def at_batch_prices(plan: Plan) -> Plan:
    """Return the plan at the prices of batches, for a forecast."""
    setups = tuple(
        replace(setup, price=setup.batch_price) if _is_batched(setup) else setup
        for setup in plan.setups
    )
    return replace(plan, setups=setups)


def _is_batched(setup: JudgeSetup) -> bool:
    return isinstance(setup.judge, BatchJudge) and setup.judge.batches is not None


async def ask_by_batch(
    context: RunContext, options: BatchOptions, backoff_first: float, notice: Callable[[str], None]
) -> None:
    """Judge by waves until too little is left for one. Where nothing may be asked live, what no
    batch answered stops the run."""
    plan, stop = context.plan, context.stop
    async with context.store.batches() as batch_store:
        budget = BatchBudget(plan.budget_cap)
        senders = [
            _sender(context, setup, batch_store, budget, options, backoff_first, notice)
            for setup in plan.setups
        ]
        judges = [setup.judge for setup in plan.setups]
        sides = zip(
            split_by_group(plan.judge_groups, judges),
            split_by_group(plan.judge_groups, senders),
            strict=True,
        )
        waves = Waves(
            kind=plan.judging,
            ledger=context.ledger,
            batch_store=batch_store,
            run_id=context.scope.run,
            schedule=context.schedule,
            groups=[
                WaveGroup(group=group, judges=members, senders=of_members)
                for (group, members), (_, of_members) in sides
            ],
            stop=stop,
            tally=context.tally,
            budget=budget,
            used=lambda: plan.used(context.store.archive.spent(context.scope.run)),
            then_live=options.then_live,
            tell=options.tell,
            look_first=options.look_first,
        )
        await waves.run()
    is_batched = all(sender is not None for sender in senders)
    if waves.left and not stop.requested and not options.then_live and is_batched:
        stop.request(StoppedEarly(Sentence("engine.batches_left", n=waves.left)))
    elif waves.left and not stop.requested:
        options.tell(Sentence("engine.rest_live", n=waves.left))


def _keep(folder: Path, name: str, data: bytes) -> str:
    """Write a file that only its owner can read; return where it is."""
    path = folder / name
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    return str(path)


def _sender(
    context: RunContext,
    setup: JudgeSetup,
    batch_store: Batches,
    budget: BatchBudget,
    options: BatchOptions,
    backoff_first: float,
    notice: Callable[[str], None],
) -> BatchSender | None:
    """Return the sender of a judge; None for one that cannot be asked by the batch."""
    judge = setup.judge
    if not isinstance(judge, BatchJudge) or judge.batches is None:
        return None
    return BatchSender(
        judge=judge,
        endpoint=judge.batches,
        run=context.scope.run,
        batch_store=batch_store,
        stop=context.stop,
        budget=budget,
        retry=RetryPolicy(backoff_first=backoff_first),
        price=setup.batch_price,
        max_tokens=setup.spec.max_tokens,
        requests_most=options.requests_most,
        tally=context.tally,
        keep=partial(_keep, context.plan.suite.folder),
        notice=notice,
        tell=options.tell,
    )


# Batches that are to end before their time


async def cancel_batch(
    archive: Archive, batch: BatchRow, environment: Mapping[str, str], place: str
) -> None:
    """Have a batch end early at its provider. Raises UsageError, ProviderRefused or
    StoppedEarly."""
    if not batch.ident:
        raise UsageError(Sentence("runs.batch_unsure", batch=batch.name))
    records = find_run(archive, batch.run).judges
    record = next((record for record in records if record.name == batch.judge), None)
    if record is None:
        raise UsageError(Sentence("runs.no_such_judge", run=batch.run, judge=batch.judge))
    judge = recorded_judge(record, environment, place)
    try:
        if not isinstance(judge, BatchJudge) or judge.batches is None:
            raise UsageError(Sentence("runs.has_no_batches", judge=batch.judge))
        await judge.batches.cancel(batch.ident)
    except CallLost as loss:
        raise StoppedEarly(Sentence("runs.not_cancelled", reason=str(loss))) from None
    finally:
        await judge.close()


async def forget_batch(store: Store, batch: BatchRow) -> None:
    """Give up a batch: its questions are open again; its money stays held, for it may be billed.
    Raises StoreBusy while its run is judged."""
    async with (
        store.ledger() as ledger,
        ledger.claim(batch.run),
        store.batches() as book,
    ):
        await book.close_batch(batch.name, "void", "given up")
