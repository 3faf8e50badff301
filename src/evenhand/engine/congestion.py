"""How many requests may be under way to a provider that has too much to do, and how far apart.

All who use one account slow down together: additive increase, multiplicative decrease. A refusal
among many answers is an accident, and its caller's own matter. Where refusals are many, everybody
pauses, half as many requests may then be under way, and they come back one after the other; with
each answer there may be more again, until nothing is bounded any more.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from evenhand.limits import BACKOFF_FIRST, BUSY_PAUSE_MOST

MANY = 0.25
"""The share of refusals, lately, from which on they are no accident."""
NEWEST = 0.1
"""What the last outcome weighs in that share."""
STEPS = 4
"""In so many rounds of answers the number of requests has grown by half of what it was."""


class Congestion:
    """What one account may send just now. Times are those of the caller's clock."""

    def __init__(
        self,
        backoff_first: float = BACKOFF_FIRST,
        chance: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._first, self._chance = backoff_first, chance
        self._under_way, self._window = 0, math.inf
        self._ceiling = self._threshold = math.inf
        self._share, self._resumes, self._next = 0.0, -math.inf, -math.inf
        self.pauses_in_a_row = 0
        """Pauses that nobody asked for, since the last answer."""

    def pause(self, now: float) -> float:
        """How long the next request must wait; for ever, where it waits for one to end."""
        if self._under_way >= self._window:
            return math.inf
        return max(self._resumes, self._next) - now

    def sent(self, now: float) -> None:
        """A request is under way."""
        self._under_way += 1
        if self._window < math.inf:
            # So many waiting come back within so long; a little by chance, for others wait too.
            apart = 2 * self._first / self._window
            self._next = max(now, self._next) + apart * self._chance(0.5, 1.5)

    def ended(self) -> None:
        """A request is no longer under way, however it ended."""
        self._under_way -= 1

    def answered(self, sent_at: float) -> None:
        """The provider took a request that was sent then."""
        self._share *= 1 - NEWEST
        if self._window == math.inf or sent_at < self._resumes:
            return
        self.pauses_in_a_row = 0
        # After an outage there may soon be as many again as when it began; from there on slowly.
        is_restart = self._window < self._threshold
        self._window += 1 if is_restart else max(1.0, self._threshold / STEPS) / self._window
        if self._window >= self._ceiling:
            self._window = self._ceiling = self._threshold = math.inf

    def refused(self, sent_at: float, now: float, asked: float = 0.0) -> None:
        """The provider had too much to do for a request that was sent then, and may have asked for
        a pause."""
        self._share += NEWEST * (1 - self._share)
        if sent_at < self._resumes:
            # Of those that were under way when it was noticed.
            self._resumes = max(self._resumes, now + asked)
        elif asked or self._share > MANY:
            self._slow_down(now, asked)

    def _slow_down(self, now: float, asked: float) -> None:
        if self._window == math.inf:
            self._ceiling = self._window = self._under_way
        self._window = max(1.0, self._window / 2)
        if not self.pauses_in_a_row:
            self._threshold = self._window
        pause = asked
        if not asked:
            most = min(BUSY_PAUSE_MOST, self._first * 2**self.pauses_in_a_row)
            pause, self.pauses_in_a_row = self._chance(most / 2, most), self.pauses_in_a_row + 1
        self._resumes = self._next = now + pause
        self._share = MANY
