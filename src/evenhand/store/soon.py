"""What waits for a commit that is made anyway, and no longer than a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evenhand.limits import JOIN_SECONDS


class Soon:
    """Has something done within a moment of being asked for it, once for all who ask meanwhile."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._timer: asyncio.TimerHandle | None = None

    def ask(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(JOIN_SECONDS, self._do)

    def cancel(self) -> None:
        """It is done otherwise."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _do(self) -> None:
        self._timer = None
        self._work()
