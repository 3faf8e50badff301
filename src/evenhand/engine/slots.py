"""So many at once: whoever comes later waits for a slot, in the order of coming."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """A number of slots. A slot that is given back goes to whoever waits longest: nobody looks
    through all who wait, as asyncio's semaphore does with every call."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take_at_once(self) -> bool:
        """Take a slot that is free; whether there was one."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def take(self) -> None:
        """Take a slot, waiting for one."""
        if self.take_at_once():
            return
        slot = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        try:
            await slot
        except BaseException:
            if not slot.cancel() and not slot.cancelled():  # it was there already
                self.give_back()
            raise

    def give_back(self) -> None:
        """Give a slot to the next, if anybody waits."""
        while self._waiting:
            slot = self._waiting.popleft()
            if not slot.done():
                slot.set_result(None)
                return
        self._free += 1
