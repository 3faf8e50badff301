"""Which event loop work runs in."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from evenhand.engine.loop import OBJECTS_PER_COLLECTION, VARIABLE, run_in_loop


async def loop_module() -> str:
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


def test_work_runs_in_uvloop_where_it_is_installed() -> None:
    assert run_in_loop(loop_module()) == "uvloop"


def test_the_environment_is_a_way_back_to_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "asyncio")
    assert run_in_loop(loop_module()) == "asyncio"


def test_without_uvloop_it_is_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run_in_loop(loop_module()) == "asyncio"


async def threshold() -> int:
    return gc.get_threshold()[0]


def test_overlapping_work_leaves_the_threshold_as_the_first_found_it() -> None:
    """The first to begin ends first, while the second goes on."""
    before = gc.get_threshold()
    has_begun, may_end = threading.Event(), threading.Event()

    async def second() -> int:
        has_begun.set()
        await asyncio.to_thread(may_end.wait)
        return gc.get_threshold()[0]

    with ThreadPoolExecutor(1) as pool:

        async def first() -> Future[int]:
            later = pool.submit(run_in_loop, second())
            await asyncio.to_thread(has_begun.wait)
            return later

        later = run_in_loop(first())
        may_end.set()
        assert later.result() == OBJECTS_PER_COLLECTION
    assert gc.get_threshold() == before


@pytest.mark.parametrize(("before", "meanwhile"), [(700, OBJECTS_PER_COLLECTION), (0, 0)])
def test_garbage_is_sought_rarely_and_afterwards_as_before(before: int, meanwhile: int) -> None:
    thresholds = gc.get_threshold()
    gc.set_threshold(before, *thresholds[1:])
    try:
        assert run_in_loop(threshold()) == meanwhile
        assert gc.get_threshold() == (before, *thresholds[1:])
    finally:
        gc.set_threshold(*thresholds)
