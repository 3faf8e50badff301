"""`evenhand report`."""

from __future__ import annotations

from pathlib import Path

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
@selecting_options
@force_option
@store_option
def report_command(
    run: str,
    output: str,
    language: str | None,
    summary: bool,
    by: tuple[str, ...],
    baseline: str | None,
    where: tuple[str, ...],
    without: tuple[str, ...],
    force: bool,
    store: str | None,
) -> None:
    """Write RUN as one HTML file: the answer, charts, every unit, and the method.

    RUN is an id, the start of one, the name of a suite, or latest (the default).
    The file needs no network, no other file and no scripts.

    \b
    evenhand report
    evenhand report latest --summary -o summary.html
    """
    from evenhand.results.report import ReportOptions, write_report

    options = ReportOptions(language=language, by=by, baseline=baseline, summary=summary)
    check_output(Path(output), force=force)
    with reading(store, run, where, without, asks_suite=True) as (archive, recorded):
        size = write_report(Path(output), archive, recorded, options)
    tell_run(recorded, stderr=True)
    notice(terminal_words()("terminal.report_written", file=safe(output), size=size / 1e6))
