"""Calls: the ledger answers first, equal questions are paid once, what is tried again and how
often, and what an attempt holds, which is given back however it ends."""

import asyncio
import json
import sqlite3
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evenhand.engine.call import RetryPolicy
from evenhand.engine.prices import CallBudget, token_bound
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import (
    CallLost,
    CallRejected,
    Interrupted,
    JudgeCrashed,
    StoppedEarly,
    StoreError,
    UsageError,
)
from evenhand.exchange import Reply, Usage
from evenhand.limits import ATTEMPTS, BACKOFF_MOST, LOST_IN_A_ROW, UNREACHABLE_TRIES
from evenhand.runs.judge import Options, judge_run
from evenhand.runs.stores import open_store
from evenhand.store.ledger import Store
from tests.sentences import refused
from tests.suites import (
    GOOD,
    Scripted,
    good_reply,
    judged,
    prepared,
    samples,
    stored,
    with_judges,
    write_suite,
)
from tests.unit.engine.pair_runs import Interrupting
from tests.unit.engine.virtual import VirtualCalls

# What is tried again

LOST = CallLost("transport", "lost")
ABSENT = CallLost("transport", "refused", is_unreachable=True)


def busy(seconds):
    return CallLost("transport", "busy", retry_after=seconds)


class Trying(VirtualCalls):
    """A judge with these outcomes, one after the other, the last of them for ever."""

    def __init__(self, *outcomes, call_seconds=1e6):
        super().__init__(self.answer, RetryPolicy(call_seconds=call_seconds))
        self.tried, self._outcomes = [], outcomes

    async def answer(self):
        outcome = self._outcomes[min(len(self.tried), len(self._outcomes) - 1)]
        self.tried.append(self.clock.now)
        if outcome is not None:
            raise outcome
        return Reply(text="done")

    async def run(self):
        """How the call ends: with None, or an error."""
        try:
            await self.clock.run(self.ask())
        except (CallLost, CallRejected, JudgeCrashed, Stopped) as error:
            return type(error)


async def test_lost_calls_are_tried_again_with_growing_jitter():
    trying = Trying(*[LOST] * (ATTEMPTS - 1), None)
    assert (await trying.run(), len(trying.tried)) == (None, ATTEMPTS)
    pauses = [b - a for a, b in zip(trying.tried, trying.tried[1:], strict=False)]
    assert all(p <= min(BACKOFF_MOST, 0.5 * 2**i) for i, p in enumerate(pauses))


@pytest.mark.parametrize(
    ("outcomes", "rest", "ends", "tries"),
    [
        # Attempts are bounded, whatever short pause is asked for.
        ([LOST], {}, CallLost, ATTEMPTS),
        ([busy(0.0)], {}, CallLost, ATTEMPTS),
        ([busy(0.001)], {}, CallLost, ATTEMPTS),
        # A pause that is asked for is no attempt; the whole call has a deadline.
        ([*[busy(9)] * 20, None], {}, None, 21),
        ([busy(9)], {"call_seconds": 30}, CallLost, 4),
        # A pause too long to wait leaves the unit pending.
        ([busy(86400)], {}, Stopped, 1),
        ([CallRejected("filtered", "no")], {}, CallRejected, 1),
        ([JudgeCrashed("died")], {}, JudgeCrashed, 1),
        # Nobody was ever there.
        ([ABSENT], {}, Stopped, UNREACHABLE_TRIES),
    ],
)
async def test_a_call_is_tried_as_often_as_it_may_help(outcomes, rest, ends, tries):
    trying = Trying(*outcomes, **rest)
    assert (await trying.run(), len(trying.tried)) == (ends, tries)
    if outcomes[-1] is None:
        assert trying.tried == [1000 + 9 * number for number in range(21)]
    assert isinstance(trying.stop.cause, StoppedEarly) is (ends is Stopped)
    assert outcomes != [ABSENT] or trying.clock.now - 1000 <= 1.5


