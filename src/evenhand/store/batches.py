"""The port to what a store knows of batches, and the records that pass through.

A batch is noted with all its items before anybody is asked to make it, and the money that it may
cost with it; so a crash at any moment leaves a note to go on from. An item is open until its batch
has an answer to it, a refusal, or ends without either. What is answered is recorded as a call in
the same commit that closes the item: twice answered is once recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from evenhand.store.keys import CALL_TAG
from evenhand.store.ports import Call

Stage = Literal["prepared", "waiting", "ended", "void"]
"""Noted, and perhaps made; made, and not ended; ended; never made, or given up."""
FOUND = "found by its size"
"""The status of a batch that may be another's, until it has ended."""
OPEN_STAGES: tuple[Stage, ...] = ("prepared", "waiting")


def item_id(key: str) -> str:
    """What a call is named in a batch: its key, in the letters that every provider takes."""
    return key.replace(":", "_")


def item_key(ident: str) -> str:
    """The key of the call that is named so in a batch; empty where that is none of ours."""
    key = ident.replace("_", ":", 1)
    return key if key.startswith(CALL_TAG) else ""


class BatchItem(NamedTuple):
    """A question of a batch: its key, the most tokens that it can have, the money held for it, and
    by what its answer is read: the number of its schema in the batch, and its sampling as JSON."""

    key: str
    tokens: int
    amount: int
    schema: int | None
    sampling: str


class NewBatch(Struct, frozen=True, kw_only=True):
    """A batch that is about to be made; its items in their order."""

    name: str
    run: str
    judge: str
    place: str
    """Who answers, and where."""
    schemas: Sequence[str]
    """The schemas of its questions, each once, as JSON."""
    items: Sequence[BatchItem]


class OpenBatch(NamedTuple):
    """A batch that was noted and has not ended. `ident` is what the provider calls it; empty where
    nobody knows whether it was made. `created` is in seconds since the epoch."""

    name: str
    run: str
    judge: str
    place: str
    ident: str
    stage: Stage
    created: float
    size: int
    is_sure: bool = True
    """Whether it is surely ours: the provider named it when it was made, or it carries our name."""


class OpenItem(NamedTuple):
    """An item without an answer, its line in the batch, and the text of its schema, if it has
    one."""

    line: int
    item: BatchItem
    schema: str | None


class ItemOutcome(NamedTuple):
    """What became of an item: the call that answers it; or, without one, why there is none, empty
    where a batch may be asked for it once more. Its money is given back unless it
    `may_be_billed`."""

    key: str
    call: Call | None = None
    state: Literal["answered", "refused", "unanswered"] = "answered"
    detail: str = ""
    may_be_billed: bool = False


class BatchRow(NamedTuple):
    """A batch as readers see it: in our words and in the provider's, and its items by what became
    of them. `reserved` is the money still held for it, in picodollars."""

    name: str
    run: str
    judge: str
    ident: str
    stage: Stage
    status: str
    created: str
    ended: str | None
    requests: int
    answered: int
    refused: int
    unanswered: int
    reserved: int

    @property
    def open(self) -> int:
        """Questions that wait for an answer."""
        return self.requests - self.answered - self.refused - self.unanswered

    @property
    def is_open(self) -> bool:
        return self.stage in OPEN_STAGES

    def json(self) -> dict[str, str | int | None]:
        """As `--json` prints it."""
        return {
            "batch": self.ident or self.name,
            "name": self.name,
            "run": self.run,
            "judge": self.judge,
            "stage": self.stage,
            "status": self.status,
            "created": self.created,
            "ended": self.ended,
            "requests": self.requests,
            "answered": self.answered,
            "refused": self.refused,
            "unanswered": self.unanswered,
            "open": self.open,
        }


class Batches(Protocol):
    """Where batches are noted. Everything is durable when it is done."""

    async def prepare(self, batch: NewBatch) -> None:
        """Note a batch with its items before it is made, and hold the money for each."""
        ...

    async def attach(self, name: str, ident: str, status: str) -> None:
        """Note that a batch was made, and what the provider calls it; an empty `ident`: that what
        was taken for it is another's."""
        ...

    async def note(self, name: str, status: str) -> None:
        """Note how a batch stands, in the provider's word."""
        ...

    async def take(self, name: str, outcomes: Sequence[ItemOutcome]) -> list[Call]:
        """Close open items: record their calls, and give back the money of those without. The calls
        that were recorded: none of an item that was closed before."""
        ...

    async def close_batch(self, name: str, stage: Stage, status: str) -> None:
        """End a batch. Items that are still open are unanswered, and their money is given back; of
        one that was given up (`void` after it was made) it stays held: it may be billed."""
        ...

    async def open_batches(self) -> list[OpenBatch]:
        """All that were noted and have not ended, of all runs, the oldest first."""
        ...

    async def open_items(self, name: str) -> list[OpenItem]:
        """The items of a batch that have no answer yet, in their order."""
        ...

    async def waiting_in(self, key: str) -> list[str]:
        """The names of open batches that hold a question without an answer."""
        ...

    async def was_left(self, key: str) -> bool:
        """Return True if a batch has ended and did not bring back an answer to a question."""
        ...

    async def is_known(self, ident: str) -> bool:
        """Whether a batch that the provider calls so is noted."""
        ...
