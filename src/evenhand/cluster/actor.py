"""An actor of a run on a Ray cluster, and what passes between it and the driver.

What Ray is given, and keeps in objects, logs and dashboard, is the address of the store without its
password, positions of units, and counts: keys and the password come from the environment of each
node, units and replies stay in the store.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from evenhand.engine.prices import CallBudget
from evenhand.engine.progress import Tally
from evenhand.engine.run import Engine, FileOrder
from evenhand.engine.stop import Stop
from evenhand.errors import (
    EvenhandError,
    Interrupted,
    KeyMissing,
    LimitReached,
    ModelMissing,
    NoVerdicts,
    StoreBusy,
    StoreError,
    UsageError,
)
from evenhand.folders import is_within
from evenhand.jsontext import canonical, stored_object
from evenhand.judges import split_name
from evenhand.judges.credentials import environment
from evenhand.judges.trust import Trust, TrustedHosts
from evenhand.kinds.kind import ReadyKind
from evenhand.manifest import JudgeRecord
from evenhand.runs.judge import RunContext, make_engine, make_pacers
from evenhand.runs.plan import JudgeSetup, Plan
from evenhand.runs.prepare import open_judge_setup
from evenhand.runs.recorded import Recorded, recorded_run
from evenhand.runs.stores import open_store
from evenhand.store.archive import Archive
from evenhand.store.ledger import Ledger, Store
from evenhand.store.ports import IncomingUnit, Scope, SentRequest
from evenhand.suite import ROUTE_KEYS, Suite, suite_of_keys
from evenhand.suite_file import JudgeSpec
from evenhand.words import Code, Sentence

COUNTED = ("verdicts", "failures", "left_out", "sent", "cached", "reasks", "cost", "unpriced")
"""The fields of a tally that an actor tells."""
_OWN_WORDS = (UsageError, KeyMissing, ModelMissing, StoreError, LimitReached, NoVerdicts)
"""Errors that quote nothing of a reply or a unit: Ray may carry their words."""


class Assignment(NamedTuple):
    """A chunk of units, by their positions in the run, and what may be used for them."""

    start: int
    """The start of the run that it belongs to."""
    lock: int
    """The number of the lock that its actor holds meanwhile."""
    positions: tuple[int, ...]
    money: int | None
    concurrency: int
    requests: int | None
    tokens: int | None


class ChunkResult(NamedTuple):
    """The outcome of a chunk: counts in the order of `COUNTED`, money used, what ended it early."""

    counts: tuple[int, ...]
    used: int
    exit_code: int = 0
    words: str = ""
    amount: int = 0
    """The money that the next call needed, where the share was too small for it."""


class Readiness(NamedTuple):
    """An actor that is there: its version of evenhand, its host, and why it cannot judge, if it
    cannot."""

    version: str
    host: str
    error: str


def lock_name(run: str, number: int) -> str:
    """Return the name in the store of a lock that an actor holds while it judges."""
    return f"{run}/{number}"


class RunActor:
    """Judges chunks of one run. Its methods are coroutines: Ray runs them in one event loop."""

    def __init__(self, url: str, run: str, number: int, of: int, driver: str) -> None:
        """The actor is the `number`th `of` so many that a driver has."""
        self._url, self._run = url, run
        self._number, self._of, self._driver = number, of, driver
        self._stop, self._tally = Stop(), Tally()
        self._opened = AsyncExitStack()

    async def start(self) -> Readiness:
        """Open the store and the judges."""
        error = ""
        try:
            self._store: Store = await asyncio.to_thread(open_store, self._url, must_exist=True)
            self._plan = await asyncio.to_thread(_open_plan, self._store.archive, self._run)
            self._ledger: Ledger = await self._opened.enter_async_context(self._store.ledger())
        except Exception as failure:
            error = _safe_words(failure) or type(failure).__name__
        return Readiness(version("evenhand"), socket.gethostname(), error)

    async def judge(self, chunk: Assignment) -> ChunkResult:
        """Judge a chunk; an error is part of the result."""
        # What makes a run futile is counted over all chunks.
        self._stop, self._tally = Stop(), Tally(outcomes=self._tally.outcomes)
        budget = CallBudget(chunk.money)
        try:
            async with self._ledger.claim(lock_name(self._run, chunk.lock)):
                if start_of(self._store.archive, self._run) != chunk.start:
                    # Its driver is gone, and another has counted the money.
                    raise StoreBusy(Sentence("cluster.started_again", run=self._run))
                await self._engine(chunk, budget).run()
        except Exception as error:
            return self._result(error, budget)
        return self._result(self._stop.cause, budget)

    async def count(self) -> tuple[int, ...]:
        """Return what was done of the present chunk."""
        return tuple(getattr(self._tally, name) for name in COUNTED)

    async def leave(self) -> None:
        """Send nothing new; what is under way is waited for."""
        self._stop.request(Interrupted("interrupted"))

    def _engine(self, chunk: Assignment, budget: CallBudget) -> Engine:
        suite = self._plan.suite
        share = {
            "concurrency": chunk.concurrency,
            "requests_per_minute": chunk.requests,
            "tokens_per_minute": chunk.tokens,
        }
        limits = suite.file.limits.model_copy(update=share)
        file = suite.file.model_copy(update={"limits": limits})
        plan = structs.replace(self._plan, suite=Suite(file, suite.folder))
        scope = Scope(self._run, positions=chunk.positions)
        context = RunContext(
            *(plan, self._store, self._ledger, scope, FileOrder(self._ledger, scope)),
            *(self._stop, self._tally),
        )
        pacers = make_pacers(
            *(plan, self._store.archive, self._ledger, self._stop),
            sender=f"{self._driver}-{self._number}-",
            counted=self.counted,
        )
        return make_engine(context, budget, pacers)

    def counted(self, sent_requests: Sequence[SentRequest]) -> list[SentRequest]:
        """Return the requests that count against this actor's share of a minute: its own, those of
        its predecessors, and its part of what was sent before the driver began."""
        own = f"{self._driver}-{self._number}-"
        mine = [item for item in sent_requests if item.name.startswith(own)]
        before = [item for item in sent_requests if not item.name.startswith(f"{self._driver}-")]
        parts = before[self._number :: self._of]
        return sorted([*mine, *parts], key=lambda item: item.at)

    def _result(self, error: BaseException | None, budget: CallBudget) -> ChunkResult:
        counts, code = tuple(getattr(self._tally, name) for name in COUNTED), 0
        if error is not None:
            code = error.exit_code if isinstance(error, EvenhandError) else EvenhandError.exit_code
        words = _safe_words(error) if error is not None else ""
        amount = error.amount if isinstance(error, LimitReached) else 0
        return ChunkResult(counts, budget.used, code, words, amount)


def _safe_words(error: BaseException) -> str:
    """Return the words of an error, unless they may quote a reply; of a bug, its type alone."""
    if not isinstance(error, EvenhandError):
        return type(error).__name__
    return error.what if isinstance(error, _OWN_WORDS) else ""


def start_of(archive: Archive, run: str) -> int:
    """Return the number of a run's last start, which no other start has."""
    [start] = [row.starts for row in archive.runs() if row.id == run]
    return start


