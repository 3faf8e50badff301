"""Requests and tokens a minute are never exceeded, in whatever window of 60 seconds; and all who
call a busy provider slow down together, and come back one after the other."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.engine.pacing import Pacer, ages
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import CallLost, Interrupted, StoppedEarly
from evenhand.exchange import Reply, Usage
from evenhand.store.ports import SentRequest
from tests import provider as p
from tests.sentences import refused
from tests.suites import (
    Scripted,
    at,
    good_reply,
    judged,
    prepared,
    with_judges,
    write_suite,
)
from tests.unit.engine.pair_runs import Interrupting
from tests.unit.engine.virtual import Clock, VirtualCalls, VirtualStop

# (pause before asking, tokens reserved, tokens really used)
REQUESTS = st.lists(
    st.tuples(st.floats(0, 90), st.integers(1, 100), st.integers(0, 100)), min_size=1, max_size=40
)


def most_in_a_minute(sent):
    """The naive twin: the fullest half-open minute that begins with a request."""
    return max(sum(n for at, n in sent if begin <= at < begin + 60 - 1e-6) for begin, _ in sent)


@given(REQUESTS, st.integers(1, 30), st.integers(100, 400))
def test_no_minute_holds_more_than_is_allowed(requests, a_minute, tokens):
    clock, sent = Clock(), []

    async def ask(pacer, pause, bound, used):
        await clock.sleep(pause)
        async with pacer.permit(bound) as permit:
            permit.is_sent = True
            permit.count_tokens(Usage(input_tokens=min(used, bound), output_tokens=0))
            sent.append((clock.now, permit.tokens))

    async def all_of_them():
        pacer = Pacer(VirtualStop(clock), a_minute, tokens, clock=clock)
        await clock.run(*(ask(pacer, *request) for request in requests))

    asyncio.run(all_of_them())
    assert len(sent) == len(requests)
    assert most_in_a_minute([(at, 1) for at, _ in sent]) <= a_minute
    assert most_in_a_minute(sent) <= tokens


async def test_without_limits_nobody_waits():
    clock = Clock()
    pacer, given = Pacer(VirtualStop(clock), clock=clock), []
    for _ in range(3):
        async with pacer.permit(10**9) as permit:
            given.append(permit.at)
    assert given == [clock.now] * 3


async def test_a_request_that_never_fits_is_told():
    with refused(StoppedEarly, "engine.request_too_large", "tokens_per_minute"):
        async with Pacer(Stop(), tokens_per_minute=100).permit(101):
            raise AssertionError


@pytest.mark.parametrize(("is_sent", "used"), [(True, 10), (False, None)])
async def test_a_permit_that_ends_makes_room_before_the_minute_is_over(is_sent, used):
    """With its true count of tokens, or with none where it was not used."""
    clock = Clock()
    pacer = Pacer(VirtualStop(clock), tokens_per_minute=100, clock=clock)

    async def first():
        async with pacer.permit(90) as permit:
            await clock.sleep(1)
            permit.is_sent = is_sent
            permit.count_tokens(Usage(input_tokens=used))

    async def second():
        async with pacer.permit(50):
            assert clock.now == 1001

    await clock.run(first(), second())


async def test_what_was_sent_is_remembered_by_its_age():
    clock = Clock()
    pacer = Pacer(VirtualStop(clock), requests_per_minute=2, clock=clock)
    pacer.remember([(10.0, 5), (50.0, 5), (55.0, 5)])

    async def ask():
        async with pacer.permit(1) as permit:
            # Two of the three must be a minute old, and the last half a minute away.
            assert permit.at == 1020

    await clock.run(ask())
    assert [age for age, _ in ages([SentRequest("a", "b", 1e9, 5)], 5.0)] == [0.0]


# Minutes of an account, shared by judges and across starts

MINUTES = pytest.mark.parametrize(
    "limits", [{"requests_per_minute": 1}, {"tokens_per_minute": 10000}], ids=["requests", "tokens"]
)


async def asked_at_once(folder, accounts, limits):
    """How many of two judges are asked before one of them has answered."""
    write_suite(folder, 1, *({"model": f"python/judge:{name}"} for name in ("good", "bad")))
    asked, interrupting = [], Interrupting(1)

    async def answer(question):
        asked.append(question)
        for _ in range(50):
            await asyncio.sleep(0)
        interrupting.stop.request(Interrupted("enough"))
        return good_reply(question)

    judges = Scripted(answer), Scripted(answer)
    for number, (judge, account) in enumerate(zip(judges, accounts, strict=True)):
        judge.account, judge.identity = account, {"provider": str(number)}
    ready = with_judges(prepared(folder, limits=limits), *judges)
    summary = await judged(ready, watch=interrupting.watch)
    assert summary.counts.verdicts == len(asked)
    return len(asked)


@MINUTES
async def test_judges_of_one_account_share_its_minute(tmp_path, limits):
    """A question of about 7,000 tokens: one fits the minute, and two do not."""
    assert await asked_at_once(tmp_path / "one", ("same", "same"), limits) == 1
    assert await asked_at_once(tmp_path / "two", ("this", "that"), limits) == 2


@pytest.mark.parametrize(
    ("later", "sent"),
    [(30, 0), (3600, 0), (-61, 1)],
    ids=["just now", "by a clock that ran backwards", "a minute later"],
)
@MINUTES
async def test_a_start_begins_with_the_minute_as_it_was_left(tmp_path, limits, later, sent):
    """A question of about 8,000 tokens, whose reply is not counted: two do not fit the minute."""
    write_suite(tmp_path, 2, limits={**limits, "run_seconds": 600})
    assert (await judged(tmp_path, limit=1)).tally.sent == 1
    with closing(sqlite3.connect(tmp_path / "evenhand.db")) as store, store:
        store.execute("UPDATE sent_requests SET at = at + ?", (later,))
    write_suite(tmp_path, 2, limits={**limits, "run_seconds": 600 if sent else 0.5})
    second = await judged(tmp_path)
    assert second.tally.sent == sent
    assert isinstance(second.stopped, StoppedEarly) is not bool(sent)


async def test_a_request_is_noted_before_it_is_sent_and_corrected_by_its_reply(tmp_path):
    def noted():
        with closing(sqlite3.connect(tmp_path / "evenhand.db")) as store:
            return [tokens for (tokens,) in store.execute("SELECT tokens FROM sent_requests")]

    before = []

    async def answer(question):
        before.extend(noted())
        return good_reply(question)

    write_suite(tmp_path, 1, limits={"tokens_per_minute": 10000})
    await judged(with_judges(prepared(tmp_path), Scripted(answer)))
    assert len(before) == 1 and before[0] > 3000
    assert noted() == [60]


async def test_the_minute_of_another_account_is_its_own(tmp_path):
    async def answer(question):
        return good_reply(question)

    for number, account in enumerate(["one", "two"], 1):
        judge = Scripted(answer)
        judge.account = account
        write_suite(tmp_path, 2, limits={"requests_per_minute": 1, "run_seconds": 600})
        summary = await judged(with_judges(prepared(tmp_path), judge), limit=number)
        assert summary.tally.sent == 1


# Busy providers

CALLS, WIDE = 400, 64
MOST_REQUESTS = 1.5 * CALLS


class Server(VirtualCalls):
    """A provider on a virtual clock, that many ask at once: `refuses` tells whether it is busy."""

    def __init__(self, seconds, refuses, asked=None):
        super().__init__(self.answer)
        self.requests, self.answers, self.under_way = [], [], 0
        self.seconds, self.refuses, self.asked = seconds, refuses, asked

    @property
    def now(self):
        """Seconds since the first request."""
        return self.clock.now - self.requests[0]

    async def answer(self):
        self.requests.append(self.clock.now)
        self.under_way += 1
        try:
            if self.refuses(self):
                await self.clock.sleep(0.01)
                raise CallLost("transport", "429", is_busy=True, retry_after=self.asked)
            await self.clock.sleep(self.seconds)
        finally:
            self.under_way -= 1
        self.answers.append(self.clock.now)
        return Reply(text="")

    async def judge(self, calls=CALLS, wide=WIDE):
        """Ask so many times, so many at once."""
        left = iter(range(calls))

        async def worker():
            for _ in left:
                await self.ask()

        await self.clock.run(*(worker() for _ in range(wide)))


async def test_retry_after_holds_every_caller_of_the_judge_to_the_second():
    server = Server(0, lambda server: len(server.requests) == 1, asked=17)

    async def ask(after):
        await server.clock.sleep(after)
        await server.ask()

    await server.clock.run(ask(0), ask(5), ask(5))
    first, second, third, fourth = server.requests
    assert second == pytest.approx(first + 17.01)  # the refusal took a hundredth
    assert second <= third <= fourth < second + 4


def in_an_outage(server):
    return server.now < 10


def with_few_places(server):
    return server.under_way > 8


def with_few_a_second(server):
    return sum(at > server.clock.now - 1 for at in server.requests) > 10


@pytest.mark.parametrize("refuses", [in_an_outage, with_few_places, with_few_a_second])
@pytest.mark.parametrize("seconds", [0.05, 3.0])
async def test_a_storm_of_refusals_costs_few_requests(refuses, seconds):
    server = Server(seconds, refuses)
    await server.judge()
    assert len(server.answers) == CALLS
    assert len(server.requests) <= MOST_REQUESTS
    assert not server.stop.requested


async def test_after_a_pause_that_is_asked_for_nobody_storms_back():
    server = Server(5.0, lambda server: server.now < 0.5, asked=1.0)
    await server.judge(162, 162)
    back = [at for at in server.requests if at > server.requests[0]]
    assert min(back) >= server.requests[0] + 1
    assert max(Counter(int(10 * at) for at in back).values()) <= 20
    assert len(server.requests) <= 162 * 2


async def test_a_stray_refusal_slows_nobody_down():
    """One request in fifty is refused, as under a load that somebody else makes."""
    servers = [
        Server(1.0, lambda server: len(server.requests) % 50 == 49),
        Server(1.0, lambda server: False),
    ]
    for server in servers:
        await server.judge(500)
    assert servers[0].now < 1.5 * servers[1].now


async def test_once_it_is_over_as_many_are_under_way_as_before():
    most = []

    def noting(server):
        most.append(server.under_way)
        return in_an_outage(server)

    await Server(1.0, noting).judge(2000)
    assert max(most[-500:]) == WIDE


async def test_a_provider_that_stays_busy_stops_the_run():
    server = Server(1.0, lambda server: True)
    with pytest.raises((Stopped, CallLost)):
        await server.judge()
    assert isinstance(server.stop.cause, StoppedEarly)
    assert "stays busy" in str(server.stop.cause)
    assert len(server.requests) <= WIDE + 40 and server.now < 300


async def test_a_storm_over_http_costs_few_requests(tmp_path):
    """The provider serves eight at a time, and the others are told that it is busy."""
    under_way = 0

    async def crowded(call):
        nonlocal under_way
        under_way += 1
        try:
            await asyncio.sleep(0.005)
            return await (p.busy("0.05") if under_way > 8 else p.valid())(call)
        finally:
            under_way -= 1

    async with p.Provider(crowded) as provider:
        write_suite(tmp_path, CALLS, at(provider.url), limits={"concurrency": WIDE})
        summary = await judged(tmp_path, backoff_first=0.02)
    assert (summary.stopped, summary.counts.verdicts) == (None, CALLS)
    assert len(provider.calls) <= MOST_REQUESTS
