"""A hard cap in money. What a call may cost at most is reserved before it is sent; a reservation
left open by a crash, or by an answer that never came, counts as spent."""

from __future__ import annotations

import asyncio

from evenhand.engine.prices import usd
from evenhand.errors import StoppedEarly

ADVICE = "Raise [limits] budget_usd and run again: nothing is paid for twice."


class Budget:
    """Picodollars that one run may spend, or several, also one after the other in event loops of
    their own; without a cap everything is let through."""

    def __init__(self, cap: int | None = None, used: int = 0, advice: str = ADVICE) -> None:
        self.cap, self.used, self._held, self._advice = cap, used, 0, advice
        self._freed = asyncio.Event()

    async def hold(self, amount: int) -> None:
        """Reserve, waiting for calls under way where they may free enough; else StoppedEarly."""
        if self.cap is None:
            return
        while self.used + self._held + amount > self.cap:
            if not self._held:
                raise self._exhausted(amount)
            await self._freed.wait()
        self._held += amount

    def spend(self, amount: int, cost: int) -> None:
        """Give a reservation back for what the call did cost."""
        self._held -= amount
        self.used += cost
        # A new one for the next wait: an event belongs to the loop that first waited for it.
        self._freed.set()
        self._freed = asyncio.Event()

    def _exhausted(self, amount: int) -> StoppedEarly:
        assert self.cap is not None
        return StoppedEarly(
            f"the budget of ${usd(self.cap)} is reached: ${usd(self.used)} spent or reserved,"
            f" and the next call may cost ${usd(amount)}",
            advice=self._advice,
        )
