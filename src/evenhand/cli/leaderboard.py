"""`evenhand leaderboard`."""

from __future__ import annotations

from pathlib import Path
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
    tell_run,
    where_option,
)
from evenhand.report.terminal.console import console

if TYPE_CHECKING:
    from evenhand.measures import Rule


def _steadied(difficulty: str | None, anchors: str | None) -> dict[str, Any]:
    """What files say about win rates at equal lengths, which they ask for."""
    from evenhand.errors import UsageError
    from evenhand.results.difficulty import read_anchors, read_difficulties

    if difficulty is None:
        if anchors is not None:
            raise UsageError(
                "--anchors needs the difficulties of the run's own instructions too",
                advice="Add --difficulty FILE; it may be the same file.",
            )
        return {}
    return {
        "length_controlled": True,
        "difficulty": read_difficulties(Path(difficulty)),
        "anchored": None if anchors is None else read_anchors(Path(anchors)),
    }


@click.command("leaderboard")
@run_argument
@on_conflict_option
@where_option
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
@click.option("--elo", is_flag=True, help="Also Elo, vote by vote.")
@click.option("--position", is_flag=True, help="Ratings with a term for what was shown first.")
@click.option("--outright", is_flag=True, help="Also the share of votes won: a tie is no win.")
@click.option(
    "--peer-weights",
    is_flag=True,
    help="Also win rates with judges that are candidates weighted by their own standing.",
)
@click.option("--length-controlled", is_flag=True, help="Also win rates at equal lengths.")
@click.option(
    "--difficulty",
    metavar="FILE",
    help="How hard instructions are, for win rates at equal lengths: unit, difficulty.",
)
@click.option(
    "--anchors",
    metavar="FILE",
    help="Rows that steady win rates at equal lengths: preference, length, difficulty.",
)
@click.option("--by", metavar="FIELD", help="Also a board for each value of a field of meta.")
@click.option("--criterion", metavar="C", help="Rank by the marks of one criterion.")
@click.option("--bootstrap", type=int, default=1000, show_default=True, help="How many rounds.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--seed", type=int, help="Of the bootstrap. Default: that of the run.")
@store_option
@json_option
def leaderboard_command(
    run: str,
    on_conflict: Rule | None,
    where: tuple[str, ...],
    judge: str | None,
    by: str | None,
    criterion: str | None,
    seed: int | None,
    difficulty: str | None,
    anchors: str | None,
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

    options: dict[str, Any] = {"judge": judge, "by": by, "criterion": criterion, "seed": seed}
    figures |= _steadied(difficulty, anchors)
    opened, run_record = recorded(store, run, where)
    try:
        board = ranked(opened, run_record, rule=on_conflict, **options, **figures)
    finally:
        opened.close()
    if as_json:
        print_json(about_run(run_record) | board.json())
        return
    from evenhand.report.terminal.leaderboard import leaderboard_lines
    from evenhand.report.terminal.pairs import criteria_line
    from evenhand.results.names import names_of

    tell_run(run_record)
    out = console()
    for line in leaderboard_lines(board):
        out.print(line)
    if board.criteria:
        for line in criteria_line(names_of(run_record)):
            out.print(line)
