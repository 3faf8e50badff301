"""Votes and passes in one form, as ratings take them, and their sufficient statistics.

A duel is one comparison of two candidates. All that a rating needs of many duels is how often
either side won and how often neither did, for each pair that met; all that a resample needs is how
many topics there are of each kind. Both are small however many votes there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from evenhand.stats.tables import TIE, Bools, Floats, Ints, Votes

Ties = Literal["davidson", "half"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Duels:
    """Comparisons of two candidates, one per row."""

    size: int
    """How many candidates there are."""
    first: Ints
    second: Ints
    won: Floats
    """How far the first won: 1, 0 or between. A vote that is uncertain is half a win to each."""
    tie: Bools
    """Whether both were called equal: then `won` is not looked at, but for ties as half a win."""
    topic: Ints


def vote_duels(votes: Votes, outcome: Ints, preference: Floats) -> Duels:
    """The votes that have a verdict; a candidate against itself says nothing of candidates."""
    rows = ~np.isnan(preference) & (votes.first != votes.second)
    return Duels(
        size=len(votes.candidates),
        first=votes.first[rows],
        second=votes.second[rows],
        won=1 - preference[rows],
        tie=outcome[rows] == TIE,
        topic=votes.topic[rows],
    )


def pair_duels(votes: Votes, preference: Floats) -> Duels:
    """The pairs that have a verdict, each the mean of its judges and repeats. `tie` is not said."""
    rows = ~np.isnan(preference) & (votes.first != votes.second)
    _, begin, at = np.unique(votes.pair[rows], return_index=True, return_inverse=True)
    return Duels(
        size=len(votes.candidates),
        first=votes.first[rows][begin],
        second=votes.second[rows][begin],
        won=1 - np.bincount(at, preference[rows], begin.size) / np.bincount(at, minlength=1),
        tie=np.zeros(begin.size, np.bool_),
        topic=votes.topic[rows][begin],
    )


def pass_duels(votes: Votes) -> Duels:
    """What was said in each order: the first is the candidate that was shown first."""
    passes = votes.passes
    first, second = votes.first[passes.vote], votes.second[passes.vote]
    rows = ~np.isnan(passes.preference) & (first != second)
    turned = passes.turned[rows]
    first, second, preference = first[rows], second[rows], passes.preference[rows]
    return Duels(
        size=len(votes.candidates),
        first=np.where(turned, second, first),
        second=np.where(turned, first, second),
        won=np.where(turned, preference, 1 - preference),
        tie=passes.outcome[rows] == TIE,
        topic=votes.topic[passes.vote][rows],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The sufficient statistics of duels, by topic."""

    size: int
    first: Ints
    """Of each pair that met. In a sample that keeps the order, A against B is not B against A."""
    second: Ints
    ordered: bool
    sets: Ints
    """Of each candidate, a number from 0 that all have in common who are linked by meetings; -1 of
    one that met nobody."""
    kinds: Any
    """Sparse: a column for each kind of topic; in its rows, of each pair, the wins of the first,
    then so many rows of wins of the second, then of ties."""
    topics: Ints
    """How many topics there are of each kind."""

    @property
    def counts(self) -> Floats:
        """Wins of the first, wins of the second and ties, of each pair."""
        return np.asarray(self.kinds @ self.topics.astype(float)).reshape(3, -1)


def sample_of(duels: Duels, ties: Ties, *, ordered: bool = False) -> Sample:
    """The statistics of duels, with ties apart or as half a win to each side."""
    size = max(duels.size, 1)
    cells, cell = _cells(duels, size, ties, ordered=ordered)
    met, pair = np.unique(cells[0], return_inverse=True)
    kinds, topics = _kinds(duels.topic, cell, _shares(len(met), pair, *cells[1:]))
    first, second = np.divmod(met, size)
    return Sample(
        size=duels.size,
        first=first,
        second=second,
        ordered=ordered,
        sets=_linked(duels.size, first, second),
        kinds=kinds,
        topics=topics,
    )


def _cells(
    duels: Duels, size: int, ties: Ties, *, ordered: bool
) -> tuple[tuple[Ints, Floats, Bools], Ints]:
    """The different (pair, outcome) there are, and of each duel which it is."""
    won = np.where(duels.tie, 0.5, duels.won)
    keys = duels.first * size + duels.second
    if not ordered:
        swap = duels.first > duels.second
        keys = np.where(swap, duels.second * size + duels.first, keys)
        won = np.where(swap, 1 - won, won)
    levels, level = np.unique(won, return_inverse=True)
    keys = (keys * max(len(levels), 1) + level) * 2
    if ties == "davidson":
        keys += duels.tie
    del won, level
    cell_keys, cell = np.unique(keys, return_inverse=True)
    pair, place = np.divmod(cell_keys // 2, max(len(levels), 1))
    return (pair, levels[place], cell_keys % 2 == 1), cell.astype(np.int32)


def _shares(pairs: int, pair: Ints, won: Floats, tie: Bools) -> Any:
    """Sparse: what one duel of each cell adds to the counts."""
    cells = np.arange(len(pair))
    values = np.concatenate([np.where(tie, 0, won), np.where(tie, 0, 1 - won), tie.astype(float)])
    rows = np.concatenate([pair, pair + pairs, pair + 2 * pairs])
    shares = sparse.csr_array((values, (rows, np.tile(cells, 3))), shape=(3 * pairs, len(cells)))
    shares.eliminate_zeros()
    return shares


def _kinds(topic: Ints, cell: Ints, shares: Any) -> tuple[Any, Ints]:
    """The kinds of topics: those with one duel are alike if it came out alike, so that a million of
    them are no more than their cells; every other topic is a kind of its own."""
    alone = np.bincount(topic)[topic] == 1
    alike = np.bincount(cell[alone], minlength=shares.shape[1])
    cells = np.flatnonzero(alike)
    single = shares[:, cells] if len(cells) < shares.shape[1] else shares
    if alone.all():
        return single, alike[cells]
    topics, place = np.unique(topic[~alone], return_inverse=True)
    parts = (np.ones(len(place), np.int8), (cell[~alone], place.astype(np.int32)))
    several = shares @ sparse.csr_array(parts, shape=(shares.shape[1], len(topics)))
    kinds = sparse.hstack([single, several], format="csr") if len(cells) else several
    return kinds, np.concatenate([alike[cells], np.ones(len(topics), np.int64)])


def _linked(size: int, first: Ints, second: Ints) -> Ints:
    """A number for each set of candidates that meetings link, by the least of its members."""
    labels, before = np.arange(size), np.full(size, -1)
    while (labels != before).any():
        before = labels.copy()
        least = np.minimum(labels[first], labels[second])
        np.minimum.at(labels, first, least)
        np.minimum.at(labels, second, least)
        labels = labels[labels]
    met = np.zeros(size, np.bool_)
    met[first] = met[second] = True
    sets = np.full(size, -1, np.int64)
    _, sets[met] = np.unique(labels[met], return_inverse=True)
    return sets
