"""The candidates of a run ranked: its votes read, and put to the statistics."""

from __future__ import annotations

from typing import Any

from evenhand.errors import UsageError
from evenhand.observation import Rule
from evenhand.results.observations import observe
from evenhand.results.trust import trust_notes
from evenhand.runs.recorded import Recorded
from evenhand.stats.leaderboard import Leaderboard, Options, leaderboard
from evenhand.store.archive import Archive


def ranked(
    store: Archive,
    run: Recorded,
    *,
    rule: Rule | None = None,
    judge: str | None = None,
    by: str | None = None,
    criterion: str | None = None,
    **figures: Any,
) -> Leaderboard:
    """Return the leaderboard of a run, with the fronts of its topics; raise UsageError."""
    if not run.has_votes:
        raise UsageError(
            f"run {run.row.id} has no votes: its protocol is of the kind {run.kind_name}",
            advice=f"Compare its variants: evenhand compare {run.row.id} --by FIELD",
        )
    votes = observe(store, run, rule)
    ranking = leaderboard(votes, Options(**figures), judge=judge, by=by, criterion=criterion)
    rows = ranking.board.rows
    ranking.board.notes[:0] = trust_notes(run, votes, rows[0].candidate if rows else None, judge)
    return ranking
