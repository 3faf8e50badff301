"""The third port of a store, for stores that several processes judge in at once.

Who works at what is kept in the store, and every moment is one of the store's own clock. A worker
is alive for some seconds after its last sign of life; what a worker that is not alive had taken
(units, questions, money that it had not reserved) is free for others. A unit is taken with a
number, its fence, that grows with every taking: a judgment under an old fence is refused. A call is
booked whoever made it and however late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from evenhand.ledger.ports import StoredJudgment, StoredUnit


class Lease(NamedTuple):
    """A unit that a worker has taken, to be judged by one judge once."""

    unit: StoredUnit
    judge: int
    repeat: int
    fence: int


class OpenRun(NamedTuple):
    """A run that may be judged by whoever comes: the first so many of its units (None: all), what
    judging it takes beside its manifest, and the number of its opening, which no other has."""

    run: str
    limit: int | None
    terms: str
    opening: int
    stopped: str
    """Why nobody goes on, in words; empty where somebody may."""


class Work(NamedTuple):
    """What a worker has done of a run so far."""

    verdicts: int = 0
    failures: int = 0
    left_out: int = 0
    sent: int = 0
    cached: int = 0
    reasks: int = 0
    cost: int = 0
    unpriced: int = 0


class WorkerState(NamedTuple):
    """A worker: where it is, the run that it judges, for how long it has been at work and how long
    ago it gave its last sign of life, in seconds by the store's clock; what it did of the run, and
    how many units it has taken and not judged yet."""

    id: str
    host: str
    process: int
    run: str
    seconds: float
    silent: float
    judged: int
    sent: int
    cost: int
    leases: int
    is_alive: bool
    note: str


class Rates(Struct, frozen=True):
    """How much an account may be sent in a minute; None: as much as one likes."""

    requests: int | None
    tokens: int | None


class Slot(NamedTuple):
    """A request that may be sent: in how many seconds, and the second that it is counted in."""

    wait: float
    second: int


class Admission(NamedTuple):
    """The first of some requests that may be sent, and after how many seconds to ask for more."""

    slots: Sequence[Slot]
    pause: float


Grant = Literal["granted", "wait", "exhausted", "void"]
"""Whether money was allotted; if not, whether others may give some back; or whether what was
allotted before is no longer the worker's."""


class Worker(Protocol):
    """One worker at its work. Other workers are in other processes, or in this one."""

    id: str
    lease_seconds: float

    async def beat(self, run: str, work: Work, note: str = "") -> bool:
        """Give a sign of life, and say what was done of a run. False where it came too late: what
        was taken may be another's by now."""
        ...

    async def open_run(
        self,
        run: str,
        limit: int | None,
        terms: str,
        cap: int | None,
        unpriced: int = 0,
        again: Sequence[str] = (),
    ) -> None:
        """Let a run be judged from its beginning by whoever comes; `cap` is its money, of which
        calls from before their price was known may have used `unpriced`. What has failed for one of
        the reasons `again` is to be tried again, once."""
        ...

    async def open_runs(self) -> Sequence[OpenRun]:
        """The runs that are open, the one opened first first."""
        ...

    async def opening(self, run: str) -> int | None:
        """The number of a run's opening, which no other has; None where it is not open."""
        ...

    async def stopped(self, run: str) -> str:
        """Why nobody goes on with a run, in words; empty where somebody may."""
        ...

    async def stop_run(self, run: str, reason: str) -> None:
        """Let nobody go on with a run until it is opened again."""
        ...

    async def close_run(self, run: str, judgments_per_unit: int) -> bool:
        """Close a run of which nothing is left to be taken; whether it is closed now."""
        ...

    async def withdraw_run(self, run: str) -> bool:
        """Have no worker take part in a run any more; False where one has units of it under
        way."""
        ...

    async def lease(
        self, run: str, judge: int, repeat: int, most: int, *, again: bool = False
    ) -> Sequence[Lease]:
        """Take some units that were never judged: those that were handed back or left behind, then
        the next ones in the order of the run; with `again` some of those that had failed when the
        run was opened, in the same order. None where nothing can be taken now."""
        ...

    async def leased_elsewhere(self, run: str, judge: int) -> bool:
        """Whether another worker has taken units of a run."""
        ...

    async def held(self) -> frozenset[int]:
        """The fences of the leases that are still this worker's."""
        ...

    async def settle(
        self, run: str, judgments: Sequence[tuple[int, StoredJudgment]]
    ) -> frozenset[int]:
        """Keep judgments, each under the fence of its lease, which ends; the fences of those that
        were refused."""
        ...

    async def drop(self, fences: Sequence[int]) -> None:
        """End leases of units that have no judgment to be had."""
        ...

    async def hand_back(self, fences: Sequence[int]) -> None:
        """Let others take units that this worker has taken."""
        ...

    async def claim(self, keys: Sequence[str]) -> frozenset[str]:
        """Claim questions before they are asked; those that nobody else has claimed."""
        ...

    async def release(self, keys: Sequence[str]) -> None:
        """End claims."""
        ...

    async def allot(self, run: str, granted: int, amount: int, spent: int) -> Grant:
        """Take so much more of a run's money, or give it back (less than nothing); `granted` is
        what was taken before, and `spent` what of it is spent for good."""
        ...

    async def forgo(self, run: str) -> None:
        """Give back all that was taken of a run's money and not reserved, and begin anew."""
        ...

    async def reserve(self, run: str, key: str, attempt: str, amount: int) -> bool:
        """Note money that a call may cost, durably, before it is sent; False where what was taken
        is no longer this worker's."""
        ...

    async def admit(self, account: str, rates: Rates, tokens: Sequence[int]) -> Admission:
        """Ask for requests of so many tokens each, in their order."""
        ...

    async def correct(self, account: str, second: int, requests: int, tokens: int) -> None:
        """Take requests and tokens out of a second that they were counted in."""
        ...

    async def work_of_all(self, run: str) -> Work:
        """What all workers have done of a run so far."""
        ...

    async def notes(self, run: str) -> Sequence[str]:
        """What workers have to say about a run, each once: why they leave it to others."""
        ...

    async def workers_at(self, run: str) -> int:
        """How many are at a run."""
        ...
