"""The event loop that work runs in: uvloop's where it is installed, else asyncio's own.

`EVENHAND_EVENT_LOOP=asyncio` is the way out for whoever has trouble with the faster one.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
VARIABLE = "EVENHAND_EVENT_LOOP"
OBJECTS_PER_COLLECTION = 20_000
"""New objects after which Python looks for cycles: calls under way make thousands of objects that
all end by themselves, and to look at them every 700 takes a twelfth of the time of a run."""


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """The result of asynchronous work, in an event loop that is made for it and closed after it.
    Only where none is running."""
    with _rarely_collecting(), asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(work)


@contextmanager
def _rarely_collecting() -> Iterator[None]:
    first, *others = gc.get_threshold()
    # Whoever switched collections off, or made them rarer, has it so.
    gc.set_threshold(first and max(first, OBJECTS_PER_COLLECTION), *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if os.environ.get(VARIABLE) == "asyncio":
        return None
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop
