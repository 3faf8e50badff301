"""What may be concluded from a run: its tables read, and the question put to the statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.ledger.ports import Archive
from evenhand.manifest import Compare
from evenhand.measures import Rule
from evenhand.results.columns import score_table, vote_table
from evenhand.results.pairs import fronts_of
from evenhand.runs.early_stop import stored_decision
from evenhand.runs.recorded import Recorded
from evenhand.stats.comparison.compare import compare_scores, compare_votes
from evenhand.stats.comparison.comparison import Comparison
from evenhand.stats.comparison.two_runs import compare_runs, compare_vote_runs
from evenhand.stats.ranking.board import Options
from evenhand.stats.ranking.leaderboard import Leaderboard, leaderboard
from evenhand.stats.tables import Votes

FRONT_VOTES = 200_000
"""Of runs with more votes no fronts are listed: there would be a page of them for every topic."""


def compared(
    store: Archive,
    run: Recorded,
    by: Sequence[str] = (),
    baseline: str | None = None,
    *,
    pair_by: Sequence[str] = (),
    rule: Rule | None = None,
    seed: int | None = None,
    **options: Any,
) -> Comparison:
    """Variants of a run side by side, with what its own history adds to the notes.

    What the suite said under `[compare]` holds where `by` and `baseline` say nothing. Raises
    UsageError.
    """
    compare = run.manifest.compare or Compare()
    fields = list(by or compare.by)
    # A baseline of the suite belongs to the suite's fields; candidates are all that pairs have.
    is_own = run.has_votes or _plain(fields) == _plain(compare.by or fields)
    base = compare.baseline if baseline is None and is_own else baseline
    options["seed"] = run.manifest.judging.seed if seed is None else seed
    if run.has_votes:
        _only_candidates(fields, pair_by)
        comparison = compare_votes(vote_table(store, run, rule), base, **options)
    else:
        refuse_rule(rule)
        table = score_table(store, run)
        comparison = compare_scores(table, fields, base, pair_by=list(pair_by) or None, **options)
    comparison = replace(comparison, notes=(*comparison.notes, *_history(run)))
    asks_else = pair_by or rule or options.get("judge")
    return comparison if asks_else else with_decision(store, run, comparison, fields)


def compared_runs(
    store: Archive,
    run: Recorded,
    against: Recorded,
    *,
    rule: Rule | None = None,
    seed: int | None = None,
    **options: Any,
) -> Comparison:
    """Two runs side by side, paired by the ids of their units, `against` as the baseline; raises
    UsageError."""
    if run.id == against.id:
        raise UsageError(f"run {run.id} is compared with itself", advice="Name another run.")
    if run.has_votes != against.has_votes:
        raise UsageError(
            f"run {run.id} is of the kind {run.kind_name}, run {against.id} of the kind"
            f" {against.kind_name}",
            advice="Compare runs of one kind.",
        )
    options["seed"] = run.manifest.judging.seed if seed is None else seed
    runs = run.id, against.id
    if run.has_votes:
        tables = vote_table(store, run, rule), vote_table(store, against, rule)
        return compare_vote_runs(runs, *tables, **options)
    refuse_rule(rule)
    return compare_runs(runs, score_table(store, run), score_table(store, against), **options)


def with_decision(
    store: Archive, run: Recorded, comparison: Comparison, by: Sequence[str]
) -> Comparison:
    """A comparison by these fields with what the sequential test of the run has decided, where that
    was about the same fields and baseline; otherwise as it is."""
    if not is_own_question(run, by):
        return comparison
    test = stored_decision(store, run)
    if test is None or test.baseline != comparison.baseline:
        return comparison
    return comparison.under(test)


def is_own_question(run: Recorded, by: Sequence[str]) -> bool:
    """Whether these fields are those that a run is to be compared by; pairs have candidates."""
    compare = run.manifest.compare or Compare()
    return _told_apart(run, by) == _told_apart(run, compare.by)


def _told_apart(run: Recorded, by: Sequence[str]) -> list[str]:
    fields = _plain(by)
    return [] if run.has_votes and fields == ["candidate"] else fields


def _plain(fields: Sequence[str]) -> list[str]:
    return [name.removeprefix("meta.") for name in fields]


def refuse_rule(rule: Rule | None) -> None:
    """Scores have no orders that could contradict each other; raises UsageError."""
    if rule is not None:
        raise UsageError("--on-conflict is for runs of pairs", advice="Leave it out.")


def field_names(names: Iterable[str]) -> list[str]:
    """Fields that were named one by one, or several with commas."""
    return [name.strip() for each in names for name in each.split(",") if name.strip()]


def _only_candidates(fields: Sequence[str], pair_by: Sequence[str]) -> None:
    """Pairs are compared by candidate and nothing else; raises UsageError."""
    if list(fields) not in ([], ["candidate"]):
        raise UsageError(
            f"pairs cannot be compared by {quoted(' / '.join(fields))}",
            advice="--by candidate compares them; for a field of meta see evenhand leaderboard.",
        )
    if pair_by:
        raise UsageError("--pair-by is for runs of samples or answers", advice="Leave it out.")


def _history(run: Recorded) -> list[str]:
    """What a reader must know of how the run came about."""
    if not run.manifest.is_sequential:
        return []
    return [
        "This run was to stop once its comparison was decided. That sequential decision keeps its"
        " error; p values and intervals here are those of a number of units fixed before."
    ]


def ranked(
    store: Archive,
    run: Recorded,
    *,
    rule: Rule | None = None,
    judge: str | None = None,
    by: str | None = None,
    criterion: str | None = None,
    seed: int | None = None,
    **figures: Any,
) -> Leaderboard:
    """The candidates of a run ranked, with the fronts of its topics; raises UsageError."""
    if not run.has_votes:
        raise UsageError(
            f"run {run.row.id} has no votes: its protocol is of the kind {run.kind_name}",
            advice=f"Compare its variants: evenhand compare {run.row.id} --by FIELD",
        )
    votes = vote_table(store, run, rule)
    options = Options(**figures, seed=run.manifest.judging.seed if seed is None else seed)
    # A table of votes does not say which candidates a topic has, so these are read again.
    fronts = fronts_of(store, run, rule or run.rule) if _has_fronts(votes) else {}
    return leaderboard(votes, options, judge=judge, by=by, criterion=criterion, fronts=fronts)


def _has_fronts(votes: Votes) -> bool:
    """Whether some topic has more than two candidates, in a table small enough to list them."""
    size = len(votes.candidates)
    if size < 3 or votes.outcome.size > FRONT_VOTES:
        return False
    places = np.concatenate([votes.topic * size + votes.first, votes.topic * size + votes.second])
    return bool(np.bincount(np.unique(places) // size).max() > 2)
