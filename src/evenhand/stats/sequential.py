"""Deciding while the values come in: a test that may be looked at after every one of them.

The values lie in [0, 1], and the question is on which side of one half their mean is. Alpha has two
parts. On one of them, on each side, a gambler bets on every next value, at odds that are fair if
the mean is one half, and it is decided when one of them owns enough. With the other part, where the
planned values have all come and nothing is decided, they are tested together, once (`bounded`).

**Why the error is at most alpha.** Before a value x comes, the gambler who says that the mean is
above m has fixed a share s of the money, 0 <= s < 1, from the values before it alone. The value
multiplies the money by 1 + s (x - m)/m. That is never below 0, since x >= 0; and if the mean of x,
given what came before, is at most m, then it is at most 1 in the mean. So the money is a
nonnegative supermartingale, and by Ville's inequality it ever reaches k times the first stake with
a probability of at most 1/k, whatever the law of the values, however often one looks, and however
the shares are found. The test at the end errs with at most its own part, and so all of them
together with at most alpha.

**How the parts are found.** How many values are planned is known before the first. Of few, the test
at the end is much sharper than any bets can be, and gets most of alpha; of many, all that is clear
is decided long before, and the gamblers get most. A twentieth of each part is kept back: if values
are added to those that were planned, the same part of that is staked anew, and tests the added
values alone, whose number could be chosen by those before.

**How the share is found** decides only how soon it ends. It is the larger of two. One is what time
asks for: to multiply the money by k in the n values that are left, whose spread about m is d, takes
a share of sqrt(2 ln k / n) m/d or so at every step, reckoned anew each time (Voracek and Orabona
2025). The other is what grows money fastest if the mean is one standard error nearer to m than it
seems (Kelly 1956; Waudby-Smith and Ramdas 2024): it ends early where the difference is clear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.stats.bounded import interval, rejects
from evenhand.stats.comparison import Outcome
from evenhand.stats.observations import Floats, Ints

KEPT_BACK = 0.05
"""Which part of the money, and of what the tests at the end may err, waits for values that may be
added later."""
AT_END = 0.7
FEW = 42
"""Which part of alpha the tests at the end have at most; of more than 60 planned values, only what
this many values are of them. Found by simulation: at 60 the end matters more than the way, at 800
nothing is gained by waiting for it."""
MOST = 0.99
"""The greatest share of the money that is bet."""
PACE = 0.9
"""Which part of the share that time asks for is bet: the square root is somewhat more than the
quantile of the normal law that it stands for. Found by simulation, as are the next two."""
CAUTION = 0.3
"""The first share is at most 1 less this, the second at most 1 less its square, and so on: nothing
is known of the values yet."""
SPREAD = 0.25
"""The spread of values that is assumed before there are any; it counts as much as one value."""
_OUTCOMES: dict[int, Outcome] = {1: "better", -1: "worse", 0: "not enough evidence"}
NULLS: Floats = np.arange(1, 2000) / 2000
"""The means that an interval tries. One half is among them, so that the interval and the outcome
agree."""


class Gambler:
    """Bets that the mean of values in [0, 1] is above `null`, one of (0, 1) or an array of them.

    While it is not, the money, 1 at first, reaches `goal` with a probability of at most 1/goal,
    ever. Whoever has it bets no more.
    """

    def __init__(self, goal: float, null: float | Floats = 0.5) -> None:
        self._goal, self._null = goal, np.asarray(null)
        self._staked: Floats = np.full(self._null.shape, 1 - KEPT_BACK)
        self._reserve = KEPT_BACK
        self._count = 0
        self._sum: Floats = np.zeros(self._null.shape)
        self._squares: Floats = (SPREAD / self._null) ** 2

    @property
    def money(self) -> Floats:
        return self._staked + self._reserve

    def bet(self, value: float | Floats, left: int) -> Floats:
        """Bet on one more value and return the gambler's money. `left` values are to come before
        the plan ends, this one included. An array holds one value for each of several runs."""
        gain = (np.asarray(value) - self._null) / self._null
        self._staked = self._staked * (1 + self._share(left) * gain)
        self._count += 1
        self._sum = self._sum + gain
        self._squares = self._squares + gain**2
        return self.money

    def stake_anew(self) -> None:
        """Values are added to those that were planned: stake what was kept back for them."""
        self._staked = self._staked + self._reserve * (1 - KEPT_BACK)
        self._reserve *= KEPT_BACK

    def _share(self, left: int) -> Floats:
        """Which part of the staked money is bet on the next value."""
        count = self._count + 1
        second_moment = self._squares / count
        spread = np.sqrt(second_moment)
        missing = (self._goal - self._reserve) / np.maximum(self._staked, 1e-300)
        in_time = PACE * np.sqrt(2 * np.log(np.maximum(missing, 1.0)) / left) / spread
        growing = (self._sum / count - spread / np.sqrt(count)) / second_moment
        most = min(MOST, 1 - CAUTION**count)
        share = np.clip(np.maximum(in_time, growing), 0.0, most)
        return np.where(self.money >= self._goal, 0.0, share)


@dataclass(frozen=True, slots=True)
class _Bet:
    """A value, how many were to come with it, and whether it is the first that was added."""

    value: float
    left: int
    anew: bool


class Betting:
    """The test, question by question: two gamblers, one on each side, and a test at the end.

    `ends` says after how many questions the plan ends: the last is that of all there are, and those
    before it are where the plan ended before questions were added.
    """

    def __init__(self, alpha: float, ends: Sequence[int]) -> None:
        self._ends = tuple(sorted({end for end in ends if end > 0}))
        self._goal, self._left = shared_out(alpha, self._ends[0] if self._ends else 1)
        self._up, self._down = Gambler(self._goal), Gambler(self._goal)
        self._bets: list[_Bet] = []
        self._tests: list[tuple[Floats, float]] = []
        """Of each plan that has ended, its values, and how often a test of them may err."""
        self._entered = self._passed = self._tested = 0
        self._anew = False
        self.outcome: Outcome = "not enough evidence"

    @property
    def at_end(self) -> bool:
        """Return True if every planned question has entered."""
        return self._entered == max(self._ends, default=0)

    def add(self, value: float | None) -> None:
        """One more question with its value, None where it has none; the first outcome stays."""
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"{value} is not in [0, 1]")
        while self._entered >= self._ends[self._passed]:
            self._passed += 1
            self._anew = True
        left = self._ends[self._passed] - self._entered
        self._entered += 1
        if value is not None:
            self._bet(_Bet(value, left, self._anew))
            self._anew = False
        if left == 1:
            self._test()

    def _bet(self, bet: _Bet) -> None:
        self._bets.append(bet)
        up, down = _play(self._up, bet), _play(self._down, bet, turned=True)
        if self.outcome == "not enough evidence" and max(up, down) >= self._goal:
            self.outcome = "better" if up >= down else "worse"

    def _test(self) -> None:
        """A plan has ended: test its values together, unless all is decided."""
        values = np.array([bet.value for bet in self._bets[self._tested :]])
        self._tested, error = len(self._bets), self._left * (1 - KEPT_BACK)
        self._left *= KEPT_BACK
        if values.size < 2 or self.outcome != "not enough evidence":
            return
        self._tests.append((values, error))
        side = int(sides_at_end(values[None], error)[0])
        self.outcome = _OUTCOMES[side]

    def interval(self) -> tuple[float, float]:
        """The means that were not refuted, at however many looks: a confidence sequence.

        A mean is refuted when the gambler who bets against it and all that are lower reaches the
        goal, and so do those against each lower one that is tried, or by a test at the end. The
        true mean is so with a probability of at most alpha, ever. An end that is not one of the
        scale is refuted itself.
        """
        lows, highs = (
            [self._refuted_up_to(turned=False)],
            [1 - self._refuted_up_to(turned=True)],
        )
        for values, error in self._tests:
            low, high = interval(values, (0.0, 1.0), 1 - error)
            lows.append(low)
            highs.append(high)
        low, high = max(lows), min(highs)
        # One time in 1/alpha the truth is refuted, and then everything may be.
        return min(low, high), max(low, high)

    def _refuted_up_to(self, *, turned: bool) -> float:
        gambler = Gambler(self._goal, NULLS)
        for bet in self._bets:
            _play(gambler, bet, turned=turned)
        standing = np.flatnonzero(gambler.money < self._goal)
        first = int(standing[0]) if standing.size else NULLS.size
        return float(NULLS[first - 1]) if first else 0.0


def shared_out(alpha: float, planned: int) -> tuple[float, float]:
    """Return the goal of each gambler, as a multiple of its stake, and the error probability of the
    tests at the end, for a plan of this many values."""
    at_end = alpha * min(AT_END, FEW / planned)
    return 2 / (alpha - at_end), at_end


def sides_at_end(runs: Floats, error: float) -> Ints:
    """Return 1 (better), -1 (worse) or 0 for each row, by a test of all its values with this error
    probability."""
    sides = np.zeros(len(runs), np.int64)
    for side, gaps in ((1, runs - 0.5), (-1, 0.5 - runs)):
        sides[rejects(gaps, 0.5, error / 2)] = side
    return sides


def _play(gambler: Gambler, bet: _Bet, *, turned: bool = False) -> float:
    """One bet, of the gambler on the other side where it is turned."""
    if bet.anew:
        gambler.stake_anew()
    return float(gambler.bet(1 - bet.value if turned else bet.value, bet.left).max())
