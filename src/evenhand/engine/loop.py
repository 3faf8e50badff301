"""The event loop that work runs in: uvloop's where it is installed, else asyncio's own.

`EVENHAND_EVENT_LOOP=asyncio` is the way out for whoever has trouble with the faster one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
VARIABLE = "EVENHAND_EVENT_LOOP"


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """The result of asynchronous work, in an event loop that is made for it and closed after it.
    Only where none is running."""
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
