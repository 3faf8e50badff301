"""What passes between the engine and a provider that answers questions by the batch.

A batch is made of requests, each with an id of ours; it has a state, in which it waits, has ended
or was refused as a whole; and it has answers, which may come in any order, twice or not at all.
Whoever makes one must be able to find it again: nobody knows of a batch whose creation was not
answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from evenhand.exchange import Judge, Question, Reply, Schema

Phase = Literal["waiting", "ended", "refused", "unknown"]
"""`unknown`: in a state that no documentation names."""


class BatchRequest(NamedTuple):
    """A question as a line of a batch: its id there, its body, and what of temperature and seed
    stands in it."""

    id: str
    body: bytes
    sampling: Mapping[str, float]


class BatchState(Struct, frozen=True, kw_only=True):
    """How a batch stands: in the provider's word, and what that comes to."""

    id: str
    status: str
    phase: Phase
    answered: int = 0
    failed: int = 0
    complaint: str = ""
    """Why it was refused as a whole."""
    lines: Mapping[int, str] = {}
    """Why single lines of it were refused, by their number from 1."""


class BatchAnswer(NamedTuple):
    """What came of one request: an HTTP status and a body, as if it had been sent by itself. Where
    the model was never asked the status is 0, and `absence` says why."""

    id: str
    status: int
    body: bytes = b""
    absence: str = ""


class BatchBounds(NamedTuple):
    """The most that one batch may hold: requests, and bytes of their bodies. Some providers take
    only requests of one schema together."""

    requests: int
    bytes: int
    is_one_schema: bool = False


class BatchEndpoint(Protocol):
    """The batches of one account at one provider. Every method raises CallLost where it may be
    tried again, and ProviderRefused where that would not help."""

    bounds: BatchBounds
    can_cancel: bool
    is_named: bool
    """Whether a batch carries our name, so that one that is found by it is surely ours."""

    async def create(self, name: str, requests: Sequence[BatchRequest]) -> BatchState:
        """Make a batch that can be found again by its name, or by its size and age."""
        ...

    async def find(self, name: str, size: int, since: float) -> list[str]:
        """The ids of batches that may be the one of this name, made of so many requests after a
        moment, in seconds since the epoch; the likeliest first."""
        ...

    async def state(self, ident: str) -> BatchState:
        """How a batch stands."""
        ...

    async def results(self, ident: str) -> bytes:
        """Return all results of a batch that has ended, as lines."""
        ...

    def read(self, results: bytes) -> list[BatchAnswer]:
        """Return the answers in the results of a batch."""
        ...

    async def cancel(self, ident: str) -> None:
        """Have a batch end early; what was answered until then is there to be read."""
        ...


ReadAnswer = Callable[[BatchAnswer, Schema | None, Mapping[str, float]], Reply]
"""Reads an answer by the schema and the sampling of its request; raises AskAgain, a call error or
ProviderRefused, as `Judge.answer` does."""


@runtime_checkable
class BatchJudge(Judge, Protocol):
    """A judge whose questions can be written as lines of a batch."""

    @property
    def batches(self) -> BatchEndpoint | None:
        """Where they can be sent; None where the provider has no such endpoint."""
        ...

    def batch_request(self, ident: str, question: Question) -> BatchRequest:
        """A question as a line of a batch."""
        ...

    def batch_reader(self) -> ReadAnswer:
        """What reads the answers of one batch. What their complaints teach holds for the requests
        after them."""
        ...
