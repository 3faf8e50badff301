"""Win rates: how far a candidate was preferred on average, with intervals that respect topics.

A tie and a vote that is uncertain count half; votes without a verdict are left out and counted.
A pair counts once, as the mean of its votes. Pairs on one topic hang together, so the topic is what
varies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from evenhand.stats.comparison.contrast import win_rate_interval
from evenhand.stats.proportion import bounds_of_one, wilson_bounds
from evenhand.stats.rating import Matches
from evenhand.stats.tables import FIRST, NONE, SECOND, TIE, UNCERTAIN, Floats, Ints, Votes

_CODES = 1 + max(FIRST, SECOND, TIE, UNCERTAIN)


@dataclass(frozen=True, slots=True)
class Share:
    """A mean of values from 0 to 1."""

    value: float
    error: float | None
    """The standard error, robust to topics; with one vote per topic it is sd / sqrt(n). None where
    there is one topic only."""
    low: float
    high: float


def share(values: Floats, topics: Ints, level: float = 0.95) -> Share:
    """The mean of values that hang together by topic.

    The interval is Wilson's for as many independent votes as would vary as much, with Student's
    quantile. So that it holds for twenty topics and many ties too, it is as wide as if one topic
    more lay half a win from the rest; and topics are never worth less than one vote each. It is
    never wider than if all were one topic, whose interval is all that one observation leaves.
    """
    mean, (_, place) = float(values.mean()), np.unique(topics, return_inverse=True)
    sizes, sums = np.bincount(place), np.bincount(place, weights=values - mean)
    least, most = bounds_of_one(mean, level)
    if len(sizes) < 2:
        return Share(mean, None, least, most)
    groups, total = len(sizes), len(values)
    variance = float((sums**2).sum()) / total**2 * groups / (groups - 1)
    even = total**2 / float((sizes.astype(float) ** 2).sum())
    free = mean * (1 - mean)
    worth = max(free / (variance + 0.25 / even**2), even - 1)
    low, high = wilson_bounds(mean, worth, float(stdtrit(groups - 1, (1 + level) / 2)))
    return Share(mean, variance**0.5, max(low, least), min(high, most))


def win_rates(matches: Matches, level: float) -> list[Share | None]:
    """Return the win rate of each candidate; None of one that has no match. Who met one other alone
    has the interval of the two compared: it is the same figure."""
    won, rates = np.concatenate([matches.won, 1 - matches.won]), list[Share | None]()
    for met in _meetings(matches):
        rate = share(won[met.at], met.topic, level) if met.at.size else None
        if rate is not None and met.opponents == 1:
            low, high = win_rate_interval(won[met.at], met.topic, level)
            rate = replace(rate, low=low, high=high)
        rates.append(rate)
    return rates


class _Meetings(NamedTuple):
    """The matches of one candidate: their places among those of all firsts and then all seconds,
    their topics, and how many others it met."""

    at: Ints
    topic: Ints
    opponents: int


def _meetings(matches: Matches) -> Iterator[_Meetings]:
    """Of each candidate in turn."""
    candidate = np.concatenate([matches.first, matches.second])
    opponent = np.concatenate([matches.second, matches.first])
    topic = np.concatenate([matches.topic, matches.topic])
    order = np.argsort(candidate, kind="stable")
    ends = np.searchsorted(candidate[order], np.arange(matches.size + 1))
    for begin, end in pairwise(ends.tolist()):
        at = order[begin:end]
        yield _Meetings(at, topic[at], len(np.unique(opponent[at])))


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
