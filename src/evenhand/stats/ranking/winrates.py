"""Win rates: how far a candidate was preferred on average, with intervals that respect topics.

A tie and a vote that is uncertain count half; votes without a verdict are left out and counted.
A pair counts once, as the mean of its votes. Pairs on one topic hang together, so the topic is what
varies.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evenhand.stats.estimate import Estimate, mean
from evenhand.stats.rating import Matches
from evenhand.stats.tables import FIRST, NONE, SECOND, TIE, UNCERTAIN, Floats, Ints, Votes

_CODES = 1 + max(FIRST, SECOND, TIE, UNCERTAIN)


def win_rates(matches: Matches, level: float) -> list[Estimate | None]:
    """Return the win rate of each candidate; None of one that has no match."""
    won = np.concatenate([matches.won, 1 - matches.won])
    candidate = np.concatenate([matches.first, matches.second])
    topic = np.concatenate([matches.topic, matches.topic])
    order = np.argsort(candidate, kind="stable")
    ends = np.searchsorted(candidate[order], np.arange(matches.size + 1))
    rates = list[Estimate | None]()
    for begin, end in pairwise(ends.tolist()):
        at = order[begin:end]
        rate = mean(won[at], topic[at], (0.0, 1.0), level, weigh="units") if at.size else None
        rates.append(rate)
    return rates


def panel(votes: Votes, outcome: Ints, otherwise: int) -> tuple[Ints, Ints, Ints]:
    """First candidate, second candidate and outcome of every pair that has a verdict: what more
    than half of its judges say, each by more than half of its repeats, and `otherwise` without such
    a majority. The same as `stats.pairwise.panel_winner` says of one pair."""
    has_verdict = outcome != NONE
    judge_of_pair = votes.pair[has_verdict] * max(len(votes.judges), 1) + votes.judge[has_verdict]
    places, group = np.unique(judge_of_pair, return_inverse=True)
    judge_outcomes = _majorities(group, outcome[has_verdict], len(places), otherwise)
    pairs, group = np.unique(places // max(len(votes.judges), 1), return_inverse=True)
    _, at = np.unique(votes.pair, return_index=True)
    rows = at[np.searchsorted(np.unique(votes.pair), pairs)]
    return (
        votes.first[rows],
        votes.second[rows],
        _majorities(group, judge_outcomes, len(pairs), otherwise),
    )


def _majorities(group: Ints, codes: Ints, size: int, otherwise: int) -> Ints:
    """Of each group, the code that more than half of its members have."""
    counts = np.bincount(group * _CODES + codes, minlength=size * _CODES).reshape(size, _CODES)
    is_clear = 2 * counts.max(axis=1, initial=0) > counts.sum(axis=1)
    return np.where(is_clear, counts.argmax(axis=1), otherwise)


@dataclass(frozen=True, slots=True)
class Tallies:
    """How often each candidate won, lost, tied, was uncertain, and had no verdict."""

    wins: Ints
    losses: Ints
    ties: Ints
    uncertain: Ints
    missing: Ints

    @property
    def total(self) -> Ints:
        """Of those with a verdict."""
        return np.asarray(self.wins + self.losses + self.ties + self.uncertain)


def tallies(size: int, first: Ints, second: Ints, outcome: Ints) -> Tallies:
    """Counts of the outcomes of votes."""

    def of(code: int, where: Ints) -> Ints:
        return np.bincount(where[outcome == code], minlength=size)

    either = {code: of(code, first) + of(code, second) for code in (TIE, UNCERTAIN, NONE)}
    wins, losses = of(FIRST, first) + of(SECOND, second), of(SECOND, first) + of(FIRST, second)
    return Tallies(wins, losses, either[TIE], either[UNCERTAIN], either[NONE])


@dataclass(frozen=True, slots=True)
class Matrix:
    """How far each candidate (a row) was preferred to each other one, and in how many votes."""

    points: Floats
    votes: Ints

    @property
    def rates(self) -> Floats:
        """nan where two never met."""
        with np.errstate(invalid="ignore"):
            return np.where(self.votes > 0, self.points / self.votes, np.nan)

    @property
    def averages(self) -> Floats:
        """Of each candidate, the mean of its rates over the opponents it met."""
        met = (self.votes > 0).sum(axis=1)
        total = np.where(self.votes > 0, self.rates, 0).sum(axis=1)
        return np.where(met > 0, total / np.maximum(met, 1), np.nan)


def matrix(matches: Matches) -> Matrix:
    """Who was preferred to whom."""
    size = matches.size
    there, back = matches.first * size + matches.second, matches.second * size + matches.first
    votes = np.bincount(there, minlength=size**2) + np.bincount(back, minlength=size**2)
    points = np.zeros(size**2)
    points += np.bincount(there, weights=matches.won, minlength=size**2)
    points += np.bincount(back, weights=1 - matches.won, minlength=size**2)
    return Matrix(points.reshape(size, size), votes.reshape(size, size))
