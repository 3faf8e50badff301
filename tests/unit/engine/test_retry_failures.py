"""`--retry-failures` asks again only what failed, and what a run tells of it on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evenhand.engine.progress import Progress, Tally
from evenhand.engine.stop import Stop
from evenhand.runs.forecast import forecast
from evenhand.runs.stores import open_archive
from evenhand.store.verify import verify
from tests import provider as p
from tests.suites import (
    PAIR_JUDGE,
    at,
    judged,
    pair_row,
    pairs,
    prepared,
    stored,
    write_pairs,
    write_suite,
)
from tests.unit.engine.pair_runs import settled_again

FIRST = p.comparing(lambda call: "A")
CONTENT = p.comparing(p.by_number)
BAD = p.saying("{}")


async def test_a_pair_is_asked_again_from_the_round_that_failed(tmp_path: Path) -> None:
    """Two rounds that contradict each other, then two passes of three bad tries each."""
    async with p.Provider([*[FIRST] * 4, BAD]) as provider:
        write_pairs(tmp_path, 1, at(provider.url), limits={"concurrency": 1})
        first = await judged(tmp_path)
        assert (first.tally.sent, first.counts.failures) == (10, {"schema": 1})
        again = await judged(tmp_path, retry_failures=True)
        assert (again.tally.sent, again.counts.failures) == (6, {"schema": 1})
        provider.script = [CONTENT]
        last = await judged(tmp_path, retry_failures=True)
    assert (last.tally.sent, last.tally.cached, last.counts.verdicts) == (2, 4, 1)
    (row,) = stored(tmp_path)
    assert (row["output"]["winner"], row["output"]["settled"]) == ("A", "resolved")
    assert [made["round"] for made in row["passes"]] == [1, 1, 2, 2, 3, 3]
    assert not any(made["problems"] for made in row["passes"])
    assert last.spent.calls == 18
    assert (await settled_again(tmp_path)).counts.verdicts == 1
    store = open_archive("sqlite:evenhand.db", tmp_path)
    assert verify(store) == []
    store.close()


async def test_a_pass_that_was_mended_is_not_asked_again(tmp_path: Path) -> None:
    async with p.Provider([BAD, BAD, CONTENT, BAD]) as provider:
        write_pairs(tmp_path, 1, at(provider.url), limits={"concurrency": 1})
        assert (await judged(tmp_path)).tally.sent == 5
        provider.script = [CONTENT]
        again = await judged(tmp_path, retry_failures=True)
    assert (again.tally.sent, again.counts.verdicts) == (1, 1)
    (row,) = stored(tmp_path)
    assert [made["reask"] for made in row["passes"]] == [0, 1, 0]


@pytest.mark.parametrize("order", ["12", "21"])
async def test_a_good_pass_beside_a_failed_one_is_not_asked_again(
    tmp_path: Path, order: str
) -> None:
    """Whichever of the two comes first."""
    write_pairs(tmp_path, 2, {"model": "python/judge:half"}, judge=PAIR_JUDGE + _half(order))
    first = await judged(tmp_path)
    assert (first.tally.sent, first.counts.failures) == (8, {"schema": 2})
    (tmp_path / "well").touch()
    again = await judged(tmp_path, retry_failures=True)
    assert (again.tally.sent, again.tally.cached, again.counts.verdicts) == (2, 2, 2)


def _half(order: str) -> str:
    """A judge that breaks the contract in one order until the file `well` is there."""
    return f"""
import pathlib
async def half(messages, schema, params):
    well = pathlib.Path(__file__).with_name("well").exists()
    shown = "".join(message["content"] for message in messages)
    order = "12" if shown.index("An answer worth") < shown.index("A reply worth") else "21"
    return alike("tie") if well or order != "{order}" else "{{}}"
"""


@pytest.mark.parametrize("bad_before", [0, 1])
async def test_a_call_that_was_rejected_costs_only_its_own_conversation(
    tmp_path: Path, bad_before: int
) -> None:
    async with p.Provider([CONTENT, *[BAD] * bad_before, p.overflowing()]) as provider:
        write_pairs(tmp_path, 1, at(provider.url), limits={"concurrency": 1})
        first = await judged(tmp_path)
        assert first.counts.failures == {"context_overflow": 1}
        provider.script = [CONTENT]
        again = await judged(tmp_path, retry_failures=True)
    assert (again.tally.sent, again.counts.verdicts) == (1, 1)


async def test_a_sample_is_asked_again_from_its_start(tmp_path: Path) -> None:
    async with p.Provider(p.valid(p.key_extra)) as provider:
        write_suite(tmp_path, 1, at(provider.url))
        assert (await judged(tmp_path)).tally.sent == 3
        assert (await judged(tmp_path, retry_failures=True)).tally.sent == 3


async def test_a_forecast_knows_what_is_asked_again(tmp_path: Path) -> None:
    async with p.Provider([*[FIRST] * 4, BAD]) as provider:
        write_pairs(tmp_path, 1, at(provider.url), limits={"concurrency": 1})
        await judged(tmp_path)
        store = open_archive("sqlite:evenhand.db", tmp_path)
        plain = await forecast(prepared(tmp_path), store, None)
        again = await forecast(prepared(tmp_path), store, None, retry_failures=True)
        store.close()
        assert len(provider.calls) == 10
    assert (plain.done, plain.calls_least, plain.calls_most) == (1, 0, 0)
    assert (again.done, again.answered) == (0, 4)
    assert (again.calls_least, again.calls_most) == (2, 6)


async def test_the_calls_before_a_lost_one_are_counted_once(tmp_path: Path) -> None:
    code = """
import pathlib
async def flaky(messages, schema, params):
    if len(messages) > 2 and not pathlib.Path(__file__).with_name("well").exists():
        raise RuntimeError("no luck")
    return "{}"
"""
    write_suite(tmp_path, 2, {"model": "python/judge:flaky"}, judge=code)
    first = await judged(tmp_path)
    assert (first.counts.failures, first.counts.calls) == ({"judge_crash": 2}, 2)
    (tmp_path / "well").touch()
    again = await judged(tmp_path)
    assert (again.tally.sent, again.tally.cached) == (4, 2)


class Watching:
    """Keeps the last line of progress."""

    line = ""

    @contextmanager
    def watch(self, tally: Tally, planned: int, stop: Stop) -> Iterator[None]:
        progress = Progress(tally, planned, clock=lambda: 0.0)
        yield
        self.line = progress.line()


async def test_progress_ends_with_all_that_is_settled(tmp_path: Path) -> None:
    rows = [pair_row("mine", 3, 1), *pairs(1)]
    rows[0]["candidates"][0]["id"] = "gpt-4o"
    watching = Watching()
    async with p.Provider(CONTENT) as provider:
        judge = at(provider.url, model="openai/gpt-4.1")
        write_pairs(tmp_path, rows, judge, settings={"no_self_judging": True})
        for left_out in (True, False):
            summary = await judged(tmp_path, watch=watching.watch)
            assert (summary.counts.planned, summary.counts.left_out) == (1, 1)
            assert watching.line.startswith("1/1 judged")
            assert watching.line.endswith(", 1 left out by no_self_judging") is left_out
