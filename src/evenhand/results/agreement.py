"""Agreement of the judges of a run with people, with another run or with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand.errors import UsageError
from evenhand.kinds.kind import Voting
from evenhand.results.observations import same_units
from evenhand.runs.recorded import Recorded, find_run
from evenhand.store.archive import Archive
from evenhand.words import Code, Names, Sentence

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
        raise UsageError(Sentence("agreement.judge_not_run", name=against)) from error


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
        raise UsageError(Sentence("agreement.majority_alone"))
    for name, is_given in (("--on-conflict", rule), ("--ties", options.ties == "drop")):
        if is_given and not run.has_votes:
            raise UsageError(Sentence("compare.only_for_pairs", flag=Code(name)))
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
        raise UsageError(Sentence("agreement.same_run"))
    if run.has_votes != labels.run.has_votes:
        pairs, scores = (run, labels.run) if run.has_votes else (labels.run, run)
        raise UsageError(Sentence("agreement.two_kinds", pairs=pairs.id, scores=scores.id))


def _unmatched_error(store: Archive, run: Recorded, labels: LabelSource) -> UsageError:
    sides = (run, labels.run)
    what = Sentence("agreement.unmatched", run=run.row.id, labels=labels.name)
    if reason := _why_same_ids_do_not_join(store, sides):
        return UsageError(what, advice=reason)
    ids = [next((unit.id for unit in store.units(side.scope)), "") for side in sides]
    return UsageError(what, advice=Sentence("agreement.join_by_id", ids=Names(ids)))


def _why_same_ids_do_not_join(store: Archive, sides: tuple[Recorded, Recorded]) -> Sentence | None:
    """Return why units that both sides call alike are not joined; None where no two are."""
    bodies = {unit.id: unit.body for unit in store.units(sides[0].scope)}
    for unit in store.units(sides[1].scope):
        if unit.id not in bodies:
            continue
        measures = [side.kind.measure for side in sides]
        names = [
            measure.unit(body).candidates
            for measure, body in zip(measures, (bodies[unit.id], unit.body), strict=True)
            if isinstance(measure, Voting)
        ]
        if len(names) == 2 and set(names[0]) != set(names[1]):
            here, there = map(Names, names)
            return Sentence("agreement.other_candidates", unit=unit.id, here=here, there=there)
        return Sentence("agreement.no_verdict_on_both", unit=unit.id)
    return None
