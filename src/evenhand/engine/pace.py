"""Requests and tokens a minute, never exceeded, and how all slow down for a provider that is busy.

Requests are spaced evenly. Tokens are kept in a window of the last minute: an upper bound is
entered before sending and replaced by the true count afterwards.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from time import monotonic

from msgspec import Struct

from evenhand.engine.attempt import Attempt, Layer
from evenhand.engine.congestion import Congestion
from evenhand.engine.recent import MINUTE, Recent
from evenhand.engine.signal import Signal
from evenhand.engine.stop import Stop
from evenhand.errors import CallLost, LimitReached, StoppedEarly
from evenhand.exchange import Reply
from evenhand.limits import BACKOFF_FIRST, LOST_IN_A_ROW


class Turn(Struct):
    """One request that may be sent: since when, and its tokens in the window."""

    at: float
    tokens: int
    name: str = ""
    """What the store calls it; empty where it does not."""


class Pace:
    """The pace of one account, whichever judges share it."""

    def __init__(
        self,
        stop: Stop,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        clock: Callable[[], float] = monotonic,
        backoff_first: float = BACKOFF_FIRST,
    ) -> None:
        self._stop, self._clock, self._first = stop, clock, backoff_first
        self._congestion = Congestion(backoff_first)
        self._interval = MINUTE / requests_per_minute if requests_per_minute else 0.0
        self._tokens_most = tokens_per_minute
        self._window: deque[Turn] = deque()
        self._next = 0.0
        self._waiting = asyncio.Lock()
        self._corrected = Signal()

    @property
    def is_limited(self) -> bool:
        """Whether requests or tokens are counted here."""
        return self._interval > 0 or self._tokens_most is not None

    @property
    def counts_tokens(self) -> bool:
        """Return True if tokens are limited."""
        return self._tokens_most is not None

    def remember(self, ages: Iterable[tuple[float, int]]) -> None:
        """Begin with requests that were sent before: how long ago, in seconds, and their tokens."""
        now = self._clock()
        turns = sorted((Turn(now - age, tokens) for age, tokens in ages), key=lambda turn: turn.at)
        if not turns:
            return
        self._window.extend(turns if self._tokens_most is not None else ())
        if self._interval:
            # Where there were more than are allowed now, enough of them must be a minute old.
            over = max(0, len(turns) - round(MINUTE / self._interval))
            full = turns[over - 1].at + MINUTE if over else 0.0
            self._next = max(turns[-1].at + self._interval, full)

    async def admit(self, tokens: int) -> Turn:
        """Wait for a turn, to be ended by `end`; its tokens are to be corrected when the true count
        is known.

        Whoever comes first waits for the moment, or for a correction that may have made room.
        """
        async with self._waiting:
            while (pause := self._pause(tokens, now := self._clock())) > 0:
                await self._stop.sleep(min(pause, MINUTE), self._corrected)
            return self._enter(tokens, now)

    def admit_at_once(self, tokens: int) -> Turn | None:
        """A turn where nobody need wait for one; else None."""
        if self._waiting.locked():
            return None
        now = self._clock()
        return self._enter(tokens, now) if self._pause(tokens, now) <= 0 else None

    def correct(self, turn: Turn, tokens: int | None) -> None:
        """Put the true count of tokens in the place of their bound; None: it was not sent."""
        turn.tokens = tokens or 0
        self._corrected.give()

    def end(self) -> None:
        """A request that had a turn is no longer under way."""
        self._congestion.ended()
        self._corrected.give()

    def answered(self, turn: Turn) -> None:
        """The provider took the request of a turn, whatever it said."""
        self._congestion.answered(turn.at)

    def lost(self, turn: Turn, loss: CallLost) -> None:
        """The request of a turn is lost: where the provider is busy or asks for a pause, all slow
        down. Throws the switch where it stays so."""
        asked = loss.retry_after or 0.0
        # A pause as short as that bounds nothing.
        asked = asked if asked >= self._first else 0.0
        if not (loss.is_busy or asked):
            return
        self._congestion.refused(turn.at, self._clock(), asked)
        if self._congestion.pauses_in_a_row >= LOST_IN_A_ROW:
            self._stop.throw(
                StoppedEarly(
                    f"the provider stays busy: {LOST_IN_A_ROW} pauses in a row brought no answer"
                    f" (the last: {loss})",
                    advice="Wait a while and run the same command again: it continues where it"
                    " stopped. Set requests_per_minute or tokens_per_minute if it happens often.",
                )
            )

    def _enter(self, tokens: int, now: float) -> Turn:
        turn = Turn(now, tokens)
        if self._interval:
            self._next = max(now, self._next) + self._interval
        self._congestion.sent(now)
        if self._tokens_most is not None:
            self._window.append(turn)
        return turn

    def _pause(self, tokens: int, now: float) -> float:
        pause = max(self._next - now, self._congestion.pause(now))
        return max(pause, self._window_pause(tokens, now)) if self._tokens_most else pause

    def _window_pause(self, tokens: int, now: float) -> float:
        """How long until the window has room for so many tokens."""
        assert self._tokens_most is not None
        if tokens > self._tokens_most:
            raise LimitReached(
                f"one request may take {tokens} tokens, more than tokens_per_minute allows",
                advice=f"Raise tokens_per_minute from {self._tokens_most}, or lower max_tokens.",
            )
        while self._window and self._window[0].at <= now - MINUTE:
            self._window.popleft()
        excess = sum(turn.tokens for turn in self._window) + tokens - self._tokens_most
        leaving = iter(self._window)
        pause = 0.0
        while excess > 0:
            turn = next(leaving)
            excess -= turn.tokens
            pause = turn.at + MINUTE - now
        return pause


def paced(inner: Layer, pace: Pace, max_tokens: int, recent: Recent | None = None) -> Layer:
    """Wait for a turn. Its tokens are corrected by the reply; one that was not used takes none.
    What is sent is noted in `recent`, where rates are to hold across starts."""
    is_corrected = pace.counts_tokens or recent is not None

    async def in_turn(attempt: Attempt) -> Reply:
        tokens = attempt.prompt_tokens + max_tokens
        turn = pace.admit_at_once(tokens) or await pace.admit(tokens)
        if is_corrected:
            attempt.hold(partial(unused, attempt, turn))
        try:
            if recent is not None:
                turn.name = await recent.note(turn.tokens)
            reply = await inner(attempt)
        except CallLost as loss:
            pace.lost(turn, loss)
            raise
        finally:
            pace.end()
        pace.answered(turn)
        usage = reply.usage
        if is_corrected and usage.input_tokens is not None:
            tokens = usage.input_tokens + (usage.output_tokens or 0)
            pace.correct(turn, tokens)
            if recent is not None:
                await recent.correct(turn.name, tokens)
        return reply

    def unused(attempt: Attempt, turn: Turn, error: BaseException | None) -> Awaitable[None] | None:
        if attempt.sent_at is not None:
            return None
        pace.correct(turn, None)
        return recent.correct(turn.name, None) if recent is not None and turn.name else None

    return in_turn