def _open_plan(archive: Archive, run: str) -> Plan:
    """Return the plan of a run from what the store says of it; raises EvenhandError. Keys are this
    node's own, under the rules that hold for every suite."""
    [row] = [row for row in archive.runs() if row.id == run]
    recorded = recorded_run(archive, row)
    suite = suite_of_run(recorded)
    setups = [
        _judge_setup(suite, spec, record)
        for spec, record in zip(suite.file.judges, recorded.judges, strict=True)
    ]
    return Plan(
        suite=suite,
        protocol=recorded.protocol,
        settings=recorded.manifest.judging.settings,
        rubric=recorded.rubric,
        setups=tuple(setups),
        units=_no_units,
        recorded=recorded.manifest,
    )


def suite_of_run(run: Recorded) -> Suite:
    terms = stored_object(run.manifest.terms, "the record of a run")
    file = suite_of_keys(
        {
            **terms,
            "name": run.row.name,
            "protocol": run.manifest.protocol or run.kind_name,
            "language": run.manifest.judging.language,
            "data": "the store",
            "seed": run.manifest.judging.seed,
        }
    )
    # An address that the store brings has not come from where the key stands.
    routes = [getattr(spec, key) for spec in file.judges for key in ROUTE_KEYS]
    addresses = {route: "the store" for route in routes if route}
    return Suite(file, Path(), addresses=addresses)


def _judge_setup(suite: Suite, spec: JudgeSpec, record: JudgeRecord) -> JudgeSetup:
    """Return a judge of the run as it is here; raises EvenhandError where it is another."""
    provider, model = split_name(spec.model)
    if provider.is_file(model) and not is_within(suite.folder / model, suite.folder):
        raise UsageError(Sentence("cluster.outside_folder", path=model))
    trust = Trust(TrustedHosts(), tell=lambda line: None)
    setup = open_judge_setup(suite, spec, environment(), lambda line: None, trust)
    mine, theirs = setup.judge.identity, record.identity
    if canonical(dict(mine)) != canonical(dict(theirs)):
        names = sorted(n for n in mine.keys() | theirs.keys() if mine.get(n) != theirs.get(n))
        raise UsageError(
            Sentence("cluster.other_judge", judge=record.name, names=Code(", ".join(names)))
        )
    if setup.judge.unavailable_reason is not None:
        raise setup.judge.unavailable_reason
    setup.judge.load()
    return setup


def _no_units(judging: ReadyKind) -> Iterator[IncomingUnit]:
    raise AssertionError("the units of a run on a cluster are in the store")
