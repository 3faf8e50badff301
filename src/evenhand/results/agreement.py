"""Agreement of the judges of a run with people, with another run or with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand.errors import UsageError, quote
from evenhand.kinds.kind import Voting
from evenhand.results.observations import same_units
from evenhand.runs.recorded import Recorded, find_run
from evenhand.store.archive import Archive

if TYPE_CHECKING:
    from evenhand.observation import Rule
    from evenhand.stats.agreement_result import Agreement


class LabelSource(NamedTuple):
    """The other side: a run, and a judge of it if one is named."""

    run: Recorded
    judge: str

    @property
    def name(self) -> str:
        return f"{self.run.row.id}:{self.judge}" if self.judge else self.run.row.id

    @property
    def title(self) -> str:
        """Return the name for people: that of the judge, or else of the run."""
        return self.judge or self.run.row.name


def label_source(store: Archive, run: Recorded, against: str) -> LabelSource:
    run_name, _, judge = against.partition(":")
    if not run_name:
        return LabelSource(run, judge)
    try:
        return LabelSource(same_units(store, run, find_run(store, run_name), ()), judge)
    except UsageError as error:
        if against not in run.names:
            raise
        raise UsageError(
            f"there is no run {quote(against)}, but a judge of that name",
            advice=f"Write: --against :{against}",
        ) from error


def agreement_of(
    store: Archive,
    run: Recorded,
    labels: LabelSource | None,
    *,
    rule: Rule | None = None,
    **asked: Any,
) -> Agreement:
    """Return how far the judges of a run agree with another side, or among themselves; raise
    UsageError. `rule` is what two orders that name different winners count as; the rest are
    `AgreementOptions` of `evenhand.stats.agreement`."""
    from evenhand.results.observations import observe
    from evenhand.stats.agreement import AgreementOptions, agreement_of

    judges = (labels.judge,) if labels is not None and labels.judge else ()
    options = AgreementOptions(other_judges=judges, **asked)
    if options.majority and labels is None:
        raise UsageError("--majority needs another side", advice="Name it: --against RUN[:JUDGE]")
    for name, is_given in (("--on-conflict", rule), ("--ties", options.ties == "drop")):
        if is_given and not run.has_votes:
            raise UsageError(f"{name} is for runs of pairs", advice="Leave it out.")
    observations, others = observe(store, run, rule), None
    if labels is not None:
        same = labels.run.row.id == run.row.id
        _comparable(run, labels, same)
        others = observations if same else observe(store, labels.run, rule)
    agreement = agreement_of(observations, others, options)
    if labels is not None and not agreement.matched:
        raise _unmatched_error(store, run, labels)
    return agreement


def _comparable(run: Recorded, labels: LabelSource, same: bool) -> None:
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


def _unmatched_error(store: Archive, run: Recorded, labels: LabelSource) -> UsageError:
    sides = (run, labels.run)
    what = f"no unit of {run.row.id} is rated by {labels.name}"
    if reason := _why_same_ids_do_not_join(store, sides):
        return UsageError(what, advice=reason)
    ids = [next((quote(unit.id) for unit in store.units(side.scope)), "none") for side in sides]
    return UsageError(
        what,
        advice=f"Units are joined by their ids, such as {' and '.join(ids)}. Import labels under"
        " the same ids (--key names their columns, in order); of pairs, with --for RUN.",
    )


def _why_same_ids_do_not_join(store: Archive, sides: tuple[Recorded, Recorded]) -> str:
    """Return why units that both sides call alike are not joined; empty where no two are."""
    bodies = {unit.id: unit.body for unit in store.units(sides[0].scope)}
    for unit in store.units(sides[1].scope):
        if unit.id not in bodies:
            continue
        measures = [side.kind.measure for side in sides]
        names = [
            [quote(name) for name in measure.unit(body).candidates]
            for measure, body in zip(measures, (bodies[unit.id], unit.body), strict=True)
            if isinstance(measure, Voting)
        ]
        if len(names) == 2 and set(names[0]) != set(names[1]):
            compared = [" and ".join(pair) for pair in names]
            return (
                f"Pairs are joined by their ids and candidates, and {quote(unit.id)} compares"
                f" {compared[0]} here, {compared[1]} there. Give the candidates the same names."
            )
        return f"Both sides have {quote(unit.id)}, but no unit has a verdict on both."
    return ""
