"""Running again continues: nothing is sent twice, nothing that stands is judged again; and with
`--retry-failures` only what failed is asked again."""

import sqlite3
from contextlib import closing, contextmanager

import pytest

from evenhand.engine.progress import Progress
from evenhand.runs.forecast import forecast
from evenhand.runs.stores import open_archive
from evenhand.store.verify import verify
from evenhand.words import words
from tests import provider as p
from tests.sentences import is_told
from tests.suites import (
    GOOD,
    JUDGE,
    PAIR_JUDGE,
    at,
    judged,
    pair_row,
    pairs,
    prepared,
    samples,
    stored,
    write_pairs,
    write_rows,
    write_suite,
)
from tests.unit.engine.pair_runs import settled_again

ONE_BY_ONE = {"concurrency": 1}
WELL = """
import pathlib

def is_well():
    return pathlib.Path(__file__).with_name("well").exists()
"""
FLAKY = f"""{JUDGE}{WELL}
async def flaky(messages, schema, params):
    if len(messages) > 2 and not is_well():
        raise RuntimeError("no luck")
    return reply(messages) if is_well() else "{{}}"
"""


async def test_a_finished_run_sends_nothing(tmp_path):
    write_suite(tmp_path, 5)
    first, again = await judged(tmp_path), await judged(tmp_path)
    assert (first.tally.sent, again.tally.sent, again.tally.cached) == (5, 0, 5)
    assert (again.run, again.counts.verdicts) == (first.run, 5)
    assert again.json()["spent_usd"] == 0


async def test_added_units_make_another_run_and_only_they_are_sent(tmp_path):
    write_suite(tmp_path, 3)
    first = await judged(tmp_path)
    write_rows(tmp_path, samples(5))
    again = await judged(tmp_path, tell_changes=lambda changes, differences: None)
    assert again.run != first.run
    assert (again.tally.sent, again.tally.cached, again.counts.planned) == (2, 3, 5)
    assert again.changed == (2, 0, 0)


async def test_limit_caps_what_is_planned_and_the_rest_is_free_to_follow(tmp_path):
    write_suite(tmp_path, 5)
    first = await judged(tmp_path, limit=2)
    assert (first.counts.planned, first.counts.verdicts, first.counts.pending) == (2, 2, 0)
    again = await judged(tmp_path)
    assert (again.run, again.tally.sent, again.counts.planned) == (first.run, 3, 5)


async def test_a_changed_unit_is_judged_anew_and_its_old_verdict_stays_with_the_old_run(tmp_path):
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
    old, new = (
        [row["output"] for row in stored(tmp_path, one.run) if row["unit"] == "u1"]
        for one in (first, again)
    )
    assert old != new


@pytest.mark.parametrize(
    ("behaviour", "reason", "limits"),
    [
        (p.failing(500), "transport", {}),
        (p.never(), "timeout", {"attempt_seconds": 0.1, "call_seconds": 0.3}),
    ],
    ids=["transport", "timeout"],
)
async def test_what_was_lost_is_tried_by_the_next_run(tmp_path, behaviour, reason, limits):
    async with p.Provider(behaviour) as provider:
        write_suite(tmp_path, 2, at(provider.url), limits=limits)
        first = await judged(tmp_path)
        provider.script = [p.valid()]
        write_suite(tmp_path, 2, at(provider.url))  # as long as a busy machine takes
        again = await judged(tmp_path)
    assert first.counts.failures == {reason: 2}
    assert (again.counts.verdicts, again.counts.failures, again.tally.sent) == (2, {}, 2)


async def test_a_crash_is_tried_by_the_next_run_and_the_calls_before_it_are_counted_once(tmp_path):
    first = await judged(write_suite(tmp_path, 2, {"model": "python/judge:flaky"}, judge=FLAKY))
    assert (first.counts.failures, first.counts.calls) == ({"judge_crash": 2}, 2)
    (tmp_path / "well").touch()
    again = await judged(tmp_path)
    assert (again.tally.sent, again.tally.cached, again.counts.verdicts) == (2, 2, 2)


