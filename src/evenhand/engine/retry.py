"""What may be tried again, and when: full jitter, or to the second what the provider asks for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from evenhand.engine.pace import Pace
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import AskAgain, CallLost, CallRejected, StoppedEarly
from evenhand.exchange import Reply
from evenhand.limits import ATTEMPTS, BACKOFF_FIRST, BACKOFF_MOST, LOST_IN_A_ROW, RETRY_AFTER_MOST

Ticket = TypeVar("Ticket")
Enter = Callable[[], Awaitable[Ticket]]
Answer = Callable[[Ticket], Awaitable[Reply]]


class Retry:
    """The patience of one judge."""

    def __init__(
        self,
        stop: Stop,
        pace: Pace,
        notice: Callable[[str], None],
        call_seconds: float,
        attempt_seconds: float,
        backoff_first: float = BACKOFF_FIRST,
    ) -> None:
        self._stop, self._pace, self._notice = stop, pace, notice
        self._call_seconds, self._attempt_seconds = call_seconds, attempt_seconds
        self._backoff_first = backoff_first
        self._lost_in_a_row = 0

    async def until_answered(self, enter: Enter[Ticket], answer: Answer[Ticket]) -> Reply:
        """Try until there is a reply, or the attempts or the time for one call are used up.

        `enter` waits for money and for a turn; that waiting does not count against the call.
        """
        tries, left = 0, self._call_seconds
        while True:
            ticket = await enter()
            began = monotonic()
            try:
                reply = await self._within(left, answer(ticket))
            except AskAgain:
                continue
            except CallRejected:
                self._lost_in_a_row = 0
                raise
            except CallLost as lost:
                # A pause as asked for is no try, unless it is so short that it bounds nothing.
                tries += (lost.retry_after or 0) < self._backoff_first
                pause = self._pause(lost, tries)
                left -= monotonic() - began + pause
                if tries >= ATTEMPTS or left <= 0:
                    self._give_up(lost)
                    raise
                self._notice(str(lost))
                await self._stop.sleep(pause)
            else:
                self._lost_in_a_row = 0
                return reply

    async def _within(self, left: float, answer: Awaitable[Reply]) -> Reply:
        """The answer, or CallLost once the time for the whole call is over."""
        if left > self._attempt_seconds:
            return await answer  # the judge ends an attempt by itself
        try:
            async with asyncio.timeout(left):
                return await answer
        except TimeoutError:
            raise CallLost("timeout", "no answer within call_seconds", billed=True) from None

    def _pause(self, lost: CallLost, tries: int) -> float:
        asked = lost.retry_after or 0
        if asked < self._backoff_first:
            most = min(BACKOFF_MOST, self._backoff_first * 2 ** (tries - 1))
            return max(asked, random.uniform(0, most))  # noqa: S311 - jitter, not a secret
        if asked > RETRY_AFTER_MOST:
            self._stop.throw(
                StoppedEarly(
                    f"the provider asks to wait {asked:.0f} s: {lost}",
                    advice="Run the same command again later; it continues where it stopped.",
                )
            )
            raise Stopped from None
        self._pace.hold(asked)
        return asked

    def _give_up(self, lost: CallLost) -> None:
        """One call is lost for good; many in a row mean that the provider is down."""
        self._lost_in_a_row += 1
        if self._lost_in_a_row >= LOST_IN_A_ROW:
            self._stop.throw(
                StoppedEarly(
                    f"the provider seems to be down: {self._lost_in_a_row} calls in a row were lost"
                    f" (the last: {lost})",
                    advice="Run the same command again later; it continues where it stopped.",
                )
            )
