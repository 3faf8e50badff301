"""Long work beside the event loop, so that the other judgments go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from evenhand.kinds.shared.asking import Aside
from evenhand.limits import ASIDE_CHARS

T = TypeVar("T")


def one_aside() -> Aside:
    """Work on long texts in a thread, one at a time: several would only take turns, and the loop
    would wait for the turn of each. Work on short ones is done before a thread would begin."""
    turn = asyncio.Semaphore(1)

    async def aside(work: Callable[[], T], size: int) -> T:
        if size <= ASIDE_CHARS:
            return work()
        async with turn:
            return await asyncio.to_thread(work)

    return aside
