"""A judge that is not there, or never answers, is no complete run."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from aiohttp import web

from evenhand.errors import StoppedEarly
from tests import provider as p
from tests.suites import GOOD, at, evenhand_here, judged, write_suite


def nobody() -> str:
    """An address on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


@pytest.mark.parametrize("units", [1, 10])
async def test_nothing_that_listens_is_told_and_all_is_pending(tmp_path: Path, units: int) -> None:
    url = nobody()
    write_suite(tmp_path, units, at(url))
    summary = await judged(tmp_path)
    assert isinstance(summary.stopped, StoppedEarly)
    assert "openai/test-model is not there" in str(summary.stopped)
    assert url.split(":")[2].split("/")[0] in str(summary.stopped)
    assert (summary.counts.pending, summary.counts.failures) == (units, {})
    assert summary.tally.sent <= 3 * units


def test_the_command_says_so_with_exit_code_5(tmp_path: Path) -> None:
    write_suite(tmp_path, 10, at(nobody()))
    ended = evenhand_here("run", cwd=tmp_path)
    assert ended.returncode == 5
    assert "is not there: cannot connect to 127.0.0.1" in ended.stderr
    assert "10 pending = 10 planned" in ended.stdout


async def test_one_judge_that_never_answers_beside_one_that_does_is_no_complete_run(
    tmp_path: Path,
) -> None:
    async with p.Provider(p.failing(500, headers={"x-should-retry": "false"})) as provider:
        write_suite(tmp_path, 3, GOOD, at(provider.url))
        ended = await asyncio.to_thread(evenhand_here, "run", cwd=tmp_path)
    assert ended.returncode == 5
    assert '"openai/test-model" gave no answer to any call: HTTP 500' in ended.stderr


async def test_what_comes_back_within_the_tries_of_a_call_is_survived(tmp_path: Path) -> None:
    """The provider goes away after three answers, and comes back once it was missed."""
    missed = asyncio.Event()
    before, after = p.Provider(), p.Provider()
    await before.start()
    port = int(before.url.split(":")[2].split("/")[0])

    async def leaving(call: p.Call) -> web.StreamResponse:
        assert before._runner is not None
        if call.number == 2:
            await next(iter(before._runner.sites)).stop()
        response = await p.valid()(call)
        response.force_close()
        return response

    before.script = [leaving]
    write_suite(tmp_path, 12, at(before.url), limits={"concurrency": 1})
    run = asyncio.create_task(
        judged(tmp_path, notice=lambda message: missed.set(), backoff_first=0.5)
    )
    await missed.wait()
    await after.start(port)
    summary = await run
    await before.stop()
    await after.stop()
    assert (summary.stopped, summary.counts.verdicts) == (None, 12)
    assert (len(before.calls), len(after.calls)) == (3, 9)
