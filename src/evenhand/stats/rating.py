"""Bradley-Terry ratings with ties after Davidson (1970), their intervals and ranks.

With d the difference of two ratings, the chances of a win, a loss and a tie are as exp(d/2) to
exp(-d/2) to v, where v is one number for all; without ties v is 0. A position term, if asked for,
adds to d in favour of what was shown first. Half a vote is added for each candidate, shared over
those that it met, a half of it won and a half lost, so that every rating is finite. A vote for any
two that met would draw large boards together, on which most meet a few times.

The covariance is the sandwich clustered by question (Liang and Zeger, 1986): the scores of all
votes on a question are summed before they are squared. The added votes are counted in it, or one
that never lost would look certain. Ranks come from Holm's correction (1979) of the differences of
the same fit, so that ranks and ratings never contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from evenhand.observation import UNCERTAIN
from evenhand.stats.estimate import HALF, is_rejected, log_odds_interval, log_odds_p
from evenhand.stats.observations import Bools, Floats, Ints, Observations

Ties = Literal["davidson", "half"]
STEPS = 200
CLOSE = 1e-9
"""The last step of a fit, in log odds."""
FAR = 30.0
"""Log odds that no number of votes bears out: a fit that comes there never ends."""
SAME = 1e-9
"""Ratings no further apart share a rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Comparisons of two candidates, one per row."""

    size: int
    """The number of candidates."""
    first: Ints
    second: Ints
    won: Floats
    """The share that the first won: 1, 0 or between. An uncertain vote is half a win to each."""
    tie: Bools
    """True if both were called equal; `won` is then 0.5."""
    topic: Ints

    def where(self, rows: Bools) -> Matches:
        """Return some of the matches."""
        return Matches(
            size=self.size,
            first=self.first[rows],
            second=self.second[rows],
            won=self.won[rows],
            tie=self.tie[rows],
            topic=self.topic[rows],
        )


def vote_matches(table: Observations, measure: str) -> Matches:
    """Return the judgments of pairs that have a verdict; a candidate against itself says nothing.
    Both are called equal on a criterion, or where it is not uncertain who won."""
    won = table.column(measure)
    rows = ~np.isnan(won) & (table.first != table.second)
    is_tie = won == 0.5
    if measure == table.main:
        is_tie &= table.column(UNCERTAIN) != 1
    return Matches(
        size=len(table.candidates),
        first=table.first[rows],
        second=table.second[rows],
        won=won[rows],
        tie=is_tie[rows],
        topic=table.topic[rows],
    )


def pair_matches(table: Observations, measure: str) -> Matches:
    """Return the pairs that have a verdict, each the mean of its judges and repeats, without ties
    of their own."""
    won = table.unit_means(measure)
    units = ~np.isnan(won) & (table.subject != table.opponent)
    return Matches(
        size=len(table.candidates),
        first=table.subject[units],
        second=table.opponent[units],
        won=won[units],
        tie=np.zeros(int(units.sum()), np.bool_),
        topic=table.question[units],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """The fit of one set of candidates that meetings link."""

    members: Ints
    """Which candidates they are."""
    values: Floats
    """Their ratings in log odds, about a mean of 0."""
    covariance: Floats
    questions: int
    tie: float | None
    """Davidson's parameter v; None where nothing was tied, or ties count as half a win."""
    position: float | None
    """The advantage of being shown first; None if that was not asked for."""
    position_error: float | None

    def intervals(self, level: float, anchor: int | None = None) -> tuple[Floats, Floats, Floats]:
        """Return ratings and their ends, about the mean, or about a member that is put at 0.

        The figure behind a rating about the mean is the log odds against the mean of the others;
        with two candidates that is the log odds between them.
        """
        size = len(self.members)
        if anchor is None:
            values, errors, scale = (
                self.values,
                np.sqrt(self.covariance.diagonal()),
                size / (size - 1),
            )
        else:
            values, scale = self.values - self.values[anchor], 1.0
            errors = self._difference_errors()[:, anchor]
        if self.questions < 2:
            nothing = np.full(size, np.nan)
            return values, nothing, nothing
        low, high = log_odds_interval(scale * values, scale * errors, self.questions, level)
        return values, low / scale, high / scale

    def ranks(self, level: float) -> tuple[Ints, Ints, Ints]:
        """Return of each member its rank, and the best and the worst that it may have."""
        size = len(self.members)
        ahead = self.values[:, None] - self.values
        is_better = np.zeros((size, size), np.bool_)
        if self.questions > 1:
            rows, columns = np.triu_indices(size, 1)
            between, errors = ahead[rows, columns], self._difference_errors()[rows, columns]
            told = is_rejected(log_odds_p(between, errors, self.questions), 1 - level)
            is_better[rows, columns] = told & (between > 0)
            is_better[columns, rows] = told & (between < 0)
        rank = 1 + (ahead < -SAME).sum(axis=1)
        return rank, 1 + is_better.sum(axis=0), size - is_better.sum(axis=1)

    def _difference_errors(self) -> Floats:
        own = self.covariance.diagonal()
        return np.asarray(np.sqrt(np.maximum(own[:, None] + own - 2 * self.covariance, 0)))


