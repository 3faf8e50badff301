"""When a request may be sent: requests and tokens a minute, and backing off from a busy provider.

One `Pacer` serves all judges of an account. Requests are spaced evenly. Tokens are counted in a
sliding window of a minute: an upper bound before sending, the true count afterwards. Where rates
are limited every request is also noted in the store before it is sent, so that the next process
begins with the minute as this one left it, after a kill too.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from time import monotonic, time
from typing import NamedTuple

from msgspec import Struct

from evenhand.engine.stop import Signal, Stop
from evenhand.errors import CallLost, LimitReached, StoppedEarly
from evenhand.exchange import Usage
from evenhand.limits import BACKOFF_FIRST, BUSY_PAUSE_MOST, LOST_IN_A_ROW
from evenhand.store.ledger import Ledger
from evenhand.store.ports import SentRequest
from evenhand.store.rows import digest
from evenhand.words import Sentence

MINUTE = 60.0


class Permit(Struct):
    """The permission to send one request."""

    at: float
    """When it was given, by the pacer's clock."""
    tokens: int
    """Its tokens in the window."""
    is_sent: bool = False

    def count_tokens(self, usage: Usage) -> None:
        """Replace the bound by the provider's count, where there is one."""
        if usage.input_tokens is not None:
            self.tokens = usage.input_tokens + (usage.output_tokens or 0)


class SentLog(NamedTuple):
    """Where the requests of one account within the last minute are noted."""

    ledger: Ledger
    account: str
    sender: str = ""
    """The beginning of the names of requests, by which a cluster divides the rate."""


def account_name(account: object) -> str:
    """Return the name of an account in the store, the same in every process."""
    return digest(str(account))


def ages(sent_requests: Sequence[SentRequest], now: float) -> Iterator[tuple[float, int]]:
    """Yield the age in seconds and the tokens of each request of the last minute. A request from
    the future, by a clock that was set back, counts as just sent."""
    for request in sent_requests:
        age = max(0.0, now - request.at)
        if age < MINUTE:
            yield age, request.tokens


class Pacer:
    """Hands out permits in FIFO order."""

    def __init__(
        self,
        stop: Stop,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        log: SentLog | None = None,
        clock: Callable[[], float] = monotonic,
        backoff_first: float = BACKOFF_FIRST,
    ) -> None:
        self._stop, self._clock, self._backoff_first = stop, clock, backoff_first
        self._interval = MINUTE / requests_per_minute if requests_per_minute else 0.0
        self._tokens_most = tokens_per_minute
        self._log = log if self.is_limited else None
        self._window: deque[Permit] = deque()
        self._next = 0.0
        self._congestion = Congestion(backoff_first)
        self._queue = asyncio.Lock()
        self._changed = Signal()

    @property
    def is_limited(self) -> bool:
        """Return True if requests or tokens a minute are bounded."""
        return self._interval > 0 or self._tokens_most is not None

    def remember(self, ages: Iterable[tuple[float, int]]) -> None:
        """Begin with requests that were sent before, each by its age in seconds and its tokens."""
        now = self._clock()
        before = [Permit(now - age, tokens, is_sent=True) for age, tokens in ages]
        before.sort(key=lambda permit: permit.at)
        if not before:
            return
        if self._tokens_most is not None:
            self._window.extend(before)
        if self._interval:
            # Where there were more than are allowed now, enough of them must be a minute old.
            over = max(0, len(before) - round(MINUTE / self._interval))
            full = before[over - 1].at + MINUTE if over else 0.0
            self._next = max(before[-1].at + self._interval, full)

    @asynccontextmanager
    async def permit(self, tokens: int) -> AsyncIterator[Permit]:
        """Wait for a permit, and hold it while the request is under way. A permit that was not used
        counts nothing. Raises LimitReached for a request that never fits, and Stopped."""
        permit, log = await self._acquire(tokens), self._log
        name = ""
        try:
            if log is not None:
                name = f"{log.sender}{os.urandom(6).hex()}"
                await log.ledger.note_request(SentRequest(name, log.account, time(), tokens))
            yield permit
        except CallLost as loss:
            self._back_off(permit, loss)
            raise
        else:
            self._congestion.note_answer(permit.at)
        finally:
            self._congestion.note_end()
            if not permit.is_sent:
                permit.tokens = 0
            self._changed.notify_all()
            if log is not None and name and permit.tokens != tokens:
                counted = permit.tokens if permit.is_sent else None
                await log.ledger.correct_request(name, counted)

    async def _acquire(self, tokens: int) -> Permit:
        async with self._queue:
            while (pause := self._pause(tokens, now := self._clock())) > 0:
                await self._stop.sleep(min(pause, MINUTE), self._changed)
            if self._interval:
                self._next = max(now, self._next) + self._interval
            permit = Permit(now, tokens)
            if self._tokens_most is not None:
                self._window.append(permit)
            self._congestion.note_sent(now)
            return permit

    def _pause(self, tokens: int, now: float) -> float:
        pause = max(self._next - now, self._congestion.pause(now))
        if self._tokens_most is None:
            return pause
        return max(pause, self._window_pause(tokens, self._tokens_most, now))

    def _window_pause(self, tokens: int, most: int, now: float) -> float:
        """Return the seconds until the window has room for these tokens."""
        if tokens > most:
            raise LimitReached(Sentence("engine.request_too_large", tokens=tokens, most=most))
        while self._window and self._window[0].at <= now - MINUTE:
            self._window.popleft()
        excess, pause = sum(permit.tokens for permit in self._window) + tokens - most, 0.0
        for permit in self._window:
            if excess <= 0:
                break
            excess -= permit.tokens
            pause = permit.at + MINUTE - now
        return pause

    def _back_off(self, permit: Permit, loss: CallLost) -> None:
        """Slow down where the provider is busy or asks for a pause; stop the run where it stays
        busy."""
        asked = loss.retry_after or 0.0
        # A shorter pause than the first of our own bounds nothing.
        asked = asked if asked >= self._backoff_first else 0.0
        if not (loss.is_busy or asked):
            return
        self._congestion.note_refusal(permit.at, self._clock(), asked)
        if self._congestion.pauses_in_a_row >= LOST_IN_A_ROW:
            self._stop.request(
                StoppedEarly(Sentence("engine.provider_busy", n=LOST_IN_A_ROW, reason=str(loss)))
            )


