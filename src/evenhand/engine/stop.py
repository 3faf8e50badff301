"""The stop of a run (Ctrl-C, a provider that refuses, a budget that is spent), and waiting for it.

Once it is requested nothing new is sent, and calls under way are waited for. Whatever was not sent
is pending, never a failure.
"""

from __future__ import annotations

import asyncio

from evenhand.errors import EvenhandError


class Stopped(Exception):
    """Raised inside `ask` when a question must not be sent any more."""


class Signal:
    """A condition without a lock, which unlike asyncio's may serve several event loops in turn. It
    keeps no state: a waiter checks before it waits, and again when it is woken."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def notify_all(self) -> None:
        """Wake everybody who waits now."""
        for waiter in self._waiting:
            _wake(waiter)

    def add(self, waiter: asyncio.Future[None]) -> None:
        """Have a future done by the next `notify_all`."""
        self._waiting.add(waiter)
        waiter.add_done_callback(self._waiting.discard)


async def wait_any(*signals: Signal, seconds: float | None = None) -> None:
    """Wait for the first of some signals, or for a number of seconds."""
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


class Stop:
    """Requested at most once: the first cause is the one reported."""

    def __init__(self) -> None:
        self.cause: EvenhandError | None = None
        self._signal = Signal()

    @property
    def requested(self) -> bool:
        """Return True once nothing new may be sent."""
        return self.cause is not None

    def request(self, cause: EvenhandError) -> None:
        """Send nothing new from now on."""
        if self.cause is None:
            self.cause = cause
            self._signal.notify_all()

    def check(self) -> None:
        """Raise Stopped once the stop is requested."""
        if self.cause is not None:
            raise Stopped

    async def sleep(self, seconds: float | None, *signals: Signal) -> None:
        """Wait for a number of seconds or for the first of some signals; raises Stopped as soon as
        the stop is requested."""
        self.check()
        await wait_any(self._signal, *signals, seconds=seconds)
        self.check()
