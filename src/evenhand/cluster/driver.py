"""The driver of a run on a Ray cluster.

It holds the run, hands chunks of units to actors, each with its share of money and rates, and
counts what they did. An actor judges its chunk with the usual engine against the shared store.
Where one dies, another takes its place and its chunk is handed out again: what the store holds is
not asked again. While it judges, an actor holds a lock of the store that ends with its connection.
The money of a dead actor is counted anew only under that lock, which is then kept, so that an actor
that Ray has given up and that lives on cannot spend any more.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from time import monotonic
from typing import Any
from urllib.parse import urlunsplit

from evenhand.cluster.actor import (
    COUNTED,
    Assignment,
    ChunkResult,
    Readiness,
    RunActor,
    lock_name,
    start_of,
)
from evenhand.engine.prices import budget_reached
from evenhand.engine.stop import Signal, Stopped
from evenhand.errors import (
    EvenhandError,
    Interrupted,
    ProviderRefused,
    StoppedEarly,
    StoreBusy,
    StoreError,
    UsageError,
)
from evenhand.judgment import RETRIED_BY_NEXT_RUN
from evenhand.limits import (
    ACTOR_LOCKS,
    ACTORS_MOST,
    LOOK_AGAIN_FIRST,
    LOOK_AGAIN_MOST,
    UNITS_PER_CALL,
)
from evenhand.runs.judge import RemoteEngine, RunContext
from evenhand.runs.plan import Plan
from evenhand.store.address import read_address, split_address
from evenhand.words import Sentence

CPUS = 0.1
"""Of a node's CPUs for an actor: it waits for answers most of the time."""
SUCCESSORS = 10
"""An actor that died has so many successors, on other nodes if need be."""
LEAVING_SECONDS = 60.0
"""Actors that are told to stop have so long to wait for their calls under way."""
EARLIER_SECONDS = 90.0
"""So long the actors of an earlier command are waited for: a lost machine frees its lock sooner."""
PROBE_SECONDS = 60
_SHUT, _ABSENT = 3, 4
_PROBE = f"""
import sys
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError
try:
    GcsClient(address=sys.argv[1]).internal_kv_keys(b"", namespace=None, timeout=10)
except AuthenticationError:
    sys.exit({_SHUT})
except Exception:
    sys.exit({_ABSENT})
"""
"""Asks a cluster something as a stranger would, without a token."""
_AUTH = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_NOTHING = (0,) * len(COUNTED)
_ERRORS: dict[int, tuple[type[EvenhandError], str]] = {
    UsageError.exit_code: (UsageError, "wrong"),
    ProviderRefused.exit_code: (ProviderRefused, "refused"),
    StoppedEarly.exit_code: (StoppedEarly, "no_answer"),
    StoreError.exit_code: (StoreError, "store"),
}
"""By the exit code of what ended a chunk: the error, and what is said where its words are left on
the node, since they may quote a reply."""


def ray_engine(
    address: str,
    workers: int | None,
    plan: Plan,
    store_url: str,
    tell: Callable[[str], None],
    *,
    allow_insecure: bool = False,
) -> RemoteEngine:
    """Return the engine that judges on a cluster; raises UsageError where that cannot be. Without a
    number there is one actor for each node."""
    if find_spec("ray") is None:
        raise UsageError(Sentence("cluster.no_ray"))
    if plan.manifest.is_sequential:
        raise UsageError(Sentence("cluster.until_decided"))
    url = without_password(store_url)
    if address != "auto":
        _require_guard(address, allow_insecure=allow_insecure)
    file = plan.suite.file
    terms = file.model_dump_json(include={"judges", "limits"}, exclude_defaults=True)

    async def judge(context: RunContext) -> None:
        # Ray tells of nodes that died on stdout, which is for the results alone.
        with redirect_stdout(sys.stderr):
            ray = await asyncio.to_thread(_connect, address, allow_insecure)
            try:
                nodes = max(1, sum(bool(node["Alive"]) for node in ray.nodes()))
                await _Driver(ray, context, url, workers or nodes, tell).run()
            finally:
                await asyncio.to_thread(ray.shutdown)

    return RemoteEngine(terms, judge)


