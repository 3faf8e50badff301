"""What every store can do, whatever database is behind it, and the records that pass through.

Durability: when the future of `record` or `reserve` is done, the row survives a crash of the
process and of the machine. Judgments are written with the next such commit: they can always be
recomputed from the calls.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from evenhand.exchange import Reply
from evenhand.judgment import JudgmentText


class Call(NamedTuple):
    """One reply with its key, who paid, and the price in picodollars (None: unknown)."""

    key: str
    run: str
    judge: str
    reply: Reply
    cost: int | None


class IncomingUnit(NamedTuple):
    """A unit as read from a data file: its id, where it stood, its JSON text."""

    id: str
    origin: str
    body: str


class JudgedUnit(NamedTuple):
    """A unit with the judgments that were made of it elsewhere: (judge, repeat, judgment)."""

    unit: IncomingUnit
    judgments: Sequence[tuple[int, int, JudgmentText]]


class StoredUnit(NamedTuple):
    """A unit as kept in the store; `digest` changes when its content does."""

    no: int
    id: str
    digest: str
    body: str


class StoredJudgment(NamedTuple):
    """A judgment as kept: of which unit, by which judge, from which calls."""

    unit: int
    judge: int
    repeat: int
    basis: str
    calls: tuple[str, ...]
    reasks: int
    text: JudgmentText


class RunRow(NamedTuple):
    """A run: its manifest, when it was made and last started."""

    id: str
    name: str
    manifest: Mapping[str, Any]
    created: str
    started: str
    starts: int


@dataclass(frozen=True, slots=True)
class Scope:
    """The units a command is about: those of its own intake (`start`), or all of the run (None)."""

    run: str
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """How a scope stands. planned = verdicts + failures + pending, by construction; what a judge
    was left out of is not planned."""

    planned: int
    verdicts: int
    failures: Mapping[str, int]
    calls: int
    reasks: int
    left_out: int = 0
    failed_calls: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of the calls, those of failures, by reason."""

    @property
    def pending(self) -> int:
        return self.planned - self.verdicts - sum(self.failures.values())


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has cost: picodollars of known prices, open reservations, tokens."""

    cost: int
    reserved: int
    unpriced: int
    calls: int
    input_tokens: int
    output_tokens: int


class Cursor(NamedTuple):
    """Where a row of a page stands; of calls only the number counts."""

    unit: int
    judge: int = -1
    repeat: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Browsed:
    """Which judgments pages are to show; what is left empty does not matter. `planned` is how many
    judgments each unit is to have."""

    status: str = ""
    reason: str = ""
    judge: int | None = None
    winner: str = ""
    candidate: str = ""
    flag: str = ""
    tag: str = ""
    confidence: str = ""
    field: str = ""
    value: str = ""
    text: str = ""
    planned: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """Which page: so many rows after a place, or before it. A filter that looks into texts looks at
    `reach` rows at most, a `window` of them at a time."""

    place: Cursor | None = None
    forward: bool = True
    limit: int
    window: int
    reach: int


class JudgmentPage(NamedTuple):
    """A page in the order of the units; whether there are more rows that way, or else where the
    search stopped before the page was full."""

    rows: list[tuple[StoredUnit, StoredJudgment | None]]
    more: bool
    stopped: Cursor | None


class LedgerCall(NamedTuple):
    """A call with its number in the ledger, when it came, and whether it was set aside."""

    no: int
    at: str
    aside: bool
    call: Call


class CallPage(NamedTuple):
    """A page of calls, in the order in which they came; the rest as of judgments."""

    rows: list[LedgerCall]
    more: bool
    stopped: int | None


class Store(Protocol):
    """One writer at a time a run; any number of readers."""

    def claim(self, run: str) -> AbstractContextManager[None]:
        """Hold the run for this process; raises StoreError if another process judges it."""
        ...

    def begin(
        self, run: str, name: str, manifest: Mapping[str, Any], units: Iterable[IncomingUnit]
    ) -> Scope:
        """Start the run with these units: all of it or, on any error, nothing is noted; raises
        DataError on an id that repeats."""
        ...

    def take_in(
        self,
        run: str,
        name: str,
        manifest: Callable[[], Mapping[str, Any]],
        units: Iterable[JudgedUnit],
        tag: str,
    ) -> Scope:
        """Keep a run whose judgments were made elsewhere, in place of what it held before: all of
        it or, on any error, nothing. The manifest is asked for after the last unit."""
        ...

    def set_aside(
        self,
        scope: Scope,
        kept: Sequence[str],
        bad_tries: Callable[[StoredJudgment], Iterable[str]],
    ) -> None:
        """Make failures pending whose reason is not one of `kept`. Those of their calls that
        `bad_tries` names stay in the ledger, but no longer answer their questions: those can be
        asked again. The others still answer."""
        ...

    def open_work(
        self, scope: Scope, judge: int, repeat: int, tag: str, again: Sequence[str]
    ) -> Iterator[StoredUnit]:
        """Units without a standing judgment by this judge, in order, read page by page.

        A judgment stands if its basis is `tag` and the unit's digest, and its reason is not one of
        `again`.
        """
        ...

    def units(self, scope: Scope) -> Iterator[StoredUnit]: ...

    def find(self, key: str, *, aside: bool = False) -> Call | None:
        """The first reply recorded under a key; one that was set aside only where it is asked for
        and there is no other."""
        ...

    def record(self, call: Call, attempt: str = "") -> Future[None]:
        """Keep a reply, and close its attempt's reservation; done when durable."""
        ...

    def reserve(self, run: str, key: str, attempt: str, amount: int) -> Future[None]:
        """Note money that a call may cost, before it is sent; done when durable."""
        ...

    def release(self, key: str, attempt: str) -> None:
        """Close a reservation that cost nothing."""
        ...

    def settle(self, judgment: StoredJudgment) -> None:
        """Keep a judgment, replacing the one before."""
        ...

    def forget(self, unit: int, judge: int, repeat: int) -> None:
        """Drop a judgment: the unit is pending again."""
        ...

    async def flush(self) -> None:
        """Wait until everything handed over is durable."""
        ...

    def counts(self, scope: Scope, judgments_per_unit: int, tag: str) -> Counts: ...

    def spent(self, run: str) -> Spent: ...

    def runs(self) -> list[RunRow]:
        """All runs, the one started last first."""
        ...

    def judgments(
        self, scope: Scope, tag: str, unit: str | None = None
    ) -> Iterator[tuple[StoredUnit, StoredJudgment]]:
        """The judgments that stand, in the order of the units; of one unit, if it is named."""
        ...

    def judged(self, scope: Scope, tag: str) -> Iterator[tuple[int, int, int, JudgmentText]]:
        """The judgments that stand as kept, in the order of the units: the unit's number, judge,
        repeat and text; what statistics over many need."""
        ...

    def judgment_page(
        self, run: str, tag: str, browsed: Browsed, request: PageRequest
    ) -> JudgmentPage:
        """Some of the judgments that stand, and of units that wait for one."""
        ...

    def call_page(
        self, run: str, request: PageRequest, judge: str = "", text: str = ""
    ) -> CallPage:
        """Some of the calls that the run paid for: of one judge, with a text in the reply."""
        ...

    def ledger_calls(self, keys: Sequence[str]) -> dict[str, LedgerCall]:
        """The calls under these keys, as they answer now."""
        ...

    def ledger_call(self, run: str, no: int) -> tuple[LedgerCall, str | None] | None:
        """One call that the run paid for, and the unit whose judgment rests on it, if one does."""
        ...

    def unit_named(self, run: str, name: str) -> StoredUnit | None: ...

    def units_of_both(
        self, one: str, other: str, after: int = 0
    ) -> Iterator[tuple[StoredUnit, StoredUnit]]:
        """The units that two runs share by their ids, in the order of the first."""
        ...

    def of_unit(self, unit: StoredUnit, tag: str) -> list[StoredJudgment]:
        """The judgments of a unit that stand."""
        ...

    def recent_calls(self, run: str, most: int) -> list[str]:
        """When the last calls of a run came, the last first."""
        ...

    def is_claimed(self, run: str) -> bool:
        """Whether a process judges the run now."""
        ...

    def state(self) -> int:
        """A number that changes whenever somebody else has changed the store."""
        ...

    def is_there(self) -> bool:
        """Whether what was opened still is what the name leads to."""
        ...

    def verify(self) -> list[str]:
        """What is wrong with the store, in words; empty if nothing."""
        ...

    def close(self) -> None: ...
