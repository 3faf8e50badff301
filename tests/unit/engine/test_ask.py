"""The door: the ledger answers first, equal questions are paid once, everything is durable."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evenhand.errors import CallRejected, StoreError, UsageError
from evenhand.exchange import Question, Reply
from evenhand.runs.judge import judge_run
from evenhand.runs.stores import open_store
from evenhand.store.ledger import Ledger, Store
from tests.provider import Provider, refusing_schema
from tests.suites import (
    Scripted,
    at,
    good_reply,
    judged,
    prepared,
    samples,
    stored,
    with_judges,
    write_suite,
)


def twins(number: int) -> list[dict[str, object]]:
    """The same sample under different ids."""
    return [samples(1)[0] | {"id": f"twin{i}"} for i in range(number)]


async def test_identical_samples_under_different_ids_cost_one_call(tmp_path: Path) -> None:
    write_suite(tmp_path, twins(5), limits={"concurrency": 1})
    summary = await judged(tmp_path)
    assert (summary.tally.sent, summary.tally.cached, summary.counts.verdicts) == (1, 4, 5)


async def test_equal_questions_in_flight_are_paid_once(tmp_path: Path) -> None:
    gate, asked = asyncio.Event(), asyncio.Event()

    async def held(question: Question) -> Reply:
        asked.set()
        await gate.wait()
        return good_reply(question)

    write_suite(tmp_path, twins(8), limits={"concurrency": 8})
    judge = Scripted(held)
    run = asyncio.create_task(judged(with_judges(prepared(tmp_path), judge)))
    await asked.wait()
    gate.set()
    summary = await run
    assert (len(judge.asked), summary.counts.verdicts) == (1, 8)


async def test_a_failure_in_flight_is_shared_too(tmp_path: Path) -> None:
    async def refused(question: Question) -> Reply:
        await asyncio.sleep(0)
        raise CallRejected("filtered", "no")

    write_suite(tmp_path, twins(4), limits={"concurrency": 4})
    judge = Scripted(refused)
    summary = await judged(with_judges(prepared(tmp_path), judge))
    assert (len(judge.asked), summary.counts.failures) == (1, {"filtered": 4})


async def test_a_reply_is_durable_before_it_is_used(tmp_path: Path) -> None:
    """The re-ask comes only when the reply it complains about is in the file."""
    write_suite(tmp_path, 1)
    kept: list[int] = []

    async def checked(question: Question) -> Reply:
        beside = sqlite3.connect(tmp_path / "evenhand.db")
        kept.append(beside.execute("SELECT COUNT(*) FROM calls").fetchone()[0])
        beside.close()
        return Reply(text="{}")

    await judged(with_judges(prepared(tmp_path), Scripted(checked)))
    assert kept == [0, 1, 2]


async def test_a_disk_that_is_full_stops_the_run_and_nothing_half_kept_is_used(
    tmp_path: Path,
) -> None:
    write_suite(tmp_path, 200, limits={"concurrency": 8})
    ready = prepared(tmp_path)
    store = open_store("sqlite:evenhand.db", tmp_path)
    opened: list[Ledger] = []
    answered: list[str] = []

    class Watched(Store):
        @asynccontextmanager
        async def ledger(self) -> AsyncIterator[Ledger]:
            async with store.ledger() as ledger:
                opened.append(ledger)
                yield ledger

    async def answer(question: Question) -> Reply:
        if not answered:
            [(pages,)] = opened[0]._writing.rows("PRAGMA page_count")
            opened[0]._writing.rows(f"PRAGMA max_page_count = {pages + 8}")
        answered.append(question.unit)
        return good_reply(question)

    with pytest.raises(StoreError, match="full") as told:
        await judge_run(with_judges(ready, Scripted(answer)), Watched(store.archive, store.connect))
    store.close()
    assert told.value.exit_code == 6
    rows = stored(tmp_path)
    assert len(rows) < len(answered) < 200
    beside = sqlite3.connect(tmp_path / "evenhand.db")
    kept = {key for (key,) in beside.execute("SELECT key FROM calls")}
    beside.close()
    assert all(set(row["calls"]) <= kept for row in rows)


async def test_repeats_are_calls_of_their_own(tmp_path: Path) -> None:
    write_suite(tmp_path, 3, {"model": "python/judge:good", "repeats": 4})
    summary = await judged(tmp_path)
    assert (summary.counts.planned, summary.tally.sent) == (12, 12)
    assert [row["repeat"] for row in stored(tmp_path)] == [0, 1, 2, 3] * 3


async def test_several_judges_are_asked_each(tmp_path: Path) -> None:
    write_suite(tmp_path, 2, {"model": "python/judge:good"}, {"model": "python/judge:bad"})
    summary = await judged(tmp_path)
    assert (summary.counts.planned, summary.counts.verdicts) == (4, 2)
    assert summary.counts.failures == {"schema": 2}


async def test_a_request_put_in_another_form_counts_like_any_other(tmp_path: Path) -> None:
    async with Provider(refusing_schema()) as provider:
        write_suite(tmp_path, 1, at(provider.url))
        summary = await judged(tmp_path)
        assert summary.counts.verdicts == 1
        assert summary.tally.sent == len(provider.calls) == 2


async def test_a_unit_without_a_recorded_reply_stays_pending(tmp_path: Path) -> None:
    write_suite(tmp_path, 3, {"model": "replay/replies.jsonl"})
    reply = json.dumps({"unit": "u1", "reply": "no JSON"}) + "\n"
    (tmp_path / "replies.jsonl").write_text(reply)
    summary = await judged(tmp_path)
    assert (summary.counts.failures, summary.counts.pending) == ({"not_json": 1}, 2)


def test_a_judge_named_twice_is_refused(tmp_path: Path) -> None:
    judge = {"model": "python/judge:good"}
    write_suite(tmp_path, 1, judge, judge)
    with pytest.raises(UsageError, match="named twice"):
        prepared(tmp_path)