def rate(
    matches: Matches, ties: Ties = "davidson", *, position: bool = False, added: float = HALF
) -> Iterator[Ratings]:
    """Yield the ratings of each set of candidates that meetings link, the largest set first.

    `added` is how much of a vote is added for each candidate; with 0 the fit is the plain maximum
    of the likelihood, and ValueError is raised where there is none.
    """
    links = sparse.csr_array(
        (np.ones(len(matches.first)), (matches.first, matches.second)),
        shape=(matches.size, matches.size),
    )
    label = connected_components(links, directed=False)[1]
    sizes = np.bincount(label, minlength=1)
    for number in np.argsort(-sizes, kind="stable").tolist():
        if sizes[number] > 1:
            members, rows = np.flatnonzero(label == number), label[matches.first] == number
            yield _rate_set(matches.where(rows), members, ties, position, added)


class _Counts(NamedTuple):
    """The wins, losses and ties between every two that met, the added votes included."""

    first: Ints
    second: Ints
    wins: Floats
    losses: Floats
    ties: Floats
    added: Floats

    @property
    def votes(self) -> Floats:
        return np.asarray(self.wins + self.losses + self.ties)


class _Chances(NamedTuple):
    """Of each two that met, the chance of a win less that of a loss, and that of a tie."""

    lead: Floats
    tied: Floats


def _rate_set(matches: Matches, members: Ints, ties: Ties, position: bool, added: float) -> Ratings:
    place = np.full(matches.size, -1)
    place[members] = np.arange(len(members))
    first, second, won = place[matches.first], place[matches.second], matches.won
    if not position:
        swap = first > second
        first, second = np.where(swap, second, first), np.where(swap, first, second)
        won = np.where(swap, 1 - won, won)
    tie = matches.tie if ties == "davidson" else np.zeros(len(won), np.bool_)
    counts, pair = _count(first, second, won, tie, len(members), added)
    fitted = _Fit(counts, len(members), has_ties=bool(tie.any()), has_position=position)
    values, chances, bread = fitted.solve()
    scores = _topic_scores(counts, chances, pair, np.where(tie, 0, 2 * won - 1), tie, matches.topic)
    covariance = bread @ fitted.keep(_meat(scores, counts, chances, len(members))) @ bread
    size = len(members)
    return Ratings(
        members=members,
        values=values[:size],
        covariance=covariance[:size, :size],
        questions=scores.shape[0],
        tie=float(np.exp(values[size])) if tie.any() else None,
        position=float(values[size + 1]) if position else None,
        position_error=float(np.sqrt(covariance[-1, -1])) if position else None,
    )


def _count(
    first: Ints, second: Ints, won: Floats, tie: Bools, size: int, added: float
) -> tuple[_Counts, Ints]:
    """Return the counts of every two that met, and of each match which two these are. What is
    added for a candidate is shared over those it met, in each order."""
    keys, pair = np.unique(first * size + second, return_inverse=True)
    ends, number = np.divmod(keys, size), len(keys)
    met = np.bincount(np.concatenate(ends), minlength=size)
    more = added * (1 / met[ends[0]] + 1 / met[ends[1]]) / 2
    wins, losses = (
        np.bincount(pair, np.where(tie, 0, share), number) + more / 2 for share in (won, 1 - won)
    )
    return _Counts(
        *ends, wins, losses, np.bincount(pair, tie, number).astype(np.float64), more
    ), pair


