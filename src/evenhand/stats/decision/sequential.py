"""Deciding while the values come in: a test that may be looked at after every one of them.

The values lie in [0, 1], and the question is on which side of one half their mean is. Half of alpha
is spent on the way: on each side a gambler bets on every next value, at odds that are fair if the
mean is one half, and it is decided when one of them owns 4/alpha times the first stake
(Waudby-Smith and Ramdas 2024; stakes are a mixture, as in Cover's universal portfolio). That holds
for every distribution on [0, 1], however often it is looked at. The other half is kept for a last
look when all planned values are there: Gaffke's (2005) test of the mean of bounded values, which is
the exact binomial test for wins and losses.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from evenhand.stats.decision.decision import Outcome
from evenhand.stats.tables import Floats, Ints

ON_THE_WAY = 0.5
FIRST_LAST_LOOK = 0.4
"""Shares of alpha. Values that are added later allow one more last look, at a fifth of the one
before: all of them together come to the other half."""

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(32)
SHARES: Floats = (_POINTS + 1) / 2
"""Which part of the most that could be lost a gambler puts at stake: a uniform mixture, in as many
points as serve for millions of values."""
PRIOR: Floats = _WEIGHTS / 2
HALVINGS, CHUNK = 30, 128


def last_look(alpha: float, earlier: int = 0) -> float:
    """The part of alpha that a last look spends after so many earlier ones."""
    return float(alpha * FIRST_LAST_LOOK * 5.0**-earlier)


class Gambler:
    """Bets that the mean of values in [0, 1] is above `null`, one of (0, 1) or an array of them.

    While it is not, the wealth, 1 at first, reaches w with a probability of at most 1/w, ever.
    """

    def __init__(self, null: float | Floats = 0.5) -> None:
        self._null = np.asarray(null)[..., None]
        self._stakes = SHARES / self._null
        self._wealth = np.broadcast_to(PRIOR, self._stakes.shape)

    def bet(self, value: float | Floats) -> Floats:
        """What the gambler owns after one more value; with an array of values, of one run each."""
        won = np.asarray(value)[..., None] - self._null
        with np.errstate(over="ignore", under="ignore"):  # lost or decided long ago
            self._wealth = self._wealth * (1 + self._stakes * won)
            return np.asarray(self._wealth.sum(axis=-1))

    def most(self, values: Floats) -> Floats:
        """The most that the gambler owned at any time, value by value."""
        most = self._wealth.sum(axis=-1)
        for first in range(0, len(values), CHUNK):
            won = values[first : first + CHUNK].reshape(-1, *[1] * self._stakes.ndim) - self._null
            grown = 1 + self._stakes * won
            with np.errstate(over="ignore", under="ignore"):
                grown[0] *= self._wealth
                ways = np.cumprod(grown, axis=0)
                most = np.maximum(most, ways.sum(axis=-1).max(axis=0))
            self._wealth = ways[-1]
        return np.asarray(most)


class Betting:
    """The test on the way, value by value: two gamblers, one on each side."""

    def __init__(self, alpha: float) -> None:
        self._goal = 2 / (ON_THE_WAY * alpha)
        self._up, self._down = Gambler(), Gambler()
        self.outcome: Outcome = "not enough evidence"

    def add(self, value: float) -> None:
        """One more value; the first outcome stays."""
        if not 0 <= value <= 1:
            raise ValueError(f"{value} is not in [0, 1]")
        up, down = float(self._up.bet(value)), float(self._down.bet(1 - value))
        if self.outcome == "not enough evidence" and max(up, down) >= self._goal:
            self.outcome = "better" if up >= down else "worse"


def decisions(runs: Floats, alpha: float) -> tuple[Ints, Ints]:
    """For each row, as one sequence with its end: 1 better, -1 worse or 0, and after how many
    values. What `Betting` and `at_the_end` say, for many sequences at once."""
    rows, length = runs.shape
    sides, after = np.zeros(rows, np.int64), np.full(rows, length)
    up, down = Gambler(np.full(rows, 0.5)), Gambler(np.full(rows, 0.5))
    for number, values in enumerate(runs.T, 1):
        gained, lost = up.bet(values), down.bet(1 - values)
        new = (sides == 0) & (np.maximum(gained, lost) >= 2 / (ON_THE_WAY * alpha))
        sides[new], after[new] = np.where(gained >= lost, 1, -1)[new], number
    left = np.nonzero(sides == 0)[0]
    if length and len(left):
        leaning = np.where(runs[left].mean(axis=1) < 0.5, -1, 1)
        values = np.where(leaning[:, None] < 0, 1 - runs[left], runs[left])
        sides[left] = np.where(p_above(values) <= last_look(alpha) / 2, leaning, 0)
    return sides, after


def p_above(values: Floats, null: float = 0.5) -> Floats:
    """Gaffke's p for "the mean is at most `null`", of each row: how likely the mean, with weights
    drawn at random for the values and for one more value of 0, is at most `null`.

    With exponential weights that is the chance that a weighted sum is not positive, by the
    saddlepoint approximation of Lugannani and Rice (within 3 % from five values on).
    """
    rows = np.atleast_2d(values)
    gaps = np.concatenate([rows - null, np.full((len(rows), 1), -null)], axis=1)
    highest = gaps.max(axis=1, keepdims=True)
    hopeless = highest[:, 0] <= 0
    highest[hopeless] = 1.0
    point = _saddle(gaps, 1 / gaps.min(axis=1, keepdims=True), 1 / highest)
    room = 1 - point * gaps
    log_moment = -np.log(room).sum(axis=1)
    spread = np.sqrt(((gaps / room) ** 2).sum(axis=1))
    root = np.sign(point[:, 0]) * np.sqrt(np.maximum(0, -2 * log_moment))
    far = np.abs(root) > 1e-4
    root, lean = np.where(far, root, 1), np.where(far, point[:, 0] * spread, 1)
    density = np.exp(-(root**2) / 2) / np.sqrt(2 * np.pi)
    p = np.where(far, ndtr(root) + density * (1 / root - 1 / lean), 0.5)
    return np.asarray(np.where(hopeless, 1.0, np.clip(p, 0, 1)))


def _saddle(gaps: Floats, low: Floats, high: Floats) -> Floats:
    """Where the derivative of the cumulants' generating function is 0, between its two poles."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rising = (gaps / (1 - middle * gaps)).sum(axis=1, keepdims=True) > 0
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    return (low + high) / 2