@pytest.mark.parametrize(
    ("loss", "tries"),
    [(LOST, ATTEMPTS), (JudgeCrashed("died"), 1), (CallLost("transport", "", is_final=True), 1)],
    ids=["lost", "crashed", "final"],
)
async def test_many_lost_calls_in_a_row_stop_the_run(loss, tries):
    trying = Trying(loss)
    for _ in range(LOST_IN_A_ROW):
        assert not trying.stop.requested
        assert await trying.run() is type(loss)
    assert len(trying.tried) == tries * LOST_IN_A_ROW
    assert isinstance(trying.stop.cause, StoppedEarly)


async def test_a_judge_that_goes_away_for_a_while_is_tried_as_often_as_any():
    trying = Trying(None, *[ABSENT] * (ATTEMPTS - 1), None)
    assert [await trying.run() for _ in range(2)] == [None] * 2
    assert len(trying.tried) == 1 + ATTEMPTS and not trying.stop.requested


# The ledger


def twins(number):
    """The same sample under different ids."""
    return [samples(1)[0] | {"id": f"twin{i}"} for i in range(number)]


def answered(folder, answer):
    """A run by a judge that answers as it is told."""
    judge = Scripted(answer)
    return with_judges(prepared(folder), judge), judge


async def test_identical_samples_under_different_ids_cost_one_call(tmp_path):
    summary = await judged(write_suite(tmp_path, twins(5), limits={"concurrency": 1}))
    assert (summary.tally.sent, summary.tally.cached, summary.counts.verdicts) == (1, 4, 5)


@pytest.mark.parametrize("failures", [{}, {"filtered": 8}], ids=["reply", "failure"])
async def test_equal_questions_in_flight_are_paid_once_and_share_its_end(tmp_path, failures):
    gate, asked = asyncio.Event(), asyncio.Event()

    async def held(question):
        asked.set()
        await gate.wait()
        if failures:
            raise CallRejected("filtered", "no")
        return good_reply(question)

    write_suite(tmp_path, twins(8), limits={"concurrency": 8})
    ready, judge = answered(tmp_path, held)
    run = asyncio.create_task(judged(ready))
    await asked.wait()
    gate.set()
    counts = (await run).counts
    assert (len(judge.asked), counts.failures, counts.verdicts) == (
        1,
        failures,
        0 if failures else 8,
    )


@contextmanager
def beside(folder):
    with closing(sqlite3.connect(folder / "evenhand.db")) as store:
        yield store


async def test_a_reply_is_durable_before_it_is_used(tmp_path):
    """The re-ask comes only when the reply it complains about is in the file."""
    kept = []

    async def checked(question):
        with beside(tmp_path) as store:
            kept.extend(store.execute("SELECT COUNT(*) FROM calls").fetchone())
        return Reply(text="{}")

    await judged(answered(write_suite(tmp_path, 1), checked)[0])
    assert kept == [0, 1, 2]


def watched(store, prepare):
    """A store whose ledgers are prepared when they are opened."""

    class Watched(Store):
        @asynccontextmanager
        async def ledger(self):
            async with store.ledger() as opened:
                prepare(opened)
                yield opened

    return Watched(store.archive, store.connect)


async def test_a_disk_that_is_full_stops_the_run_and_nothing_half_kept_is_used(tmp_path):
    write_suite(tmp_path, 200, limits={"concurrency": 8})
    opened, units = [], []

    async def answer(question):
        if not units:
            [(pages,)] = opened[0]._writing.rows("PRAGMA page_count")
            opened[0]._writing.rows(f"PRAGMA max_page_count = {pages + 8}")
        units.append(question.unit)
        return good_reply(question)

    with (
        closing(open_store("sqlite:evenhand.db", tmp_path)) as store,
        refused(StoreError, "store.cannot_write", "full") as told,
    ):
        await judge_run(answered(tmp_path, answer)[0], watched(store, opened.append))
    assert told.value.exit_code == 6
    rows = stored(tmp_path)
    assert len(rows) < len(units) < 200
    with beside(tmp_path) as store:
        kept = {key for (key,) in store.execute("SELECT key FROM calls")}
    assert all(set(row["calls"]) <= kept for row in rows)


