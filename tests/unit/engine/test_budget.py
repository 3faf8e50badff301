"""A budget is a hard cap, by the provider's own count."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from evenhand.engine.prices import token_bound
from evenhand.errors import CallLost, CallRejected, StoppedEarly, StoreError, UsageError
from evenhand.exchange import Message, Question, Reply, Schema, Usage
from evenhand.report.terminal.console import outcome_lines
from evenhand.runs.judge import judge_run
from evenhand.runs.stores import open_store
from evenhand.store.ledger import Ledger
from evenhand.store.ports import Scope
from tests import provider as p
from tests.suites import Scripted, at, good_reply, judged, prepared, with_judges, write_suite

PRICE = {"input": 1000, "output": 1000}
"""A tenth of a cent a token, so that every token counts."""
PER_TOKEN = Decimal("0.001")


class Costly:
    """Answers in random order, with random usage up to all that was reserved."""

    def __init__(self, seed: int, most: int) -> None:
        self.tokens, self._random, self._most = 0, random.Random(seed), most

    async def __call__(self, question: Question) -> Reply:
        for _ in range(self._random.randrange(5)):
            await asyncio.sleep(0)
        fate = self._random.random()
        if fate < 0.1:
            raise CallRejected("filtered", "no")
        used, written = token_bound(question), self._most
        if fate < 0.5:
            used, written = used // 10, written // 10
        self.tokens += used + written
        if fate > 0.9:
            raise CallLost("timeout", "lost on its way back", billed=True)
        return good_reply(question, Usage(input_tokens=used, output_tokens=written))


@pytest.mark.parametrize("seed", range(4))
async def test_a_budget_is_never_exceeded(tmp_path: Path, seed: int) -> None:
    limits = {"concurrency": 32, "budget_usd": "60"}
    judge = {"model": "python/judge:good", "price": PRICE, "max_tokens": 300}
    write_suite(tmp_path, 100, judge, limits=limits)
    costly = Costly(seed, 300)
    ready = with_judges(prepared(tmp_path), Scripted(costly))
    summary = await judged(ready)
    assert isinstance(summary.stopped, StoppedEarly)
    assert costly.tokens * PER_TOKEN <= 60
    assert summary.counts.pending > 0
    assert summary.spent.cost + summary.spent.reserved <= 60 * 10**12


async def test_a_raised_budget_goes_on_and_counts_what_was_spent(tmp_path: Path) -> None:
    async with p.Provider() as provider:
        judge = at(provider.url, price=PRICE)
        # A reply costs 1.1 dollars; a question may cost about five.
        write_suite(tmp_path, 12, judge, limits={"budget_usd": "8", "concurrency": 8})
        first = await judged(tmp_path)
        assert first.stopped is not None
        assert first.stopped.exit_code == 5
        assert 0 < first.spent.cost <= 8 * 10**12
        write_suite(tmp_path, 12, judge, limits={"budget_usd": "100"})
        second = await judged(tmp_path)
    assert (second.stopped, second.counts.verdicts) == (None, 12)
    assert len(provider.calls) == 12
    total = first.json()["cost_usd"] + second.json()["spent_usd"]
    assert second.json()["cost_usd"] == pytest.approx(total)


async def test_calls_that_are_lost_and_may_be_billed_stay_reserved(tmp_path: Path) -> None:
    async with p.Provider(p.HTML) as provider:
        write_suite(tmp_path, 1, at(provider.url, price=PRICE), limits={"budget_usd": "1000"})
        lost = await judged(tmp_path)
        provider.script = [p.failing(503)]
        unbilled = await judged(tmp_path)
    assert lost.spent.cost == 0
    assert lost.spent.reserved > 0
    assert unbilled.spent.reserved == lost.spent.reserved


async def test_calls_lost_before_a_cap_was_set_count_against_it(tmp_path: Path) -> None:
    """Eight attempts without a readable answer, each of about five dollars at most."""
    async with p.Provider(p.HTML) as provider:
        judge = at(provider.url, price=PRICE)
        write_suite(tmp_path, 1, judge)
        lost = await judged(tmp_path)
        provider.script = [p.failing(500)]
        unbilled = await judged(tmp_path)
        assert unbilled.spent.reserved == lost.spent.reserved > 0
        provider.script = [p.valid()]
        write_suite(tmp_path, 1, judge, limits={"budget_usd": "20"})
        capped = await judged(tmp_path)
    assert isinstance(capped.stopped, StoppedEarly)
    assert capped.tally.sent == 0


def test_an_unknown_price_with_a_budget_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    judge = at("http://127.0.0.1:9/v1", model="openai/no-such-model")
    write_suite(tmp_path, 1, judge, limits={"budget_usd": "1"})
    with pytest.raises(UsageError, match=r"price of .* is not known"):
        prepared(tmp_path)


async def test_a_store_that_fails_leaves_nobody_waiting_for_money(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker holds all the money when the reservation cannot be written; the rest wait."""
    judge = {"model": "python/judge:good", "price": PRICE, "max_tokens": 300}
    write_suite(tmp_path, 8, judge, limits={"budget_usd": "8", "concurrency": 8})
    ready = prepared(tmp_path)
    store = open_store("sqlite:evenhand.db", tmp_path)

    def full(*_: object) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        failed = loop.create_future()
        # Not at once: the others shall be waiting by then.
        loop.call_soon(failed.set_exception, StoreError("the disk is full"))
        return failed

    monkeypatch.setattr(Ledger, "reserve", full)
    with pytest.raises(StoreError, match="full"):
        await asyncio.wait_for(judge_run(ready, store), 30)
    scope = Scope(store.archive.runs()[0].id)
    assert store.archive.counts(scope, 1).pending == 8
    store.close()


