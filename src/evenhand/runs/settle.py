"""The command `settle`: the judgments of a run computed anew from its replies, without a call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import structs

from evenhand.engine.call import AskFn
from evenhand.engine.progress import Tally
from evenhand.engine.run import JudgeGroup, judge_unit
from evenhand.engine.stop import Stopped
from evenhand.errors import UsageError
from evenhand.files.protocols import judging_of
from evenhand.kinds.kind import ReadyKind
from evenhand.limits import BATCH_ROWS
from evenhand.manifest import CONTRACT, JudgingRecord
from evenhand.runs.exchanges import recorded_endpoints
from evenhand.runs.judge import Summary
from evenhand.runs.recorded import Recorded, split_by_group
from evenhand.runs.rules import NewRules, under_rules
from evenhand.store.archive import Archive
from evenhand.store.ledger import Ledger, Store
from evenhand.store.ports import IncomingUnit, Scope, StoredUnit
from evenhand.store.rows import run_id
from evenhand.words import Sentence


async def settle_run(recorded: Recorded, store: Store, rules: NewRules | None = None) -> Summary:
    """Recompute every judgment of a run from its stored replies, without a call. What would need
    one becomes pending. Under new rules the run stays as it is, as does a run of an older contract:
    what comes of its replies is a run beside it. Raises UsageError."""
    if recorded.imported:
        raise UsageError(Sentence("runs.nothing_to_settle", run=recorded.id))
    archive, tally = store.archive, Tally()
    record = _record(recorded, rules or NewRules())
    judging = judging_of(recorded.protocol, record)
    async with store.ledger() as ledger, _hold_run(recorded, record, archive, ledger) as run:
        archive.set_frozen(True)  # replies that come meanwhile are another state's
        try:
            for group, judges in split_by_group(recorded.judge_groups, recorded.judges):
                endpoint = recorded_endpoints(judges, archive, tally)
                for repeat in range(group.repeats):
                    for unit in archive.units(recorded.scope):
                        await _compute(judging, ledger, run, group, repeat, unit, endpoint, tally)
                        if unit.position % BATCH_ROWS == 0:
                            await ledger.flush()
        finally:
            archive.set_frozen(False)
        await ledger.flush()
    scope = Scope(run)
    return Summary(
        run=run,
        scope=scope,
        counts=archive.counts(scope, recorded.judgments_per_unit),
        spent=archive.spent(run),
        tally=tally,
    )


def _record(recorded: Recorded, rules: NewRules) -> JudgingRecord:
    """Return the judging of a run under new rules and the contract of today."""
    record = under_rules(recorded.protocol, recorded.manifest.judging, rules)
    return structs.replace(record, contract=CONTRACT)


@asynccontextmanager
async def _hold_run(
    recorded: Recorded, record: JudgingRecord, archive: Archive, ledger: Ledger
) -> AsyncIterator[str]:
    """Yield the run that the judgments belong to, for this process alone."""
    if record.id == recorded.row.judging:
        async with ledger.claim(recorded.id):
            yield recorded.id
        return
    units = archive.units(recorded.scope)
    intake = await ledger.intake(IncomingUnit(unit.id, recorded.id, unit.body) for unit in units)
    run = run_id(recorded.row.name, record.id, intake.content)
    source = recorded.manifest.settled_from or recorded.id
    manifest = structs.replace(recorded.manifest, judging=record, settled_from=source, copied=False)
    async with ledger.begin(run, recorded.row.name, manifest, intake):
        yield run


async def _compute(
    judging: ReadyKind,
    ledger: Ledger,
    run: str,
    group: JudgeGroup,
    repeat: int,
    unit: StoredUnit,
    endpoint: AskFn,
    tally: Tally,
) -> None:
    """Compute one judgment anew, or drop it where a reply is missing."""
    try:
        judgment = await judge_unit(judging, group, repeat, unit, endpoint, tally)
    except Stopped:
        await ledger.forget(run, unit.no, group.index, repeat)
    else:
        await ledger.store_judgment(run, judgment.stored)