async def test_repeats_and_judges_are_calls_of_their_own(tmp_path):
    write_suite(tmp_path, 3, {**GOOD, "repeats": 4}, {"model": "python/judge:bad"})
    summary = await judged(tmp_path)
    assert (summary.counts.planned, summary.tally.sent) == (15, 21)
    assert (summary.counts.verdicts, summary.counts.failures) == (12, {"schema": 3})
    assert [row["repeat"] for row in stored(tmp_path) if row["output"]] == [0, 1, 2, 3] * 3


async def test_a_unit_without_a_recorded_reply_stays_pending(tmp_path):
    write_suite(tmp_path, 3, {"model": "replay/replies.jsonl"})
    reply = json.dumps({"unit": "u1", "reply": "no JSON"}) + "\n"
    (tmp_path / "replies.jsonl").write_text(reply)
    counts = (await judged(tmp_path)).counts
    assert (counts.failures, counts.pending) == ({"not_json": 1}, 2)


def test_a_judge_named_twice_is_refused(tmp_path):
    write_suite(tmp_path, 1, GOOD, GOOD)
    with refused(UsageError, "runs.twin_judges"):
        prepared(tmp_path)


# What an attempt holds

PER_TOKEN = 10**9
PRICED = {**GOOD, "price": {"input": 1000, "output": 1000}, "max_tokens": 300}
USED = Usage(input_tokens=50, output_tokens=10)
COST = 60 * PER_TOKEN
SECONDS = 20
"""Long enough for whatever is not stuck."""


async def let_others_run():
    for _ in range(50):
        await asyncio.sleep(0)


@dataclass
class Scene:
    """A suite whose runs share a budget, and an event that says that a point is reached."""

    folder: Path
    budget: CallBudget = field(default_factory=lambda: CallBudget(10**20))
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    most: int = 0
    """The most that a call may cost, once one was asked."""

    async def at_once(self, question):
        self.most = PER_TOKEN * (token_bound(question) + 300)
        return good_reply(question, USED)

    async def never(self, question):
        await self.at_once(question)
        self.reached.set()
        await asyncio.Event().wait()

    async def judged(self, answer=None, watch=None, **changed):
        """Judge with the shared budget; `changed` are methods of the ledger."""

        def change(ledger):
            for name, method in changed.items():
                setattr(ledger, name, method(getattr(ledger, name)))

        ready, _ = answered(self.folder, answer or self.at_once)
        options = {"budget": self.budget} | ({"watch": watch} if watch else {})
        with closing(open_store("sqlite:evenhand.db", self.folder)) as store:
            return await judge_run(ready, watched(store, change), Options(**options))

    async def cancelled(self, **rest):
        """Start judging, and cancel it where the point is reached."""
        run = asyncio.create_task(self.judged(**rest))
        await asyncio.wait_for(self.reached.wait(), SECONDS)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    def signalling(self, method):
        """A method of the store that says when it is under way."""

        def called(*arguments):
            self.reached.set()
            return method(*arguments)

        return called


@pytest.fixture
async def scene(tmp_path):
    """One unit, and a budget of so much that no call need wait; the price of a call is known."""
    scene = Scene(tmp_path / "price")
    write_suite(scene.folder, 1, PRICED)
    await scene.judged()
    scene.folder, scene.budget = tmp_path / "suite", CallBudget(10**20)
    write_suite(scene.folder, 1, PRICED)
    return scene


async def at_money(scene):
    """It waits for money that another run holds."""
    amount = scene.budget.cap
    await scene.budget.reserve(amount, Stop())
    run = asyncio.create_task(scene.judged())
    await let_others_run()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    scene.budget.release(amount, 0)


async def at_reservation(scene):
    await scene.cancelled(reserve=scene.signalling)


async def at_turn(scene):
    """The second of two units waits for the next minute; the first is answered and kept."""
    limits = {"requests_per_minute": 1, "concurrency": 2}
    write_suite(scene.folder, 2, PRICED, limits=limits)
    cap, scene.budget.cap = scene.budget.cap, 10 * scene.most
    reserved = asyncio.Barrier(2)

    def reserving(method):
        async def called(*arguments):
            await method(*arguments)
            await reserved.wait()

        return called

    await scene.cancelled(reserve=reserving, record=scene.signalling)
    write_suite(scene.folder, 2, PRICED, limits={"concurrency": 1})
    scene.budget.cap = cap


