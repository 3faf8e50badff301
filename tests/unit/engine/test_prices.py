"""Money is whole picodollars; a price that is not known is None, never zero. A budget is a hard
cap, by the provider's own count, which is believed where it can be true."""

import asyncio
import json
import random
from decimal import Decimal

import pytest
from aiohttp import web

from evenhand.engine.prices import PICO, dollars, given_price, listed_price, token_bound, usd
from evenhand.errors import CallLost, CallRejected, StoppedEarly, UsageError
from evenhand.exchange import Message, Question, Schema, Usage
from evenhand.report.terminal.summary import outcome_lines
from evenhand.words import words
from tests import provider as p
from tests.cases import cases
from tests.sentences import is_told
from tests.suites import (
    GOOD,
    Scripted,
    at,
    evenhand_here,
    good_reply,
    judged,
    prepared,
    stored,
    with_judges,
    write_suite,
)

PRICE = {"input": 1000, "output": 1000}
"""A tenth of a cent a token, so that every token counts."""
PER_TOKEN = Decimal("0.001")
FRESH = Usage(input_tokens=1000, output_tokens=10)
NOBODY = "http://127.0.0.1:9/v1"


def budget(usd, **rest):
    return {"limits": {"budget_usd": str(usd), **rest}}


# Prices


def test_a_given_price_is_dollars_a_million_tokens_and_unknown_counts_cost_an_unknown_sum():
    price = given_price(Decimal("0.40"), Decimal("1.60"))
    assert price.cost(Usage(input_tokens=10**6, output_tokens=10**6)) == 2 * PICO
    assert price.bound(10**6, 0) == PICO * 2 // 5
    assert price.cost(Usage(input_tokens=5)) is price.cost(Usage()) is None
    assert listed_price("openai", "no-such-model-at-all") is None


def test_a_listed_price_knows_cached_tokens():
    price = listed_price("openai", "gpt-4.1-mini")
    cached = Usage(input_tokens=1000, output_tokens=10, cached_tokens=900)
    assert 0 < price.cost(cached) < price.cost(FRESH) <= price.bound(1000, 10)


def test_what_a_cache_takes_in_has_its_own_price_and_the_bound_holds():
    """Anthropic bills a quarter more for what is written to the cache."""
    given = given_price(Decimal(1), Decimal(5), Decimal("1.25"))
    for price in (listed_price("anthropic", "claude-haiku-4-5"), given):
        assert price.stored * 4 == price.input * 5
        stored = Usage(input_tokens=1000, output_tokens=10, cache_write_tokens=1000)
        assert price.cost(FRESH) < price.cost(stored) == price.bound(1000, 10)


