"""A worker that is ahead of the others waits for them, and does not look again and again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evenhand.exchange import Question, Reply
from evenhand.limits import JOIN_SECONDS
from evenhand.runs.early_stop import AHEAD
from tests.suites import Scripted, good_reply, judged, prepared, samples, with_judges, write_suite

QUESTIONS = 3 * AHEAD


def variants() -> list[dict[str, Any]]:
    """Every question answered under two variants."""
    return [
        row
        | {"id": f"{variant}-{row['id']}", "model_output": f"{variant}: {row['model_output']}"}
        | {"meta": {"question_id": row["id"], "prompt_variant": variant}}
        for row in samples(QUESTIONS)
        for variant in ("v1", "v2")
    ]


async def test_a_worker_that_is_ahead_is_woken_by_the_end_of_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(
        tmp_path,
        variants(),
        limits={"concurrency": 8 * AHEAD},
        compare={"by": "prompt_variant", "baseline": "v1"},
        stop={"until_decided": True},
    )
    held, asked = asyncio.Event(), list[str]()

    async def answer(question: Question) -> Reply:
        asked.append(question.unit)
        if len(asked) == 1:
            await held.wait()
        return good_reply(question)

    timers: list[float] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def timed(delay: float, *rest: Any, **more: Any) -> asyncio.TimerHandle:
        timers.append(delay)
        return call_later(delay, *rest, **more)

    monkeypatch.setattr(loop, "call_later", timed)
    run = asyncio.create_task(judged(with_judges(prepared(tmp_path), Scripted(answer))))
    # The first question has not ended: so many are under way, and no more.
    while len(asked) < 2 * AHEAD and not run.done():
        await asyncio.sleep(0)
    for _ in range(200):
        await asyncio.sleep(0)
    assert len(asked) == 2 * AHEAD
    held.set()
    summary = await run
    assert summary.counts.failures == {}
    assert len(asked) == 2 * QUESTIONS
    # But for the store, which writes judgments that nothing follows.
    assert set(timers) <= {JOIN_SECONDS}
