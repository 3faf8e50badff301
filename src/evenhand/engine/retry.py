"""What may be tried again, and when: full jitter, or to the second what the provider asks for."""

from __future__ import annotations

import random
from collections.abc import Callable
from time import monotonic

from msgspec import Struct

from evenhand.engine.attempt import Attempt, Layer
from evenhand.engine.breaker import Breaker
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import (
    AskAgain,
    CallLost,
    CallRejected,
    EvenhandError,
    JudgeCrashed,
    StoppedEarly,
)
from evenhand.exchange import Reply
from evenhand.limits import (
    ATTEMPT_SECONDS,
    ATTEMPTS,
    BACKOFF_FIRST,
    BACKOFF_MOST,
    CALL_SECONDS,
    RETRY_AFTER_MOST,
    UNREACHABLE_SECONDS,
    UNREACHABLE_TRIES,
)


class Patience(Struct, frozen=True, kw_only=True):
    """How long one call may take, with all its attempts and the pauses between them. Waiting for
    money and for a turn does not count."""

    call_seconds: float = CALL_SECONDS
    attempt_seconds: float = ATTEMPT_SECONDS
    """After which a judge ends an attempt by itself."""
    backoff_first: float = BACKOFF_FIRST

    def limit(self, left: float) -> float | None:
        """The time for the next attempt, where so much is left for the call."""
        return None if left > self.attempt_seconds else left

    def is_enough(self, tries: int, left: float) -> bool:
        """Whether a judge that was never there need not be looked for any longer."""
        return tries >= UNREACHABLE_TRIES or self.call_seconds - left >= UNREACHABLE_SECONDS

    def is_try(self, loss: CallLost) -> bool:
        """A pause as asked for is no try, unless it is so short that it bounds nothing."""
        return (loss.retry_after or 0) < self.backoff_first

    def pause(self, loss: CallLost, tries: int) -> float:
        """How long to wait after so many tries: as asked for, or by chance."""
        seconds = loss.retry_after or 0
        if not self.is_try(loss):
            return seconds
        most = min(BACKOFF_MOST, self.backoff_first * 2 ** (tries - 1))
        return max(seconds, random.uniform(0, most))  # noqa: S311 - jitter, not a secret


def retried(
    inner: Layer,
    *,
    patience: Patience,
    stop: Stop,
    breaker: Breaker,
    notice: Callable[[str], None],
) -> Layer:
    """Try until there is a reply, or the attempts or the time for one call are used up. An error
    that ends the command throws the switch, so that what is under way is waited for."""

    async def keep_trying(attempt: Attempt) -> Reply:
        clock = _CallClock(patience)
        while True:
            stop.check()
            attempt.renew(patience.limit(clock.left))
            try:
                reply = await inner(attempt)
            except AskAgain as refusal:
                await attempt.end(refusal)
            except CallRejected:
                breaker.answered()
                raise
            except JudgeCrashed as crash:
                breaker.lost(crash)
                raise
            except CallLost as loss:
                await attempt.end(loss)
                _stop_if_told_to_wait(loss, stop)
                pause = clock.count(loss, attempt)
                if loss.is_unreachable and clock.is_long_enough(loss):
                    breaker.absent(loss)
                    stop.check()
                if clock.is_over(loss):
                    breaker.lost(loss)
                    raise
                notice(str(loss))
                await stop.sleep(pause)
            except EvenhandError as error:
                await attempt.end(error)
                stop.throw(error)
                raise Stopped from None
            else:
                breaker.answered()
                return reply

    return keep_trying


class _CallClock:
    """The tries of one call, and what is left of its time."""

    __slots__ = ("_patience", "_tries", "left")

    def __init__(self, patience: Patience) -> None:
        self._patience, self._tries = patience, 0
        self.left = patience.call_seconds

    def count(self, loss: CallLost, attempt: Attempt) -> float:
        """Count an attempt that was lost, and return how long to wait before the next one."""
        self._tries += self._patience.is_try(loss)
        pause = self._patience.pause(loss, self._tries)
        self.left -= monotonic() - (attempt.sent_at or monotonic()) + pause
        return pause

    def is_over(self, loss: CallLost) -> bool:
        """Whether the call is not tried again after this loss."""
        return self._tries >= ATTEMPTS or self.left <= 0 or loss.is_final

    def is_long_enough(self, loss: CallLost) -> bool:
        """Whether a judge that was never there need not be looked for any longer."""
        return self.is_over(loss) or self._patience.is_enough(self._tries, self.left)


def _stop_if_told_to_wait(loss: CallLost, stop: Stop) -> None:
    """Stop where the provider asks for a pause that is too long to wait."""
    seconds = loss.retry_after or 0
    if seconds > RETRY_AFTER_MOST:
        stop.throw(
            StoppedEarly(
                f"the provider asks to wait {seconds:.0f} s: {loss}",
                advice="Run the same command again later; it continues where it stopped.",
            )
        )
        raise Stopped from None
