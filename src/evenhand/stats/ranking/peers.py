"""Judges that are candidates themselves, weighted by their own standing (peer rank; Li, Patel and
Du, 2023): whoever answers better is believed more.

A weight is proportional to the judge's own win rate under these very weights, and weights sum to
one. The step by which the publication takes all weight from the last judge is left out.

Weights and rates follow from the same votes. So their intervals come from both found anew without
each topic in turn, or without each part of the topics where these are many, and are Wilson's for as
many votes as would vary as much, as those of other win rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from evenhand.errors import UsageError
from evenhand.stats.proportion import bounds_of_one, wilson_bounds
from evenhand.stats.ranking.winrates import Share
from evenhand.stats.tables import Floats, Ints, Votes

ROUNDS = 1000
CLOSE = 1e-12
PARTS = 200
"""How many parts of the topics are left out in turn, at most."""
EDGE = 1e-9


@dataclass(frozen=True, slots=True)
class PeerRank:
    """Win rates under the weights of the judges, and these weights; of judges that are no
    candidates there is no weight."""

    win_rates: Mapping[str, Share]
    weights: Mapping[str, Share]
    left_out: tuple[str, ...]


def peer_rank(votes: Votes, level: float = 0.95) -> PeerRank:
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
    points, counts = _by_part(votes, peers)
    standing = np.array([votes.candidates.index(name) for name in peers])
    # The first column is of all votes, each other one of those without a part.
    rates, weights = _settled(_without_parts(points, counts), standing)
    sizes = counts.sum(axis=0)
    scale = 1 / max(float(rates[standing, 0].sum()), EDGE)
    return PeerRank(
        {
            name: _share(rates[place], sizes[place], 1.0, level)
            for place, name in enumerate(votes.candidates)
        },
        _weights(peers, weights, sizes[standing], scale, level),
        tuple(name for name in judges if name not in peers),
    )


def _weights(
    peers: list[str], weights: Floats, sizes: Floats, scale: float, level: float
) -> dict[str, Share]:
    """The weight of each peer. They sum to one: a peer alone has all, and of two the second has
    what the first leaves."""
    if len(peers) == 1:
        return {peers[0]: Share(1.0, 0.0, 1.0, 1.0)}
    shares = [_share(*part, scale, level) for part in zip(weights, sizes, strict=True)]
    if len(peers) == 2:
        first = shares[0]
        shares[1] = Share(1 - first.value, first.error, 1 - first.high, 1 - first.low)
    return dict(zip(peers, shares, strict=True))


def _by_part(votes: Votes, peers: list[str]) -> tuple[Floats, Floats]:
    """What each peer gave each candidate on each part of the topics, and in how many votes, by
    (judge, candidate, part)."""
    places = np.full(len(votes.judges), -1)
    places[[votes.judges.index(name) for name in peers]] = np.arange(len(peers))
    judge = places[votes.judge]
    rows = (judge >= 0) & ~np.isnan(votes.preference) & (votes.first != votes.second)
    topics, part = np.unique(votes.topic[rows], return_inverse=True)
    shape = len(peers), len(votes.candidates), max(1, min(PARTS, len(topics)))
    points, counts = np.zeros(shape), np.zeros(shape)
    for candidate, won in (
        (votes.first[rows], 1 - votes.preference[rows]),
        (votes.second[rows], votes.preference[rows]),
    ):
        cell = np.ravel_multi_index((judge[rows], candidate, part % shape[2]), shape)
        points += np.bincount(cell, won, points.size).reshape(shape)
        counts += np.bincount(cell, minlength=points.size).reshape(shape)
    return points, counts


def _without_parts(points: Floats, counts: Floats) -> Floats:
    """Win rates by each judge, nan of a candidate that it did not judge: of all votes first, then
    without each part."""
    won, votes = (
        np.concatenate([every, every - some], axis=2)
        for every, some in ((some.sum(axis=2, keepdims=True), some) for some in (points, counts))
    )
    return np.asarray(np.divide(won, votes, out=np.full_like(won, np.nan), where=votes > 0))


def _settled(rates: Floats, standing: Ints) -> tuple[Floats, Floats]:
    """Win rates and the weights that follow from them, by candidate and by judge, of each column;
    `standing` says which candidate each judge is."""
    weights = np.full((rates.shape[0], rates.shape[2]), 1 / len(rates))
    for _ in range(ROUNDS):
        ranks = _weighted(rates, weights)[standing]
        total = ranks.sum(axis=0)
        following = np.divide(ranks, total, out=weights.copy(), where=total > 0)
        if np.abs(following - weights).max() < CLOSE:
            break
        # Half a step: whole ones may swing between two judges that each prefer the other.
        weights = (weights + following) / 2
    return _weighted(rates, weights), weights


def _weighted(rates: Floats, weights: Floats) -> Floats:
    """The mean of each candidate's rates over the judges that judged it; a half of one that nobody
    judged, which is no evidence either way."""
    shares = np.where(np.isnan(rates), 0.0, weights[:, None])
    total = shares.sum(axis=0)
    summed = (np.where(np.isnan(rates), 0.0, rates) * shares).sum(axis=0)
    return np.where(total > 0, summed / np.maximum(total, CLOSE), 0.5)


def _share(columns: Floats, sizes: Floats, scale: float, level: float) -> Share:
    """A figure of all votes with its interval, which leaves room for one part more that lies half a
    win from the rest; `scale` is how far a figure moves with a win rate."""
    value, rests = float(columns[0]), columns[1:]
    sizes, parts = sizes[sizes > 0], len(rests)
    least, most = bounds_of_one(value, level)
    if len(sizes) < 2:
        return Share(value, None, least, most)
    variance = float(((rests - value) ** 2).sum()) * (parts - 1) / parts
    even, free = float(sizes.sum()) ** 2 / float(sizes @ sizes), value * (1 - value)
    # As of other win rates, parts are never worth less than one vote each.
    worth = max(free / (variance + 0.25 * (scale / even) ** 2), (even - 1) / scale)
    low, high = wilson_bounds(value, worth, float(stdtrit(len(sizes) - 1, (1 + level) / 2)))
    return Share(value, variance**0.5, max(low, least), min(high, most))
