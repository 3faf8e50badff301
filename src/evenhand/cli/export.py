"""`evenhand export`."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand import jsontext
from evenhand.cli.common import recorded, run_argument, store_option
from evenhand.data.write import write
from evenhand.engine.run import BASIS
from evenhand.ledger.store import Scope
from evenhand.results import contract_objects, full_rows


@click.command("export")
@run_argument
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help=".jsonl .json .csv .parquet; - for stdout.",
)
@click.option("--full", is_flag=True, help="Everything: failures, offsets, passes, fixes, flags.")
@store_option
def export_command(run: str, output: str, full: bool, store: str | None) -> None:
    """Write the results of RUN to a file, by its ending.

    Without --full: the contract's own objects of all verdicts; failures are counted on stderr.
    """
    opened, found = recorded(store, run)
    try:
        rows = full_rows(opened, found) if full else contract_objects(opened, found.row.id)
        if output == "-":
            for row in rows:
                click.echo(jsontext.dump(row))
        else:
            number = write(Path(output), rows)
            click.echo(f"{number} rows written to {output}", err=True)
        counts = opened.counts(Scope(found.row.id), found.judgments_per_unit, BASIS)
    finally:
        opened.close()
    left_out = [f"{number} x {reason}" for reason, number in sorted(counts.failures.items())]
    if left_out and not full:
        click.echo(f"left out: failures {', '.join(left_out)}", err=True)
    if counts.pending:
        click.echo(f"left out: {counts.pending} pending", err=True)