async def at_answer(scene):
    await scene.cancelled(answer=scene.never)


async def at_record(scene):
    await scene.cancelled(record=scene.signalling)


@pytest.mark.parametrize(
    ("point", "used", "recorded"),
    [
        (at_money, (0, 0), 0),
        (at_reservation, (0, 0), 0),
        (at_turn, (0, 1), 1),
        (at_answer, (1, 0), 0),
        (at_record, (0, 1), 1),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_a_run_that_is_cancelled_gives_back_what_it_held(scene, point, used, recorded):
    """What was not sent costs nothing, what was sent counts as the most it may have cost, and what
    was answered as its price: in the budget and in the store."""
    spent = used[0] * scene.most + used[1] * COST
    # Enough for one call at a time, and for not a token more.
    scene.budget.cap = spent + scene.most + COST
    await point(scene)
    assert scene.budget.used == spent
    again = await asyncio.wait_for(scene.judged(), SECONDS)
    assert (again.stopped, again.counts.pending) == (None, 0)
    assert again.spent.reserved == used[0] * scene.most
    assert again.spent.cost == again.spent.calls * COST
    assert again.tally.sent == again.counts.planned - recorded


def failing(method):
    """A store on a disk that is full: the write fails, but not at once."""

    def full(*_):
        loop = asyncio.get_running_loop()
        failed = loop.create_future()
        loop.call_soon(failed.set_exception, StoreError("the disk is full"))
        return failed

    return full


async def test_a_reply_that_cannot_be_recorded_is_paid_and_its_money_is_not_held(scene):
    scene.budget.cap = COST + scene.most
    with pytest.raises(StoreError, match="full"):
        await scene.judged(record=failing)
    assert scene.budget.used == COST
    again = await asyncio.wait_for(scene.judged(), SECONDS)
    assert (again.stopped, again.counts.verdicts) == (None, 1)
    # The reply is not in the ledger: what it may have cost stays reserved there.
    assert again.spent.reserved == scene.most


async def test_a_store_that_fails_leaves_nobody_waiting_for_money(scene):
    """One worker holds all the money when the reservation cannot be written; the rest wait."""
    write_suite(scene.folder, 8, PRICED, limits={"concurrency": 8})
    scene.budget.cap = scene.most
    with pytest.raises(StoreError, match="full"):
        await asyncio.wait_for(scene.judged(reserve=failing), SECONDS)
    again = await asyncio.wait_for(scene.judged(), SECONDS)
    assert again.counts.verdicts + again.counts.pending == 8


@pytest.mark.parametrize("enough", [True, False])
async def test_a_run_that_waits_for_the_money_of_another_hears_of_its_end(scene, enough):
    """One holds all there is and cannot record its reply; the other goes on, or learns that
    nothing is left."""
    scene.budget.cap = scene.most + (COST if enough else 0)
    other = Scene(scene.folder.parent / "other", scene.budget)
    write_suite(other.folder, 1, PRICED)
    waiting = []

    async def answer(question):
        waiting.append(asyncio.create_task(other.judged()))
        await let_others_run()
        return await scene.at_once(question)

    with pytest.raises(StoreError, match="full"):
        await scene.judged(answer, record=failing)
    summary = await asyncio.wait_for(waiting[0], SECONDS)
    assert (summary.counts.verdicts, summary.counts.pending) == (enough, not enough)
    assert isinstance(summary.stopped, StoppedEarly) is not enough


async def test_a_run_that_waits_for_the_money_of_another_hears_the_switch(scene):
    """Ctrl-C ends it, though the money never comes."""
    scene.budget.cap = scene.most
    await scene.budget.reserve(scene.most, Stop())
    interrupting = Interrupting(0)
    run = asyncio.create_task(scene.judged(watch=interrupting.watch))
    async with asyncio.timeout(SECONDS):
        while not hasattr(interrupting, "tally"):  # until it has begun
            await asyncio.sleep(0.01)
    await let_others_run()
    interrupting()
    summary = await asyncio.wait_for(run, SECONDS)
    assert isinstance(summary.stopped, Interrupted)
    assert (summary.counts.pending, scene.budget.used) == (1, 0)