class _Fit:
    """Newton's method for the ratings, the logarithm of v and the position term, in this order.
    A parameter that is not asked for stays where it is."""

    def __init__(self, counts: _Counts, size: int, *, has_ties: bool, has_position: bool) -> None:
        self._counts, self._size = counts, size
        self._free = np.array([True] * size + [has_ties, has_position])
        self._has_ties, self._has_position = has_ties, has_position

    def solve(self) -> tuple[Floats, _Chances, Floats]:
        """Return the values, the chances that they give, and the inverse of the information."""
        values = np.zeros(self._size + 2)
        values[self._size] = 0.0 if self._has_ties else -np.inf
        for _ in range(STEPS):
            chances = self._chances(values)
            step = np.linalg.solve(self._information(chances), self._slopes(chances))
            far = float(np.abs(step).max())
            # Whole steps far from the optimum may overshoot; a cut one never does.
            values += step if far < 1 else step * np.log1p(far) / far
            if np.abs(self._gaps(values)).max() > FAR:
                break
            if far < CLOSE:
                chances = self._chances(values)
                inverse = np.asarray(np.linalg.inv(self._information(chances)), np.float64)
                inverse[:, ~self._free] = inverse[~self._free] = 0
                return values, chances, self._centre(inverse)
        raise ValueError("the votes bound no ratings: some never won, or never lost")

    def keep(self, matrix: Floats) -> Floats:
        """Return a matrix with nothing in it of parameters that are not asked for."""
        return np.asarray(matrix * np.outer(self._free, self._free))

    def _gaps(self, values: Floats) -> Floats:
        """Return how far the first of each two is ahead."""
        return np.asarray(values[self._counts.first] - values[self._counts.second] + values[-1])

    def _chances(self, values: Floats) -> _Chances:
        gap = self._gaps(values)
        up, down, even = np.exp(gap / 2), np.exp(-gap / 2), np.exp(values[self._size])
        total = up + down + even
        return _Chances((up - down) / total, even / total)

    def _slopes(self, chances: _Chances) -> Floats:
        counts = self._counts
        pull = (counts.wins - counts.losses - counts.votes * chances.lead) / 2
        slopes = np.zeros(self._size + 2)
        slopes[: self._size] = np.bincount(counts.first, pull, self._size) - np.bincount(
            counts.second, pull, self._size
        )
        slopes[-2] = (counts.ties - counts.votes * chances.tied).sum()
        slopes[-1] = pull.sum()
        return np.asarray(slopes * self._free)

    def _information(self, chances: _Chances) -> Floats:
        """Return the negative second derivatives; the mean of all ratings is held at 0."""
        counts, (lead, tied), size = self._counts, chances, self._size
        bend = counts.votes * (1 - tied - lead**2) / 4
        cross = -counts.votes * tied * lead / 2
        signs = [(counts.first, 1.0), (counts.second, -1.0)]
        matrix = np.zeros((size + 2, size + 2))
        matrix[counts.first, counts.second] -= bend
        matrix[counts.second, counts.first] -= bend
        for ends, sign in signs:
            matrix[range(size), range(size)] += np.bincount(ends, bend, size)
            matrix[:size, -2] += sign * np.bincount(ends, cross, size)
            matrix[:size, -1] += sign * np.bincount(ends, bend, size)
        matrix[-2, :size], matrix[-1, :size] = matrix[:size, -2], matrix[:size, -1]
        matrix[-2, -2] = (counts.votes * tied * (1 - tied)).sum()
        matrix[-1, -1], matrix[-1, -2] = bend.sum(), cross.sum()
        matrix[-2, -1] = matrix[-1, -2]
        matrix = self.keep(matrix)
        matrix[:size, :size] += bend.mean() / size
        matrix[~self._free, ~self._free] = 1
        return matrix

    def _centre(self, inverse: Floats) -> Floats:
        """Return the inverse for ratings about their mean."""
        inverse[: self._size] -= inverse[: self._size].mean(axis=0)
        inverse[:, : self._size] -= inverse[:, : self._size].mean(axis=1, keepdims=True)
        return inverse


def _topic_scores(
    counts: _Counts, chances: _Chances, pair: Ints, won: Floats, tie: Bools, topic: Ints
) -> Any:
    """Return the derivatives of the likelihood by every parameter, a sparse row for each topic."""
    size = int(max(counts.first.max(), counts.second.max())) + 1
    rows = np.unique(topic, return_inverse=True)[1]
    pull = (won - chances.lead[pair]) / 2
    of_tie, of_position = np.full(len(pair), size), np.full(len(pair), size + 1)
    columns = [counts.first[pair], counts.second[pair], of_tie, of_position]
    values = [pull, -pull, tie - chances.tied[pair], pull]
    shape = (int(rows.max()) + 1, size + 2)
    return sparse.csr_array(
        (np.concatenate(values), (np.tile(rows, 4), np.concatenate(columns))), shape=shape
    )


def _meat(scores: Any, counts: _Counts, chances: _Chances, size: int) -> Floats:
    """Return the sum of squared scores of all questions, and of the votes that were added."""
    questions = scores.shape[0]
    summed = (scores.T @ scores).toarray() * questions / max(questions - 1, 1)
    pairs = np.arange(len(counts.first))
    for outcome in (1.0, -1.0):
        added = _topic_scores(
            counts,
            chances,
            pairs,
            np.full(len(pairs), outcome),
            np.zeros(len(pairs), np.bool_),
            pairs,
        )
        weighted = added * (counts.added / 2)[:, None]
        summed += (added.T @ weighted).toarray()
    return np.asarray(summed)
