"""Bradley-Terry ratings with ties after Davidson, for one sample or for many resamples at once.

With d the difference of two ratings, the chances of a win, a loss and a tie are as exp(d/2) to
exp(-d/2) to v, where v is one number for all; without ties v is 0, and that is Bradley and Terry's
model. A position term, if asked for, adds to d in favour of what was shown first. The likelihood is
concave; Newton's steps are cut so that they never overshoot (Sun and Tran-Dinh, 2019).

Arrays of resamples have the rounds in their last dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from evenhand.stats.ranking.duels import Sample
from evenhand.stats.tables import Bools, Floats, Ints

STEPS = 100
INEXACT = 20
"""How many steps of a fit are Newton's by conjugate gradients, which need no matrix of all
candidates; what is then not done, where few links hold many together, takes the matrix."""
GRADIENTS = 60
NEARLY = 0.01
"""How far such a step may be off: the next one mends it."""
WHOLE = 2.0
"""Steps that move no odds further, in logarithms, are taken whole."""
CLOSE = 1e-7
"""The last step, in odds."""
FAR = 30.0
"""Odds, in logarithms, that no number of votes bears out: a fit that comes there never ends."""
NO_TIES = -40.0
"""The logarithm of v where there are no ties."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What was fitted: rows are the ratings, the logarithm of v, and the position term."""

    values: Floats
    converged: Bools


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
        self.sample, size, pairs = sample, sample.size, len(sample.first)
        self.set_of_pair = sample.sets[sample.first]
        self._sets = range(int(sample.sets.max(initial=-1)) + 1)
        ends, ones, at = (sample.first, sample.second), np.ones(pairs), np.arange(pairs)
        self._gaps = sparse.csr_array(
            (np.concatenate([ones, -ones]), (np.tile(at, 2), np.concatenate(ends))),
            shape=(pairs, size),
        )
        self._sums = self._gaps.T.tocsr()
        self._both = abs(self._sums)
        flat = [row * size + column for row in ends for column in ends]
        signs = np.concatenate([ones, -ones, -ones, ones])
        self._squares = sparse.csr_array(
            (signs, (np.concatenate(flat), np.tile(at, 4))), shape=(size * size, pairs)
        )
        self._pinned = _means(sample.sets)
        self._tree = self._spanning(sample.counts)

    def fit(self, counts: Floats, start: Floats | None = None) -> Fit:
        """The most likely values for counts of (outcome, pair, round)."""
        rounds = counts.shape[2]
        values = np.zeros((self.sample.size + 2, rounds))
        values[-2] = _tie_start(counts)
        if start is not None:
            values[:] = start[:, None]
        tieless = counts[2].sum(axis=0) == 0
        values[-2, tieless] = NO_TIES
        todo, converged = np.arange(rounds), np.zeros(rounds, np.bool_)
        for number in range(STEPS):
            slopes = self._slopes(counts, values[:, todo], tieless[todo])
            step = self._nearly(slopes) if number < INEXACT else self._newton(slopes)
            step[-2, tieless[todo]] = 0
            reach = self._reach(step)
            # Theory wants the cut; up to there whole steps are faster, and mend themselves.
            values[:, todo] += step * np.where(reach < WHOLE, 1, np.log1p(reach) / (reach + 1e-300))
            left, lost = ~(reach < CLOSE), self._lost(values[:, todo])
            converged[todo[~left & ~lost]] = True
            left &= ~lost
            if not left.any():
                break
            if not left.all():
                todo, counts = todo[left], counts[:, :, left]
        return Fit(self._centred(values), converged)

    def _lost(self, values: Floats) -> Bools:
        """Of each round, whether it is on its way to infinity: a position term can be infinite, and
        ratings with it, where wins lead from everyone to everyone."""
        if not self.sample.ordered:
            return np.zeros(values.shape[1], np.bool_)
        return np.asarray(np.abs(self._gaps @ values[:-2] + values[-1]).max(axis=0) > FAR)

    def _slopes(self, counts: Floats, values: Floats, tieless: Bools) -> _Slopes:
        wins, losses, ties = counts
        up = np.exp((self._gaps @ values[:-2] + values[-1]) / 2)
        down, even = 1 / up, np.exp(values[-2])
        all_three, votes = up + down + even, wins + losses + ties
        lead, tied = (up - down) / all_three, even / all_three
        by_pair = (wins - losses - votes * lead) / 2
        total = np.zeros_like(values)
        total[:-2] = self._sums @ by_pair
        total[-2] = np.where(tieless, 0, (ties - votes * tied).sum(axis=0))
        if self.sample.ordered:
            total[-1] = by_pair.sum(axis=0)
        return _Slopes(total, votes, lead, tied, tieless)

    def _nearly(self, slopes: _Slopes) -> Floats:
        """Newton's step by conjugate gradients, of each round."""
        bends = self._bends(slopes)
        step, rest = np.zeros_like(slopes.total), slopes.total.copy()
        scaled = rest / bends.diagonal
        direction, size = scaled, (rest * scaled).sum(axis=0)
        enough = NEARLY**2 * size
        for _ in range(GRADIENTS):
            product = self._product(bends, direction)
            length = _ratio(size, (direction * product).sum(axis=0))
            step += length * direction
            rest -= length * product
            scaled = rest / bends.diagonal
            before, size = size, (rest * scaled).sum(axis=0)
            # What is near enough goes no further: rounding alone would lead it on.
            size = np.where(size > enough, size, 0)
            if not size.any():
                break
            direction = scaled + _ratio(size, before) * direction
        return step

    def _bends(self, slopes: _Slopes) -> _Bends:
        votes, lead, tied = slopes.votes, slopes.lead, slopes.tied
        bend = votes / 4 * (1 - tied - lead**2)
        even = np.where(slopes.tieless, 1, (votes * tied * (1 - tied)).sum(axis=0))
        diagonal = np.ones_like(slopes.total)
        diagonal[:-2] = self._both @ bend
        diagonal[-2] = even
        if self.sample.ordered:
            diagonal[-1] = bend.sum(axis=0)
        return _Bends(bend, -votes / 2 * lead * tied, even, np.where(diagonal > 0, diagonal, 1))

    def _product(self, bends: _Bends, values: Floats) -> Floats:
        """The second derivatives times some values."""
        gaps = self._gaps @ values[:-2] + values[-1]
        by_pair = bends.bend * gaps + bends.cross * values[-2]
        product = np.zeros_like(values)
        product[:-2] = self._sums @ by_pair
        product[-2] = (bends.cross * gaps).sum(axis=0) + bends.even * values[-2]
        if self.sample.ordered:
            product[-1] = by_pair.sum(axis=0)
        return product

    def _newton(self, slopes: _Slopes) -> Floats:
        vector = slopes.total.T[:, :, None]
        solved = np.linalg.solve(self._matrix(slopes), vector)[:, :, 0].T
        return np.asarray(solved, dtype=np.float64)

    def _matrix(self, slopes: _Slopes) -> Floats:
        """The second derivatives, of each round; what has no information is held where it is."""
        votes, lead, tied = slopes.votes, slopes.lead, slopes.tied
        bend = votes / 4 * (1 - tied - lead**2)
        cross = -votes / 2 * lead * tied
        size, rounds = self.sample.size, votes.shape[1]
        square = (self._squares @ bend).T.reshape(rounds, size, size)
        scale = np.trace(square, axis1=1, axis2=2) / max(size, 1) + 1e-300
        matrix = np.zeros((rounds, size + 2, size + 2))
        matrix[:, :-2, :-2] = square + scale[:, None, None] * self._pinned
        matrix[:, :-2, -2] = matrix[:, -2, :-2] = (self._sums @ cross).T
        matrix[:, -2, -2] = np.where(slopes.tieless, 1, (votes * tied * (1 - tied)).sum(axis=0))
        matrix[:, -1, -1] = 1
        if self.sample.ordered:
            matrix[:, :-2, -1] = matrix[:, -1, :-2] = (self._sums @ bend).T
            matrix[:, -2, -1] = matrix[:, -1, -2] = cross.sum(axis=0)
            matrix[:, -1, -1] = bend.sum(axis=0)
        return matrix

    def _reach(self, step: Floats) -> Floats:
        """How far a step moves the odds of any outcome, of each round."""
        moved = np.abs(self._gaps @ step[:-2] + step[-1]).max(axis=0, initial=0)
        return np.asarray(np.maximum(moved, moved / 2 + np.abs(step[-2])))

    def _centred(self, values: Floats) -> Floats:
        """Ratings are about their mean, in each set of candidates for itself."""
        centred = values.copy()
        centred[:-2] -= self._pinned @ values[:-2]
        return centred

    def unsound(self, counts: Floats) -> Bools:
        """Of each set and round, whether a rating would be infinite, or its place unknown.

        That is so unless chains of wins and ties lead from everyone to everyone, and some chain of
        wins alone leads back to where it began: a candidate with wins and ties only is as far ahead
        as one with wins only.
        """
        wins, losses, ties = (outcome > 0 for outcome in counts)
        sure = (wins & losses)[self._tree].all(axis=0)
        unsound = np.zeros((len(self._sets), counts.shape[2]), np.bool_)
        if not sure.all():
            unsure = [outcome[:, ~sure] for outcome in (wins, losses, ties)]
            unsound[:, ~sure] = self._separated(*unsure)
        return unsound

    def _separated(self, wins: Bools, losses: Bools, ties: Bools) -> Bools:
        linked = self._alike(wins | ties, losses | ties)
        circled = self._alike(wins, losses)
        separated = np.zeros((len(self._sets), wins.shape[1]), np.bool_)
        for number in self._sets:
            pairs = self.set_of_pair == number
            separated[number] = ~linked[pairs].all(axis=0) | ~circled[pairs].any(axis=0)
            if self.sample.ordered:
                is_mixed = wins[pairs].any(axis=0) & losses[pairs].any(axis=0)
                separated[number] |= ~is_mixed
        return separated

    def _spanning(self, counts: Floats) -> Ints:
        """Pairs that link everyone, with wins on both sides and as many as can be: a resample that
        keeps them needs no closer look."""
        first, second, size = self.sample.first, self.sample.second, self.sample.size
        order = np.argsort(-np.minimum(counts[0], counts[1]), kind="stable")
        graph = sparse.coo_array((np.argsort(order) + 1, (first, second)), shape=(size, size))
        return np.asarray(order[minimum_spanning_tree(graph.tocsr()).data.astype(int) - 1])

    def open_ends(self, counts: Floats) -> tuple[Bools, Bools]:
        """Which candidates won and never lost, and which lost and never won, by counts of (outcome,
        pair): nothing bounds how far they are above or below the others."""
        wins, losses, _ = counts
        ends = (self.sample.first, self.sample.second)
        size = self.sample.size
        won, lost = (
            np.bincount(ends[0], by_first, size) + np.bincount(ends[1], by_second, size)
            for by_first, by_second in ((wins, losses), (losses, wins))
        )
        return (won > 0) & (lost == 0), (lost > 0) & (won == 0)

    def _alike(self, forward: Bools, backward: Bools) -> Bools:
        """Of each pair and round, whether chains lead from either side to the other."""
        labels = self._labels(forward, backward)
        return np.asarray(labels[self.sample.first] == labels[self.sample.second])

    def _labels(self, forward: Bools, backward: Bools) -> Ints:
        """Of each candidate and round, a number shared by all who are linked both ways."""
        size, rounds = self.sample.size, forward.shape[1]
        (ahead, there), (back, again) = np.nonzero(forward), np.nonzero(backward)
        first, second = self.sample.first, self.sample.second
        start = np.concatenate([first[ahead] + size * there, second[back] + size * again])
        end = np.concatenate([second[ahead] + size * there, first[back] + size * again])
        ones, shape = np.ones(len(start), np.int8), (size * rounds, size * rounds)
        graph = sparse.coo_array((ones, (start, end)), shape=shape).tocsr()
        _, labels = connected_components(graph, connection="strong")
        return np.asarray(labels.reshape(rounds, size).T)

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


def _ratio(above: Floats, below: Floats) -> Floats:
    """Of each round; 0 where there is nothing left to divide."""
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))


def _tie_start(counts: Floats) -> Floats:
    ties, votes = counts[2].sum(axis=0), counts.sum(axis=(0, 1))
    return np.asarray(np.log(np.maximum(2 * ties, 1e-9) / np.maximum(votes - ties, 1e-9)))


def _means(sets: Ints) -> Floats:
    """The matrix that takes each rating to the mean of its set, one without a set to itself."""
    same = (sets[:, None] == sets) & (sets >= 0)[:, None]
    alone = np.diag((sets < 0).astype(float))
    return np.asarray(same / np.maximum(same.sum(axis=1), 1) + alone)
