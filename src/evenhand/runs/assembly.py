"""The engine of a plan, put together: the same for a process that judges a run alone and for an
actor that judges a part of it; what differs is handed in."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from evenhand.engine.budget import CallBudget
from evenhand.engine.call import CallStack, RetryPolicy
from evenhand.engine.pacing import Pacer, SentLog, account_name, ages
from evenhand.engine.progress import Tally
from evenhand.engine.run import Engine, Pool, Schedule
from evenhand.engine.stop import Stop
from evenhand.limits import BACKOFF_FIRST
from evenhand.runs.plan import JudgeSetup, Plan
from evenhand.runs.recorded import split_by_group
from evenhand.store.ports import Archive, Ledger, Scope, SentRequest, Store


class RunContext(NamedTuple):
    """What a command judges, and with what."""

    plan: Plan
    store: Store
    ledger: Ledger
    scope: Scope
    schedule: Schedule
    stop: Stop
    tally: Tally


class EngineParts(Struct, frozen=True, kw_only=True):
    """What a run is judged with, in one process."""

    plan: Plan
    run: str
    ledger: Ledger
    stop: Stop
    tally: Tally
    schedule: Schedule
    budget: CallBudget
    pacers: Mapping[Hashable, Pacer]
    notice: Callable[[str], None] = lambda message: None
    backoff_first: float = BACKOFF_FIRST

    def engine(self) -> Engine:
        """Return the engine that judges."""
        concurrency = self.plan.suite.file.limits.concurrency
        stacks = [self._call_stack(setup) for setup in self.plan.setups]
        return Engine(
            kind=self.plan.judging,
            ledger=self.ledger,
            run_id=self.run,
            schedule=self.schedule,
            pools=[
                Pool(group=group, stacks=members, concurrency=concurrency)
                for group, members in split_by_group(self.plan.judge_groups, stacks)
            ],
            stop=self.stop,
            tally=self.tally,
        )

    def _call_stack(self, setup: JudgeSetup) -> CallStack:
        limits = self.plan.suite.file.limits
        return CallStack(
            judge=setup.judge,
            run=self.run,
            ledger=self.ledger,
            stop=self.stop,
            tally=self.tally,
            pacer=self.pacers[setup.judge.account],
            retry=RetryPolicy(
                call_seconds=limits.call_seconds,
                attempt_seconds=limits.attempt_seconds,
                backoff_first=self.backoff_first,
            ),
            budget=self.budget,
            price=setup.price,
            max_tokens=setup.spec.max_tokens,
            notice=self.notice,
        )


def make_pacers(
    plan: Plan,
    archive: Archive,
    ledger: Ledger,
    stop: Stop,
    *,
    backoff_first: float = BACKOFF_FIRST,
    sender: str = "",
    counted: Callable[[Sequence[SentRequest]], Sequence[SentRequest]] = lambda sent: sent,
) -> dict[Hashable, Pacer]:
    """Return the pacer of each account, which begins with the requests of the last minute; of these
    with those that `counted` returns. Names of new requests begin with `sender`."""
    limits, pacers = plan.suite.file.limits, dict[Hashable, Pacer]()
    rates = limits.requests_per_minute, limits.tokens_per_minute
    for account in {setup.judge.account for setup in plan.setups}:
        log = SentLog(ledger, account, sender)
        pacers[account] = pacer = Pacer(stop, *rates, log=log, backoff_first=backoff_first)
        if pacer.is_limited:
            sent_requests = counted(archive.sent_requests(account_name(account)))
            pacer.remember(ages(sent_requests, time.time()))
    return pacers
