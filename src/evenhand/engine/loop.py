"""The event loop: uvloop's where it is installed, else asyncio's own; and work kept off it.

`EVENHAND_EVENT_LOOP=asyncio` is the way out for whoever has trouble with the faster one.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from evenhand.kinds.conversation import Offload
from evenhand.limits import ASIDE_CHARS

T = TypeVar("T")
VARIABLE = "EVENHAND_EVENT_LOOP"


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of asynchronous work, in an event loop of its own. Only where none runs."""
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(work)


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of asynchronous work to a synchronous caller. Inside a running loop, as a
    notebook has one, another thread does it in a loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_in_loop(work)
    return _LoopThread(work).result()


class _LoopThread(Generic[T]):
    """Work in a thread with a loop of its own, which an interrupt cancels."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work, self._done = work, Future[T]()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def result(self) -> T:
        """Return the result of the work, or raise what it raises."""
        thread = threading.Thread(target=contextvars.copy_context().run, args=(self._run,))
        thread.start()
        try:
            return self._done.result()
        except KeyboardInterrupt:
            if self._loop and self._task:
                self._loop.call_soon_threadsafe(self._task.cancel)
            raise
        finally:
            thread.join()

    def _run(self) -> None:
        try:
            self._done.set_result(run_in_loop(self._main()))
        except BaseException as error:
            self._done.set_exception(error)

    async def _main(self) -> T:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await self._work


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
