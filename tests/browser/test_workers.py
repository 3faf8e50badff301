"""The page of a run that waits for workers, on a phone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from evenhand.ledger.coordination import Work
from evenhand.ledger.postgres.address import read_address
from evenhand.ledger.postgres.coordination import joined
from evenhand.ledger.postgres.server import Server
from tests.postgres import new_store_url
from tests.suites import judged, write_suite
from tests.unit.web.serving import served

LEASE_SECONDS = 600
WORK = Work(verdicts=123_456, sent=1_234_567, cost=1_234_567_890_123)


def _in_thread(work: Any) -> Any:
    """What a coroutine returns: the browser has the event loop of this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def _open(url: str, run: str) -> None:
    async with joined(Server(read_address(url)), LEASE_SECONDS) as worker:
        await worker.open_run(run, None, "{}", None)


@contextmanager
def _worker(url: str, run: str) -> Iterator[None]:
    """A worker at a run, until the end."""
    arrival: Future[Callable[[], object]] = Future()

    async def work() -> None:
        leave = asyncio.Event()
        end = partial(asyncio.get_running_loop().call_soon_threadsafe, leave.set)
        async with joined(Server(read_address(url)), LEASE_SECONDS) as worker:
            await worker.beat(run, WORK)
            arrival.set_result(end)
            await leave.wait()

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(asyncio.run, work())
        wait((arrival, working), return_when=FIRST_COMPLETED)
        if working.done():
            working.result()
        try:
            yield
        finally:
            arrival.result()()
            working.result()


def test_a_run_that_waits_for_workers_finds_one(
    tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    url = new_store_url()
    write_suite(tmp_path, 6, store={"url": url})
    run = _in_thread(judged(tmp_path, limit=1)).run
    _in_thread(_open(url, run))
    with served(url) as site:
        page = open_page(f"{site.url}/runs/{run}", viewport={"width": 360, "height": 780})
        assert page.locator("#no-workers").is_visible()
        with _worker(url, run):
            page.locator("#workers").wait_for()
            page.locator("#no-workers").wait_for(state="hidden")
            assert "123,456" in page.locator("#workers tbody").inner_text()
            wide = "one => one.scrollWidth > one.clientWidth"
            assert not page.locator("#workers .scroll").evaluate(wide)
        page.locator("#no-workers").wait_for()
