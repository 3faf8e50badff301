"""The event loop: uvloop's where it is installed, else asyncio's own; and work kept off it.

`EVENHAND_EVENT_LOOP=asyncio` is the way out for whoever has trouble with the faster one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from evenhand.kinds.conversation import Offload
from evenhand.limits import ASIDE_CHARS

T = TypeVar("T")
VARIABLE = "EVENHAND_EVENT_LOOP"


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of asynchronous work, in an event loop of its own. Only where none runs."""
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(work)


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if os.environ.get(VARIABLE) == "asyncio":
        return None
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


def offloader() -> Offload:
    """Return a function that works on long texts in a thread, so that other judgments go on: one at
    a time, for several threads would only compete for the interpreter."""
    thread = asyncio.Semaphore(1)

    async def offload(work: Callable[[], T], size: int) -> T:
        if size <= ASIDE_CHARS:
            # Judgments take turns: the same step for many at once keeps the processor's caches
            # warm, which halves the time of a step.
            await asyncio.sleep(0)
            return work()
        async with thread:
            return await asyncio.to_thread(work)

    return offload
