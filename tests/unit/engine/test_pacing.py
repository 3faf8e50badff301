"""Requests and tokens a minute are never exceeded, in whatever window of 60 seconds."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.engine.pacing import Pacer, ages
from evenhand.engine.stop import Stop
from evenhand.errors import CallLost, Interrupted, StoppedEarly
from evenhand.exchange import Question, Reply, Usage
from evenhand.judges.credentials import Account, Secret
from evenhand.store.ports import SentRequest
from tests.suites import Scripted, good_reply, judged, prepared, with_judges, write_suite
from tests.unit.engine.pair_runs import Interrupting
from tests.unit.engine.virtual import Clock, VirtualCalls, VirtualStop

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

    async def ask(pacer: Pacer, pause: float, bound: int, used: int) -> None:
        await clock.sleep(pause)
        async with pacer.permit(bound) as permit:
            permit.is_sent = True
            permit.count_tokens(Usage(input_tokens=min(used, bound), output_tokens=0))
            sent.append((clock.now, permit.tokens))

    async def all_of_them() -> None:
        pacer = Pacer(VirtualStop(clock), a_minute, tokens, clock=clock)
        await clock.run(*(ask(pacer, *request) for request in requests))

    asyncio.run(all_of_them())
    assert len(sent) == len(requests)
    assert most_in_a_minute([(at, 1) for at, _ in sent]) <= a_minute
    assert most_in_a_minute(sent) <= tokens


async def test_without_limits_nobody_waits() -> None:
    clock = Clock()
    pacer, given = Pacer(VirtualStop(clock), clock=clock), list[float]()
    for _ in range(3):
        async with pacer.permit(10**9) as permit:
            given.append(permit.at)
    assert given == [clock.now] * 3


async def test_a_request_that_never_fits_is_told() -> None:
    with pytest.raises(StoppedEarly, match="tokens_per_minute"):
        async with Pacer(Stop(), tokens_per_minute=100).permit(101):
            raise AssertionError


async def test_retry_after_holds_every_caller_of_the_judge_to_the_second() -> None:
    sent: list[float] = []

    async def answer() -> Reply:
        sent.append(calls.clock.now)
        if len(sent) == 1:
            raise CallLost("transport", "busy", retry_after=17)
        return Reply(text="")

    calls = VirtualCalls(answer)

    async def ask(after: float) -> None:
        await calls.clock.sleep(after)
        await calls.ask()

    await calls.clock.run(ask(0), ask(5), ask(5))
    assert sent[:2] == [1000, 1017]
    assert 1017 <= sent[2] <= sent[3] < 1021


@pytest.mark.parametrize(("is_sent", "used"), [(True, 10), (False, None)])
async def test_a_permit_that_ends_makes_room_before_the_minute_is_over(
    is_sent: bool, used: int | None
) -> None:
    """With its true count of tokens, or with none where it was not used."""
    clock = Clock()
    begun = clock.now
    pacer = Pacer(VirtualStop(clock), tokens_per_minute=100, clock=clock)

    async def first() -> None:
        async with pacer.permit(90) as permit:
            await clock.sleep(1)
            permit.is_sent = is_sent
            permit.count_tokens(Usage(input_tokens=used))

    async def second() -> None:
        async with pacer.permit(50):
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
            interrupting.stop.request(Interrupted("enough"))
            return good_reply(question)

        scripted = Scripted(answer)
        scripted.account, scripted.identity = account, {"provider": name}
        return scripted

    judges = [judge(name, account) for name, account in zip("ab", accounts, strict=True)]
    summary = await judged(with_judges(ready, *judges), watch=interrupting.watch)
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


# Across starts


def moved(folder: Path, seconds: float) -> None:
    """Let the requests that are noted have been sent so much later."""
    with closing(sqlite3.connect(folder / "evenhand.db")) as store, store:
        store.execute("UPDATE sent_requests SET at = at + ?", (seconds,))


@pytest.mark.parametrize(
    ("later", "sent"),
    [(30, 0), (3600, 0), (-61, 1)],
    ids=["just now", "by a clock that ran backwards", "a minute later"],
)
@pytest.mark.parametrize(
    "limits", [{"requests_per_minute": 1}, {"tokens_per_minute": 10000}], ids=["requests", "tokens"]
)
async def test_a_start_begins_with_the_minute_as_it_was_left(
    tmp_path: Path, limits: dict[str, int], later: float, sent: int
) -> None:
    """A question of about 8,000 tokens, whose reply is not counted: two do not fit the minute."""
    write_suite(tmp_path, 2, limits={**limits, "run_seconds": 600})
    first = await judged(tmp_path, limit=1)
    assert first.tally.sent == 1
    moved(tmp_path, later)
    write_suite(tmp_path, 2, limits={**limits, "run_seconds": 600 if sent else 0.5})
    second = await judged(tmp_path)
    assert second.tally.sent == sent
    assert isinstance(second.stopped, StoppedEarly) is not bool(sent)


async def test_a_request_is_noted_before_it_is_sent_and_corrected_by_its_reply(
    tmp_path: Path,
) -> None:
    def noted() -> list[int]:
        with closing(sqlite3.connect(tmp_path / "evenhand.db")) as store:
            return [tokens for (tokens,) in store.execute("SELECT tokens FROM sent_requests")]

    before: list[int] = []

    async def answer(question: Question) -> Reply:
        before.extend(noted())
        return good_reply(question)

    write_suite(tmp_path, 1, limits={"tokens_per_minute": 10000})
    await judged(with_judges(prepared(tmp_path), Scripted(answer)))
    assert len(before) == 1
    assert before[0] > 3000
    assert noted() == [60]


async def test_the_minute_of_another_account_is_its_own(tmp_path: Path) -> None:
    limits = {"requests_per_minute": 1, "run_seconds": 600}
    for number, address in enumerate(["one", "two"], 1):
        judge = Scripted(_good)
        judge.account = address
        write_suite(tmp_path, 2, limits=limits)
        summary = await judged(with_judges(prepared(tmp_path), judge), limit=number)
        assert summary.tally.sent == 1


async def _good(question: Question) -> Reply:
    return good_reply(question)


async def test_what_was_sent_is_remembered_by_its_age() -> None:
    clock = Clock()
    begun = clock.now
    pacer = Pacer(VirtualStop(clock), requests_per_minute=2, clock=clock)
    pacer.remember([(10.0, 5), (50.0, 5), (55.0, 5)])

    async def ask() -> None:
        async with pacer.permit(1) as permit:
            # Two of the three must be a minute old, and the last half a minute away.
            assert permit.at == begun + 20

    await clock.run(ask())
    assert [age for age, _ in ages([SentRequest("a", "b", 1e9, 5)], 5.0)] == [0.0]


def test_keys_of_one_address_are_told_apart_and_not_shown() -> None:
    secrets = [Secret("KEY", f"sk-{letter * 20}", "https://x") for letter in "ab"]
    names = {str(Account("openai", "https://x", secret)) for secret in [*secrets, None]}
    assert len(names) == 3
    assert not any("aaa" in name or "bbb" in name for name in names)
