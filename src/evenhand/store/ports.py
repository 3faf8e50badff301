"""The ports of a store, whatever database is behind them, and the records that pass through.

The engine writes through `Ledger`, where everything is awaited: the database may stand at the other
end of a network. Readers use `Archive`. When `record` or `reserve` is done, the row survives a
crash of the process and of the machine. Judgments are written with the next such commit: they can
always be recomputed from the calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from evenhand.exchange import Reply, Usage
from evenhand.judgment import JudgmentText
from evenhand.manifest import Manifest
from evenhand.observation import UnitDescription

if TYPE_CHECKING:
    from evenhand.store.batches import Batches, BatchRow


class Call(NamedTuple):
    """One reply with its key, who paid, and the price in picodollars (None: unknown). `most` is how
    many tokens it can have taken where there is neither a price nor a full count of them."""

    key: str
    run: str
    judge: str
    reply: Reply
    cost: int | None
    most: Usage = Usage()


class SentRequest(NamedTuple):
    """A request to an account that counts against its minute: when it was sent, in seconds since
    the epoch, and its tokens or the most that they can be."""

    name: str
    account: str
    at: float
    tokens: int


class IncomingUnit(NamedTuple):
    """A unit as read from a data file: its id, where it stood, its JSON text, its fields; and the
    judgments that were made of it elsewhere: (judge, repeat, judgment)."""

    id: str
    origin: str
    body: str
    judgments: Sequence[tuple[int, int, JudgmentText]] = ()
    description: UnitDescription = UnitDescription()


class StoredUnit(NamedTuple):
    """A unit as kept in the store, where it is known by its content, and its place in a run."""

    no: int
    position: int
    id: str
    body: str


class StoredJudgment(NamedTuple):
    """A judgment as kept: of which unit, by which judge, from which calls."""

    unit: int
    judge: int
    repeat: int
    calls: tuple[str, ...]
    reasks: int
    text: JudgmentText


class ObservedRow(NamedTuple):
    """A judgment in numbers, with its unit; without a status there is none of the unit."""

    position: int
    unit: str
    subject: str
    opponent: str
    fields: str
    """JSON, by name."""
    judge: int
    repeat: int
    status: str | None
    reason: str | None
    observations: str
    """JSON, as `evenhand.observation` writes it."""


class RunRow(NamedTuple):
    """A run: its judging by its id, when it was made and last started."""

    id: str
    name: str
    judging: str
    created: str
    started: str
    starts: int


class Scope(Struct, frozen=True):
    """The units a command is about: the first so many of a run, or all of it (None); of these, only
    those at some positions, in their order, if they are named."""

    run: str
    limit: int | None = None
    positions: tuple[int, ...] | None = None

    def holds(self, position: int) -> bool:
        """Return True if the unit at a position of the run is one of them."""
        if self.limit is not None and position > self.limit:
            return False
        return self.positions is None or position in self.positions


class Changes(NamedTuple):
    """Differences between the units of two runs, by their ids."""

    added: int
    removed: int
    changed: int


class Counts(Struct, frozen=True):
    """The judgments of a scope by outcome: planned = verdicts + failures + pending, always; units
    that a judge was left out of are not planned."""

    planned: int
    verdicts: int
    failures: Mapping[str, int]
    calls: int
    reasks: int
    """Of these calls, those that asked again for what broke the contract: the same in every summary
    of the run, whichever command sent them."""
    left_out: int = 0
    failed_calls: Mapping[str, int] = {}
    """Of the calls, those of failures, by reason."""

    @property
    def pending(self) -> int:
        return self.planned - self.verdicts - sum(self.failures.values())


class Spent(Struct, frozen=True):
    """The cost of a run: picodollars of known prices, open reservations, tokens. Of the input,
    some tokens were read from a provider's cache, and some stored in it."""

    cost: int
    reserved: int
    unpriced: int
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    stored_tokens: int = 0
    unpriced_tokens: Mapping[str, tuple[int, int]] = {}
    """By the judge's name, the most input and output tokens of calls that had no price, or none
    above zero, when they were made; lost calls included."""

    @property
    def usage(self) -> dict[str, int]:
        """The tokens, as `--json` prints them."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "stored_tokens": self.stored_tokens,
        }


class Cursor(NamedTuple):
    """The place of a row of a page: the unit's position in its run; of calls the number alone."""

    unit: int
    judge: int = -1
    repeat: int = -1