def at_the_end(values: Floats, alpha: float, earlier: int = 0) -> Outcome:
    """The last look, when all planned values are there."""
    level = last_look(alpha, earlier) / 2
    if not len(values):
        return "not enough evidence"
    if p_above(values)[0] <= level:
        return "better"
    return "worse" if p_above(1 - values)[0] <= level else "not enough evidence"


def interval(values: Floats, alpha: float, looked: int | None = None) -> tuple[float, float]:
    """All means that the test has not refuted, at however many looks; sharper where the values have
    had their last look, after `looked` earlier ones."""
    low, high = _refuted_below(values, alpha, looked), 1 - _refuted_below(1 - values, alpha, looked)
    # One time in 1/alpha the truth is refuted, and then everything may be.
    return min(low, high), max(low, high)


def _refuted_below(values: Floats, alpha: float, looked: int | None) -> float:
    """Up to which mean all are refuted; the higher, the harder."""
    low, high = _refuted_on_the_way(values, 2 / (ON_THE_WAY * alpha)), 1.0
    if looked is None or not len(values):
        return low
    level = last_look(alpha, looked) / 2
    for _ in range(HALVINGS // 2):
        middle = (low + high) / 2
        low, high = (middle, high) if p_above(values, middle)[0] <= level else (low, middle)
    return low


def _refuted_on_the_way(values: Floats, goal: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(3):
        nulls = np.linspace(low, high, 34)[1:-1]
        refuted = int((Gambler(nulls).most(values) >= goal).sum())
        low, high = [low, *nulls.tolist(), high][refuted : refuted + 2]
    return low
