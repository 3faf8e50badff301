"""`evenhand compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.common import (
    about_run,
    json_option,
    on_conflict_option,
    print_json,
    recorded,
    run_argument,
    store_option,
    tell_selection,
    where_option,
)
from evenhand.report.terminal.tables import console
from evenhand.runs.recorded import find_run

if TYPE_CHECKING:
    from evenhand.measures import Rule


@click.command("compare")
@run_argument
@click.option(
    "--by",
    multiple=True,
    metavar="FIELD",
    help="The field that tells variants apart; several give their combinations.",
)
@click.option("--baseline", metavar="V", help="The variant to compare with. Default: the first.")
@click.option(
    "--pair-by",
    multiple=True,
    metavar="FIELD",
    help="Pair units on these fields. Default: those of the id less --by.",
)
@where_option
@click.option(
    "--against", metavar="RUN", help="Compare RUN with this run instead, unit by unit: latest~1."
)
@click.option("--judge", metavar="J", help="Count only what this judge said.")
@on_conflict_option
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--seed", type=int, help="Of what is sampled. Default: that of the run.")
@store_option
@json_option
def compare_command(
    run: str,
    by: tuple[str, ...],
    baseline: str | None,
    pair_by: tuple[str, ...],
    where: tuple[str, ...],
    against: str | None,
    judge: str | None,
    on_conflict: Rule | None,
    level: float,
    seed: int | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Variants of RUN side by side: which is better, by how much, and how sure that is.

    What the suite says under [compare] holds where --by and --baseline say nothing. Of a pairwise
    run the candidates are compared with the baseline.

    \b
    evenhand compare --by prompt_variant --baseline v1
    evenhand compare --by model --by prompt_variant --pair-by question_id
    evenhand compare --by candidate --baseline old
    evenhand compare latest --against latest~1
    """
    from evenhand.results.compare import compared, compared_runs, field_names
    from evenhand.results.selection import same_units

    if against and (by or baseline or pair_by):
        raise click.UsageError("--against pairs two runs by unit: leave --by and the like out")
    opened, run_record = recorded(store, run, where)
    options: dict[str, Any] = {"judge": judge, "level": level, "seed": seed}
    try:
        if against:
            beside = same_units(opened, run_record, find_run(opened, against))
            comparison = compared_runs(opened, run_record, beside, rule=on_conflict, **options)
        else:
            comparison = compared(
                opened,
                run_record,
                field_names(by),
                baseline,
                pair_by=field_names(pair_by),
                rule=on_conflict,
                **options,
            )
    finally:
        opened.close()
    if as_json:
        print_json(about_run(run_record) | comparison.json())
        return
    from evenhand.report.terminal.comparison import comparison_lines

    tell_selection(run_record)
    out = console()
    for line in comparison_lines(comparison):
        out.print(line)
