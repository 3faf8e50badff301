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
from evenhand.cli.language import terminal_words
from evenhand.errors import UsageError
from evenhand.judges.credentials import environment
from evenhand.report.terminal.console import console, table, titles
from evenhand.report.terminal.tables import safe
from evenhand.runs.recorded import find_run
from evenhand.store.address import shown_url
from evenhand.store.batches import BatchRow
from evenhand.words import Code, Sentence, few

ACTIONS = ("cancel", "forget")
NAMED = 5
"""Batches that an error names; more are counted."""


@click.command("batches")
@click.argument("words", nargs=-1, metavar="[RUN | cancel BATCH | forget BATCH]")
@click.option("--all", "is_all", is_flag=True, help="List ended batches too.")
@store_option
@json_option
def batches_command(words: Sequence[str], is_all: bool, store: str | None, as_json: bool) -> None:
    """List the batches under way at the provider, of all runs or of RUN.

    `cancel BATCH` ends one early: the next run records what is answered, and asks the rest one
    by one. `forget BATCH` gives up a lost one: its questions are open again, and its money stays
    counted, because it may still be billed.

    \b
    evenhand batches
    evenhand batches cancel BATCH
    """
    if words and words[0] in ACTIONS:
        if len(words) != 2:
            what = Sentence("terminal.batch_takes_one", action=Code(words[0]))
            raise click.UsageError(what)
        _act(words[0], words[1], store)
        return
    if len(words) > 1:
        raise click.UsageError(Sentence("terminal.batch_words"))
    with closing(archive_at(store)) as archive:
        archive.set_frozen(True)
        run = find_run(archive, words[0]).id if words else ""
        rows = [row for row in archive.batches(run) if is_all or row.is_open]
    if as_json:
        print_json({"batches": [row.json() for row in rows]})
    elif not rows:
        key = "terminal.no_batches" if is_all else "terminal.no_open_batches"
        click.echo(terminal_words()(key))
    else:
        _print(rows)


def _print(rows: Sequence[BatchRow]) -> None:
    say = terminal_words()
    columns = ("batch", "run", "judge", "status", "answered", "open", "made")
    listing = table(*titles(say, *columns), right=(4, 5), whole=(0, 1, 6))
    for row in rows:
        answered = say("terminal.answered_of", n=row.answered, of=row.requests)
        status = row.status or row.stage
        made = row.created[5:16].replace("T", " ")
        cells = [row.ident or row.name, row.run, row.judge, status, answered]
        cells += [say.integer(row.open), made]
        listing.add_row(*map(safe, cells))
    console().print(listing)


def named_batch(rows: Sequence[BatchRow], name: str) -> BatchRow:
    """Return the batch that a command line names by its id, or by a beginning of it that no other
    has; raise UsageError."""
    exact = [row for row in rows if name in (row.ident, row.name)]
    found = exact or [row for row in rows if row.ident.startswith(name)]
    if len(found) == 1:
        return found[0]
    there = few([row.ident or row.name for row in rows], NAMED)
    key = "several" if found else "unknown"
    raise UsageError(Sentence(f"terminal.batch_{key}", name=name, names=there))


def _act(action: str, name: str, url: str | None) -> None:
    from evenhand.runs.batch import cancel_batch, forget_batch

    with closing(store_at(url)) as store:
        batch = named_batch([row for row in store.archive.batches() if row.is_open], name)
        if action == "forget":
            wait(forget_batch(store, batch))
            notice(Sentence("terminal.batch_forgotten", batch=batch.ident or batch.name))
            return
        place = Sentence("terminal.the_store", url=Code(shown_url(url or store_here())))
        wait(cancel_batch(store.archive, batch, environment(), place))
    notice(Sentence("terminal.batch_cancelled", batch=batch.ident))