@pytest.mark.parametrize(
    ("pico", "text"), [(0, "0"), (PICO, "1"), (PICO // 2, "0.5"), (1, "0.000000000001")]
)
def test_money_is_written_exactly(pico, text):
    assert (usd(pico), dollars(pico)) == (text, float(text))


def test_the_bound_counts_bytes_of_messages_and_schema():
    turns = (Message("user", "оценка"),)
    assert token_bound(Question(messages=turns)) == 12 + 16
    schema = Schema({"type": "object"})
    assert token_bound(Question(messages=turns, schema=schema)) == 12 + 16 + 17


@cases
def test_a_number_that_cannot_be_meant_is_told_before_anything_is_sent(tmp_path, rest, word):
    limits = {"limits": rest.pop("limits")} if "limits" in rest else {}
    write_suite(tmp_path, 1, at(NOBODY, **rest), **limits)
    with pytest.raises(UsageError, match=word):
        prepared(tmp_path)


def test_a_price_below_a_picodollar_is_not_free(tmp_path):
    write_suite(tmp_path, 1, at(NOBODY, price={"input": "1e-9", "output": "1e-9"}))
    assert prepared(tmp_path).setups[0].price.bound(1000, 1000) > 0


# Budgets


@pytest.mark.parametrize("seed", range(4))
async def test_a_budget_is_never_exceeded(tmp_path, seed):
    """By answers in random order, with random usage up to all that was reserved."""
    tokens, chance = 0, random.Random(seed)

    async def answer(question):
        nonlocal tokens
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)
        fate = chance.random()
        if fate < 0.1:
            raise CallRejected("filtered", "no")
        used, written = token_bound(question), 300
        if fate < 0.5:
            used, written = used // 10, written // 10
        tokens += used + written
        if fate > 0.9:
            raise CallLost("timeout", "lost on its way back", billed=True)
        return good_reply(question, Usage(input_tokens=used, output_tokens=written))

    judge = {**GOOD, "price": PRICE, "max_tokens": 300}
    write_suite(tmp_path, 100, judge, **budget(60, concurrency=32))
    summary = await judged(with_judges(prepared(tmp_path), Scripted(answer)))
    assert isinstance(summary.stopped, StoppedEarly) and summary.counts.pending > 0
    assert tokens * PER_TOKEN <= 60
    assert summary.spent.cost + summary.spent.reserved <= 60 * PICO


async def test_a_raised_budget_goes_on_and_counts_what_was_spent(tmp_path):
    async with p.Provider() as provider:
        judge = at(provider.url, price=PRICE)
        # A reply costs 1.1 dollars; a question may cost about five.
        first = await judged(write_suite(tmp_path, 12, judge, **budget(8, concurrency=8)))
        second = await judged(write_suite(tmp_path, 12, judge, **budget(100)))
    assert first.stopped.exit_code == 5 and 0 < first.spent.cost <= 8 * PICO
    assert (second.stopped, second.counts.verdicts, len(provider.calls)) == (None, 12, 12)
    total = first.json()["cost_usd"] + second.json()["spent_usd"]
    assert second.json()["cost_usd"] == pytest.approx(total)


@pytest.mark.parametrize("is_priced", [True, False], ids=["before a cap", "before a price"])
async def test_calls_that_are_lost_and_may_be_billed_stay_reserved(tmp_path, is_priced):
    """Eight attempts without a readable answer, each of about five dollars at most."""
    async with p.Provider(p.HTML) as provider:
        before = at(provider.url, **({"price": PRICE} if is_priced else {}))
        lost = await judged(write_suite(tmp_path, 1, before))
        provider.script = [p.failing(503)]
        unbilled = await judged(tmp_path)
        provider.script = [p.valid()]
        write_suite(tmp_path, 1, at(provider.url, price=PRICE), **budget(20))
        capped = await judged(tmp_path)
    assert lost.spent.cost == 0 and (lost.spent.reserved > 0) is is_priced
    assert unbilled.spent.reserved == lost.spent.reserved
    assert isinstance(capped.stopped, StoppedEarly) and capped.tally.sent == 0


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
    tmp_path, usage, counted, enough, model
):
    """Two calls from before a price was set; then money for them and one more, to the token."""
    prompts = []

    async def answer(question):
        prompts.append(token_bound(question))
        return good_reply(question, usage)

    unpriced = {"model": model, "max_tokens": 300}
    write_suite(tmp_path, 3, unpriced)
    first = await judged(with_judges(prepared(tmp_path), Scripted(answer)), limit=2)
    assert (first.spent.cost, len(prompts)) == (0, 2)
    tokens = sum(map(counted, prompts)) + prompts[0] + 300 - (not enough)
    write_suite(tmp_path, 3, unpriced | {"price": PRICE}, **budget(PER_TOKEN * tokens))
    second = await judged(with_judges(prepared(tmp_path), Scripted(answer)))
    assert second.tally.sent == enough
    assert (second.stopped is None) is enough


async def test_calls_of_a_judge_that_is_free_do_not_count_at_the_price_of_another(tmp_path):
    """Each call of the judge with a price costs 1.1 dollars, and may cost about six."""
    async with p.Provider() as provider:
        judges = [at(provider.url, price=PRICE), GOOD]
        await judged(write_suite(tmp_path, 3, *judges), limit=2)
        second = await judged(write_suite(tmp_path, 3, *judges, **budget(9)))
    assert (second.stopped, second.counts.verdicts) == (None, 6)


async def test_what_is_spent_now_is_told_beside_calls_from_before_a_price_was_known(tmp_path):
    async with p.Provider() as provider:
        write_suite(tmp_path, 2, at(provider.url))
        unknown = await judged(tmp_path, limit=1)
        write_suite(tmp_path, 2, at(provider.url, price=PRICE))
        known = await judged(tmp_path)
    assert (unknown.spent.unpriced, known.spent.unpriced) == (1, 1)
    assert is_told(outcome_lines(unknown.json(), words("en")).plain, "cli.cost_unknown")
    assert is_told(outcome_lines(known.json(), words("en")).plain, "cli.cost_now")


