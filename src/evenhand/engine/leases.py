"""The units of a run as several workers share them: each takes some, page by page, and hands over
what it has judged. A judgment of a unit that another has taken meanwhile is refused; what its calls
cost is booked all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import product

from evenhand.engine.group import JudgeGroup
from evenhand.engine.schedule import Work
from evenhand.engine.stop import Stop
from evenhand.engine.tally import Tally
from evenhand.judgment import Judgment
from evenhand.ledger.coordination import Lease, Worker
from evenhand.ledger.ports import StoredJudgment
from evenhand.limits import (
    LEASED_UNITS,
    LOOK_AGAIN_FIRST,
    LOOK_AGAIN_MOST,
    SETTLED_TOGETHER,
)


class LeasedWork:
    """What one worker judges of a run: its schedule, and where its judgments go."""

    def __init__(
        self,
        worker: Worker,
        run: str,
        stop: Stop,
        tally: Tally,
        width: int,
        *,
        waits: bool = True,
    ) -> None:
        """`waits` says whether it goes on while others have units under way, which they may hand
        back."""
        self._worker, self._run, self._stop, self._tally = worker, run, stop, tally
        self._most, self._waits = min(LEASED_UNITS, width), waits
        self._leases: dict[tuple[int, int, int], Lease] = {}
        self._judgments: list[tuple[int, StoredJudgment]] = []
        self._barren: list[int] = []
        self._handing_over = asyncio.Lock()

    async def work(self, group: JudgeGroup) -> Work:
        """What a group has to judge; it ends when there is nothing to be taken."""
        pause = LOOK_AGAIN_FIRST
        while not self._stop.thrown:
            if leases := await self._page(group):
                yield leases[0].repeat, [lease.unit for lease in leases]
                pause = LOOK_AGAIN_FIRST
            elif self._waits and await self._worker.leased_elsewhere(self._run, group.index):
                await self._stop.sleep(pause)
                pause = min(2 * pause, LOOK_AGAIN_MOST)
            else:
                return

    async def _page(self, group: JudgeGroup) -> Sequence[Lease]:
        """What is to be judged next: last what failed at an earlier start, as it may fail again."""
        for again, repeat in product((False, True), range(group.repeats)):
            page = await self._worker.lease(self._run, group.index, repeat, self._most, again=again)
            if page:
                self._leases |= {(lease.unit.no, group.index, repeat): lease for lease in page}
                return page
        return ()

    def is_early(self, unit: int) -> bool:
        return False

    def is_wanted(self, unit: int) -> bool:
        """Whether a unit is still this worker's."""
        return any(number == unit for number, _, _ in self._leases)

    def note(self, unit: int, judge: int, repeat: int, judgment: Judgment | None) -> None:
        """A unit without a judgment to be had is not left to others of this start."""
        lease = self._leases.pop((unit, judge, repeat), None)
        if judgment is None and lease is not None:
            self._barren.append(lease.fence)

    async def settle(self, run: str, judgment: StoredJudgment) -> None:
        """Hand a judgment over, soon."""
        lease = self._leases.get((judgment.unit, judgment.judge, judgment.repeat))
        if lease is None:
            self._tally.fenced += 1
            return
        self._judgments.append((lease.fence, judgment))
        if len(self._judgments) >= SETTLED_TOGETHER:
            await self.flush()

    async def flush(self) -> None:
        """Hand over what was judged; done when what was being handed over before is, too."""
        async with self._handing_over:
            judgments, self._judgments = self._judgments, []
            barren, self._barren = self._barren, []
            if judgments:
                self._tally.fenced += len(await self._worker.settle(self._run, judgments))
            if barren:
                await self._worker.drop(barren)

    async def look_again(self) -> None:
        """Forget the units that are another's by now."""
        fences = await self._worker.held()
        for place in [place for place, lease in self._leases.items() if lease.fence not in fences]:
            del self._leases[place]

    async def end(self) -> None:
        """Hand over what was judged, and hand back the rest."""
        await self.flush()
        if fences := [lease.fence for lease in self._leases.values()]:
            self._leases.clear()
            await self._worker.hand_back(fences)
