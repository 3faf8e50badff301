"""`evenhand agreement`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from evenhand.cli.common import (
    about_run,
    earlier_run,
    json_option,
    on_conflict_option,
    print_json,
    recorded,
    run_argument,
    store_option,
    tell_selection,
    where_option,
)
from evenhand.errors import UsageError, quoted
from evenhand.kinds.kind import Voting
from evenhand.ledger.ports import Archive
from evenhand.report.terminal.console import console
from evenhand.runs.recorded import Recorded

if TYPE_CHECKING:
    from evenhand.measures import Rule
    from evenhand.stats.agreement.figures import Ties
    from evenhand.stats.agreement.table import Agreement


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
@where_option
@on_conflict_option
@click.option("--majority", is_flag=True, help="One verdict a side and unit: majority or mean.")
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
    on_conflict: Rule | None,
    majority: bool,
    by: str | None,
    level: float,
    store: str | None,
    as_json: bool,
) -> None:
    """How far the judges of RUN agree with people, or with each other.

    With --against the units of both sides are joined by their ids, and means or win rates are also
    given corrected by the labels of the other side.

    \b
    evenhand agreement
    evenhand agreement latest --against 3fa2:human/ann
    evenhand agreement latest --against :human/ann --ties drop --majority
    """
    if majority and against is None:
        raise UsageError("--majority needs another side", advice="Name it: --against RUN[:JUDGE]")
    opened, run_record = recorded(store, run, where)
    try:
        labels = None if against is None else _label_source(opened, run_record, against)
        options = {"judges": judges, "majority": majority, "by": by, "level": level}
        agreed = _agreed(opened, run_record, labels, ties, on_conflict, options)
        if labels is not None and not agreed.matched:
            raise _unmatched(opened, run_record, labels)
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
        print_json(about | agreed.json())
        return
    from evenhand.report.terminal.agreement import Sides, agreement_lines

    tell_selection(run_record)
    out = console()
    names = Sides(run_record.row.name, labels.title if labels else None)
    for line in agreement_lines(about, agreed, names):
        out.print(line)


def _unmatched(store: Archive, run: Recorded, labels: _LabelSource) -> UsageError:
    sides = (run, labels.run)
    what = f"no unit of {run.row.id} is rated by {labels.name}"
    if reason := _why_same_ids_do_not_join(store, sides):
        return UsageError(what, advice=reason)
    ids = [next((quoted(unit.id) for unit in store.units(side.scope)), "none") for side in sides]
    return UsageError(
        what,
        advice=f"Units are joined by their ids, such as {' and '.join(ids)}. Import labels under"
        " the same ids (--key names their columns, in order); of pairs, with --for RUN.",
    )


def _why_same_ids_do_not_join(store: Archive, sides: tuple[Recorded, Recorded]) -> str:
    """Why units that both sides call alike are not joined; nothing where no two are."""
    bodies = {unit.id: unit.body for unit in store.units(sides[0].scope)}
    for unit in store.units(sides[1].scope):
        if unit.id not in bodies:
            continue
        measures = [side.kind.measure for side in sides]
        names = [
            [quoted(name) for name in measure.unit(body).candidates]
            for measure, body in zip(measures, (bodies[unit.id], unit.body), strict=True)
            if isinstance(measure, Voting)
        ]
        if len(names) == 2 and set(names[0]) != set(names[1]):
            compared = [" and ".join(pair) for pair in names]
            return (
                f"Pairs are joined by their ids and candidates, and {quoted(unit.id)} compares"
                f" {compared[0]} here, {compared[1]} there. Give the candidates the same names."
            )
        return f"Both sides have {quoted(unit.id)}, but no unit has a verdict on both."
    return ""


class _LabelSource(NamedTuple):
    """The other side: a run, and a judge of it if one is named."""

    run: Recorded
    judge: str

    @property
    def name(self) -> str:
        return f"{self.run.row.id}:{self.judge}" if self.judge else self.run.row.id

    @property
    def title(self) -> str:
        """What a person calls it: the judge, or else the run by its name."""
        return self.judge or self.run.row.name


def _label_source(store: Archive, run: Recorded, against: str) -> _LabelSource:
    run_name, _, judge = against.partition(":")
    if not run_name:
        return _LabelSource(run, judge)
    try:
        return _LabelSource(earlier_run(store, run, run_name), judge)
    except UsageError as error:
        if against not in run.names:
            raise
        raise UsageError(
            f"there is no run {quoted(against)}, but a judge of that name",
            advice=f"Write: --against :{against}",
        ) from error


def _agreed(
    store: Archive,
    run: Recorded,
    label_source: _LabelSource | None,
    ties: Ties,
    rule: Rule | None,
    options: dict[str, Any],
) -> Agreement:
    from evenhand.results.columns import score_table, vote_table
    from evenhand.stats.agreement.agreement import agreement_of_scores, agreement_of_votes

    same = label_source is not None and label_source.run.row.id == run.row.id
    if label_source is not None:
        _comparable(run, label_source, same)
        options |= {"other_judges": (label_source.judge,) if label_source.judge else ()}
    if run.has_votes:
        votes = vote_table(store, run, rule)
        labels = votes if same else label_source and vote_table(store, label_source.run, rule)
        return agreement_of_votes(votes, labels, ties=ties, **options)
    if rule is not None or ties == "drop":
        name = "--ties" if rule is None else "--on-conflict"
        raise UsageError(f"{name} is for runs of pairs", advice="Leave it out.")
    scores = score_table(store, run)
    return agreement_of_scores(
        scores, scores if same else label_source and score_table(store, label_source.run), **options
    )


def _comparable(run: Recorded, labels: _LabelSource, same: bool) -> None:
    """Raises UsageError for two sides that cannot be held against each other."""
    if same and not labels.judge:
        raise UsageError(
            "a run cannot be held against itself",
            advice="Name a judge: --against :JUDGE. Without --against its judges are compared.",
        )
    kinds = [("pairs" if side.has_votes else "scores") for side in (run, labels.run)]
    if kinds[0] != kinds[1]:
        raise UsageError(
            f"run {run.row.id} is of {kinds[0]}, run {labels.run.row.id} of {kinds[1]}",
            advice="Only judgments of one kind can be compared.",
        )
