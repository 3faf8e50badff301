"""`evenhand export`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click

from evenhand import jsontext
from evenhand.cli.common import (
    force_option,
    only_option,
    recorded,
    run_argument,
    store_option,
    tell_selection,
    where_option,
)
from evenhand.data.files import is_table, is_text
from evenhand.data.write import write, write_text
from evenhand.errors import UsageError, quoted
from evenhand.files.outputs import check_output
from evenhand.kinds.kind import Voting
from evenhand.ledger.ports import Archive
from evenhand.results.pairs import fronts_of, verdict_lines
from evenhand.results.rows import (
    Selector,
    contract_objects,
    full_rows,
    namesakes,
    selector,
    with_pass_columns,
)
from evenhand.runs.recorded import Recorded


@click.command("export")
@run_argument
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help=".jsonl .json .csv .parquet, pairs also .txt; - for stdout.",
)
@click.option("--full", is_flag=True, help="Everything: failures, offsets, passes, fixes, flags.")
@click.option("--fronts", is_flag=True, help="Pairs: a row a topic with its front and pareto set.")
@click.option("--with-unit", is_flag=True, help="The id of the unit before each contract object.")
@only_option
@where_option
@force_option
@store_option
def export_command(
    run: str,
    output: str,
    full: bool,
    fronts: bool,
    with_unit: bool,
    only: str | None,
    where: tuple[str, ...],
    force: bool,
    store: str | None,
) -> None:
    """Write the results of RUN to a file, by its ending.

    Without --full: the contract's own objects of all verdicts; failures are counted on stderr.
    Pairs go into a .txt as the verdict table, one line a pair.
    """
    if full + fronts + with_unit > 1:
        raise click.UsageError("--full, --fronts and --with-unit exclude each other")
    if output != "-":
        check_output(Path(output), force=force)
    opened, run_record = recorded(store, run, where)
    try:
        form = Form("full" if full else "fronts" if fronts else "contract", with_unit, only)
        number = _write(output, opened, run_record, form)
        counts = run_record.counts(opened)
        alike = 0 if full or fronts or with_unit else namesakes(opened, run_record)
    finally:
        opened.close()
    tell_selection(run_record, stderr=True)
    if output != "-":
        click.echo(f"{number} rows written to {output}", err=True)
    left_out = [f"{number} x {reason}" for reason, number in sorted(counts.failures.items())]
    if left_out and not full:
        click.echo(f"left out: failures {', '.join(left_out)}", err=True)
    if counts.pending:
        click.echo(f"left out: {counts.pending} pending", err=True)
    if alike:
        click.echo(f"{alike} units share the name of another: --with-unit adds their ids", err=True)


class Form(NamedTuple):
    """What is to be written of a run."""

    rows: Literal["contract", "full", "fronts"]
    with_unit: bool
    only: str | None


def _write(output: str, store: Archive, run: Recorded, form: Form) -> int:
    path = Path(output)
    if form.only is not None:
        selector(run, form.only)
    if is_text(path):
        _only_pairs(run, "a verdict table (.txt)")
        if form != Form("contract", with_unit=False, only=None):
            raise UsageError("a verdict table holds verdicts alone", advice="Write .jsonl instead.")
        return write_text(path, verdict_lines(store, run)) - 1
    rows = _rows(store, run, form)
    if form.rows == "full" and is_table(path):
        rows = with_pass_columns(rows)
    if output != "-":
        return write(path, rows)
    number = 0
    for number, row in enumerate(rows, 1):  # noqa: B007
        click.echo(jsontext.dump(row))
    return number


def _rows(store: Archive, run: Recorded, form: Form) -> Iterator[Mapping[str, Any]]:
    if form.rows == "fronts":
        _only_pairs(run, "a front")
        topics = fronts_of(store, run, run.rule)
        return ({"pair_id": topic, **asdict(front)} for topic, front in topics.items())
    is_wanted: Selector = selector(run, form.only) if form.only else lambda judgment: True
    if form.rows == "full":
        return full_rows(store, run, is_wanted)
    return contract_objects(store, run, is_wanted, with_unit=form.with_unit)


def _only_pairs(run: Recorded, what: str) -> None:
    if not isinstance(run.kind.measure, Voting):
        raise UsageError(
            f"run {quoted(run.row.id)} judged by the kind {run.kind_name}; {what} is of pairs",
            advice="Write .jsonl, .json, .csv or .parquet.",
        )
