"""The one switch that ends a run early: Ctrl-C, a provider that refuses, a budget that is spent.

After it is thrown nothing new is sent; what is under way is waited for. Whatever was not sent is
pending, never a failure.
"""

from __future__ import annotations

from evenhand.engine.signal import Signal, first_of
from evenhand.errors import EvenhandError


class Stopped(Exception):
    """Raised inside `ask` when a question must not be sent any more."""


class Stop:
    """Thrown at most once; the first cause is the one reported."""

    def __init__(self) -> None:
        self.cause: EvenhandError | None = None
        self._thrown = Signal()

    def throw(self, cause: EvenhandError) -> None:
        """Send nothing new from now on."""
        if self.cause is None:
            self.cause = cause
            self._thrown.give()

    @property
    def thrown(self) -> bool:
        return self.cause is not None

    def check(self) -> None:
        """Raise Stopped once the switch is thrown."""
        if self.cause is not None:
            raise Stopped

    async def sleep(self, seconds: float | None, *signals: Signal) -> None:
        """Wait so long, or for the first of some signals, but not beyond the switch: raises Stopped
        as soon as it is thrown."""
        self.check()
        await first_of(self._thrown, *signals, seconds=seconds)
        self.check()
