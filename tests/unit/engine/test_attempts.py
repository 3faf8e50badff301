"""What an attempt holds is given back however it ends, and with a shared budget nobody waits for
money that nobody will give back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evenhand.engine.prices import CallBudget, token_bound
from evenhand.engine.stop import Stop
from evenhand.errors import Interrupted, StoppedEarly, StoreError
from evenhand.exchange import Question, Reply, Usage
from evenhand.runs.judge import Options, Summary, judge_run
from evenhand.runs.stores import open_store
from evenhand.store.ledger import Ledger, Store
from tests.suites import Scripted, good_reply, prepared, with_judges, write_suite
from tests.unit.engine.pair_runs import Interrupting

PER_TOKEN = 10**9
PRICED = {
    "model": "python/judge:good",
    "price": {"input": 1000, "output": 1000},
    "max_tokens": 300,
}
USED = Usage(input_tokens=50, output_tokens=10)
COST = 60 * PER_TOKEN
SECONDS = 20
"""Long enough for whatever is not stuck."""


@dataclass
class Scene:
    """A suite whose runs share a budget, and an event that says that a point is reached."""

    folder: Path
    budget: CallBudget = field(default_factory=lambda: CallBudget(10**20))
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    most: int = 0
    """The most that a call may cost, once one was asked."""

    async def at_once(self, question: Question) -> Reply:
        self.most = PER_TOKEN * (token_bound(question) + 300)
        return good_reply(question, USED)

    async def never(self, question: Question) -> Reply:
        await self.at_once(question)
        self.reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def judged(
        self,
        answer: Callable[[Question], Awaitable[Reply]] | None = None,
        options: Mapping[str, Any] | None = None,
        **changed: Any,
    ) -> Summary:
        """Judge with the shared budget; `changed` are methods of the ledger."""
        ready = with_judges(prepared(self.folder), Scripted(answer or self.at_once))
        store = open_store("sqlite:evenhand.db", self.folder)

        class Watched(Store):
            @asynccontextmanager
            async def ledger(self) -> AsyncIterator[Ledger]:
                async with store.ledger() as opened:
                    for name, method in changed.items():
                        setattr(opened, name, method(getattr(opened, name)))
                    yield opened

        try:
            watched = Watched(store.archive, store.connect)
            chosen = Options(budget=self.budget, **options or {})
            return await judge_run(ready, watched, chosen)
        finally:
            store.close()

    async def cancelled(self, **rest: Any) -> None:
        """Start judging, and cancel it where the point is reached."""
        run = asyncio.create_task(self.judged(**rest))
        await asyncio.wait_for(self.reached.wait(), SECONDS)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    def signalling(self, count: int = 1) -> Callable[[Any], Any]:
        """A method of the store that says when its last call is under way."""
        calls = 0

        def changed(method: Any) -> Any:
            def called(*arguments: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == count:
                    self.reached.set()
                return method(*arguments)

            return called

        return changed


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    """One unit, and a budget of so much that no call need wait; the price of a call is known."""
    write_suite(tmp_path / "price", 1, PRICED)
    measured = Scene(tmp_path / "price")
    await measured.judged()
    write_suite(tmp_path / "suite", 1, PRICED)
    return Scene(tmp_path / "suite", most=measured.most)


async def at_money(scene: Scene) -> None:
    amount = scene.budget.cap or 0
    await scene.budget.reserve(amount, Stop())
    run = asyncio.create_task(scene.judged())
    for _ in range(50):
        await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    scene.budget.release(amount, 0)


async def at_reservation(scene: Scene) -> None:
    await scene.cancelled(reserve=scene.signalling())


async def at_turn(scene: Scene) -> None:
    """The second of two units waits for the next minute; the first is answered and kept."""
    limits = {"requests_per_minute": 1, "concurrency": 2}
    write_suite(scene.folder, 2, PRICED, limits=limits)
    cap, scene.budget.cap = scene.budget.cap, 10 * scene.most
    reserved = asyncio.Barrier(2)

    def reserving(method: Any) -> Any:
        async def called(*arguments: Any) -> None:
            await method(*arguments)
            await reserved.wait()

        return called

    await scene.cancelled(reserve=reserving, record=scene.signalling())
    write_suite(scene.folder, 2, PRICED, limits={"concurrency": 1})
    scene.budget.cap = cap


async def at_answer(scene: Scene) -> None:
    await scene.cancelled(answer=scene.never)


async def at_record(scene: Scene) -> None:
    await scene.cancelled(record=scene.signalling())


NOTHING, ONE_COST, ONE_MOST = (0, 0), (0, 1), (1, 0)


@pytest.mark.parametrize(
    ("point", "used", "recorded"),
    [
        (at_money, NOTHING, 0),
        (at_reservation, NOTHING, 0),
        (at_turn, ONE_COST, 1),
        (at_answer, ONE_MOST, 0),
        (at_record, ONE_COST, 1),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_a_run_that_is_cancelled_gives_back_what_it_held(
    scene: Scene,
    point: Callable[[Scene], Awaitable[None]],
    used: tuple[int, int],
    recorded: int,
) -> None:
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


def _failing(method: Any) -> Any:
    """A store on a disk that is full: the write fails, but not at once."""

    def full(*_: object) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        failed = loop.create_future()
        loop.call_soon(failed.set_exception, StoreError("the disk is full"))
        return failed

    return full


async def test_a_reply_that_cannot_be_recorded_is_paid_and_its_money_is_not_held(
    scene: Scene,
) -> None:
    scene.budget.cap = COST + scene.most
    with pytest.raises(StoreError, match="full"):
        await scene.judged(record=_failing)
    assert scene.budget.used == COST
    again = await asyncio.wait_for(scene.judged(), SECONDS)
    assert (again.stopped, again.counts.verdicts) == (None, 1)
    # The reply is not in the ledger: what it may have cost stays reserved there.
    assert again.spent.reserved == scene.most


@pytest.mark.parametrize("enough", [True, False])
async def test_a_run_that_waits_for_the_money_of_another_hears_of_its_end(
    scene: Scene, enough: bool
) -> None:
    """One holds all there is and cannot record its reply; the other goes on, or learns that
    nothing is left."""
    scene.budget.cap = scene.most + (COST if enough else 0)
    other = Scene(scene.folder.parent / "other", scene.budget)
    write_suite(other.folder, 1, PRICED)
    waiting: list[asyncio.Task[Summary]] = []

    async def answer(question: Question) -> Reply:
        waiting.append(asyncio.create_task(other.judged()))
        for _ in range(50):
            await asyncio.sleep(0)
        return await scene.at_once(question)

    with pytest.raises(StoreError, match="full"):
        await scene.judged(answer, record=_failing)
    summary = await asyncio.wait_for(waiting[0], SECONDS)
    if enough:
        assert (summary.stopped, summary.counts.verdicts) == (None, 1)
    else:
        assert isinstance(summary.stopped, StoppedEarly)
        assert summary.counts.pending == 1


async def test_a_run_that_waits_for_the_money_of_another_hears_the_switch(scene: Scene) -> None:
    """Ctrl-C ends it, though the money never comes."""
    scene.budget.cap = scene.most
    await scene.budget.reserve(scene.most, Stop())
    interrupting = Interrupting(0)
    run = asyncio.create_task(scene.judged(options={"watch": interrupting.watch}))
    async with asyncio.timeout(SECONDS):
        while not hasattr(interrupting, "tally"):  # until it has begun
            await asyncio.sleep(0.01)
    for _ in range(50):
        await asyncio.sleep(0)
    interrupting()
    summary = await asyncio.wait_for(run, SECONDS)
    assert isinstance(summary.stopped, Interrupted)
    assert (summary.counts.pending, scene.budget.used) == (1, 0)
