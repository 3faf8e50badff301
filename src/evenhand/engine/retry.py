"""What may be tried again, and when: full jitter, or to the second what the provider asks for."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from evenhand.engine.attempt import Attempt, Layer
from evenhand.engine.breaker import Breaker
from evenhand.engine.pace import Pace
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
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long one call may take, with all its attempts and the pauses between them. Waiting for
    money and for a turn does not count."""

    call_seconds: float = CALL_SECONDS
    attempt_seconds: float = ATTEMPT_SECONDS
    """After which a judge ends an attempt by itself."""
    backoff_first: float = BACKOFF_FIRST

    def limit(self, left: float) -> float | None:
        """The time for the next attempt, where so much is left for the call."""
        return None if left > self.attempt_seconds else left

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
    pace: Pace,
    breaker: Breaker,
    notice: Callable[[str], None],
) -> Layer:
    """Try until there is a reply, or the attempts or the time for one call are used up. An error
    that ends the command throws the switch, so that what is under way is waited for."""

    async def keep_trying(attempt: Attempt) -> Reply:
        tries, left = 0, patience.call_seconds
        while True:
            stop.check()
            attempt.renew(patience.limit(left))
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
                hold_as_asked(loss)
                tries += patience.is_try(loss)
                pause = patience.pause(loss, tries)
                left -= monotonic() - (attempt.sent_at or monotonic()) + pause
                if tries >= ATTEMPTS or left <= 0:
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

    def hold_as_asked(loss: CallLost) -> None:
        """Hold every caller of the provider as long as it asks for, or stop where that is long."""
        seconds = loss.retry_after or 0
        if seconds > RETRY_AFTER_MOST:
            stop.throw(
                StoppedEarly(
                    f"the provider asks to wait {seconds:.0f} s: {loss}",
                    advice="Run the same command again later; it continues where it stopped.",
                )
            )
            raise Stopped from None
        if not patience.is_try(loss):
            pace.hold(seconds)

    return keep_trying
