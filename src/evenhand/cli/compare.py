"""`evenhand compare`, `evenhand leaderboard` and `evenhand agreement`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.common import (
    about_run,
    json_option,
    on_conflict_option,
    print_json,
    reading,
    run_argument,
    selecting_options,
    store_option,
    tell_run,
)
from evenhand.cli.language import terminal_words
from evenhand.report.terminal.console import console
from evenhand.runs.recorded import find_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from evenhand.observation import Rule
    from evenhand.results.compare import RunAnswer
    from evenhand.runs.recorded import Recorded
    from evenhand.stats.agreement import Ties

judge_option = click.option("--judge", metavar="J", help="Count only what this judge said.")
level_option = click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of the intervals.",
)


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
@click.option(
    "--against",
    metavar="RUN",
    help="Compare RUN with this earlier run, unit by unit, instead of its variants.",
)
@selecting_options
@click.option("--within", metavar="FIELD", help="Also inside each value, and whether they differ.")
@click.option(
    "--stability",
    metavar="FIELD",
    help="Also how far answers vary over its values, such as run_id.",
)
@click.option(
    "--margin",
    type=click.FloatRange(min=0, min_open=True),
    metavar="D",
    help="Variants count as the same if they differ by less than D for sure. Of 1 for overall,"
    " in points for a dimension.",
)
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also the N units that got worse most and the N that got better most, side by side.",
)
@judge_option
@on_conflict_option
@level_option
@click.option("--verbose", is_flag=True, help="Show all notes.")
@store_option
@json_option
def compare_command(
    run: str,
    by: tuple[str, ...],
    pair_by: tuple[str, ...],
    against: str | None,
    where: tuple[str, ...],
    without: tuple[str, ...],
    on_conflict: Rule | None,
    store: str | None,
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> None:
    """Variants of RUN side by side: which is better, by how much, and how sure that is.

    What the suite says under [compare] holds where --by and --baseline say nothing. Of a pairwise
    run the candidates are compared with the baseline.

    \b
    evenhand compare --by prompt_variant --baseline v1
    evenhand compare --by model --by prompt_variant --pair-by question_id
    evenhand compare --by candidate --baseline old
    evenhand compare --where model=big --within eval_set_variant
    evenhand compare latest --against latest~1
    """
    from evenhand.results.compare import CompareOptions, answer_run, field_names
    from evenhand.results.observations import same_units

    with reading(store, run, where, without, asks_suite=True) as (archive, recorded):
        paired, earlier = field_names(pair_by), None
        if against is not None:
            earlier = same_units(archive, recorded, find_run(archive, against), paired)
        question = CompareOptions(
            by=field_names(by), pair_by=paired, against=earlier, rule=on_conflict, **options
        )
        answer = answer_run(archive, recorded, question)
    if as_json:
        print_json(about_run(recorded) | {"against": earlier and earlier.id} | answer.json())
        return
    tell_run(recorded)
    if earlier is not None:
        moments = [each.row.started[:16].replace("T", " ") for each in (recorded, earlier)]
        named = {"run": earlier.id, "name": earlier.row.name}
        times = dict(zip(("time", "earlier"), moments, strict=True))
        tell_run(earlier, heading=terminal_words()("terminal.against_run", **named, **times))
    shown = answer.out_of(recorded.full_marks)
    _print(_answer_lines(shown, recorded, verbose=verbose))


def _print(lines: Iterable[RenderableType]) -> None:
    out = console()
    for line in lines:
        out.print(line)


def _answer_lines(answer: RunAnswer, run: Recorded, *, verbose: bool) -> Iterator[RenderableType]:
    from evenhand.report.terminal.comparison import comparison_lines
    from evenhand.report.terminal.comparison_parts import (
        blocks_lines,
        changed_lines,
        stability_lines,
    )
    from evenhand.report.terminal.pairs import criteria_line
    from evenhand.results.units import names_of

    say = terminal_words()
    yield from comparison_lines(answer.comparison, answer.trust, say, verbose=verbose)
    if answer.comparison.is_duel:
        yield from criteria_line(names_of(run, say.language))
    if answer.blocks is not None:
        yield from blocks_lines(answer.blocks, say)
    if answer.stability is not None:
        yield from stability_lines(answer.stability, say)
    if answer.changed is not None:
        yield from changed_lines(answer.changed, say)


@click.command("leaderboard")
@run_argument
@on_conflict_option
@selecting_options
@judge_option
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
@level_option
@click.option("--verbose", is_flag=True, help="Show all figures and notes.")
@store_option
@json_option
def leaderboard_command(
    run: str,
    on_conflict: Rule | None,
    where: tuple[str, ...],
    without: tuple[str, ...],
    store: str | None,
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> None:
    """Rank the candidates of RUN by win rate and Bradley-Terry rating, with intervals.

    \b
    evenhand leaderboard
    evenhand leaderboard latest --scale elo --anchor gpt-4o
    evenhand leaderboard latest --by topic_type --on-conflict tie
    """
    from evenhand.report.terminal.answer import leaderboard_lines
    from evenhand.report.terminal.pairs import criteria_line
    from evenhand.results.board import rank, trust_sentences
    from evenhand.results.units import names_of

    with reading(store, run, where, without) as (archive, recorded):
        board = rank(archive, recorded, rule=on_conflict, **options)
    if as_json:
        print_json(about_run(recorded) | board.json())
        return
    tell_run(recorded)
    say, judge = terminal_words(), options["judge"]
    trust = trust_sentences(recorded, board.orders, board.board.failed, judge)
    _print(leaderboard_lines(board, trust, say, every=verbose))
    if board.criteria:
        _print(criteria_line(names_of(recorded, say.language)))


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
@level_option
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
    from evenhand.report.terminal.agreement import SideNames, agreement_lines
    from evenhand.results.agreement import agreement_of, label_source

    with reading(store, run, where, without) as (archive, recorded):
        labels = None if against is None else label_source(archive, recorded, against)
        agreement = agreement_of(
            archive,
            recorded,
            labels,
            ties=ties,
            rule=on_conflict,
            majority=majority,
            every=every,
            judges=judges,
            by=by,
            level=level,
        )
    options = {"ties": ties, "majority": majority, "by": by, "level": level}
    about = about_run(recorded) | {"against": labels and labels.name} | options
    if as_json:
        print_json(about | agreement.json())
        return
    names = SideNames(recorded.row.name, labels.title if labels else None)
    say = terminal_words()
    heading, *lines = agreement_lines(about, agreement, names, say, every=every)
    tell_run(recorded, heading=str(heading))
    _print(lines)
