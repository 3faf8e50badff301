"""`evenhand batches`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import click

from evenhand.cli.common import (
    archive_at,
    json_option,
    notice,
    print_json,
    store_at,
    store_here,
    store_option,
    wait,
)
from evenhand.errors import UsageError, quote
from evenhand.judges.credentials import environment
from evenhand.report.terminal.console import console, table
from evenhand.report.terminal.tables import safe
from evenhand.runs.recorded import find_run
from evenhand.store.address import shown_url
from evenhand.store.batches import BatchRow

ACTIONS = ("cancel", "forget")


@click.command("batches")
@click.argument("words", nargs=-1, metavar="[RUN | cancel BATCH | forget BATCH]")
@click.option("--all", "is_all", is_flag=True, help="Those that have ended, too.")
@store_option
@json_option
def batches_command(words: Sequence[str], is_all: bool, store: str | None, as_json: bool) -> None:
    """List the batches that are under way, of all runs or of RUN.

    `batches cancel BATCH` has one end early at its provider; the next run records what it has
    answered until then, and asks the rest live. `batches forget BATCH` gives up one that is lost
    for good: its questions are open again, and the money held for it stays counted, for it may be
    billed.
    """
    if words and words[0] in ACTIONS:
        if len(words) != 2:
            raise click.UsageError(f"batches {words[0]} takes the id of one batch")
        _act(words[0], words[1], store)
        return
    if len(words) > 1:
        raise click.UsageError("say one RUN, or: cancel BATCH, forget BATCH")
    with closing(archive_at(store)) as archive:
        archive.set_frozen(True)
        run = find_run(archive, words[0]).id if words else ""
        rows = [row for row in archive.batches(run) if is_all or row.is_open]
    if as_json:
        print_json({"batches": [row.json() for row in rows]})
    elif not rows:
        click.echo("no batch is under way" if not is_all else "there are no batches")
    else:
        _print(rows)


def _print(rows: Sequence[BatchRow]) -> None:
    listing = table(
        *("batch", "run", "judge", "status", "answered", "open", "made"),
        right=(4, 5),
        whole=(0, 1, 6),
    )
    for row in rows:
        answered = f"{row.answered:,} of {row.requests:,}"
        status = row.status or row.stage
        made = row.created[5:16].replace("T", " ")
        cells = (row.ident or row.name, row.run, row.judge, status, answered, f"{row.open:,}", made)
        listing.add_row(*map(safe, cells))
    console().print(listing)


def named_batch(rows: Sequence[BatchRow], name: str) -> BatchRow:
    """Return the batch that a command line names by its id, or by a beginning of it that no other
    has; raise UsageError."""
    exact = [row for row in rows if name in (row.ident, row.name)]
    found = exact or [row for row in rows if row.ident.startswith(name)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(row.ident or row.name for row in rows[:5]) or "none"
    what = "several batches begin" if found else "no batch under way begins"
    raise UsageError(f"{what} with {quote(name)}", advice=f"There are: {there}")


def _act(action: str, name: str, url: str | None) -> None:
    from evenhand.runs.batch import cancel_batch, forget_batch

    with closing(store_at(url)) as store:
        batch = named_batch([row for row in store.archive.batches() if row.is_open], name)
        if action == "forget":
            wait(forget_batch(store, batch))
            notice(f"batch {batch.ident or batch.name} is given up; its questions are open again")
            return
        place = f"the store {shown_url(url or store_here())}"
        wait(cancel_batch(store.archive, batch, environment(), place))
    notice(
        f"batch {batch.ident} is being cancelled; the next run with --batch records what it has"
        " answered, and asks the rest live"
    )
