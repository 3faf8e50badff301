"""The candidates of a run ranked, and notes on the judges, for the reader to see before believing a
result of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.errors import UsageError
from evenhand.kinds.masking import family
from evenhand.observation import Rule
from evenhand.results.observations import observe
from evenhand.runs.recorded import Recorded
from evenhand.stats.comparison import OVERALL, Comparison
from evenhand.stats.leaderboard import BoardOptions, Leaderboard, leaderboard
from evenhand.stats.leans import order_counts
from evenhand.stats.observations import Observations
from evenhand.store.archive import Archive
from evenhand.words import Sentence, few

LEAST_CONSISTENCY = 0.4
"""Orders that agree less often are warned about: a judge that tosses a coin comes to a half."""
LEAST_PAIRS = 5
"""A few contradictions say nothing yet."""
NAMED = 3
RELIABLE = 0.6
"""From this share of pairs with the same winner in both orders on, no reader is warned."""
ALIKE = 0.1
"""Judges whose shares lie closer together are told of in one sentence."""
PEOPLE = ("human", "humans", "people")
"""The first part of the names of judges that are people."""


def rank(
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
        raise UsageError(Sentence("compare.no_votes", run=run.row.id, kind=run.kind_name))
    votes = observe(store, run, rule)
    ranking = leaderboard(votes, BoardOptions(**figures), judge=judge, by=by, criterion=criterion)
    rows = ranking.board.rows
    ranking.board.notes[:0] = trust_notes(run, votes, rows[0].candidate if rows else None, judge)
    return replace(ranking, trust=trust_sentences(run, votes, ranking.board.failed, judge))


def trust_notes(
    run: Recorded, votes: Observations, leader: str | None, judge: str | None = None
) -> list[str]:
    """Return the notes on the judges of a ranking that `leader` leads."""
    return [
        *position_notes(run, votes, judge),
        *family_notes(run, votes.candidates, leader, judge),
    ]


def leader_of(comparison: Comparison) -> str | None:
    """Return who is ahead where candidates are compared with a baseline."""
    rows = [row for row in comparison.rows if row.dimension == OVERALL]
    ahead = {row.variant: row.difference for row in rows if row.difference is not None}
    best = max(ahead, key=lambda name: ahead[name], default=None)
    return best if best is None or ahead[best] > 0 else comparison.baseline


def position_notes(run: Recorded, votes: Observations, judge: str | None = None) -> Iterator[str]:
    """Yield a warning where judges seldom name the same winner in both orders."""
    if not votes.is_pairs:
        return
    counts, size = order_counts(votes), len(votes.judges)
    pairs = np.bincount(counts.judge, minlength=size)
    same = np.bincount(counts.judge[counts.agree], minlength=size)
    is_low = (pairs >= LEAST_PAIRS) & (same < LEAST_CONSISTENCY * pairs)
    if judge is not None:
        is_low &= np.array([name == judge for name in votes.judges], dtype=bool)
    names = [votes.judges[place] for place in np.flatnonzero(is_low).tolist()]
    if not names:
        return
    n, of = int(same[is_low].sum()), int(pairs[is_low].sum())
    yield Sentence(
        "notes.inconsistent_import" if run.imported else "notes.inconsistent",
        share=n / of,
        n=n,
        of=of,
        judges=few(names, NAMED),
    )


def trust_sentences(
    run: Recorded, table: Observations, failed: int, judge: str | None = None
) -> tuple[Sentence, ...]:
    """Return who judged, whether they agree with themselves in both orders, and what failed."""
    names = [record.name for record in run.judges] if judge is None else [judge]
    names = list(dict.fromkeys(names))
    sentences = [Sentence("notes.trust_judges", judges=few(names, NAMED))]
    if run.has_votes:
        sentences += order_sentences(table, judge)
    sentences.append(Sentence("notes.trust_failed" if failed else "notes.trust_complete", n=failed))
    if not all(name.partition("/")[0] in PEOPLE for name in names):
        sentences.append(Sentence("notes.trust_people", run=run.id))
    return tuple(sentences)


def order_sentences(votes: Observations, judge: str | None = None) -> Iterator[Sentence]:
    """Yield whether judges agree with themselves in both orders: of all in one sentence where they
    are alike, else of each of two, or of the one that agrees least."""
    counts, size = order_counts(votes), len(votes.judges)
    rounds, same, first, decided = (
        np.bincount(counts.judge, column, size)
        for column in (None, counts.agree, counts.slots, counts.decided)
    )
    asked = np.flatnonzero((decided > 0) & [judge in (None, name) for name in votes.judges])
    if not asked.size:
        yield Sentence("notes.trust_one_order")
        return
    shares = np.stack([same[asked] / rounds[asked], first[asked] / decided[asked]])
    is_alike = bool((np.ptp(shares, axis=1) < ALIKE).all())
    asked = asked[np.argsort(shares[0], kind="stable")]
    told = [asked] if is_alike else [asked[at : at + 1] for at in range(2)]
    for judges in told[: 1 if asked.size > 2 else 2]:
        share = same[judges].sum() / rounds[judges].sum()
        key = "trust_orders" if share >= RELIABLE else "trust_contradicts"
        values = {"share": share, "other": 1 - share, "n": int(rounds[judges].sum())}
        values["first"] = first[judges].sum() / decided[judges].sum()
        name = votes.judges[judges[0]]
        yield Sentence(f"notes.{key}" if is_alike else f"notes.{key}_of", judge=name, **values)
    if not is_alike and asked.size > 2:
        yield Sentence("notes.trust_least", n=asked.size, judge=votes.judges[asked[0]])


def family_notes(
    run: Recorded, candidates: Sequence[str], leader: str | None, judge: str | None = None
) -> Iterator[str]:
    """Yield a note where the leader, and not everybody, is of the family of a judge."""
    own = family(leader) if leader is not None else None
    if own is None or all(family(name) == own for name in candidates):
        return
    names = [record.name for record in run.judges] if judge is None else [judge]
    kin = [name for name in dict.fromkeys(names) if family(name) == own]
    if kin and leader is not None:
        yield Sentence(
            "notes.own_family_leads",
            candidate=leader,
            family=own,
            judges=few(kin, NAMED),
        )
