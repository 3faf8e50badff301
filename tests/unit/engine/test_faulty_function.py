"""A function of the user's that does what no judge should: each fault ends one judgment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.postgres import new_store_url
from tests.suites import JUDGE, evenhand_here, judged, stored, write_suite

FAULTS = {
    "number 1 ": "sys.exit(3)",
    "number 2 ": "raise KeyboardInterrupt",
    "number 3 ": "raise GeneratorExit",
    "number 4 ": "raise asyncio.CancelledError",
    "number 5 ": "raise BaseException('all of it')",
    "number 6 ": "return b'{}'",
    "number 7 ": "return Text(reply(messages))",
}
LINES = "".join(f"    if {mark!r} in text:\n        {fault}\n" for mark, fault in FAULTS.items())
FAULTY = f"""{JUDGE}
import asyncio, sys

class Text(str):
    pass

async def faulty(messages, schema, params):
    text = messages[-1]["content"]
{LINES}    return reply(messages)
"""


async def test_each_fault_ends_one_judgment_and_the_run_goes_on(tmp_path: Path) -> None:
    folder = write_suite(tmp_path, 12, {"model": "python/judge:faulty"}, judge=FAULTY)
    summary = await judged(folder)
    assert summary.stopped is None
    assert (summary.counts.verdicts, summary.counts.failures) == (6, {"judge_crash": 6})
    assert summary.counts.pending == 0


def test_a_command_ends_as_it_should(tmp_path: Path) -> None:
    write_suite(tmp_path, 12, {"model": "python/judge:faulty"}, judge=FAULTY)
    ended = evenhand_here("run", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    crashed = [row for row in stored(tmp_path) if row["reason"] == "judge_crash"]
    assert len(crashed) == 6


FALLING = f"""{JUDGE}
async def falling(messages, schema, params):
    text = messages[-1]["content"]
    number = int(re.search(r"number (\\d+)", text)[1])
    if number < 20:
        raise ValueError(number)
    return reply(messages)
"""


@pytest.mark.parametrize("is_postgres", [False, True], ids=["file", "postgres"])
@pytest.mark.parametrize("repeats", [1, 2])
async def test_units_that_fail_at_every_start_keep_no_others_from_being_judged(
    tmp_path: Path, is_postgres: bool, repeats: int
) -> None:
    judge = {"model": "python/judge:falling", "repeats": repeats}
    store = {"url": new_store_url() if is_postgres else "sqlite:evenhand.db"}
    write_suite(tmp_path, 60, judge, judge=FALLING, store=store)
    for _ in range(repeats):  # each start comes to the failing units of one repeat more
        first = await judged(tmp_path, limit=20)
        assert first.stopped is not None and first.counts.verdicts == 0
    again = await judged(tmp_path)
    assert again.counts.verdicts == 40 * repeats
    # What failed is tried once in each start, and no more.
    assert 40 * repeats < again.tally.sent <= 60 * repeats
    assert (again.counts.verdicts + sum(again.counts.failures.values())) <= again.counts.planned
    third = await judged(tmp_path)
    assert third.stopped is not None and 0 < third.tally.sent <= 20 * repeats
