"""The user's own code, run in threads of its own: whatever it does ends one call and nothing else.

What it raises comes back as a value, for some exceptions (SystemExit, KeyboardInterrupt) end an
event loop that they pass through, and one (StopIteration) is lost in a future. What never returns
is left behind in its thread, which keeps no process from ending; the event loop of the run, and
Ctrl-C with it, never wait for it.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple

BEAT_SECONDS = 1.0
"""A loop that has not taken a turn for so long is held up by what runs in it."""


class Outcome(NamedTuple):
    """What a call came to: a value, or what it raised."""

    value: Any = None
    error: BaseException | None = None


class Apart:
    """Calls functions: each plain one in a thread of its own, all coroutines in the event loop of
    one thread, so that what they share (a client, a lock) stays in one loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Outcome:
        """What the function came to; a coroutine that it returns is awaited once."""
        if inspect.iscoroutinefunction(function):
            return await self._awaited(partial(function, *arguments))
        outcome = await _in_thread(function, arguments)
        is_awaitable = outcome.error is None and inspect.isawaitable(outcome.value)
        return await self._awaited(lambda: outcome.value) if is_awaitable else outcome

    async def leave_stuck(self) -> None:
        """After a call that took too long: begin anew with the next one, if the loop of the
        coroutines does not take another turn."""
        loop = self._loop
        if loop is None:
            return
        beat = asyncio.Event()
        here = asyncio.get_running_loop()
        with suppress(RuntimeError):  # the loop is closed: its thread has ended
            loop.call_soon_threadsafe(here.call_soon_threadsafe, beat.set)
        try:
            async with asyncio.timeout(BEAT_SECONDS):
                await beat.wait()
        except TimeoutError:
            if self._loop is loop:
                self._loop = self._thread = None

    def close(self) -> None:
        """End the loop of the coroutines, if it still takes turns."""
        loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        thread.join(BEAT_SECONDS)

    async def _awaited(self, begin: Callable[[], Awaitable[Any]]) -> Outcome:
        loop, here = self._running(), asyncio.get_running_loop()
        ended: asyncio.Future[Outcome] = here.create_future()
        tasks: list[asyncio.Task[None]] = []

        async def work() -> None:
            _resolve(here, ended, await _caught(begin))

        loop.call_soon_threadsafe(
            lambda: tasks.append(loop.create_task(work())), context=copy_context()
        )
        try:
            return await ended
        except asyncio.CancelledError:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            self._loop = asyncio.new_event_loop()
            self._thread = _thread(_run_loop, self._loop)
        return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        # What a task of the user's own raises on its way out ends this thread alone.
        with suppress(BaseException):
            loop.run_forever()
    finally:
        with suppress(BaseException):
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _in_thread(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    here, context = asyncio.get_running_loop(), copy_context()
    ended: asyncio.Future[Outcome] = here.create_future()

    def work() -> None:
        try:
            outcome = Outcome(context.run(function, *arguments))
        except BaseException as error:
            outcome = Outcome(error=error)
        _resolve(here, ended, outcome)

    _thread(work)
    return await ended


async def _caught(begin: Callable[[], Awaitable[Any]]) -> Outcome:
    try:
        return Outcome(await begin())
    except BaseException as error:
        return Outcome(error=error)


def _thread(work: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, name="evenhand-judge", daemon=True)
    thread.start()
    return thread


def _resolve(
    loop: asyncio.AbstractEventLoop, ended: asyncio.Future[Outcome], outcome: Outcome
) -> None:
    """Hand an outcome to the loop that waits for it, if it still does."""

    def resolve() -> None:
        if not ended.done():
            ended.set_result(outcome)

    with suppress(RuntimeError):
        loop.call_soon_threadsafe(resolve)
