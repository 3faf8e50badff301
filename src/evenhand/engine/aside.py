"""Work on texts in its turn: long work beside the event loop, so that the other judgments go on,
and short work of many judgments one after the other.

A judgment takes many different steps, and all of them together are more code and data than the
caches of a processor hold. Where each judgment takes all its steps at once, every step finds the
caches full of the others; where judgments wait for each other, and the same step is taken for all
of them, it takes half the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from types import coroutine
from typing import Any, TypeVar

from evenhand.kinds.conversation import Offload
from evenhand.limits import ASIDE_CHARS

T = TypeVar("T")


def one_aside() -> Offload:
    """Work on long texts in a thread, one at a time: several would only take turns, and the loop
    would wait for the turn of each. Work on short ones is done before a thread would begin, in the
    next turn of the loop, with that of the others who have come so far."""
    turn = asyncio.Semaphore(1)

    # A generator that is awaited: whoever waits for the next turn has no coroutine more to pass.
    @coroutine
    def aside(work: Callable[[], T], size: int) -> Generator[Any, Any, T]:
        if size <= ASIDE_CHARS:
            yield  # let everybody else take a step
            return work()
        return (yield from in_thread(work).__await__())

    async def in_thread(work: Callable[[], T]) -> T:
        async with turn:
            return await asyncio.to_thread(work)

    return aside