def without_password(url: str) -> str:
    """Return the address of a store as nodes are told it; raises UsageError for one whose password
    the command line holds: Ray keeps that, and shows it."""
    read_address(url)
    parts = split_address(url)
    user, _, hosts = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    query = "&".join(p for p in parts.query.split("&") if not p.startswith("password="))
    if (colon or query != parts.query) and any(parts.netloc in word for word in sys.argv):
        raise UsageError(Sentence("cluster.password_in_command"))
    return urlunsplit((parts.scheme, f"{name}@{hosts}" if name else hosts, parts.path, query, ""))


def _require_guard(address: str, *, allow_insecure: bool) -> None:
    """Refuse a cluster that answers strangers."""
    if allow_insecure:
        return
    environ = {name: value for name, value in os.environ.items() if name not in _AUTH}
    probe = subprocess.run(  # noqa: S603 - our own words, and an address
        [sys.executable, "-c", _PROBE, address],
        env=environ | {"RAY_AUTH_MODE": "disabled"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=PROBE_SECONDS,
        check=False,
    )
    if probe.returncode == _ABSENT:
        raise UsageError(Sentence("cluster.no_cluster", address=address))
    if probe.returncode != _SHUT:
        raise UsageError(Sentence("cluster.no_token"))


def _connect(address: str, allow_insecure: bool) -> Any:
    """Return Ray, connected; raises UsageError."""
    import ray

    try:
        context: Any = ray.init(
            address=address, log_to_driver=False, logging_level=logging.ERROR, namespace="evenhand"
        )
    except Exception as error:
        first = str(error).strip().partition("\n")[0][:200]
        raise UsageError(Sentence("cluster.unusable", address=address, reason=first)) from None
    if address == "auto":
        try:
            _require_guard(context.address_info["gcs_address"], allow_insecure=allow_insecure)
        except UsageError:
            ray.shutdown()
            raise
    return ray


@dataclass(slots=True)
class _Actor:
    """An actor as the driver knows it; another takes its place when it dies."""

    number: int
    handle: Any = None
    lock: int = 0
    """The number of its lock."""
    host: str = ""
    chunk: Assignment | None = None
    """Its present chunk."""
    done: tuple[int, ...] = _NOTHING
    """Counts of its earlier chunks."""
    now: tuple[int, ...] = _NOTHING
    is_over: bool = False

    def end_chunk(self, counts: tuple[int, ...]) -> None:
        """Count what was done of the present chunk."""
        self.done = tuple(map(sum, zip(self.done, counts, strict=True)))
        self.chunk, self.now = None, _NOTHING

    def text(self) -> str:
        """Return what it does now, in words."""
        if not self.host:
            return "starting"
        judged, taken = sum(self.done[:2]) + sum(self.now[:2]), self.chunk and self.chunk.positions
        return f"{self.host}: {judged} judged, {len(taken or ())} taken"


class _Driver:
    """Hands out the units of one run, and counts."""

    def __init__(
        self, ray: Any, context: RunContext, url: str, workers: int, tell: Callable[[str], None]
    ) -> None:
        self._ray, self._context, self._url, self._tell = ray, context, url, tell
        self._stop, self._archive = context.stop, context.store.archive
        self._run, self._limits = context.scope.run, context.plan.suite.file.limits
        rate = self._limits.requests_per_minute or workers
        self._number = min(workers, ACTORS_MOST, self._limits.concurrency, rate)
        self._actors = [_Actor(number) for number in range(self._number)]
        self._locks, self._name = iter(range(ACTOR_LOCKS)), os.urandom(4).hex()
        self._needed, self._is_at_end = 0, False
        self._moved, self._fences = Signal(), AsyncExitStack()

    async def run(self) -> None:
        """Have the run judged to its end, or until the stop is requested."""
        tally, before = self._context.tally, self._archive.spent(self._run)
        self._base = tuple(getattr(tally, name) for name in COUNTED)
        with suppress(Stopped):
            async with self._fences:
                await self._wait_for_earlier_actors()
                self._used = self._count_money()
                self._start_number = start_of(self._archive, self._run)
                self._open = self._find_open()
                await self._drive()
        after = self._archive.spent(self._run)
        # An actor that died has not told all that it did, but the ledger knows.
        tally.sent = max(tally.sent, after.calls - before.calls)
        tally.cost = max(tally.cost, after.cost - before.cost)
        tally.actors = []

    async def _wait_for_earlier_actors(self) -> None:
        """Wait until no actor of an earlier command judges the run; raises StoreBusy."""
        end = monotonic() + EARLIER_SECONDS
        while any(
            self._archive.is_claimed(lock_name(self._run, lock)) for lock in range(ACTOR_LOCKS)
        ):
            if monotonic() > end:
                raise StoreBusy(Sentence("cluster.earlier_actors", run=self._run))
            await self._stop.sleep(LOOK_AGAIN_MOST)

    def _find_open(self) -> deque[int]:
        """Return the positions of the open units, last those that failed at an earlier start."""
        context = self._context
        find = partial(self._archive.open_positions, context.scope, context.plan.judgments_per_unit)
        new = find(())
        return deque([*new, *sorted(set(find(tuple(RETRIED_BY_NEXT_RUN))) - set(new))])

    def _take(self, width: int) -> tuple[int, ...]:
        """Return the next positions, none at the end. Chunks are smaller towards the end, so that
        nobody waits long for another."""
        size = min(UNITS_PER_CALL * width, -(-len(self._open) // (2 * self._number)))
        return tuple(self._open.popleft() for _ in range(size))

    def _give_back(self, positions: tuple[int, ...]) -> None:
        """Have units handed out once more, first: what is judged of them costs nothing."""
        self._open.extendleft(reversed(positions))

    def _count_money(self) -> int:
        """Return what the run has spent or reserved, by the ledger. The spending of actors at work
        is part of it and of their shares, until a count that finds none at work."""
        return self._context.plan.used(self._archive.spent(self._run))

    async def _drive(self) -> None:
        """Serve all actors until nothing is left to do, or none of them is left."""
        tasks = [asyncio.create_task(self._serve(actor)) for actor in self._actors]
        failed = False
        try:
            while not (self._is_at_end or self._stop.requested or failed):
                if all(task.done() for task in tasks):
                    break
                await asyncio.wait(tasks, timeout=LOOK_AGAIN_MOST, return_when="FIRST_EXCEPTION")
                failed = any(task.done() and task.exception() for task in tasks)
                await self._show()
            if self._stop.requested:
                await self._leave()
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            for actor in self._actors:
                with suppress(Exception):  # it may be gone, or the whole cluster
                    self._ray.kill(actor.handle)
        for error in ended:
            if isinstance(error, Exception):
                raise error
        if not (self._is_at_end or self._stop.requested):
            self._stop.request(StoppedEarly(Sentence("cluster.no_actor_left")))

    async def _leave(self) -> None:
        """Have the actors send nothing new, and wait for what is under way."""
        end = monotonic() + LEAVING_SECONDS
        for actor in self._actors:
            if actor.chunk:
                actor.handle.leave.remote()
        while any(actor.chunk for actor in self._actors) and monotonic() < end:
            await asyncio.sleep(LOOK_AGAIN_FIRST)
            await self._show()

    async def _serve(self, actor: _Actor) -> None:
        """Have an actor, and those that take its place, judge chunk after chunk."""
        try:
            for _ in range(1 + SUCCESSORS):
                with suppress(self._ray.exceptions.RayError):
                    if await self._start(actor):
                        while await self._judge_chunk(actor):
                            pass
                    return
        except Stopped:
            return
        finally:
            actor.chunk, actor.is_over = None, True
            self._moved.notify_all()

    async def _start(self, actor: _Actor) -> bool:
        """Start an actor; return False where it cannot judge."""
        actor.host, actor.lock = "", next(self._locks, -1)
        if actor.lock < 0:
            return False
        remote = self._ray.remote(RunActor).options(num_cpus=CPUS, scheduling_strategy="SPREAD")
        actor.handle = remote.remote(self._url, self._run, actor.number, self._number, self._name)
        ready, here = Readiness(*await _get(actor.handle.start.remote())), version("evenhand")
        error = ready.error
        if ready.version != here:
            error = Sentence("cluster.other_version", there=ready.version, here=here)
        if error:
            self._tell(Sentence("cluster.cannot_judge", host=ready.host, reason=error))
            return False
        actor.host = ready.host
        return True

    async def _judge_chunk(self, actor: _Actor) -> bool:
        """Have a chunk judged; return False where none is left."""
        chunk = actor.chunk = await self._next_chunk(actor)
        if chunk is None:
            return False
        try:
            result = ChunkResult(*await _get(actor.handle.judge.remote(chunk)))
        except self._ray.exceptions.RayError:
            await self._take_back(actor, chunk)
            raise
        actor.end_chunk(result.counts)
        self._used += result.used
        if result.amount:
            self._needed = max(self._needed, result.amount)
            self._give_back(chunk.positions)
        elif result.exit_code not in (0, Interrupted.exit_code):
            self._stop.request(_error(result, actor.host))
        self._moved.notify_all()
        return True

    async def _take_back(self, actor: _Actor, chunk: Assignment) -> None:
        """Take back the chunk of a dead actor, once it can surely spend nothing more."""
        self._tell(Sentence("cluster.actor_died", host=actor.host))
        self._ray.kill(actor.handle)  # it may only be out of reach
        while True:
            try:
                claim = self._context.ledger.claim(lock_name(self._run, chunk.lock))
                await self._fences.enter_async_context(claim)
                break
            except StoreBusy:
                await self._stop.sleep(LOOK_AGAIN_MOST)
        self._used = self._count_money()
        self._give_back(chunk.positions)
        actor.end_chunk(actor.now)
        self._moved.notify_all()

    async def _next_chunk(self, actor: _Actor) -> Assignment | None:
        """Return the next chunk with its share, when there is money for it; None at the end.
        Raises Stopped."""
        limits, actors = self._limits, self._number
        width = max(1, limits.concurrency // actors)
        rates = limits.requests_per_minute, limits.tokens_per_minute
        shares = [rate and max(1, rate // actors) for rate in rates]
        while True:
            self._stop.check()
            is_busy = any(other.chunk for other in self._actors)
            if positions := self._take(width):
                is_enough, money = self._grant(is_busy=is_busy)
                if is_enough:
                    return Assignment(
                        self._start_number, actor.lock, positions, money, width, *shares
                    )
                self._give_back(positions)
            elif not is_busy:
                self._is_at_end = True
                return None
            await self._stop.sleep(None, self._moved)

    def _grant(self, *, is_busy: bool) -> tuple[bool, int | None]:
        """Return whether there is money for a chunk, and how much it may spend; stop the run where
        there is none, and none will come back."""
        cap = self._context.plan.budget_cap
        if cap is None:
            return True, None
        granted = sum(actor.chunk.money or 0 for actor in self._actors if actor.chunk)
        if not is_busy and self._needed > cap - self._used:
            self._used = self._count_money()
        free = max(0, cap - self._used - granted)
        if not is_busy and self._needed > free:
            self._stop.request(budget_reached(cap, self._used, self._needed))
        money = max(self._needed, free // (2 * self._number))
        return money <= free, money

    async def _show(self) -> None:
        """Ask the actors at work what they have done, and count it."""
        asked = {
            _get(actor.handle.count.remote()): (actor, actor.chunk)
            for actor in self._actors
            if actor.chunk and actor.host
        }
        if asked:
            await asyncio.wait(asked, timeout=LOOK_AGAIN_MOST)
        for answer, (actor, chunk) in asked.items():
            is_answered = answer.done() and not answer.cancelled() and answer.exception() is None
            if is_answered and actor.chunk is chunk:
                actor.now = answer.result()
        counts = [self._base, *(part for it in self._actors for part in (it.done, it.now))]
        for name, numbers in zip(COUNTED, zip(*counts, strict=True), strict=True):
            setattr(self._context.tally, name, sum(numbers))
        self._context.tally.actors = [it.text() for it in self._actors if not it.is_over]


def _get(reference: Any) -> asyncio.Future[Any]:
    """Return a future of this event loop for the result of a remote call."""
    return asyncio.wrap_future(reference.future())


def _error(result: ChunkResult, host: str) -> EvenhandError:
    """Return the error for what ended a chunk early."""
    kind, default = _ERRORS.get(result.exit_code, (EvenhandError, "failed"))
    reason = result.words or Sentence(f"cluster.actor_{default}")
    return kind(Sentence("cluster.actor_stopped", host=host, reason=reason))
