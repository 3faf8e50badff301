"""The event loop that work runs in: uvloop's where it is installed, else asyncio's own.

`EVENHAND_EVENT_LOOP=asyncio` is the way out for whoever has trouble with the faster one.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
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
    with _rare_collections.in_use(), asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(work)


class _RareCollections:
    """The threshold of the process while any work runs: several loops at once, in threads of their
    own, overlap as they like, and the last to end puts back what the first found."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._before: tuple[int, int, int] = (0, 0, 0)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = gc.get_threshold()
                first, *others = self._before
                # Whoever switched collections off, or made them rarer, has it so.
                gc.set_threshold(first and max(first, OBJECTS_PER_COLLECTION), *others)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    gc.set_threshold(*self._before)


_rare_collections = _RareCollections()


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if os.environ.get(VARIABLE) == "asyncio":
        return None
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop
