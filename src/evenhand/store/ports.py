"""The records that pass through the two ports of a store, `Ledger` and `Archive`, whatever database
is behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from evenhand.exchange import Reply, Usage
from evenhand.judgment import JudgmentText
from evenhand.observation import UnitDescription


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

    def __add__(self, other: Spent) -> Spent:
        names = [name for name in self.__struct_fields__ if name != "unpriced_tokens"]
        numbers: dict[str, Any] = {
            name: getattr(self, name) + getattr(other, name) for name in names
        }
        return Spent(**numbers, unpriced_tokens={**self.unpriced_tokens, **other.unpriced_tokens})

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
    opponent: str = ""
    """Another candidate of the pair."""
    flag: str = ""
    tag: str = ""
    passed: str = ""
    """`true` or `false`."""
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