async def test_other_failures_are_asked_again_only_with_retry_failures(tmp_path):
    async with p.Provider([p.valid(), p.valid(p.key_extra)]) as provider:
        write_suite(tmp_path, 2, at(provider.url), limits=ONE_BY_ONE)
        first, plain = await judged(tmp_path), await judged(tmp_path)
        assert (first.counts.verdicts, first.counts.failures) == (1, {"schema": 1})
        assert (plain.tally.sent, plain.counts.failures) == (0, {"schema": 1})
        # More than once, from its start.
        sent = [(await judged(tmp_path, retry_failures=True)).tally.sent for _ in range(2)]
        provider.script = [p.valid()]
        again = await judged(tmp_path, retry_failures=True)
    assert sent == [3, 3]
    assert (again.tally.sent, again.counts.verdicts, again.counts.failures) == (1, 2, {})
    # What was paid for stays in the ledger and in the bill.
    assert (again.spent.calls, again.spent.input_tokens) == (11, 11 * 900)
    assert_verified(tmp_path)


def assert_verified(folder):
    with closing(open_archive("sqlite:evenhand.db", folder)) as store:
        assert verify(store) == []


@pytest.mark.parametrize("other", [{"name": "another"}, {"settings": {"repairs": 1}}])
async def test_another_run_in_the_same_store_pays_nothing_for_the_same_questions(tmp_path, other):
    first = await judged(write_suite(tmp_path, 3))
    again = await judged(write_suite(tmp_path, 3, **other))
    assert again.run != first.run
    assert (again.tally.sent, again.counts.verdicts) == (0, 3)


async def test_limits_are_no_part_of_the_run(tmp_path):
    runs = [
        (await judged(write_suite(tmp_path, 1, **rest))).run
        for rest in ({"limits": {"concurrency": 9, "budget_usd": "3"}}, {}, {"seed": 8})
    ]
    assert runs[0] == runs[1] != runs[2]


async def test_the_deadline_of_a_run_stops_it(tmp_path):
    async with p.Provider(p.pausing(0.1)) as provider:
        write_suite(tmp_path, 50, at(provider.url), limits={"concurrency": 2, "run_seconds": 0.05})
        summary = await judged(tmp_path)
    assert summary.stopped.exit_code == 5
    assert summary.counts.pending > 0 and summary.counts.failures == {}


# Settling


def change_store(folder, statement):
    with closing(sqlite3.connect(folder / "evenhand.db")) as beside, beside:
        beside.execute(statement)


async def test_under_another_contract_settle_makes_a_run_beside_the_old_one(tmp_path, monkeypatch):
    first, before = await judged(write_suite(tmp_path, 4)), stored(tmp_path)
    monkeypatch.setattr("evenhand.runs.settle.CONTRACT", "contract of the next version")
    again = await settled_again(tmp_path)
    assert again.run != first.run
    assert (again.tally.sent, again.tally.cached, again.counts.verdicts) == (0, 4, 4)
    assert stored(tmp_path, first.run) == stored(tmp_path, again.run) == before


async def test_settle_recomputes_without_a_call_and_what_it_misses_becomes_pending(tmp_path):
    first = await judged(write_suite(tmp_path, 4, {**GOOD, "repeats": 2}))
    before = stored(tmp_path)
    change_store(tmp_path, "UPDATE judgments SET body=replace(body, 'fits', 'altered')")
    assert stored(tmp_path) != before
    again = await settled_again(tmp_path)
    assert (again.tally.sent, again.tally.cached, again.counts) == (0, 8, first.counts)
    assert stored(tmp_path) == before
    change_store(tmp_path, "DELETE FROM calls WHERE rowid=2")
    summary = await settled_again(tmp_path)
    assert (summary.counts.verdicts, summary.counts.pending) == (7, 1)
    assert (await judged(tmp_path)).tally.sent == 1


# --retry-failures of pairs, from the conversation that failed

FIRST, CONTENT = p.comparing(lambda call: "A"), p.comparing(p.by_number)
BAD = p.saying("{}")


@contextmanager
def store_of(folder):
    with closing(open_archive("sqlite:evenhand.db", folder)) as store:
        yield store


