"""Which units are judged, in which order, and when it is enough."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from msgspec import Struct

from evenhand.engine.group import JudgeGroup
from evenhand.judgment import RETRIED_BY_NEXT_RUN, Judgment
from evenhand.store.ports import Ledger, Scope, StoredUnit

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
    """All that is open, in the order of the file, and last what failed at an earlier start: where
    the judge fails there again and the run is stopped, the rest has been judged. It is read page by
    page, and never held."""

    ledger: Ledger
    scope: Scope
    again: Sequence[Sequence[str]] = ((), tuple(RETRIED_BY_NEXT_RUN))
    """Pass by pass, the reasons of failures that are tried again."""

    async def work(self, group: JudgeGroup) -> Work:
        begun = [_Positions() for _ in range(group.repeats)]
        for again in self.again:
            for repeat, positions in enumerate(begun):
                after = 0
                while page := await self.ledger.open_work(
                    self.scope, group.index, repeat, again, after
                ):
                    after = page[-1].position
                    # Open is also what is under way, or failed just now.
                    if units := positions.add_new(page):
                        yield repeat, units

    def is_early(self, unit: int) -> bool:
        return False

    def is_wanted(self, unit: int) -> bool:
        return True

    def note(self, unit: int, judge: int, repeat: int, judgment: Judgment | None) -> None:
        """Nothing hangs on it."""


class _Positions:
    """Places of units in a run, a byte for each."""

    def __init__(self) -> None:
        self._marks = bytearray()

    def add_new(self, units: Sequence[StoredUnit]) -> list[StoredUnit]:
        """Those of a page that were not added before; they are from now on."""
        marks = self._marks
        marks.extend(bytes(max(0, units[-1].position + 1 - len(marks))))
        new = [unit for unit in units if not marks[unit.position]]
        for unit in new:
            marks[unit.position] = 1
        return new
