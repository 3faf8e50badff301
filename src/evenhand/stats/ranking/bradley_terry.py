"""Bradley-Terry ratings with ties after Davidson, for one sample or for many resamples at once.

With d the difference of two ratings, the chances of a win, a loss and a tie are as exp(d/2) to
exp(-d/2) to v, where v is one number for all; without ties v is 0, and that is Bradley and Terry's
model. A position term, if asked for, adds to d in favour of what was shown first. The likelihood is
concave; Newton's steps are cut so that they never overshoot (Sun and Tran-Dinh, 2019).

Arrays of resamples have the rounds in their last dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from evenhand.stats.ranking.duels import Sample
from evenhand.stats.tables import Bools, Floats

STEPS = 100
INEXACT = 20
"""How many steps of a fit are Newton's by conjugate gradients, which need no matrix of all
candidates; what is then not done, where few links hold many together, takes the matrix."""
GRADIENTS = 60
ROUGHLY, NEARLY = 0.1, 0.01
"""How far the first such step may be off, and each other: the next one mends it."""
NOTHING = 1e-22
"""What a step that adds so little to the logarithm of the likelihood is worth: it moves no odds by
`CLOSE`, however few votes there are."""
WHOLE = 2.0
"""Steps that move no odds further, in logarithms, are taken whole."""
CLOSE = 1e-8
"""The last step, in odds."""
FAR = 30.0
"""Odds, in logarithms, that no number of votes bears out: a fit that comes there never ends."""
NO_TIES = -40.0
"""The logarithm of v where there are no ties."""
ROUNDS, CELLS = 64, 300_000
"""How many rounds are fitted at once, and how many pairs they may have: more would leave the
processor's own memory."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What was fitted: rows are the ratings, the logarithm of v, and the position term."""

    values: Floats
    converged: Bools
    gradients: int
    """How many gradients the hardest of its steps took: many where few links hold many candidates
    together."""


@dataclass(frozen=True, slots=True)
class _Counts:
    """What happened in some rounds."""

    ahead: Floats
    """Of each pair, wins of the first less wins of the second."""
    votes: Floats
    ties: Floats
    """Of all pairs together."""
    tieless: Bools

    def where(self, rounds: Bools) -> _Counts:
        """Of some of the rounds."""
        return _Counts(
            self.ahead[:, rounds], self.votes[:, rounds], self.ties[rounds], self.tieless[rounds]
        )


@dataclass(frozen=True, slots=True)
class _Slopes:
    """The first derivatives at some values, and what the second ones are made of."""

    total: Floats
    votes: Floats
    lead: Floats
    """The chance of a win less that of a loss."""
    tied: Floats
    tieless: Bools


@dataclass(frozen=True, slots=True)
class _Bends:
    """The second derivatives, without the matrix that they make."""

    bend: Floats
    """Of each pair, by the difference of its ratings."""
    cross: Floats
    """Of each pair, by that and the tie parameter."""
    even: Floats
    """By the tie parameter."""
    diagonal: Floats


