"""`evenhand agreement`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evenhand.cli.common import (
    about_run,
    json_option,
    on_conflict_option,
    print_json,
    recorded,
    run_argument,
    selecting_options,
    store_option,
    tell_selection,
)
from evenhand.report.terminal.console import console
from evenhand.results.agreement import agreed, label_source

if TYPE_CHECKING:
    from evenhand.observation import Rule
    from evenhand.stats.agreement import Ties


@click.command("agreement")
@run_argument
@click.option(
    "--against",
    metavar="RUN[:JUDGE]",
    help="The other side: a run, a judge of it, or :JUDGE of the same run. Default: the judges of"
    " RUN among themselves.",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="J",
    help="Count only this judge of RUN; a pattern such as 'expert_*' names several.",
)
@click.option(
    "--ties",
    type=click.Choice(["keep", "drop"]),
    default="keep",
    show_default=True,
    help="Pairs: leave out where either side is a tie.",
)
@selecting_options
@on_conflict_option
@click.option("--majority", is_flag=True, help="One verdict a side and unit: majority or mean.")
@click.option("--all", "every", is_flag=True, help="Every figure and note, not the main ones.")
@click.option("--by", metavar="FIELD", help="Also for each value of this field.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of the intervals.",
)
@store_option
@json_option
def agreement_command(
    run: str,
    against: str | None,
    judges: tuple[str, ...],
    ties: Ties,
    where: tuple[str, ...],
    without: tuple[str, ...],
    on_conflict: Rule | None,
    majority: bool,
    every: bool,
    by: str | None,
    level: float,
    store: str | None,
    as_json: bool,
) -> None:
    """Can the judges of RUN be trusted? Their agreement with people, or with each other.

    With --against the units of both sides are joined by their ids, and means or win rates are also
    given corrected by the labels of the other side.

    \b
    evenhand agreement
    evenhand agreement latest --against 3fa2:human/ann
    evenhand agreement latest --against :human/ann --ties drop --majority
    """
    opened, run_record = recorded(store, run, where, without)
    try:
        labels = None if against is None else label_source(opened, run_record, against)
        agreed_on = agreed(
            opened,
            run_record,
            labels,
            ties=ties,
            rule=on_conflict,
            majority=majority,
            every=every,
            judges=judges,
            by=by,
            level=level,
        )
    finally:
        opened.close()
    about = about_run(run_record) | {
        "against": labels and labels.name,
        "ties": ties,
        "majority": majority,
        "by": by,
        "level": level,
    }
    if as_json:
        print_json(about | agreed_on.json())
        return
    from evenhand.report.terminal.agreement import Sides, agreement_lines

    out = console()
    names = Sides(run_record.row.name, labels.title if labels else None)
    heading, *lines = agreement_lines(about, agreed_on, names, every=every)
    out.print(heading)
    tell_selection(run_record)
    for line in lines:
        out.print(line)
