"""Which units are judged, in which order, and when it is enough."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from msgspec import Struct

from evenhand.engine.group import JudgeGroup
from evenhand.judgment import RETRIED_BY_NEXT_RUN, Judgment
from evenhand.ledger.ports import Ledger, Scope, StoredUnit

Work = AsyncGenerator[tuple[int, Sequence[StoredUnit]], None]
"""What a group has to judge, page by page: a repeat, and units of it."""


class Schedule(Protocol):
    """The order of a run. What it answers may change with every judgment it hears of."""

    def work(self, group: JudgeGroup) -> Work:
        """What a group has to judge, one after the other."""
        ...

    def is_early(self, unit: int) -> bool:
        """Whether a unit must wait for others to end."""
        ...

    def is_wanted(self, unit: int) -> bool:
        """Whether a unit is still to be judged."""
        ...

    def note(self, unit: int, judge: int, repeat: int, judgment: Judgment | None) -> None:
        """Hear how a judgment ended; None where there is none to be had."""
        ...


class Everything(Struct, frozen=True):
    """All that is open, in the order of the file: read page by page, and never held."""

    ledger: Ledger
    scope: Scope

    async def work(self, group: JudgeGroup) -> Work:
        again = tuple(RETRIED_BY_NEXT_RUN)
        for repeat in range(group.repeats):
            after = 0
            while units := await self.ledger.open_work(
                self.scope, group.index, repeat, again, after
            ):
                yield repeat, units
                after = units[-1].position

    def is_early(self, unit: int) -> bool:
        return False

    def is_wanted(self, unit: int) -> bool:
        return True

    def note(self, unit: int, judge: int, repeat: int, judgment: Judgment | None) -> None:
        """Nothing hangs on it."""