class Model:
    """The pairs of a sample as matrices, made once for all fits."""

    def __init__(self, sample: Sample) -> None:
        self.sample, pairs = sample, len(sample.first)
        self.set_of_pair = sample.sets[sample.first]
        ends, signs = np.concatenate([sample.first, sample.second]), np.repeat([1.0, -1.0], pairs)
        self._sums = sparse.csr_array(
            (signs, (ends, np.tile(np.arange(pairs), 2))), shape=(sample.size, pairs)
        )
        self._both = abs(self._sums)
        self._block = max(1, min(ROUNDS, CELLS // max(pairs, 1)))
        self._inverse: Floats | None = None

    def steady(self, counts: Floats, values: Floats) -> None:
        """Have all further fits be led by the second derivatives of these counts at these values,
        as those of resamples are much the same. It takes the square of the candidates in memory,
        and far fewer gradients where links are few."""
        slopes = self._slopes(_counted(counts[:, :, None]), values[:, None])
        self._inverse = np.linalg.inv(self._matrix(slopes)[0])

    def fit(self, counts: Floats, start: Floats | None = None, close: float = CLOSE) -> Fit:
        """The most likely values for counts of (outcome, pair, round), until a step moves no odds
        by more than `close`."""
        rounds, size = counts.shape[2], self._block
        values, converged = np.zeros((self.sample.size + 2, rounds)), np.zeros(rounds, np.bool_)
        if start is None:
            values[-2] = _tie_start(counts)
        else:
            values[:] = start[:, None]
        most = 0
        for begin in range(0, rounds, size):
            block = slice(begin, begin + size)
            converged[block], gradients = self._fit(
                _counted(counts[:, :, block]), values[:, block], close
            )
            most = max(most, gradients)
        return Fit(self._centred(values), converged, most)

    def _fit(self, counts: _Counts, values: Floats, close: float) -> tuple[Bools, int]:
        """Move the values of some rounds to where they are most likely, and say of which that is
        done, and what the hardest step took."""
        values[-2, counts.tieless] = NO_TIES
        values[:-2] += self._head_start(counts, values)
        todo, converged = np.arange(values.shape[1]), np.zeros(values.shape[1], np.bool_)
        most = 0
        for number in range(STEPS):
            slopes = self._slopes(counts, values[:, todo])
            if number < INEXACT:
                step, gradients = self._nearly(slopes, number)
                most = max(most, gradients)
            else:
                step = self._newton(slopes)
            step[-2, counts.tieless] = 0
            reach = self._reach(step)
            # Theory wants the cut; up to there whole steps are faster, and mend themselves.
            values[:, todo] += step * np.where(reach < WHOLE, 1, np.log1p(reach) / (reach + 1e-300))
            left, lost = ~(reach < close), self._lost(values[:, todo])
            converged[todo[~left & ~lost]] = True
            left &= ~lost
            if not left.any():
                break
            if not left.all():
                todo, counts = todo[left], counts.where(left)
        return converged, most

    def _gaps(self, values: Floats) -> Floats:
        """Of each pair, how far the first is ahead."""
        gaps = values[:-2].take(self.sample.first, axis=0)
        gaps -= values[:-2].take(self.sample.second, axis=0)
        if self.sample.ordered:
            gaps += values[-1]
        return gaps

    def _lost(self, values: Floats) -> Bools:
        """Of each round, whether it is on its way to infinity: a position term can be infinite, and
        ratings with it, where wins lead from everyone to everyone."""
        if not self.sample.ordered:
            return np.zeros(values.shape[1], np.bool_)
        return np.asarray(np.abs(self._gaps(values)).max(axis=0) > FAR)

    def _slopes(self, counts: _Counts, values: Floats) -> _Slopes:
        lead, tied = self._chances(values)
        by_pair = counts.votes * lead
        np.subtract(counts.ahead, by_pair, out=by_pair)
        by_pair /= 2
        total = np.zeros_like(values)
        total[:-2] = self._sums @ by_pair
        total[-2] = np.where(counts.tieless, 0, counts.ties - _dot(counts.votes, tied))
        if self.sample.ordered:
            total[-1] = by_pair.sum(axis=0)
        return _Slopes(total, counts.votes, lead, tied, counts.tieless)

    def _chances(self, values: Floats) -> tuple[Floats, Floats]:
        """Of each pair, the chance of a win less that of a loss, and that of a tie."""
        # An exponential for each candidate, none for each pair; and few arrays of all pairs.
        strength = np.exp(values[:-2] / 2)
        up = strength.take(self.sample.first, axis=0)
        up /= strength.take(self.sample.second, axis=0)
        if self.sample.ordered:
            up *= np.exp(values[-1] / 2)
        even, down = np.exp(values[-2]), 1 / up
        tied = up + down
        tied += even
        np.divide(1, tied, out=tied)
        up -= down
        up *= tied
        tied *= even
        return up, tied

    def _head_start(self, counts: _Counts, values: Floats) -> Floats:
        """How far each rating would have to go if all the others stayed: what takes many of
        Newton's steps at the ends of a board is one in log odds."""
        slopes = self._slopes(counts, values)
        bend = self._bends(slopes).diagonal[:-2]
        votes = np.maximum(self._both @ counts.votes, 1e-9)
        points = (votes + self._sums @ counts.ahead) / 2
        expected = points - slopes.total[:-2]
        edge = np.minimum(0.25, votes / 4)
        points, expected = (np.clip(some, edge, votes - edge) for some in (points, expected))
        odds = np.log(points * (votes - expected) / (expected * (votes - points)))
        return np.asarray(odds * expected * (1 - expected / votes) / bend)

    def _nearly(self, slopes: _Slopes, number: int) -> tuple[Floats, int]:
        """Newton's step of that number by conjugate gradients, of each round, and how many of them
        it took."""
        bends, gradients = self._bends(slopes), 0
        step, rest = np.zeros_like(slopes.total), slopes.total.copy()
        scaled = self._scaled(rest, bends)
        direction, size = scaled, _dot(rest, scaled)
        # All ratings of a set may move together, so where nothing else is left of the slopes than
        # rounding, that may lead anywhere.
        size = np.where(size > NOTHING, size, 0)
        enough = np.maximum((NEARLY if number else ROUGHLY) ** 2 * size, NOTHING)
        while gradients < GRADIENTS:
            gradients += 1
            product = self._product(bends, direction)
            length = _ratio(size, _dot(direction, product))
            step += length * direction
            rest -= length * product
            scaled = self._scaled(rest, bends)
            before, size = size, _dot(rest, scaled)
            # What is near enough goes no further: rounding alone would lead it on.
            size = np.where(size > enough, size, 0)
            if not size.any():
                break
            direction = scaled + _ratio(size, before) * direction
        return step, gradients

    def _scaled(self, rest: Floats, bends: _Bends) -> Floats:
        """About where a rest of the slopes leads."""
        return rest / bends.diagonal if self._inverse is None else self._inverse @ rest

    def _bends(self, slopes: _Slopes) -> _Bends:
        votes, lead, tied = slopes.votes, slopes.lead, slopes.tied
        bend = lead * lead
        bend += tied
        np.subtract(1, bend, out=bend)
        bend *= votes
        bend /= 4
        cross = votes * tied
        even = np.where(slopes.tieless, 1, cross.sum(axis=0) - _dot(cross, tied))
        cross *= lead
        cross /= -2
        diagonal = np.ones_like(slopes.total)
        diagonal[:-2] = self._both @ bend
        diagonal[-2] = even
        if self.sample.ordered:
            diagonal[-1] = bend.sum(axis=0)
        return _Bends(bend, cross, even, np.where(diagonal > 0, diagonal, 1))

    def _product(self, bends: _Bends, values: Floats) -> Floats:
        """The second derivatives times some values."""
        gaps, product = self._gaps(values), np.zeros_like(values)
        product[-2] = _dot(bends.cross, gaps) + bends.even * values[-2]
        gaps *= bends.bend
        gaps += bends.cross * values[-2]
        product[:-2] = self._sums @ gaps
        if self.sample.ordered:
            product[-1] = gaps.sum(axis=0)
        return product

    def _newton(self, slopes: _Slopes) -> Floats:
        vector = slopes.total.T[:, :, None]
        solved = np.linalg.solve(self._matrix(slopes), vector)[:, :, 0].T
        return np.asarray(solved, dtype=np.float64)

    def _matrix(self, slopes: _Slopes) -> Floats:
        """The second derivatives, of each round; what has no information is held where it is."""
        bends, (first, second) = self._bends(slopes), (self.sample.first, self.sample.second)
        bend, cross, size = bends.bend, bends.cross, self.sample.size
        matrix = np.zeros((bend.shape[1], size + 2, size + 2))
        matrix[:, first, second] -= bend.T
        matrix[:, second, first] -= bend.T
        diagonal = (self._both @ bend).T
        matrix[:, range(size), range(size)] = diagonal
        matrix[:, :-2, :-2] += (diagonal.mean(axis=1) + 1e-300)[:, None, None] * self._pinned
        matrix[:, :-2, -2] = matrix[:, -2, :-2] = (self._sums @ cross).T
        matrix[:, -2, -2] = bends.even
        matrix[:, -1, -1] = 1
        if self.sample.ordered:
            matrix[:, :-2, -1] = matrix[:, -1, :-2] = (self._sums @ bend).T
            matrix[:, -2, -1] = matrix[:, -1, -2] = cross.sum(axis=0)
            matrix[:, -1, -1] = bend.sum(axis=0)
        return matrix

    @cached_property
    def _pinned(self) -> Floats:
        """The matrix that takes each rating to the mean of its set, one without a set to itself."""
        sets = self.sample.sets
        same = (sets[:, None] == sets) & (sets >= 0)[:, None]
        alone = np.diag((sets < 0).astype(float))
        return np.asarray(same / np.maximum(same.sum(axis=1), 1) + alone)

    def _reach(self, step: Floats) -> Floats:
        """How far a step moves the odds of any outcome, of each round."""
        gaps = self._gaps(step)
        moved = np.abs(gaps, out=gaps).max(axis=0, initial=0)
        return np.asarray(np.maximum(moved, moved / 2 + np.abs(step[-2])))

    def _centred(self, values: Floats) -> Floats:
        """Ratings are about their mean, in each set of candidates for itself; one without a set is
        at 0."""
        sets, size = self.sample.sets, self.sample.size
        members = np.flatnonzero(sets >= 0)
        shares = 1 / np.bincount(sets[members], minlength=1)[sets[members]]
        means = sparse.csr_array((shares, (sets[members], members)), shape=(size, size))
        middle = np.where(
            (sets >= 0)[:, None], (means @ values[:-2])[np.maximum(sets, 0)], values[:-2]
        )
        centred = values.copy()
        centred[:-2] -= middle
        return centred

    def prior(self, counts: Floats, sets: Bools) -> Floats:
        """What is added to counts of (outcome, pair) where ratings would be infinite: one vote more
        for each candidate of these sets, half won and half lost, shared out over those it met."""
        first, second, votes = self.sample.first, self.sample.second, counts.sum(axis=0)
        of = np.bincount(first, votes, self.sample.size) + np.bincount(
            second, votes, self.sample.size
        )
        added = np.zeros_like(counts)
        added[:2] = np.where(sets[self.set_of_pair], votes / of[first] + votes / of[second], 0) / 2
        return added


def _counted(counts: Floats) -> _Counts:
    """Counts of (outcome, pair, round), as fits take them."""
    ties = counts[2].sum(axis=0)
    return _Counts(counts[0] - counts[1], counts.sum(axis=0), ties, ties == 0)


def _ratio(above: Floats, below: Floats) -> Floats:
    """Of each round; 0 where there is nothing left to divide."""
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))


def _dot(some: Floats, others: Floats) -> Floats:
    """Of each round, the sum of products."""
    return np.asarray(np.einsum("pr,pr->r", some, others))


def _tie_start(counts: Floats) -> Floats:
    ties, votes = counts[2].sum(axis=0), counts.sum(axis=(0, 1))
    return np.asarray(np.log(np.maximum(2 * ties, 1e-9) / np.maximum(votes - ties, 1e-9)))
