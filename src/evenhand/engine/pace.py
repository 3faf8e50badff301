"""Requests and tokens a minute, never exceeded, and pauses that a provider asks for.

Requests are spaced evenly. Tokens are kept in a window of the last minute: an upper bound is
entered before sending and replaced by the true count afterwards.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic

from evenhand.engine.attempt import Attempt, Layer
from evenhand.engine.signal import Signal
from evenhand.engine.stop import Stop
from evenhand.errors import StoppedEarly
from evenhand.exchange import Reply

MINUTE = 60.0


@dataclass(slots=True)
class Entry:
    """Tokens of one request in the window."""

    at: float
    tokens: int


class Pace:
    """The pace of one account, whichever judges share it."""

    def __init__(
        self,
        stop: Stop,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._stop, self._clock = stop, clock
        self._interval = MINUTE / requests_per_minute if requests_per_minute else 0.0
        self._tokens_most = tokens_per_minute
        self._window: deque[Entry] = deque()
        self._next = 0.0
        self._held_until = 0.0
        self._waiting = asyncio.Lock()
        self._corrected = Signal()

    def hold(self, seconds: float) -> None:
        """Send nothing for so long."""
        self._held_until = max(self._held_until, self._clock() + seconds)

    async def admit(self, tokens: int) -> Entry | None:
        """Wait for a turn; the entry is to be corrected when the true count is known.

        Whoever comes first waits for the moment, or for a correction that may have made room.
        """
        if self._waiting.locked() or self._pause(tokens) > 0:
            async with self._waiting:
                while (pause := self._pause(tokens)) > 0:
                    await self._stop.sleep(pause, self._corrected)
                return self._enter(tokens)
        return self._enter(tokens)

    def correct(self, entry: Entry, tokens: int) -> None:
        """Put the true count of tokens in the place of their bound."""
        entry.tokens = tokens
        self._corrected.give()

    def _enter(self, tokens: int) -> Entry | None:
        now = self._clock()
        self._next = max(now, self._next) + self._interval
        if self._tokens_most is None:
            return None
        entry = Entry(now, tokens)
        self._window.append(entry)
        return entry

    def _pause(self, tokens: int) -> float:
        now = self._clock()
        pause = max(self._held_until, self._next) - now
        return max(pause, self._window_pause(tokens, now) if self._tokens_most else 0.0)

    def _window_pause(self, tokens: int, now: float) -> float:
        """How long until the window has room for so many tokens."""
        assert self._tokens_most is not None
        if tokens > self._tokens_most:
            raise StoppedEarly(
                f"one request may take {tokens} tokens, more than tokens_per_minute allows",
                advice=f"Raise tokens_per_minute from {self._tokens_most}, or lower max_tokens.",
            )
        while self._window and self._window[0].at <= now - MINUTE:
            self._window.popleft()
        excess = sum(entry.tokens for entry in self._window) + tokens - self._tokens_most
        leaving = iter(self._window)
        pause = 0.0
        while excess > 0:
            entry = next(leaving)
            excess -= entry.tokens
            pause = entry.at + MINUTE - now
        return pause


def paced(inner: Layer, pace: Pace, max_tokens: int) -> Layer:
    """Wait for a turn. Its tokens are corrected by the reply; one that was not used takes none."""

    async def in_turn(attempt: Attempt) -> Reply:
        entry = await pace.admit(attempt.prompt_tokens + max_tokens)
        if entry is None:
            return await inner(attempt)
        attempt.hold(partial(unused, attempt, entry))
        reply = await inner(attempt)
        usage = reply.usage
        if usage.input_tokens is not None:
            pace.correct(entry, usage.input_tokens + (usage.output_tokens or 0))
        return reply

    async def unused(attempt: Attempt, entry: Entry, error: BaseException | None) -> None:
        if attempt.sent_at is None:
            pace.correct(entry, 0)

    return in_turn
