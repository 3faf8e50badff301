"""The page of a run tells who works at it, in four languages; so does the JSON."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.ledger.coordination import Work
from evenhand.ledger.postgres.address import read_address
from evenhand.ledger.postgres.coordination import joined
from evenhand.ledger.postgres.server import Server
from evenhand.report.html.page import LANGUAGES
from tests.postgres import new_store_url
from tests.suites import evenhand_here, judged, write_suite
from tests.unit.web.serving import Site, served
from tests.waiting import awaited

WORDS = {
    "en": ("Workers", "at work", "given up"),
    "ru": ("Исполнители", "работает", "потерян"),
    "zh": ("工作进程", "工作中", "已失联"),
    "ja": ("ワーカー", "稼働中", "連絡なし"),
}


NO_WORKERS = '<p class="notice" id="no-workers"'


class _Views(NamedTuple):
    """What is told of a run at which one worker is and another one was, later that one alone."""

    pages: dict[str, str]
    progress: dict[str, Any]
    listed: dict[str, Any]
    left_alone: str
    stopped: str


async def _worked_at(site: Site, url: str, run: str) -> _Views:
    server, place = Server(read_address(url)), f"/runs/{run}"
    async with AsyncExitStack() as ends:
        goes = await ends.enter_async_context(joined(server, 0.05))
        async with joined(server, 600) as stays:
            await stays.open_run(run, None, "{}", None)
            work = Work(verdicts=2, sent=3, cost=2_000_000)
            for worker, done in ((stays, work), (goes, Work())):
                await worker.beat(run, done)
                await worker.lease(run, 0, 0, 1)
            gone = lambda: not all(w["alive"] for w in _progress(site, run)["workers"])  # noqa: E731
            await asyncio.to_thread(awaited, gone, "a worker is given up")
            progress = await asyncio.to_thread(_progress, site, run)
            pages = {
                language: (
                    await asyncio.to_thread(site.get, place, **{"Accept-Language": language})
                ).text
                for language in LANGUAGES
            }
            runs = evenhand_here("runs", "--json", "--store", url, cwd=Path.cwd())
        alone = (await asyncio.to_thread(site.get, place)).text
        await goes.stop_run(run, "The key is refused.")
        stopped = (await asyncio.to_thread(site.get, place, **{"Accept-Language": "ru"})).text
    return _Views(pages, progress, json.loads(runs.stdout)["runs"][0], alone, stopped)


def _progress(site: Site, run: str) -> dict[str, Any]:
    progress: dict[str, Any] = site.json(f"/api/runs/{run}/progress")
    return progress


def test_a_run_shows_who_works_at_it(tmp_path: Path) -> None:
    url = new_store_url()
    write_suite(tmp_path, 6, store={"url": url})
    summary = asyncio.run(judged(tmp_path, limit=1))
    with served(url) as site:
        idle = _progress(site, summary.run)
        views = asyncio.run(_worked_at(site, url, summary.run))
    progress = views.progress
    assert (idle["open"], idle["workers"]) == (False, [])
    assert progress["open"] and progress["judging"] and not progress["stopped"]
    goes, stays = progress["workers"]
    assert (stays["alive"], stays["leases"], stays["judged"], stays["calls"]) == (True, 1, 2, 3)
    assert stays["cost_usd"] > 0 and stays["silent_seconds"] >= 0
    assert (goes["alive"], goes["leases"], goes["judged"]) == (False, 1, 0)
    assert [worker["alive"] for worker in views.listed["workers"]] == [False, True]
    for language, page in views.pages.items():
        assert all(word in page for word in WORDS[language]), language
        assert f"{stays['host']} · {stays['process']}" in page
        assert f"{NO_WORKERS} hidden>" in page
    assert f"{NO_WORKERS}>" in views.left_alone, "nobody who is heard of is at it"
    assert f"{NO_WORKERS} hidden>" in views.stopped
    assert re.search(
        r'<p class="notice warn">\w.* <span lang="en" dir="auto">The key is refused\.</span></p>',
        views.stopped,
    )
