"""What `run` shows of a run that several judge at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evenhand.engine.budget import Budget
from evenhand.engine.progress import Progress
from evenhand.engine.stop import Stop
from evenhand.engine.tally import Tally
from evenhand.ledger.coordination import Work
from evenhand.ledger.postgres.address import read_address
from evenhand.ledger.postgres.coordination import joined
from evenhand.ledger.postgres.server import Server
from tests.postgres import new_store_url
from tests.suites import judged, write_suite


async def test_the_work_and_the_number_of_all_workers_are_shown(tmp_path: Path) -> None:
    tallies: list[Tally] = []

    @contextmanager
    def watch(tally: Tally, planned: int, stop: Stop) -> Iterator[None]:
        tallies.append(tally)
        yield

    url = new_store_url()
    write_suite(tmp_path, 4, store={"url": url})
    first = await judged(tmp_path, limit=1, watch=watch)
    async with joined(Server(read_address(url)), 600) as other:
        await other.beat(first.run, Work())
        await judged(tmp_path, watch=watch)
    assert [(tally.verdicts, tally.workers) for tally in tallies] == [(1, 1), (4, 2)]


@pytest.mark.parametrize("is_alone_first", [True, False])
async def test_rates_hold_for_who_judges_alone_and_who_shares_a_run(
    tmp_path: Path, is_alone_first: bool
) -> None:
    """What one of them has sent within the minute is counted for the next."""
    limits = {"requests_per_minute": 1, "run_seconds": 1.5}
    write_suite(tmp_path, 3, store={"url": new_store_url()}, limits=limits)
    ways: list[dict[str, Any]] = [{"budget": Budget()}, {}]
    first, second = ways if is_alone_first else reversed(ways)
    assert (await judged(tmp_path, **first)).tally.sent == 1
    assert (await judged(tmp_path, **second)).tally.sent == 0


async def test_what_workers_left_behind_is_not_judged_again_after_who_judged_it_alone(
    tmp_path: Path,
) -> None:
    lines: list[str] = []

    @contextmanager
    def watch(tally: Tally, planned: int, stop: Stop) -> Iterator[None]:
        progress = Progress(tally, planned, clock=lambda: 0.0)
        yield
        lines.append(progress.line())

    url = new_store_url()
    write_suite(tmp_path, 6, store={"url": url})
    run = (await judged(tmp_path, limit=1)).run
    async with joined(Server(read_address(url)), 600) as other:
        await other.open_run(run, None, "{}", None)
        assert await other.lease(run, 0, 0, 3)
    await judged(tmp_path, budget=Budget())
    again = await judged(tmp_path, watch=watch)
    assert (again.counts.verdicts, again.tally.sent, lines) == (6, 0, ["6/6 judged"])