class Browsed(Struct, frozen=True, kw_only=True):
    """A filter of judgments; a field left empty filters nothing. `planned` is the number of
    judgments planned per unit."""

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


class PageRequest(Struct, frozen=True, kw_only=True):
    """A page of at most `limit` rows after a place, or before it. A filter that looks into texts
    looks at about `reach` rows at most."""

    place: Cursor | None = None
    forward: bool = True
    limit: int
    reach: int


class JudgmentPage(NamedTuple):
    """A page in the order of the units; whether there are more rows that way, or else where the
    search stopped before the page was full."""

    rows: list[tuple[StoredUnit, StoredJudgment | None]]
    more: bool
    stopped: Cursor | None


class LedgerCall(NamedTuple):
    """A call with its number in the ledger, when it came, and whether it was set aside. One that
    was altered is not what was recorded, and nothing may rest on it."""

    no: int
    at: str
    aside: bool
    call: Call
    altered: bool = False


class Intake(NamedTuple):
    """Units that wait to become those of a run: the hash of their ids and contents, the same in
    whatever order they came."""

    content: str


class QuestionLocks(Protocol):
    """Locks on questions, so that of the processes that share a store one asks each."""

    async def take(self, key: str) -> bool:
        """Lock a question before it is asked; return False if another process is asking it. The
        lock of a process that died is free."""
        ...

    def give_back(self, key: str) -> None:
        """Unlock a question, soon."""
        ...


class Ledger(Protocol):
    """The port that runs are written through, one writer at a time per run."""

    questions: QuestionLocks | None
    """None where equal questions of two processes are not worth a lock."""

    async def intake(self, units: Iterable[IncomingUnit]) -> Intake:
        """Read all units, which then wait for `begin`; raise DataError if an id repeats. What
        waits is dropped by the next intake."""
        ...

    def begin(
        self, run: str, name: str, manifest: Manifest, intake: Intake | None
    ) -> AbstractAsyncContextManager[None]:
        """Claim a run, and start it with the units of an intake and their judgments, all of them
        or, on any error, none. Without an intake, start a run again that has its units. Raises
        StoreBusy if another process judges the run."""
        ...

    def claim(self, run: str) -> AbstractAsyncContextManager[None]:
        """Hold a run for this process; raises StoreBusy if another judges it."""
        ...

    async def set_aside(
        self,
        scope: Scope,
        kept: Sequence[str],
        bad_tries: Callable[[StoredJudgment], Iterable[str]],
    ) -> None:
        """Make failures pending, except those with a reason in `kept`. Those of their calls that
        `bad_tries` names stay recorded, but no longer answer: they can be asked again."""
        ...

    async def open_work(
        self, scope: Scope, judge: int, repeat: int, again: Sequence[str], after: int = 0
    ) -> Sequence[StoredUnit]:
        """Return a page of the units after a position that have no judgment by this judge, or a
        failure with a reason in `again`; none at the end."""
        ...

    async def find(self, key: str) -> Call | None:
        """Return the first reply under a key that was not set aside, and is as it was recorded."""
        ...

    def record(self, call: Call, attempt: str = "") -> Awaitable[None]:
        """Keep a reply and close its attempt's reservation; done when both are durable."""
        ...

    def reserve(
        self,
        run: str,
        key: str,
        attempt: str,
        amount: int,
        judge: str = "",
        most: Usage | None = None,
    ) -> Awaitable[None]:
        """Hold the money that a call may cost, before it is sent; of a call without a price, its
        judge and the most tokens that it can take. Done when it is durable."""
        ...

    async def release(self, key: str, attempt: str) -> None:
        """Close a reservation that cost nothing."""
        ...

    def note_request(self, request: SentRequest) -> Awaitable[None]:
        """Note a request before it is sent; done when it is durable. Those older than a minute are
        forgotten by and by."""
        ...

    async def correct_request(self, name: str, tokens: int | None) -> None:
        """Replace the bound of a request's tokens by their count; None if it was not sent."""
        ...

    async def store_judgment(self, run: str, judgment: StoredJudgment) -> None:
        """Keep a judgment under the run's judging, in place of the one before."""
        ...

    async def forget(self, run: str, unit: int, judge: int, repeat: int) -> None:
        """Drop a judgment of the run's judging: the unit is pending again."""
        ...

    async def flush(self) -> None:
        """Wait until everything handed over is durable."""
        ...


