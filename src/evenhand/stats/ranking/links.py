"""Whether the votes of a sample, or of a resample, bound every rating.

They do where chains of wins and ties lead from everyone to everyone, and some chain of wins alone
leads back to where it began: a candidate with wins and ties only is as far ahead as one with wins
only. Sixty-four rounds are looked at together, each a bit of one number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.stats.ranking.duels import Sample
from evenhand.stats.tables import Bools, Floats, Ints

Bits = npt.NDArray[np.uint64]
WORD = 64
ALL = ~np.uint64(0)


class Links:
    """Who met whom in a sample, made once for all its rounds."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._sets = int(sample.sets.max(initial=-1)) + 1
        self._set_of_pair = _Groups(sample.sets[sample.first])
        self._members = np.flatnonzero(sample.sets >= 0)
        self._set_of_member = _Groups(sample.sets[self._members])
        # A pair can be gone both ways.
        self._starts = np.concatenate([sample.first, sample.second])
        self._ends = np.concatenate([sample.second, sample.first])
        self._by_start, self._by_end = _Groups(self._starts), _Groups(self._ends)

    def unsound(self, counts: Floats) -> Bools:
        """Of each set and round, whether a rating would be infinite, or its place unknown, by
        counts of (outcome, pair, round)."""
        rounds = counts.shape[2]
        words = [
            self._separated(*map(_packed, counts[:, :, begin : begin + WORD] > 0))
            for begin in range(0, rounds, WORD)
        ]
        bits = [np.unpackbits(word[:, None].view(np.uint8), axis=1) for word in words]
        return np.concatenate([np.zeros((self._sets, 0)), *bits], axis=1)[:, :rounds] > 0

    def open_ends(self, counts: Floats) -> tuple[Bools, Bools]:
        """Which candidates won and never lost, and which lost and never won, by counts of (outcome,
        pair): nothing bounds how far they are above or below the others."""
        wins, losses, _ = counts
        ends = (self._sample.first, self._sample.second)
        size = self._sample.size
        won, lost = (
            np.bincount(ends[0], by_first, size) + np.bincount(ends[1], by_second, size)
            for by_first, by_second in ((wins, losses), (losses, wins))
        )
        return (won > 0) & (lost == 0), (lost > 0) & (won == 0)

    def _separated(self, wins: Bits, losses: Bits, ties: Bits) -> Bits:
        """Of each set, in which rounds."""
        ways = np.concatenate([wins | ties, losses | ties])
        linked = self._reached(ways, self._starts, self._by_end)
        linked &= self._reached(ways, self._ends, self._by_start)
        circled = self._circling(np.concatenate([wins, losses]))
        sound = self._set_of_member.all(linked[self._members])
        sound &= self._set_of_member.any(circled[self._members])
        if self._sample.ordered:
            sound &= self._set_of_pair.any(wins) & self._set_of_pair.any(losses)
        return ~sound

    def _reached(self, ways: Bits, starts: Ints, ends: _Groups) -> Bits:
        """Of each candidate, in which rounds open ways lead to it from the first of its set."""
        reached = np.zeros(self._sample.size, np.uint64)
        reached[self._members[self._set_of_member.first]] = ALL
        while True:
            further = ends.any(ways & reached[starts]) & ~reached[ends.names]
            if not further.any():
                return reached
            reached[ends.names] |= further

    def _circling(self, wins: Bits) -> Bits:
        """Of each candidate, in which rounds it can follow wins without end: what is left when
        those who beat nobody are taken away, and again."""
        left, starts = np.full(self._sample.size, ALL), self._by_start
        while True:
            further = starts.any(wins & left[self._ends]) & left[starts.names]
            if (further == left[starts.names]).all():
                return left
            left[starts.names] = further


class _Groups:
    """Rows by a number that they have in common."""

    def __init__(self, numbers: Ints) -> None:
        self._order = np.argsort(numbers, kind="stable")
        self.names, self._begins = np.unique(numbers[self._order], return_index=True)
        self.first = self._order[self._begins]
        """The first row of each group."""

    def any(self, rows: Bits) -> Bits:
        return np.bitwise_or.reduceat(rows[self._order], self._begins)

    def all(self, rows: Bits) -> Bits:
        return np.bitwise_and.reduceat(rows[self._order], self._begins)


def _packed(rounds: Bools) -> Bits:
    """A number for each row, with a bit for each round."""
    packed = np.zeros((len(rounds), WORD // 8), np.uint8)
    bits = np.packbits(rounds, axis=1)
    packed[:, : bits.shape[1]] = bits
    return packed.view(np.uint64)[:, 0]
