"""`evenhand leaderboard`."""

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
    selecting_options,
    store_option,
    tell_run,
)
from evenhand.report.terminal.console import console

if TYPE_CHECKING:
    from evenhand.observation import Rule


@click.command("leaderboard")
@run_argument
@on_conflict_option
@selecting_options
@click.option("--judge", metavar="J", help="Count only what this judge said.")
@click.option(
    "--ties",
    type=click.Choice(["davidson", "half"]),
    default="davidson",
    show_default=True,
    help="In ratings: a tie as an outcome of its own, or as half a win to each.",
)
@click.option(
    "--scale",
    type=click.Choice(["log", "elo"]),
    default="log",
    show_default=True,
    help="Of ratings: natural log around 0, or 400 a factor of ten around 1000.",
)
@click.option("--anchor", metavar="CANDIDATE", help="The candidate that is put at 0, or at 1000.")
@click.option("--length-controlled", is_flag=True, help="Also win rates at equal lengths.")
@click.option("--by", metavar="FIELD", help="Also a board for each value of a field of meta.")
@click.option("--criterion", metavar="C", help="Rank by the marks of one criterion.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@store_option
@json_option
def leaderboard_command(
    run: str,
    on_conflict: Rule | None,
    where: tuple[str, ...],
    without: tuple[str, ...],
    judge: str | None,
    by: str | None,
    criterion: str | None,
    store: str | None,
    as_json: bool,
    **figures: Any,
) -> None:
    """Rank the candidates of RUN by win rate and Bradley-Terry rating, with intervals.

    \b
    evenhand leaderboard
    evenhand leaderboard latest --scale elo --anchor gpt-4o
    evenhand leaderboard latest --by topic_type --on-conflict tie
    """
    from evenhand.results.ranked import ranked

    options: dict[str, Any] = {"judge": judge, "by": by, "criterion": criterion}
    opened, run_record = recorded(store, run, where, without)
    try:
        board = ranked(opened, run_record, rule=on_conflict, **options, **figures)
    finally:
        opened.close()
    if as_json:
        print_json(about_run(run_record) | board.json())
        return
    from evenhand.report.terminal.answer import leaderboard_lines
    from evenhand.report.terminal.pairs import criteria_line
    from evenhand.results.units import names_of

    tell_run(run_record)
    out = console()
    for line in leaderboard_lines(board):
        out.print(line)
    if board.criteria:
        for line in criteria_line(names_of(run_record)):
            out.print(line)
