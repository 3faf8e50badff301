"""What a provider says it has counted: believed where it can be true, and never beyond a budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from evenhand.errors import StoppedEarly, UsageError
from tests import provider as p
from tests.suites import at, evenhand_here, judged, prepared, stored, write_suite

PRICE = {"input": 1000, "output": 1000}
PICO = 10**12


def claiming(usage: Any) -> p.Behaviour:
    """A good reply with this for its usage."""

    async def behaviour(call: p.Call) -> web.StreamResponse:
        reply = p.valid_reply(call.body, call.schema)
        body = json.loads(p.completion(json.dumps(reply))) | {"usage": usage}
        return web.Response(body=json.dumps(body).encode(), content_type="application/json")

    return behaviour


def tokens(prompt: Any, completion: Any, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, **more}


# Beyond what was allowed


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (tokens(900, 2560), "2,560 output tokens, where max_tokens allows 256"),
        (tokens(90_000, 20), "90,000 prompt tokens"),
        (tokens(900, 20, total_tokens=3480), "2,580 output tokens"),
    ],
    ids=["ten times max_tokens", "a longer prompt", "hidden reasoning"],
)
async def test_a_provider_that_bills_more_than_was_allowed_stops_a_run_with_a_budget(
    tmp_path: Path, usage: Any, words: str
) -> None:
    async with p.Provider(claiming(usage)) as provider:
        limits = {"concurrency": 4, "budget_usd": "1000"}
        write_suite(tmp_path, 40, at(provider.url, price=PRICE), limits=limits)
        summary = await judged(tmp_path)
    assert isinstance(summary.stopped, StoppedEarly)
    assert words in str(summary.stopped)
    assert "budget_usd" in summary.stopped.advice
    assert len(provider.calls) <= 4
    # What was answered was paid for, and is kept.
    assert summary.counts.verdicts == len(provider.calls)


async def test_the_cap_is_passed_by_no_more_than_what_was_under_way(tmp_path: Path) -> None:
    async with p.Provider(claiming(tokens(900, 2560))) as provider:
        judge = at(provider.url, price={"input": 0, "output": 1000})
        write_suite(tmp_path, 40, judge, limits={"concurrency": 2, "budget_usd": "1"})
        summary = await judged(tmp_path)
        again = await judged(tmp_path)
    assert summary.spent.cost == len(provider.calls) * 2560 * PICO // 1000
    assert len(provider.calls) <= 2
    assert again.tally.sent == 0


async def test_without_a_budget_nothing_is_stopped(tmp_path: Path) -> None:
    async with p.Provider(claiming(tokens(900, 2560))) as provider:
        write_suite(tmp_path, 3, at(provider.url, price=PRICE))
        summary = await judged(tmp_path)
    assert (summary.stopped, summary.counts.verdicts) == (None, 3)


@pytest.mark.parametrize("completion", [256, 260], ids=["all of it", "and a few"])
async def test_counts_at_the_limit_stop_nothing(tmp_path: Path, completion: int) -> None:
    async with p.Provider(claiming(tokens(900, completion))) as provider:
        judge = at(provider.url, price=PRICE)
        write_suite(tmp_path, 3, judge, limits={"budget_usd": "1000"})
        summary = await judged(tmp_path)
    assert (summary.stopped, summary.counts.verdicts) == (None, 3)


# What cannot be true

ABSURD = [10**30, 999_999_999, -5, 12.0, "12", True, float("nan"), float("inf"), [1], {"a": 1}]


@pytest.mark.parametrize("claim", ABSURD, ids=str)
@pytest.mark.parametrize("place", ["prompt", "completion"])
async def test_a_count_that_cannot_be_true_is_not_believed(
    tmp_path: Path, claim: Any, place: str
) -> None:
    counts = {"prompt": 900, "completion": 20} | {place: claim}
    async with p.Provider(claiming(tokens(**counts))) as provider:
        write_suite(tmp_path, 1, at(provider.url, price=PRICE))
        summary = await judged(tmp_path)
    (row,) = stored(tmp_path)
    assert "usage_not_believed" in row["flags"]
    assert not any(summary.json()["usage"].values())
    # The most that the call can have cost: the bytes of its prompt and all of max_tokens.
    assert summary.spent.cost > (len(provider.calls[0].raw) // 2 + 256) * PICO // 1000


async def test_the_flag_comes_back_from_the_ledger(tmp_path: Path) -> None:
    async with p.Provider(claiming(tokens(-1, 5))) as provider:
        write_suite(tmp_path, 1, at(provider.url))
        await judged(tmp_path)
    settled = evenhand_here("settle", "latest", cwd=tmp_path)
    assert settled.returncode == 0, settled.stderr
    (row,) = stored(tmp_path)
    assert "usage_not_believed" in row["flags"]


@pytest.mark.parametrize("usage", [None, {}, tokens(900, 20), tokens(None, None)], ids=str)
async def test_a_count_that_is_missing_or_true_is_no_flag(tmp_path: Path, usage: Any) -> None:
    async with p.Provider(claiming(usage)) as provider:
        write_suite(tmp_path, 1, at(provider.url, price=PRICE))
        await judged(tmp_path)
    (row,) = stored(tmp_path)
    assert "usage_not_believed" not in row["flags"]


# Prices and stores that no number fits


@pytest.mark.parametrize("number", ["1e30", "-1", "nan", "inf", "1e999999", "10001"])
@pytest.mark.parametrize("key", ["input", "output"])
def test_a_price_that_cannot_be_meant_is_a_usage_error(
    tmp_path: Path, number: str, key: str
) -> None:
    judge = at("http://127.0.0.1:9/v1", price={"input": "1", "output": "1"} | {key: number})
    write_suite(tmp_path, 1, judge)
    with pytest.raises(UsageError, match="price"):
        prepared(tmp_path)


@pytest.mark.parametrize("number", ["1e30", "-1", "nan", "1e999999"])
def test_a_budget_that_cannot_be_meant_is_a_usage_error(tmp_path: Path, number: str) -> None:
    write_suite(tmp_path, 1, limits={"budget_usd": number})
    with pytest.raises(UsageError, match="budget_usd"):
        prepared(tmp_path)


def test_max_tokens_are_bounded(tmp_path: Path) -> None:
    write_suite(tmp_path, 1, at("http://127.0.0.1:9/v1", max_tokens=10**12))
    with pytest.raises(UsageError, match="max_tokens"):
        prepared(tmp_path)


def test_a_price_below_a_picodollar_is_not_free(tmp_path: Path) -> None:
    judge = at("http://127.0.0.1:9/v1", price={"input": "1e-9", "output": "1e-9"})
    write_suite(tmp_path, 1, judge)
    price = prepared(tmp_path).setups[0].price
    assert price is not None
    assert price.bound(1000, 1000) > 0
