"""`evenhand gate`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from evenhand.cli.common import (
    about_run,
    force_option,
    json_option,
    notice,
    on_conflict_option,
    print_json,
    reading,
    run_argument,
    selecting_options,
    store_option,
    tell_run,
)
from evenhand.cli.language import terminal_words
from evenhand.data.write import write_bytes
from evenhand.errors import UsageError
from evenhand.files.outputs import check_output
from evenhand.report.gate import gate_lines, junit, markdown, workflow_commands
from evenhand.report.terminal.console import console
from evenhand.results.gate import conditions_of, gate_run
from evenhand.runs.recorded import Recorded
from evenhand.stats.gate import Gate
from evenhand.words import Sentence

EXIT_CODES = {"better": 0, "worse": 1, "not enough evidence": 7}
_SHARE = click.FloatRange(0, 1)


class Percent(click.ParamType):  # type: ignore[type-arg]
    """A share, written as 10% or 0.1."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = -1.0
        if not 0 <= share < float("inf"):
            self.fail(Sentence("gate.no_percent", value=text), param, ctx)
        return share


@click.command("gate")
@run_argument
@click.option(
    "--by",
    multiple=True,
    metavar="FIELD",
    help="Compare the values of this field. Repeatable. Default: [compare] in the suite.",
)
@click.option(
    "--pair-by",
    multiple=True,
    metavar="FIELD",
    help="Pair units that agree on this field. Repeatable.",
)
@click.option(
    "--baseline", metavar="V", help="Compare with this variant or candidate. Default: [compare]."
)
@click.option("--variant", metavar="V", help="Check this variant. Default: all but the baseline.")
@click.option("--candidate", metavar="C", help="Pairs: check this candidate.")
@click.option(
    "--dimension",
    multiple=True,
    metavar="D",
    help="Check this dimension. Repeatable. Default: overall.",
)
@click.option("--better", is_flag=True, help="Require: better than the baseline.")
@click.option(
    "--no-worse-than",
    "no_worse_than",
    type=click.FloatRange(min=0),
    metavar="D",
    help="Require: at most D worse than the baseline: 0 to 1 for overall, points for a dimension;"
    " for pairs, of the win rate: 0.05 asks for 45% or more.",
)
@click.option("--min-mean", type=float, metavar="M", help="Require a mean of M or more.")
@click.option(
    "--min-win-rate", type=_SHARE, metavar="W", help="Pairs: require a win rate of W or more."
)
@click.option("--min-pass-rate", type=_SHARE, metavar="R", help="Require a pass rate of R or more.")
@click.option(
    "--every", is_flag=True, help="Require that no unit fails. Decides even if units are few."
)
@click.option(
    "--no-case-worse-than",
    type=click.FloatRange(min=0),
    metavar="D",
    help="Require that no case scores more than D below the baseline or goes from pass to fail.",
)
@click.option(
    "--max-critical-fails",
    type=click.IntRange(min=0),
    metavar="K",
    help="Weighted: allow at most K critical fails.",
)
@click.option(
    "--max-failure-rate",
    type=_SHARE,
    metavar="R",
    help="Allow at most this share of failed judgments, e.g. 0.02.",
)
@click.option(
    "--max-cost-increase",
    type=Percent(),
    metavar="P",
    help="Allow answers that the suite makes to cost at most P more, e.g. 10%.",
)
@click.option(
    "--max-latency-increase",
    type=Percent(),
    metavar="P",
    help="Allow answers that the suite makes to take at most P longer, e.g. 10%.",
)
@selecting_options
@click.option("--judge", metavar="J", help="Count only this judge. Default: all judges.")
@on_conflict_option
@click.option("--level", type=float, help="Use this level for intervals. Default: 0.95.")
@click.option(
    "--junit",
    "report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the result to this file as JUnit XML.",
)
@force_option
@store_option
@json_option
def gate_command(
    run: str,
    where: tuple[str, ...],
    without: tuple[str, ...],
    report: Path | None,
    force: bool,
    store: str | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Decide if a variant in RUN may ship; the exit code is the answer.

    RUN is an id, the start of one, the name of a suite, or latest (the default).
    Exit code 0: every condition is met. 1: one is not. 7: not enough evidence to say.
    Conditions can also be set under [gate] in the suite; options override them.

    \b
    evenhand gate --by prompt_variant --baseline v1 --no-worse-than 0.05
    evenhand gate --min-mean 0.8 --max-critical-fails 0 --max-failure-rate 0.02
    evenhand gate --candidate new --baseline old --min-win-rate 0.5
    """
    if report:
        check_output(report, force=force)
    with reading(store, run, where, without, asks_suite=True) as (archive, recorded):
        conditions, rule = conditions_of(recorded, flags)
        gate = gate_run(archive, recorded, conditions, rule)
    _tell(gate, recorded, as_json)
    if report:
        _write(report, gate, recorded)
    return EXIT_CODES[gate.outcome]


def _write(path: Path, gate: Gate, run: Recorded) -> None:
    row = run.row
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = Sentence("gate.report_unwritten", error=str(error))
        raise UsageError(what, where=str(path)) from None
    write_bytes(path, junit(gate, run=row.id, name=row.name, started=row.started))


def _tell(gate: Gate, run: Recorded, as_json: bool) -> None:
    if as_json:
        print_json(about_run(run) | gate.json())
    else:
        tell_run(run)
        out = console()
        for text in gate_lines(gate, terminal_words(run.faults)):
            out.print(text)
    if any(os.environ.get(name, "").lower() in ("true", "1") for name in ("GITHUB_ACTIONS", "CI")):
        for line in workflow_commands(gate, run.row.id):
            click.echo(line, err=as_json)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        _summarise(Path(summary), markdown(gate, run.row.id, run.row.name))


def _summarise(path: Path, text: str) -> None:
    """Add to the summary of the job. A gate is not undone by a file that cannot be written."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        notice(Sentence("gate.summary_unwritten", error=str(error)))
