"""`evenhand compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.common import (
    about_run,
    earlier_run,
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
    from evenhand.results.compare import Answer
    from evenhand.runs.recorded import Recorded


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
    help="Variants are the same if their difference surely lies within D.",
)
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also the N units that got worse most and the N that got better most, side by side.",
)
@click.option("--judge", metavar="J", help="Count only what this judge said.")
@on_conflict_option
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
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
    from evenhand.results.compare import Question, answered, field_names

    opened, run_record = recorded(store, run, where, without, asks_suite=True)
    try:
        paired = field_names(pair_by)
        question = Question(
            by=field_names(by),
            pair_by=paired,
            against=None if against is None else earlier_run(opened, run_record, against, paired),
            rule=on_conflict,
            **options,
        )
        answer = answered(opened, run_record, question)
    finally:
        opened.close()
    if as_json:
        earlier = question.against and question.against.id
        print_json(about_run(run_record) | {"against": earlier} | answer.json())
        return
    tell_run(run_record)
    _print(answer, run_record, question.against, verbose=verbose)


def _print(answer: Answer, run: Recorded, earlier: Recorded | None, *, verbose: bool) -> None:
    from evenhand.report.terminal.comparison import comparison_lines
    from evenhand.report.terminal.comparison_parts import (
        blocks_lines,
        changed_lines,
        stability_lines,
    )
    from evenhand.report.terminal.pairs import criteria_line
    from evenhand.report.terminal.tables import safe
    from evenhand.results.units import names_of

    out = console()
    if earlier is not None:
        moments = [record.row.started[:16].replace("T", " ") for record in (run, earlier)]
        against = f"against run {earlier.id}  {earlier.row.name}"
        out.print(safe(f"{against} ({moments[0]} against {moments[1]})"))
    for line in comparison_lines(answer.comparison, verbose=verbose):
        out.print(line)
    if answer.comparison.is_duel:
        for line in criteria_line(names_of(run)):
            out.print(line)
    if answer.blocks is not None:
        for line in blocks_lines(answer.blocks):
            out.print(line)
    if answer.stability is not None:
        for line in stability_lines(answer.stability):
            out.print(line)
    if answer.changed is not None:
        for line in changed_lines(answer.changed):
            out.print(line)
