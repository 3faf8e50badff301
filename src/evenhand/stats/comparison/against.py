"""Candidates against a baseline, from the votes on pairs of the two."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenhand.stats.comparison.caveats import vote_notes
from evenhand.stats.comparison.comparison import OVERALL, Comparison, Row, VariantMean
from evenhand.stats.comparison.contrast import Shared, contrast, decided, proper_level
from evenhand.stats.comparison.missing import Count
from evenhand.stats.comparison.variants import chosen, judge_named
from evenhand.stats.tables import Bools, Floats, Ints, Votes

_PREFERRED = np.array([0.0, 1.0, 0.5, 0.5, np.nan])
"""How far the second candidate is preferred, by outcome; NONE, as -1, is the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meetings:
    """The votes that are about the baseline, its opponent in each, and whether the opponent is the
    second."""

    rows: Bools
    opponent: Ints
    second: Bools

    def won(self, preference: Floats) -> Floats:
        """How far the opponent of the baseline won."""
        return np.where(self.second, preference, 1 - preference)

    @property
    def opponents(self) -> list[int]:
        return [int(place) for place in np.unique(self.opponent[self.rows])]


def compare_votes(
    votes: Votes,
    baseline: str | None = None,
    *,
    judge: str | None = None,
    level: float = 0.95,
    margin: float | None = None,
) -> Comparison:
    """Each candidate's direct comparisons with a baseline: criterion by criterion and overall.

    `mean` is the candidate's win rate against the baseline, ties and uncertain verdicts half, and
    `baseline_mean` the rest of 1; `difference` runs from -1 to 1. A pair's value is the mean over
    its judges and repeats; topics are the clusters.
    """
    proper_level(level)
    base, notes = chosen(votes.candidates, baseline, "candidate")
    met = _meetings(votes, base, judge)
    table = [
        [contrast(shared, level) for shared in _against(votes, met, *criterion)]
        for criterion in _criteria(votes)
    ]
    criteria = decided([row for rows in table[:-1] for row in rows], level, margin=margin)
    comparison = Comparison(
        by="candidate",
        baseline=votes.candidates[base],
        level=level,
        margin=margin,
        rows=(*criteria, *decided(table[-1], level, margin=margin)),
        means=tuple(_rate(row) for rows in table for row in rows),
        missing=_counts(votes, met),
        pair_by=("topic",),
    )
    return replace(comparison, notes=(*vote_notes(comparison, votes, met.rows), *notes))


def _meetings(votes: Votes, base: int, judge: str | None) -> _Meetings:
    second = votes.first == base
    # A candidate against itself says nothing of candidates.
    rows = (second | (votes.second == base)) & (votes.first != votes.second)
    if judge is not None:
        rows &= votes.judge == judge_named(votes.judges, judge)
    opponent = np.where(second, votes.second, votes.first)
    return _Meetings(rows=rows, opponent=opponent, second=second)


def _criteria(votes: Votes) -> list[tuple[str, Floats]]:
    """How far the second candidate is preferred, by criterion and then overall."""
    marks = [(name, _PREFERRED[mark]) for name, mark in votes.marks.items() if name != OVERALL]
    return [*marks, (OVERALL, votes.preference)]


def _against(votes: Votes, met: _Meetings, name: str, preference: Floats) -> list[Shared]:
    """What every candidate that met the baseline has against it."""
    won = met.won(preference)
    return [_shared(votes, met, name, won, place) for place in met.opponents]


def _shared(votes: Votes, met: _Meetings, name: str, won: Floats, place: int) -> Shared:
    rows = met.rows & (met.opponent == place)
    decided = rows & ~np.isnan(won)
    pairs, first, at = np.unique(votes.pair[decided], return_index=True, return_inverse=True)
    rates = np.bincount(at, won[decided]) / np.bincount(at)
    return Shared(
        dimension=name,
        variant=votes.candidates[place],
        ours=rates,
        theirs=1 - rates,
        cluster=votes.topic[decided][first],
        key=pairs,
        ends=(0.0, 1.0),
        bounds=_bounds(votes.pair[rows], won[rows]) if rows.any() else None,
        is_win_rate=True,
    )


def shared_votes(
    votes: Votes, criterion: str, candidate: str, baseline: str, judge: str | None = None
) -> Shared:
    """The values behind one row of a comparison of votes; all names must be there."""
    met = _meetings(votes, votes.candidates.index(baseline), judge)
    won = met.won(dict(_criteria(votes))[criterion])
    return _shared(votes, met, criterion, won, votes.candidates.index(candidate))


def _bounds(pair: Ints, won: Floats) -> tuple[float, float]:
    """How far votes without a verdict, failed or pending, could move the difference."""
    _, at, count = np.unique(pair, return_inverse=True, return_counts=True)
    ends = [np.bincount(at, np.where(np.isnan(won), end, won)) / count for end in (0.0, 1.0)]
    # A half that is made of thirds is a half, whatever its last bits are.
    low, high = (round(2 * float(rates.mean()) - 1, 12) for rates in ends)
    return low, high


def _rate(row: Row) -> VariantMean:
    return VariantMean(
        dimension=row.dimension,
        variant=row.variant,
        n=row.n,
        clusters=row.clusters,
        mean=row.mean,
        low=row.mean_low,
        high=row.mean_high,
    )


def _counts(votes: Votes, met: _Meetings) -> dict[str, Count]:
    """Of every candidate that met the baseline, or is to. planned = scored + failed + pending."""
    counts: dict[str, Count] = {}
    for place in met.opponents:
        rows = met.rows & (met.opponent == place)
        lost, pairs = np.isnan(votes.preference[rows]), votes.pair[rows]
        pending = int((~votes.made[rows]).sum())
        counts[votes.candidates[place]] = Count(
            units=np.unique(pairs).size,
            incomplete=np.unique(pairs[lost]).size,
            planned=int(rows.sum()),
            scored=int((~lost).sum()),
            failed=int(lost.sum()) - pending,
            pending=pending,
        )
    return counts
