"""What is tried again, how often, and what that amounts to."""

from __future__ import annotations

import pytest

from evenhand.engine.call import RetryPolicy
from evenhand.engine.stop import Stopped
from evenhand.errors import CallError, CallLost, CallRejected, JudgeCrashed, StoppedEarly
from evenhand.exchange import Reply
from evenhand.limits import ATTEMPTS, BACKOFF_MOST, LOST_IN_A_ROW, UNREACHABLE_TRIES
from tests.unit.engine.virtual import VirtualCalls

LOST = CallLost("transport", "lost")


class Trying(VirtualCalls):
    """A judge with these outcomes, one after the other, the last of them for ever."""

    def __init__(self, *outcomes: Exception | None, call_seconds: float = 1e6) -> None:
        super().__init__(self.answer, RetryPolicy(call_seconds=call_seconds))
        self.tried: list[float] = []
        self._outcomes = outcomes

    async def answer(self) -> Reply:
        outcome = self._outcomes[min(len(self.tried), len(self._outcomes) - 1)]
        self.tried.append(self.clock.now)
        if outcome is not None:
            raise outcome
        return Reply(text="done")

    async def run(self) -> None:
        await self.clock.run(self.ask())


async def test_lost_calls_are_tried_again_with_growing_jitter() -> None:
    trying = Trying(*[LOST] * (ATTEMPTS - 1), None)
    await trying.run()
    assert len(trying.tried) == ATTEMPTS
    pauses = [b - a for a, b in zip(trying.tried, trying.tried[1:], strict=False)]
    assert all(p <= min(BACKOFF_MOST, 0.5 * 2**i) for i, p in enumerate(pauses))


@pytest.mark.parametrize("asked", [None, 0.0, 0.001])
async def test_attempts_are_bounded_whatever_short_pause_is_asked_for(asked: float | None) -> None:
    trying = Trying(CallLost("transport", "busy", retry_after=asked))
    with pytest.raises(CallLost):
        await trying.run()
    assert len(trying.tried) == ATTEMPTS


async def test_a_pause_that_is_asked_for_is_no_attempt() -> None:
    trying = Trying(*[CallLost("transport", "busy", retry_after=9)] * 20, None)
    await trying.run()
    assert trying.tried == [1000 + 9 * i for i in range(21)]


async def test_the_whole_call_has_a_deadline() -> None:
    trying = Trying(CallLost("transport", "busy", retry_after=9), call_seconds=30)
    with pytest.raises(CallLost):
        await trying.run()
    assert len(trying.tried) == 4


@pytest.mark.parametrize("error", [CallRejected("filtered", "no"), JudgeCrashed("died")])
async def test_nothing_else_is_tried_again(error: CallError) -> None:
    trying = Trying(error)
    with pytest.raises(type(error)):
        await trying.run()
    assert len(trying.tried) == 1


async def test_a_pause_too_long_to_wait_stops_the_run_and_leaves_the_unit_pending() -> None:
    trying = Trying(CallLost("transport", "busy", retry_after=86400))
    with pytest.raises(Stopped):
        await trying.run()
    assert isinstance(trying.stop.cause, StoppedEarly)


@pytest.mark.parametrize("loss", [LOST, JudgeCrashed("died")])
async def test_many_lost_calls_in_a_row_stop_the_run(loss: CallError) -> None:
    trying = Trying(loss)
    for lost in range(LOST_IN_A_ROW):
        assert not trying.stop.requested, lost
        with pytest.raises(type(loss)):
            await trying.run()
    assert isinstance(trying.stop.cause, StoppedEarly)


# Nobody there

ABSENT = CallLost("transport", "refused", is_unreachable=True)


async def test_a_judge_that_was_never_there_is_told_after_a_few_tries_and_the_unit_is_pending() -> (
    None
):
    trying = Trying(ABSENT)
    with pytest.raises(Stopped):
        await trying.run()
    assert len(trying.tried) == UNREACHABLE_TRIES
    assert trying.clock.now - 1000 <= 1.5
    assert isinstance(trying.stop.cause, StoppedEarly)


async def test_a_judge_that_goes_away_for_a_while_is_tried_as_often_as_any() -> None:
    trying = Trying(None, *[ABSENT] * (ATTEMPTS - 1), None)
    await trying.run()
    await trying.run()
    assert len(trying.tried) == 1 + ATTEMPTS
    assert not trying.stop.requested


async def test_a_loss_that_is_final_is_not_tried_again_and_counts() -> None:
    trying = Trying(CallLost("transport", "no", is_final=True))
    for _ in range(LOST_IN_A_ROW):
        assert not trying.stop.requested
        with pytest.raises(CallLost):
            await trying.run()
    assert len(trying.tried) == LOST_IN_A_ROW
    assert trying.stop.requested
