"""The innermost layer: the request itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from time import monotonic

from evenhand.engine.attempt import Attempt, Layer
from evenhand.engine.stop import Stop
from evenhand.engine.tally import Tally
from evenhand.errors import CallLost
from evenhand.exchange import Judge, Reply


def sending(judge: Judge, stop: Stop, tally: Tally) -> Layer:
    """Ask the judge once, unless the run is stopped."""

    def send(attempt: Attempt) -> Awaitable[Reply]:
        stop.check()
        tally.sent += 1
        attempt.sent_at = monotonic()
        answer = judge.answer(attempt.question)
        return answer if attempt.seconds is None else _in_time(answer, attempt.seconds)

    return send


async def _in_time(answer: Awaitable[Reply], seconds: float) -> Reply:
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        raise CallLost("timeout", "no answer within call_seconds", billed=True) from None
