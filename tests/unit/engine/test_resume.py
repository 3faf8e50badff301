"""Running again continues: nothing is sent twice, nothing that stands is judged again."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from evenhand.runs.judge import Summary
from evenhand.runs.recorded import find_run
from evenhand.runs.settle import settle_run
from evenhand.runs.stores import open_archive, open_store
from evenhand.store.verify import verify
from tests import provider as p
from tests.suites import JUDGE, at, judged, samples, stored, write_rows, write_suite


async def settled(folder: Path) -> Summary:
    store = open_store("sqlite:evenhand.db", folder, must_exist=True)
    try:
        return await settle_run(find_run(store.archive, "latest"), store)
    finally:
        store.close()


async def test_a_finished_run_sends_nothing(tmp_path: Path) -> None:
    write_suite(tmp_path, 5)
    first = await judged(tmp_path)
    again = await judged(tmp_path)
    assert (first.tally.sent, again.tally.sent, again.tally.cached) == (5, 0, 5)
    assert again.run == first.run
    assert again.counts.verdicts == 5
    assert again.json()["spent_usd"] == 0


async def test_added_units_make_another_run_and_only_they_are_sent(tmp_path: Path) -> None:
    write_suite(tmp_path, 3)
    first = await judged(tmp_path)
    write_rows(tmp_path, samples(5))
    again = await judged(tmp_path, tell_changes=lambda changes, differences: None)
    assert again.run != first.run
    assert (again.tally.sent, again.tally.cached, again.counts.planned) == (2, 3, 5)
    assert again.changed == (2, 0, 0)


async def test_limit_caps_what_is_planned_and_the_rest_is_free_to_follow(tmp_path: Path) -> None:
    write_suite(tmp_path, 5)
    first = await judged(tmp_path, limit=2)
    assert (first.counts.planned, first.counts.verdicts, first.counts.pending) == (2, 2, 0)
    again = await judged(tmp_path)
    assert (again.run, again.tally.sent, again.counts.planned) == (first.run, 3, 5)


async def test_a_changed_unit_is_judged_anew_and_its_old_verdict_stays_with_the_old_run(
    tmp_path: Path,
) -> None:
    write_suite(tmp_path, 3)
    first = await judged(tmp_path)
    rows = samples(3)
    rows[1]["model_output"] = "Another answer than before."
    write_rows(tmp_path, rows)
    limited = await judged(tmp_path, limit=1)
    assert (limited.counts.verdicts, limited.tally.sent) == (1, 0)
    assert {row["unit"] for row in stored(tmp_path)} == {"u0", "u2"}
    again = await judged(tmp_path)
    assert (again.run, again.tally.sent, again.counts.verdicts) == (limited.run, 1, 3)
    quotes = {
        run: next(row for row in stored(tmp_path, run) if row["unit"] == "u1")["output"]["scores"]
        for run in (first.run, again.run)
    }
    assert quotes[first.run] != quotes[again.run]


@pytest.mark.parametrize(
    ("behaviour", "reason", "limits"),
    [
        (p.failing(500), "transport", {}),
        (p.never(), "timeout", {"attempt_seconds": 0.1, "call_seconds": 0.3}),
    ],
    ids=["transport", "timeout"],
)
async def test_what_was_lost_is_tried_by_the_next_run(
    tmp_path: Path, behaviour: p.Behaviour, reason: str, limits: dict[str, float]
) -> None:
    async with p.Provider(behaviour) as provider:
        write_suite(tmp_path, 2, at(provider.url), limits=limits)
        first = await judged(tmp_path)
        provider.script = [p.valid()]
        write_suite(tmp_path, 2, at(provider.url))  # as long as a busy machine takes
        again = await judged(tmp_path)
    assert first.counts.failures == {reason: 2}
    assert (again.counts.verdicts, again.counts.failures, again.tally.sent) == (2, {}, 2)


async def test_a_crash_of_the_judge_is_tried_by_the_next_run(tmp_path: Path) -> None:
    flaky = JUDGE + (
        "\nimport pathlib\nasync def flaky(messages, schema, params):\n"
        "    if pathlib.Path(__file__).with_name('well').exists():\n"
        "        return reply(messages)\n"
        "    raise RuntimeError('not yet')\n"
    )
    write_suite(tmp_path, 2, {"model": "python/judge:flaky"}, judge=flaky)
    first = await judged(tmp_path)
    (tmp_path / "well").touch()
    again = await judged(tmp_path)
    assert first.counts.failures == {"judge_crash": 2}
    assert (again.counts.verdicts, again.counts.failures) == (2, {})


async def test_other_failures_are_asked_again_only_with_retry_failures(tmp_path: Path) -> None:
    async with p.Provider([p.valid(), p.valid(p.key_extra)]) as provider:
        write_suite(tmp_path, 2, at(provider.url), limits={"concurrency": 1})
        first = await judged(tmp_path)
        assert (first.counts.verdicts, first.counts.failures) == (1, {"schema": 1})
        provider.script = [p.valid()]
        plain = await judged(tmp_path)
        assert (plain.tally.sent, plain.counts.failures) == (0, {"schema": 1})
        again = await judged(tmp_path, retry_failures=True)
        assert (again.tally.sent, again.counts.verdicts, again.counts.failures) == (1, 2, {})
    # What was paid for stays in the ledger and in the bill.
    assert again.spent.calls == 5
    assert again.spent.input_tokens == 5 * 900
    store = open_archive("sqlite:evenhand.db", tmp_path)
    assert verify(store) == []
    store.close()


async def test_failures_can_be_retried_more_than_once(tmp_path: Path) -> None:
    async with p.Provider(p.valid(p.key_extra)) as provider:
        write_suite(tmp_path, 1, at(provider.url), settings={"repairs": 0})
        sent = [(await judged(tmp_path, retry_failures=True)).tally.sent for _ in range(3)]
    assert sent == [1, 1, 1]


async def test_settle_recomputes_without_a_call(tmp_path: Path) -> None:
    write_suite(tmp_path, 4, {"model": "python/judge:good", "repeats": 2})
    first = await judged(tmp_path)
    before = stored(tmp_path)
    with sqlite3.connect(tmp_path / "evenhand.db") as beside:
        beside.execute("UPDATE judgments SET body=replace(body, '\"fits\"', '\"altered\"')")
    beside.close()
    again = await settled(tmp_path)
    assert (again.tally.sent, again.tally.cached, again.counts) == (0, 8, first.counts)
    assert stored(tmp_path) == before


async def test_under_another_contract_settle_makes_a_run_beside_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(tmp_path, 4)
    first = await judged(tmp_path)
    before = stored(tmp_path)
    monkeypatch.setattr("evenhand.runs.settle.CONTRACT", "contract of the next version")
    again = await settled(tmp_path)
    assert again.run != first.run
    assert (again.tally.sent, again.tally.cached, again.counts.verdicts) == (0, 4, 4)
    assert stored(tmp_path, first.run) == stored(tmp_path, again.run) == before


async def test_what_settle_misses_becomes_pending(tmp_path: Path) -> None:
    write_suite(tmp_path, 4)
    await judged(tmp_path)
    with sqlite3.connect(tmp_path / "evenhand.db") as beside:
        beside.execute("DELETE FROM calls WHERE rowid=2")
    beside.close()
    summary = await settled(tmp_path)
    assert (summary.counts.verdicts, summary.counts.pending) == (3, 1)
    assert (await judged(tmp_path)).tally.sent == 1


@pytest.mark.parametrize("other", [{"name": "another"}, {"settings": {"repairs": 1}}])
async def test_another_run_in_the_same_store_pays_nothing_for_the_same_questions(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    write_suite(tmp_path, 3)
    first = await judged(tmp_path)
    write_suite(tmp_path, 3, **other)
    again = await judged(tmp_path)
    assert again.run != first.run
    assert (again.tally.sent, again.counts.verdicts) == (0, 3)


async def test_limits_are_no_part_of_the_run(tmp_path: Path) -> None:
    runs = set()
    for concurrency in (1, 9):
        write_suite(tmp_path, 1, limits={"concurrency": concurrency, "budget_usd": "3"})
        runs.add((await judged(tmp_path)).run)
    write_suite(tmp_path, 1, seed=8)
    runs.add((await judged(tmp_path)).run)
    assert len(runs) == 2


async def test_the_deadline_of_a_run_stops_it(tmp_path: Path) -> None:
    async with p.Provider(p.pausing(0.1)) as provider:
        write_suite(tmp_path, 50, at(provider.url), limits={"concurrency": 2, "run_seconds": 0.05})
        summary = await judged(tmp_path)
    assert summary.stopped is not None
    assert summary.stopped.exit_code == 5
    assert summary.counts.pending > 0
    assert summary.counts.failures == {}