class Archive(Protocol):
    """The port that stores are read through, by anybody at any time."""

    def runs(
        self, name: str | None = None, judging: str | None = None, limit: int | None = None
    ) -> list[RunRow]:
        """Return the runs, of a name or a judging if one is given, the one started last first; at
        most `limit` of them."""
        ...

    def manifest(self, run: str) -> Manifest:
        """Return what a run recorded of itself, the texts of its protocol included."""
        ...

    def changes(self, run: str, before: str) -> Changes:
        """Return how the units of a run differ from those of a run before it."""
        ...

    def units(self, scope: Scope, name: str | None = None) -> Iterator[StoredUnit]:
        """Yield the units of a scope in their order, page by page; or the one of that name."""
        ...

    def judgments(
        self, scope: Scope, unit: str | None = None
    ) -> Iterator[tuple[StoredUnit, StoredJudgment]]:
        """Yield the judgments in the order of the units; or those of the unit of that name."""
        ...

    def observations(self, scope: Scope) -> Iterator[ObservedRow]:
        """Yield what the judgments of a scope say in numbers, in the order of the units; of a unit
        without a judgment a row that has no status."""
        ...

    def known(self, judging: str, ident: str, body: str) -> list[StoredJudgment]:
        """Return the judgments of a unit, found by its content, under a judging in any run."""
        ...

    def counts(self, scope: Scope, judgments_per_unit: int) -> Counts: ...

    def open_positions(
        self, scope: Scope, judgments_per_unit: int, again: Sequence[str]
    ) -> list[int]:
        """Return the positions of units that lack a judgment, or have failed for one of the
        reasons `again`, in order."""
        ...

    def spent(self, run: str) -> Spent: ...

    def batches(self, run: str = "") -> list[BatchRow]:
        """Return the batches of a run, or all, the last first."""
        ...

    def sent_requests(self, account: str) -> list[SentRequest]:
        """Return the requests of an account that are still noted, the oldest first."""
        ...

    def judgment_page(self, run: str, browsed: Browsed, request: PageRequest) -> JudgmentPage:
        """Return a page of a run's judgments and of its units without one."""
        ...

    def call_times(self, run: str, most: int) -> list[str]:
        """Return when the last calls that a run paid for came, the last first."""
        ...

    def calls(self, keys: Sequence[str]) -> dict[str, LedgerCall]:
        """Return the calls under keys: the reply that answers, else one that was set aside."""
        ...

    def is_claimed(self, run: str) -> bool:
        """Return True if a process judges the run now."""
        ...

    def state(self) -> int | None:
        """Return a number that changes when somebody else changes the store; None if the store
        that was opened is not there any more."""
        ...

    def set_frozen(self, frozen: bool) -> None:
        """Read the store as it is now, whatever others write, or as it changes again. Not to be
        held longer than one command takes: what is being read cannot be cleared away."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Store:
    """The ports of one store. A ledger is opened for the time of the work that writes."""

    archive: Archive
    ledger: Callable[[], AbstractAsyncContextManager[Ledger]]
    close: Callable[[], None]
    batches: Callable[[], AbstractAsyncContextManager[Batches]]
    """The port of batches, opened likewise."""
