"""Requests and tokens a minute are never exceeded, in whatever window of 60 seconds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.engine.attempt import Attempt
from evenhand.engine.breaker import Breaker
from evenhand.engine.pace import Pace, paced
from evenhand.engine.retry import Patience, retried
from evenhand.engine.stop import Stop
from evenhand.errors import CallLost, Interrupted, StoppedEarly
from evenhand.exchange import Question, Reply
from tests.suites import Scripted, good_reply, judged, prepared, seated, write_suite
from tests.unit.engine.pair_runs import Interrupting
from tests.unit.engine.virtual import Clock, VirtualStop

# (pause before asking, tokens reserved, tokens really used)
REQUESTS = st.lists(
    st.tuples(st.floats(0, 90), st.integers(1, 100), st.integers(0, 100)), min_size=1, max_size=40
)


def most_in_a_minute(sent: list[tuple[float, int]]) -> int:
    """The naive twin: the fullest half-open minute that begins with a request."""
    return max(sum(n for at, n in sent if begin <= at < begin + 60 - 1e-6) for begin, _ in sent)


@given(REQUESTS, st.integers(1, 30), st.integers(100, 400))
def test_no_minute_holds_more_than_is_allowed(
    requests: list[tuple[float, int, int]], a_minute: int, tokens: int
) -> None:
    clock = Clock()
    sent: list[tuple[float, int]] = []

    async def ask(pace: Pace, pause: float, bound: int, used: int) -> None:
        await clock.sleep(pause)
        entry = await pace.admit(bound)
        assert entry is not None
        pace.correct(entry, min(used, bound))
        sent.append((clock.now, entry.tokens))

    async def all_of_them() -> None:
        pace = Pace(VirtualStop(clock), a_minute, tokens, clock)
        await clock.run(*(ask(pace, *request) for request in requests))

    asyncio.run(all_of_them())
    assert len(sent) == len(requests)
    assert most_in_a_minute([(at, 1) for at, _ in sent]) <= a_minute
    assert most_in_a_minute(sent) <= tokens


async def test_without_limits_nobody_waits() -> None:
    pace = Pace(Stop())
    assert [await pace.admit(10**9) for _ in range(3)] == [None, None, None]


async def test_a_request_that_never_fits_is_told() -> None:
    with pytest.raises(StoppedEarly, match="tokens_per_minute"):
        await Pace(Stop(), tokens_per_minute=100).admit(101)


async def test_retry_after_holds_every_caller_of_the_judge_to_the_second() -> None:
    clock = Clock()
    stop = VirtualStop(clock)
    pace = Pace(stop, clock=clock)
    sent: list[float] = []

    async def answer(attempt: Attempt) -> Reply:
        sent.append(clock.now)
        if len(sent) == 1:
            raise CallLost("transport", "busy", retry_after=17)
        return Reply(text="")

    layer = retried(
        paced(answer, pace, max_tokens=1),
        patience=Patience(),
        stop=stop,
        pace=pace,
        breaker=Breaker(stop),
        notice=lambda message: None,
    )

    async def ask(after: float) -> None:
        await clock.sleep(after)
        await layer(Attempt(Question(messages=()), "key", 1))

    await clock.run(ask(0), ask(5), ask(5))
    assert sent == [1000, 1017, 1017, 1017]


async def test_a_corrected_count_makes_room_before_the_minute_is_over() -> None:
    clock = Clock()
    begun = clock.now
    pace = Pace(VirtualStop(clock), tokens_per_minute=100, clock=clock)

    async def first() -> None:
        entry = await pace.admit(90)
        assert entry is not None
        await clock.sleep(1)
        pace.correct(entry, 10)

    async def second() -> None:
        await pace.admit(50)
        assert clock.now == begun + 1

    await clock.run(first(), second())


# Judges that share provider, address and key


async def asked_at_once(folder: Path, accounts: tuple[str, str], limits: dict[str, int]) -> int:
    """How many of two judges are asked before one of them has answered."""
    write_suite(folder, 1, *[{"model": f"python/judge:{name}"} for name in ("good", "bad")])
    ready = prepared(folder, limits=limits)
    asked = list[str]()
    interrupting = Interrupting(1)

    def judge(name: str, account: str) -> Scripted:
        async def answer(question: Question) -> Reply:
            asked.append(name)
            for _ in range(50):
                await asyncio.sleep(0)
            interrupting.stop.throw(Interrupted("enough"))
            return good_reply(question)

        scripted = Scripted(answer)
        scripted.account, scripted.identity = account, {"provider": name}
        return scripted

    judges = [judge(name, account) for name, account in zip("ab", accounts, strict=True)]
    summary = await judged(seated(ready, *judges), watch=interrupting.watch)
    assert summary.counts.verdicts == len(asked)
    return len(asked)


@pytest.mark.parametrize(
    "limits", [{"requests_per_minute": 1}, {"tokens_per_minute": 10000}], ids=["requests", "tokens"]
)
async def test_judges_of_one_account_share_its_minute(
    tmp_path: Path, limits: dict[str, int]
) -> None:
    """A question of about 7,000 tokens: one fits the minute, and two do not."""
    assert await asked_at_once(tmp_path / "one", ("same", "same"), limits) == 1
    assert await asked_at_once(tmp_path / "two", ("this", "that"), limits) == 2
