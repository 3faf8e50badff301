"""`evenhand report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evenhand.cli.common import (
    NearChoice,
    force_option,
    notice,
    reading,
    run_argument,
    selecting_options,
    store_option,
    tell_run,
)
from evenhand.cli.language import terminal_words
from evenhand.files.outputs import check_output
from evenhand.report.terminal.tables import safe
from evenhand.runs.recorded import find_run
from evenhand.words import LANGUAGES


@click.command("report")
@run_argument
@click.option(
    "-o",
    "--output",
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="Write to this file.",
)
@click.option(
    "--language", type=NearChoice(LANGUAGES), help="Write in this language. Default: the suite's."
)
@click.option("--title", default="", help="Use this heading. Default: the name of the run.")
@click.option("--summary", is_flag=True, help="Leave the units out, for a small file.")
@click.option(
    "--by",
    multiple=True,
    metavar="FIELD",
    help="Compare the values of this field; repeat it for combinations. Default: [compare] in"
    " the suite, else prompt_variant, else model.",
)
@click.option(
    "--baseline",
    metavar="V",
    help="Compare with this variant or candidate. Default: [compare], else the first.",
)
@click.option(
    "--against",
    metavar="RUN",
    help="Compare RUN with this other run, unit by unit.",
)
@click.option("--within", metavar="FIELD", help="Also compare within each value of this field.")
@click.option(
    "--stability",
    metavar="FIELD",
    help="Also show how much scores vary over the values of this field, e.g. run_id.",
)
@selecting_options
@force_option
@store_option
def report_command(
    run: str,
    output: str,
    by: tuple[str, ...],
    against: str | None,
    where: tuple[str, ...],
    without: tuple[str, ...],
    force: bool,
    store: str | None,
    **options: Any,
) -> None:
    """Write RUN as one HTML file: the answer, charts, every unit, and the method.

    RUN is an id, the start of one, the name of a suite, or latest (the default).
    The file needs no network, no other file and no scripts.

    \b
    evenhand report
    evenhand report latest --summary -o summary.html
    evenhand report latest --against latest~1 --title "This week and last"
    """
    from evenhand.results.compare import field_names
    from evenhand.results.observations import same_units
    from evenhand.results.report import ReportOptions, write_report

    check_output(Path(output), force=force)
    with reading(store, run, where, without, asks_suite=True) as (archive, recorded):
        other = against and same_units(archive, recorded, find_run(archive, against))
        chosen = ReportOptions(by=field_names(by), against=other or None, **options)
        size = write_report(Path(output), archive, recorded, chosen)
    tell_run(recorded, stderr=True)
    notice(terminal_words()("terminal.report_written", file=safe(output), size=size / 1e6))
