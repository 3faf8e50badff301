"""What is tried again, how often, and what that amounts to."""

from __future__ import annotations

import pytest

from evenhand.engine.pace import Pace
from evenhand.engine.retry import Retry
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import CallError, CallLost, CallRejected, JudgeCrashed, StoppedEarly
from evenhand.exchange import Reply
from evenhand.limits import ATTEMPTS, BACKOFF_MOST, LOST_IN_A_ROW
from tests.unit.engine.virtual import Clock, VirtualStop

LOST = CallLost("transport", "lost")


class Patience:
    """A Retry on a virtual clock, and the outcomes it is given."""

    def __init__(self, *outcomes: Exception | None, call_seconds: float = 1e6) -> None:
        self.clock = Clock()
        self.stop: Stop = VirtualStop(self.clock)
        self.tried: list[float] = []
        self._outcomes = outcomes
        pace = Pace(self.stop, clock=self.clock)
        self._retry = Retry(self.stop, pace, lambda said: None, call_seconds, 120)

    async def answer(self, _: None) -> Reply:
        outcome = self._outcomes[min(len(self.tried), len(self._outcomes) - 1)]
        self.tried.append(self.clock.now)
        if outcome is not None:
            raise outcome
        return Reply(text="done")

    async def enter(self) -> None: ...

    async def run(self) -> None:
        await self.clock.run(self._retry.until_answered(self.enter, self.answer))


async def test_lost_calls_are_tried_again_with_growing_jitter() -> None:
    patience = Patience(*[LOST] * (ATTEMPTS - 1), None)
    await patience.run()
    assert len(patience.tried) == ATTEMPTS
    pauses = [b - a for a, b in zip(patience.tried, patience.tried[1:], strict=False)]
    assert all(p <= min(BACKOFF_MOST, 0.5 * 2**i) for i, p in enumerate(pauses))


@pytest.mark.parametrize("asked", [None, 0.0, 0.001])
async def test_attempts_are_bounded_whatever_short_pause_is_asked_for(asked: float | None) -> None:
    patience = Patience(CallLost("transport", "busy", retry_after=asked))
    with pytest.raises(CallLost):
        await patience.run()
    assert len(patience.tried) == ATTEMPTS


async def test_a_pause_that_is_asked_for_is_no_attempt() -> None:
    patience = Patience(*[CallLost("transport", "busy", retry_after=9)] * 20, None)
    await patience.run()
    assert patience.tried == [1000 + 9 * i for i in range(21)]


async def test_the_whole_call_has_a_deadline() -> None:
    patience = Patience(CallLost("transport", "busy", retry_after=9), call_seconds=30)
    with pytest.raises(CallLost):
        await patience.run()
    assert len(patience.tried) == 4


@pytest.mark.parametrize("error", [CallRejected("filtered", "no"), JudgeCrashed("died")])
async def test_nothing_else_is_tried_again(error: CallError) -> None:
    patience = Patience(error)
    with pytest.raises(type(error)):
        await patience.run()
    assert len(patience.tried) == 1


async def test_a_pause_too_long_to_wait_stops_the_run_and_leaves_the_unit_pending() -> None:
    patience = Patience(CallLost("transport", "busy", retry_after=86400))
    with pytest.raises(Stopped):
        await patience.run()
    assert isinstance(patience.stop.cause, StoppedEarly)


async def test_many_lost_calls_in_a_row_stop_the_run() -> None:
    patience = Patience(LOST)
    for lost in range(LOST_IN_A_ROW):
        assert not patience.stop.thrown, lost
        with pytest.raises(CallLost):
            await patience.run()
    assert isinstance(patience.stop.cause, StoppedEarly)
