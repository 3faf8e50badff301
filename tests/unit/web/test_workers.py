"""The page of a run tells who works at it, in four languages; so does the JSON."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from evenhand.ledger.coordination import Work
from evenhand.ledger.postgres.address import read_address
from evenhand.ledger.postgres.coordination import joined
from evenhand.ledger.postgres.server import Server
from evenhand.report.html.page import LANGUAGES
from tests.postgres import new_store_url
from tests.suites import judged, write_suite
from tests.unit.web.serving import Site, served
from tests.waiting import awaited

WORDS = {
    "en": ("Workers", "at work", "given up"),
    "ru": ("Исполнители", "работает", "потерян"),
    "zh": ("工作进程", "工作中", "已失联"),
    "ja": ("ワーカー", "稼働中", "連絡なし"),
}


async def _worked_at(site: Site, url: str, run: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The pages and the progress of a run at which one worker is and another one was."""
    server = Server(read_address(url))
    async with AsyncExitStack() as ends:
        stays, goes = [
            await ends.enter_async_context(joined(server, seconds)) for seconds in (600, 0.05)
        ]
        await stays.open_run(run, None, "{}", None)
        for worker, work in ((stays, Work(verdicts=2, sent=3, cost=2_000_000)), (goes, Work())):
            await worker.beat(run, work)
            await worker.lease(run, 0, 0, (), 1)
        place = f"/api/runs/{run}/progress"
        gone = lambda: not all(w["alive"] for w in site.json(place)["workers"])  # noqa: E731
        await asyncio.to_thread(awaited, gone, "a worker is given up")
        progress = await asyncio.to_thread(site.json, place)
        pages = {
            language: (
                await asyncio.to_thread(site.get, f"/runs/{run}", **{"Accept-Language": language})
            ).text
            for language in LANGUAGES
        }
    return pages, progress


def test_a_run_shows_who_works_at_it(tmp_path: Path) -> None:
    url = new_store_url()
    write_suite(tmp_path, 6, store={"url": url})
    summary = asyncio.run(judged(tmp_path, limit=1))
    with served(url) as site:
        idle = site.json(f"/api/runs/{summary.run}/progress")
        pages, progress = asyncio.run(_worked_at(site, url, summary.run))
    assert (idle["open"], idle["workers"]) == (False, [])
    assert progress["open"] and progress["judging"] and not progress["stopped"]
    stays, goes = progress["workers"]
    assert (stays["alive"], stays["leases"], stays["judged"], stays["calls"]) == (True, 1, 2, 3)
    assert stays["cost_usd"] > 0 and stays["silent_seconds"] >= 0
    assert (goes["alive"], goes["leases"], goes["judged"]) == (False, 1, 0)
    for language, page in pages.items():
        assert all(word in page for word in WORDS[language]), language
        assert f"{stays['host']} · {stays['process']}" in page
