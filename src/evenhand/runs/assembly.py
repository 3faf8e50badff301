"""The engine of a plan, put together: the same for a process that judges a run alone and for an
actor that judges a part of it; what differs is handed in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from evenhand.engine.ask import CallPath
from evenhand.engine.budget import Budget
from evenhand.engine.pace import Pace
from evenhand.engine.retry import Patience
from evenhand.engine.run import Engine, Pool
from evenhand.engine.schedule import Schedule
from evenhand.engine.stop import Stop
from evenhand.engine.tally import Tally
from evenhand.limits import BACKOFF_FIRST
from evenhand.runs.plan import Plan, Seat
from evenhand.runs.recorded import seated
from evenhand.store.ports import Ledger, Scope, Store


class Course(NamedTuple):
    """What a command judges, and with what."""

    plan: Plan
    store: Store
    ledger: Ledger
    scope: Scope
    schedule: Schedule
    stop: Stop
    tally: Tally


class Parts(Struct, frozen=True, kw_only=True):
    """What a run is judged with, in one process."""

    plan: Plan
    run: str
    ledger: Ledger
    stop: Stop
    tally: Tally
    schedule: Schedule
    budget: Budget
    paces: Mapping[Hashable, Pace]
    sender: str = ""
    """How the names of its requests begin in the store, where rates are divided."""
    notice: Callable[[str], None] = lambda message: None
    backoff_first: float = BACKOFF_FIRST

    def engine(self) -> Engine:
        """What judges."""
        concurrency = self.plan.suite.file.limits.concurrency
        call_paths = [self._call_path(seat) for seat in self.plan.seats]
        pools = [
            Pool(group=group, call_paths=members, width=_width(concurrency, members))
            for group, members in seated(self.plan.judge_groups, call_paths)
        ]
        return Engine(
            kind=self.plan.judging,
            ledger=self.ledger,
            run_id=self.run,
            schedule=self.schedule,
            pools=pools,
            stop=self.stop,
            tally=self.tally,
            recorded=[pool.group.index for pool in pools if _is_recorded(pool)],
        )

    def _call_path(self, seat: Seat) -> CallPath:
        limits = self.plan.suite.file.limits
        return CallPath(
            judge=seat.judge,
            run=self.run,
            ledger=self.ledger,
            stop=self.stop,
            pace=self.paces[seat.judge.account],
            patience=Patience(
                call_seconds=limits.call_seconds,
                attempt_seconds=limits.attempt_seconds,
                backoff_first=self.backoff_first,
            ),
            notice=self.notice,
            budget=self.budget,
            price=seat.price,
            max_tokens=seat.spec.max_tokens,
            tally=self.tally,
            sender=self.sender,
        )


def _is_recorded(pool: Pool) -> bool:
    """Return True if all judges of a pool only have recorded replies."""
    providers = {path.judge.identity.get("provider") for path in pool.call_paths}
    return providers == {"replay"}


def _width(concurrency: int, members: Sequence[CallPath]) -> int:
    """How many units are under way at once: a judge that takes few requests bounds its own group,
    but not a relay, in which it may never be asked."""
    slots = members[0].judge.slots if len(members) == 1 else None
    return min(concurrency, slots or concurrency)
