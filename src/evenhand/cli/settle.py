"""`evenhand settle`."""

from __future__ import annotations

import click

from evenhand.cli.common import json_option, print_json, run_argument, store_at, store_option, wait
from evenhand.report.terminal.tables import console, outcome_lines
from evenhand.runs.recorded import find_run
from evenhand.runs.settle import settle_run


@click.command("settle")
@run_argument
@store_option
@json_option
def settle_command(run: str, store: str | None, as_json: bool) -> None:
    """Recompute the judgments of RUN (an id, a prefix, or latest) from its stored replies.

    No call is made. What would need one becomes pending.
    """
    opened = store_at(store)
    try:
        summary = wait(settle_run(find_run(opened.archive, run), opened))
    finally:
        opened.close()
    if as_json:
        print_json(summary.json())
    else:
        console().print(outcome_lines(summary.json()))
