"""Waiting for what happens, so that nobody looks again and again."""

from __future__ import annotations

import asyncio


class Signal:
    """Wakes all who wait for it when it is given. It does not remember: whoever waits has looked
    before, and looks again when woken."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def give(self) -> None:
        """Wake all who wait now."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def add(self, waiter: asyncio.Future[None]) -> None:
        """Have a future done when the signal is given next."""
        self._waiting.add(waiter)
        waiter.add_done_callback(self._waiting.discard)


async def first_of(*signals: Signal, seconds: float | None = None) -> None:
    """Wait for the first of some signals, or so long."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    for signal in signals:
        signal.add(waiter)
    timer = None if seconds is None else loop.call_later(seconds, _wake, waiter)
    try:
        await waiter
    finally:
        if timer is not None:
            timer.cancel()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