def test_the_bound_counts_bytes_of_messages_and_schema() -> None:
    turn = Message("user", "оценка")
    assert token_bound(Question(messages=(turn,))) == 12 + 16
    assert (
        token_bound(Question(messages=(turn,), schema=Schema({"type": "object"}))) == 12 + 16 + 17
    )


async def test_calls_from_before_a_price_was_known_count_against_a_later_budget(
    tmp_path: Path,
) -> None:
    async with p.Provider(p.valid()) as provider:
        write_suite(tmp_path, 4, at(provider.url))
        first = await judged(tmp_path, limit=2)
        assert first.spent.unpriced == 2
        costly = at(provider.url, price=PRICE)
        write_suite(tmp_path, 4, costly, limits={"budget_usd": "0.5"})
        second = await judged(tmp_path)
    assert second.tally.sent == 0
    assert isinstance(second.stopped, StoppedEarly)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (Usage(), lambda prompt: prompt + 300),
        (Usage(input_tokens=50), lambda prompt: 50 + 300),
        (Usage(input_tokens=50, output_tokens=10), lambda prompt: 50 + 10),
    ],
    ids=["unknown", "half known", "known"],
)
@pytest.mark.parametrize("enough", [True, False])
@pytest.mark.parametrize("model", ["openai/no-such-model", "python/judge:good", "ollama/any"])
async def test_calls_without_a_price_or_a_count_are_the_most_they_can_have_cost(
    tmp_path: Path, usage: Usage, counted: Callable[[int], int], enough: bool, model: str
) -> None:
    """Two calls from before a price was set; then money for them and one more, to the token."""
    prompts: list[int] = []

    async def answer(question: Question) -> Reply:
        prompts.append(token_bound(question))
        return good_reply(question, usage)

    unpriced = {"model": model, "max_tokens": 300}
    write_suite(tmp_path, 3, unpriced)
    first = await judged(with_judges(prepared(tmp_path), Scripted(answer)), limit=2)
    assert (first.spent.cost, len(prompts)) == (0, 2)
    tokens = sum(map(counted, prompts)) + prompts[0] + 300
    budget = PER_TOKEN * (tokens if enough else tokens - 1)
    write_suite(tmp_path, 3, unpriced | {"price": PRICE}, limits={"budget_usd": str(budget)})
    second = await judged(with_judges(prepared(tmp_path), Scripted(answer)))
    assert second.tally.sent == enough
    assert (second.stopped is None) is enough


async def test_calls_of_a_judge_that_is_free_do_not_count_at_the_price_of_another(
    tmp_path: Path,
) -> None:
    """Each call of the judge with a price costs 1.1 dollars, and may cost about six."""
    async with p.Provider() as provider:
        judges = [at(provider.url, price=PRICE), {"model": "python/judge:good"}]
        write_suite(tmp_path, 3, *judges)
        await judged(tmp_path, limit=2)
        write_suite(tmp_path, 3, *judges, limits={"budget_usd": "9"})
        second = await judged(tmp_path)
    assert (second.stopped, second.counts.verdicts) == (None, 6)


async def test_calls_lost_before_their_price_was_known_count_against_a_later_budget(
    tmp_path: Path,
) -> None:
    """Eight attempts without a readable answer, each of about five dollars at most."""
    async with p.Provider(p.HTML) as provider:
        write_suite(tmp_path, 1, at(provider.url))
        await judged(tmp_path)
        provider.script = [p.valid()]
        write_suite(tmp_path, 1, at(provider.url, price=PRICE), limits={"budget_usd": "20"})
        capped = await judged(tmp_path)
    assert isinstance(capped.stopped, StoppedEarly)
    assert capped.tally.sent == 0


async def test_what_is_spent_now_is_told_beside_calls_from_before_a_price_was_known(
    tmp_path: Path,
) -> None:
    async with p.Provider() as provider:
        write_suite(tmp_path, 2, at(provider.url))
        unknown = await judged(tmp_path, limit=1)
        write_suite(tmp_path, 2, at(provider.url, price=PRICE))
        known = await judged(tmp_path)
    assert "price unknown in all" in outcome_lines(unknown.json()).plain
    assert " now, earlier calls at unknown prices" in outcome_lines(known.json()).plain
