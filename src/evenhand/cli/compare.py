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
from evenhand.report.terminal.console import console, paragraph
from evenhand.runs.recorded import find_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from evenhand.observation import Rule
    from evenhand.results.compare import RunAnswer
    from evenhand.runs.recorded import Recorded
    from evenhand.stats.agreement import Ties

judge_option = click.option(
    "--judge", metavar="J", help="Count only this judge. Default: all judges."
)
level_option = click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Use this level for intervals.",
)


@click.command("compare")
@run_argument
@click.option(
    "--by",
    multiple=True,
    metavar="FIELD",
    help="Compare the values of this field; repeat it for combinations. Default: [compare] in"
    " the suite.",
)
@click.option(
    "--baseline",
    metavar="V",
    help="Compare with this variant. Default: [compare] in the suite, else the first.",
)
@click.option(
    "--pair-by",
    multiple=True,
    metavar="FIELD",
    help="Pair units that agree on this field. Repeatable. Default: the fields of the id"
    " without --by.",
)
@click.option(
    "--against",
    metavar="RUN",
    help="Compare RUN with this other run, unit by unit.",
)
@selecting_options
@click.option("--within", metavar="FIELD", help="Also compare within each value of this field.")
@click.option(
    "--stability",
    metavar="FIELD",
    help="Also measure how much scores vary over the values of this field, e.g. run_id.",
)
@click.option(
    "--margin",
    type=click.FloatRange(min=0, min_open=True),
    metavar="D",
    help="Call variants the same if they surely differ by less than D: 0 to 1 for overall,"
    " points for a dimension; for pairs, of the win rate: 0.05 is 45% to 55%. Default: none.",
)
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also show the N units that got worse most and the N that got better most. Default: 0.",
)
@judge_option
@on_conflict_option
@level_option
@click.option("--verbose", is_flag=True, help="Show all notes. Default: the main ones.")
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
    """Compare the variants in RUN: which is better, by how much, how surely.

    RUN is an id, the start of one, the name of a suite, or latest (the default).
    Without --by or --baseline, [compare] in the suite decides.

    \b
    evenhand compare
    evenhand compare --by prompt_variant --baseline v1
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

    say = terminal_words(run.faults)
    yield from comparison_lines(answer.comparison, answer.trust, say, verbose=verbose)
    if answer.comparison.is_duel:
        yield from criteria_line(names_of(run, say.language))
    if answer.blocks is not None:
        yield from blocks_lines(answer.blocks, say)
    if answer.stability is not None:
        yield from stability_lines(answer.stability, say)
    if answer.changed is not None:
        yield from changed_lines(answer.changed, say)
    elif not answer.comparison.is_duel and any(row.n for row in answer.comparison.rows):
        yield paragraph(say("terminal.see_changed"), style="dim")


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
    help="Ratings: model ties (davidson), or count half a win each.",
)
@click.option(
    "--scale",
    type=click.Choice(["log", "elo"]),
    default="log",
    show_default=True,
    help="Ratings: natural logarithm around 0, or Elo points around 1000.",
)
@click.option(
    "--anchor", metavar="CANDIDATE", help="Put this candidate at 0 (or 1000). Default: the mean."
)
@click.option(
    "--length-controlled", is_flag=True, help="Also print win rates at equal answer lengths."
)
@click.option("--by", metavar="FIELD", help="Also rank within each value of this field.")
@click.option("--criterion", metavar="C", help="Rank by this criterion. Default: by the winner.")
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
    """Rank the candidates in RUN by win rate and Bradley-Terry rating.

    RUN is an id, the start of one, the name of a suite, or latest (the default).

    \b
    evenhand leaderboard
    evenhand leaderboard latest --scale elo --anchor gpt-4o
    evenhand leaderboard latest --by topic_type --on-conflict tie
    """
    from evenhand.report.terminal.answer import leaderboard_lines
    from evenhand.report.terminal.pairs import criteria_line
    from evenhand.results.board import rank
    from evenhand.results.units import names_of

    with reading(store, run, where, without) as (archive, recorded):
        board = rank(archive, recorded, rule=on_conflict, **options)
    if as_json:
        print_json(about_run(recorded) | board.json())
        return
    tell_run(recorded)
    say = terminal_words(recorded.faults)
    _print(leaderboard_lines(board, say, every=verbose))
    if board.criteria:
        _print(criteria_line(names_of(recorded, say.language)))


@click.command("agreement")
@run_argument
@click.option(
    "--against",
    metavar="RUN[:JUDGE]",
    help="Compare with another run, with one judge of it, or with :JUDGE of the same run."
    " Default: the judges of RUN with each other.",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="J",
    help="Count only this judge of RUN, or a pattern such as 'expert_*'. Repeatable.",
)
@click.option(
    "--ties",
    type=click.Choice(["keep", "drop"]),
    default="keep",
    show_default=True,
    help="Pairs: keep ties, or drop units where either side has one.",
)
@selecting_options
@on_conflict_option
@click.option(
    "--majority",
    is_flag=True,
    help="Count one verdict per side and unit: the majority; of scores, the mean.",
)
@click.option(
    "--all", "every", is_flag=True, help="Print every figure and note. Default: the main ones."
)
@click.option("--by", metavar="FIELD", help="Also measure within each value of this field.")
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
    """Measure if the judges in RUN can be trusted: how well they agree with people or each other.

    RUN is an id, the start of one, the name of a suite, or latest (the default).
    Units of both sides are matched by id. With labels by people, means and win rates are also
    corrected by them.

    \b
    evenhand agreement
    evenhand agreement latest --against labels
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
    say = terminal_words(recorded.faults)
    heading, *lines = agreement_lines(about, agreement, names, say, every=every)
    tell_run(recorded, heading=str(heading))
    _print(lines)
