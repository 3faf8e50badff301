"""Judges that are candidates themselves, weighted by their own standing (peer rank; Li, Patel and
Du, 2023): whoever answers better is believed more.

A weight is proportional to the judge's own win rate under these very weights, and weights sum to
one. The step by which the publication takes all weight from the last judge is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenhand.errors import UsageError
from evenhand.stats.ranking.duels import Duels, vote_duels
from evenhand.stats.ranking.winrates import matrix
from evenhand.stats.tables import Floats, Votes

ROUNDS = 1000
CLOSE = 1e-12


@dataclass(frozen=True, slots=True)
class PeerRank:
    """Win rates under the weights of the judges, and these weights; of judges that are no
    candidates there is no weight."""

    win_rates: Mapping[str, float]
    weights: Mapping[str, float]
    left_out: tuple[str, ...]


def peer_rank(votes: Votes) -> PeerRank:
    """Win rates of candidates with each judge weighted by its own; raises UsageError where no judge
    is a candidate."""
    judges = [votes.judges[number] for number in np.unique(votes.judge)]
    peers = [name for name in judges if name in votes.candidates]
    if not peers:
        raise UsageError(
            "no judge is a candidate, so that none has a standing of its own",
            advice=f"The judges are {', '.join(judges)}, the candidates"
            f" {', '.join(votes.candidates)}: name them alike.",
        )
    rates = np.array([_rates(_duels_of(votes, name)) for name in peers])
    own = [votes.candidates.index(name) for name in peers]
    weights = np.full(len(peers), 1 / len(peers))
    for _ in range(ROUNDS):
        standing = _weighted(rates, weights)[own]
        following = standing / standing.sum() if standing.sum() > 0 else weights
        if np.abs(following - weights).max() < CLOSE:
            break
        # Half a step: whole ones may swing between two judges that each prefer the other.
        weights = (weights + following) / 2
    ranked = _weighted(rates, weights)
    return PeerRank(
        dict(zip(votes.candidates, ranked.tolist(), strict=True)),
        dict(zip(peers, weights.tolist(), strict=True)),
        tuple(name for name in judges if name not in peers),
    )


def _duels_of(votes: Votes, judge: str) -> Duels:
    part = votes.where(votes.judge == votes.judges.index(judge))
    return vote_duels(part, part.outcome, part.preference)


def _rates(duels: Duels) -> Floats:
    """The win rate of each candidate by one judge; nan of one that it did not judge."""
    met = matrix(duels)
    played = met.votes.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.where(played > 0, met.points.sum(axis=1) / played, np.nan)


def _weighted(rates: Floats, weights: Floats) -> Floats:
    """The mean of each candidate's rates over the judges that judged it; a half of one that nobody
    judged, which is no evidence either way."""
    shares = np.where(np.isnan(rates), 0.0, weights[:, None])
    total = shares.sum(axis=0)
    summed = (np.where(np.isnan(rates), 0.0, rates) * shares).sum(axis=0)
    return np.where(total > 0, summed / np.maximum(total, CLOSE), 0.5)