async def test_a_pair_is_asked_again_from_the_round_that_failed_as_the_forecast_says(tmp_path):
    """Two rounds that contradict each other, then two passes of three bad tries each."""
    async with p.Provider([*[FIRST] * 4, BAD]) as provider:
        write_pairs(tmp_path, 1, at(provider.url), limits=ONE_BY_ONE)
        first = await judged(tmp_path)
        assert (first.tally.sent, first.counts.failures) == (10, {"schema": 1})
        with store_of(tmp_path) as store:
            plain = await forecast(prepared(tmp_path), store, None)
            retry = await forecast(prepared(tmp_path), store, None, retry_failures=True)
        again = await judged(tmp_path, retry_failures=True)
        provider.script = [CONTENT]
        last = await judged(tmp_path, retry_failures=True)
    assert (plain.done, plain.calls_least, plain.calls_most) == (1, 0, 0)
    assert (retry.done, retry.answered, retry.calls_least, retry.calls_most) == (0, 4, 2, 6)
    assert (again.tally.sent, again.counts.failures) == (6, {"schema": 1})
    assert (last.tally.sent, last.tally.cached, last.counts.verdicts) == (2, 4, 1)
    (row,) = stored(tmp_path)
    assert (row["output"]["winner"], row["output"]["settled"]) == ("A", "resolved")
    assert [made["round"] for made in row["passes"]] == [1, 1, 2, 2, 3, 3]
    assert not any(made["problems"] for made in row["passes"])
    assert last.spent.calls == 18
    assert (await settled_again(tmp_path)).counts.verdicts == 1
    assert_verified(tmp_path)


@pytest.mark.parametrize(
    ("script", "calls", "reasks"),
    [
        ([BAD, BAD, CONTENT, BAD], 5, [0, 1, 0]),
        ([CONTENT, p.overflowing()], 1, [0, 0]),
        ([CONTENT, BAD, p.overflowing()], 2, [0, 0]),
    ],
    ids=["mended", "rejected", "bad and rejected"],
)
async def test_a_failure_costs_only_its_own_conversation(tmp_path, script, calls, reasks):
    async with p.Provider(script) as provider:
        write_pairs(tmp_path, 1, at(provider.url), limits=ONE_BY_ONE)
        first = await judged(tmp_path)
        assert sum(first.counts.failures.values()) == 1 and first.spent.calls == calls
        provider.script = [CONTENT]
        again = await judged(tmp_path, retry_failures=True)
    assert (again.tally.sent, again.counts.verdicts) == (1, 1)
    (row,) = stored(tmp_path)
    assert [made["reask"] for made in row["passes"]] == reasks


HALF = f"""{PAIR_JUDGE}{WELL}
async def half(messages, schema, params):
    shown = "".join(message["content"] for message in messages)
    order = "12" if shown.index("An answer worth") < shown.index("A reply worth") else "21"
    return alike("tie") if is_well() or order != "ORDER" else "{{}}"
"""


@pytest.mark.parametrize("order", ["12", "21"])
async def test_a_good_pass_beside_a_failed_one_is_not_asked_again(tmp_path, order):
    """Whichever of the two comes first."""
    source = HALF.replace("ORDER", order)
    write_pairs(tmp_path, 2, {"model": "python/judge:half"}, judge=source)
    first = await judged(tmp_path)
    assert (first.tally.sent, first.counts.failures) == (8, {"schema": 2})
    (tmp_path / "well").touch()
    again = await judged(tmp_path, retry_failures=True)
    assert (again.tally.sent, again.tally.cached, again.counts.verdicts) == (2, 2, 2)


async def test_progress_ends_with_all_that_is_settled(tmp_path):
    rows, lines = [pair_row("mine", 3, 1), *pairs(1)], []
    rows[0]["candidates"][0]["id"] = "gpt-4o"

    @contextmanager
    def watch(tally, planned, stop):
        progress = Progress(tally, planned, clock=lambda: 0.0)
        yield
        lines.append(progress.line(words("en")))

    async with p.Provider(CONTENT) as provider:
        judge = at(provider.url, model="openai/gpt-4.1")
        write_pairs(tmp_path, rows, judge, settings={"no_self_judging": True})
        for _ in range(2):
            summary = await judged(tmp_path, watch=watch)
            assert (summary.counts.planned, summary.counts.left_out) == (1, 1)
    assert all(line.startswith("1/1 ") for line in lines)
    assert [is_told(line, "runs.left_out", n=1) for line in lines] == [True, False]