# What a provider claims


def claiming(*counts, **more):
    """A good reply with these counts for its usage, or with another value."""
    usage = dict(zip(("prompt_tokens", "completion_tokens"), counts, strict=False)) | more
    usage = usage.get("usage", usage)

    async def behaviour(call):
        reply = p.valid_reply(call.body, call.schema)
        body = json.loads(p.completion(json.dumps(reply))) | {"usage": usage}
        return web.Response(body=json.dumps(body).encode(), content_type="application/json")

    return behaviour


async def judged_by(folder, behaviour, units=3, price=PRICE, **rest):
    """A run by a provider with a price, and its calls."""
    async with p.Provider(behaviour) as provider:
        write_suite(folder, units, at(provider.url, price=price), **rest)
        return await judged(folder), provider.calls


@pytest.mark.parametrize(
    ("claim", "key", "tokens"),
    [
        (claiming(900, 2560), "overcharged_output", 2560),
        (claiming(90_000, 20), "overcharged_prompt", 90_000),
        (claiming(900, 20, total_tokens=3480), "overcharged_output", 2580),
    ],
    ids=["ten times max_tokens", "a longer prompt", "hidden reasoning"],
)
async def test_a_provider_that_bills_more_than_was_allowed_stops_a_run_with_a_budget(
    tmp_path, claim, key, tokens
):
    summary, calls = await judged_by(tmp_path, claim, 40, **budget(1000, concurrency=4))
    assert isinstance(summary.stopped, StoppedEarly)
    assert summary.stopped.key == f"engine.{key}"
    assert summary.stopped.what.values["tokens"] == tokens
    # What was answered was paid for, and is kept.
    assert summary.counts.verdicts == len(calls) <= 4


async def test_the_cap_is_passed_by_no_more_than_what_was_under_way(tmp_path):
    price, width = {"input": 0, "output": 1000}, budget(1, concurrency=2)
    summary, calls = await judged_by(tmp_path, claiming(900, 2560), 40, price, **width)
    assert summary.spent.cost == len(calls) * 2560 * PICO // 1000
    assert len(calls) <= 2
    assert (await judged(tmp_path)).tally.sent == 0


@pytest.mark.parametrize(
    ("written", "limits"),
    [(2560, {}), (256, budget(1000)), (260, budget(1000))],
    ids=["no budget", "all of it", "and a few"],
)
async def test_without_a_budget_or_at_the_limit_nothing_is_stopped(tmp_path, written, limits):
    summary, _ = await judged_by(tmp_path, claiming(900, written), **limits)
    assert (summary.stopped, summary.counts.verdicts) == (None, 3)


ABSURD = [10**30, 999_999_999, -5, 12.0, "12", True, float("nan"), float("inf"), [1], {"a": 1}]


def is_flagged(folder):
    (row,) = stored(folder)
    return "usage_not_believed" in row["flags"]


@pytest.mark.parametrize("claim", ABSURD, ids=str)
@pytest.mark.parametrize("place", ["prompt_tokens", "completion_tokens"])
async def test_a_count_that_cannot_be_true_is_not_believed(tmp_path, claim, place):
    summary, calls = await judged_by(tmp_path, claiming(900, 20, **{place: claim}), 1)
    assert is_flagged(tmp_path)
    assert not any(summary.json()["usage"].values())
    # The most that the call can have cost: the bytes of its prompt and all of max_tokens.
    assert summary.spent.cost > (len(calls[0].raw) // 2 + 256) * PICO // 1000


async def test_the_flag_comes_back_from_the_ledger(tmp_path):
    await judged_by(tmp_path, claiming(-1, 5), 1)
    settled = await asyncio.to_thread(evenhand_here, "settle", "latest", cwd=tmp_path)
    assert settled.returncode == 0, settled.stderr
    assert is_flagged(tmp_path)


@pytest.mark.parametrize(
    "claim", [claiming(usage=None), claiming(), claiming(900, 20), claiming(None, None)]
)
async def test_a_count_that_is_missing_or_true_is_no_flag(tmp_path, claim):
    await judged_by(tmp_path, claim, 1)
    assert not is_flagged(tmp_path)
