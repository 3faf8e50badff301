"""Batches that are to end before their time."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.errors import CallLost, StoppedEarly, UsageError, quoted
from evenhand.exchange import BatchJudge
from evenhand.runs.batch_files import recorded_judge
from evenhand.runs.recorded import find_run
from evenhand.store.archive import Archive
from evenhand.store.batches import BatchRow
from evenhand.store.ledger import Store


async def cancel_batch(
    archive: Archive, batch: BatchRow, environment: Mapping[str, str], place: str
) -> None:
    """Have a batch end early at its provider. Raises UsageError, ProviderRefused or
    StoppedEarly."""
    if not batch.ident:
        raise UsageError(
            f"nobody knows whether {quoted(batch.name)} was ever made",
            advice="The next run with --batch looks for it.",
        )
    records = find_run(archive, batch.run).judges
    record = next((record for record in records if record.name == batch.judge), None)
    if record is None:
        raise UsageError(f"run {batch.run} has no judge {quoted(batch.judge)}")
    judge = recorded_judge(record, environment, place)
    try:
        if not isinstance(judge, BatchJudge) or judge.batches is None:
            raise UsageError(f"{quoted(batch.judge)} has no batches")
        await judge.batches.cancel(batch.ident)
    except CallLost as loss:
        raise StoppedEarly(f"the batch could not be cancelled: {loss}") from None
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