MANY = 0.25
"""From this share of refusals among the last outcomes on, a provider is congested."""
NEWEST = 0.1
"""The weight of the newest outcome in that share, an exponential moving average."""
STEPS = 4
"""After so many rounds of answers the window has grown by its threshold."""


class Congestion:
    """Congestion control of one account: additive increase, multiplicative decrease.

    A single refusal among many answers is left to its caller's retry. Where refusals are many, or a
    pause is asked for, nothing is sent for a while; then half as many requests may be under way,
    spaced a little apart, and more with every answer until nothing is bounded.
    """

    def __init__(
        self,
        backoff_first: float = BACKOFF_FIRST,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._first, self._uniform = backoff_first, uniform
        self._under_way, self._window = 0, math.inf
        self._ceiling = self._threshold = math.inf
        self._refused_share, self._resumes, self._next = 0.0, -math.inf, -math.inf
        self.pauses_in_a_row = 0
        """Pauses of our own choice since the last answer."""

    def pause(self, now: float) -> float:
        """Return the seconds the next request must wait; infinite until another one ends."""
        if self._under_way >= self._window:
            return math.inf
        return max(self._resumes, self._next) - now

    def note_sent(self, now: float) -> None:
        """Count a request that is under way."""
        self._under_way += 1
        if self._window < math.inf:
            spacing = 2 * self._first / self._window
            self._next = max(now, self._next) + spacing * self._uniform(0.5, 1.5)

    def note_end(self) -> None:
        """Count a request that is no longer under way."""
        self._under_way -= 1

    def note_answer(self, sent_at: float) -> None:
        """Widen the window for a request that was answered."""
        self._refused_share *= 1 - NEWEST
        if self._window == math.inf or sent_at < self._resumes:
            return
        self.pauses_in_a_row = 0
        is_slow_start = self._window < self._threshold
        self._window += 1 if is_slow_start else max(1.0, self._threshold / STEPS) / self._window
        if self._window >= self._ceiling:
            self._window = self._ceiling = self._threshold = math.inf

    def note_refusal(self, sent_at: float, now: float, asked: float = 0.0) -> None:
        """Note that the provider was too busy, and the pause it asked for, if any."""
        self._refused_share += NEWEST * (1 - self._refused_share)
        if sent_at < self._resumes:
            # It was under way when the pause began.
            self._resumes = max(self._resumes, now + asked)
        elif asked or self._refused_share > MANY:
            self._halve(now, asked)

    def _halve(self, now: float, pause: float) -> None:
        if self._window == math.inf:
            self._ceiling = self._window = self._under_way
        self._window = max(1.0, self._window / 2)
        if not self.pauses_in_a_row:
            self._threshold = self._window
        if not pause:
            most = min(BUSY_PAUSE_MOST, self._first * 2**self.pauses_in_a_row)
            pause, self.pauses_in_a_row = self._uniform(most / 2, most), self.pauses_in_a_row + 1
        self._resumes = self._next = now + pause
        self._refused_share = MANY
