"""Question and Reply, which pass through the one door, `ask`, between a protocol and a judge; and
batches of them, which pass between the engine and a provider.

Neither side knows the other: a protocol builds a Question and reads a Reply; a judge answers a
Question with a Reply or raises one of the call errors of `evenhand.errors`.

A batch is made of requests, each with an id of ours; it has a state, in which it waits, has ended
or was refused as a whole; and it has answers, which may come in any order, twice or not at all.
Whoever creates one must be able to find it again: the creation may not be answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from evenhand.errors import ProviderRefused
from evenhand.jsontext import canonical
from evenhand.limits import REASK_CHARS

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "filtered", "refused"]
Style = Literal["full", "compact"]
LATER_ROUNDS_TEMPERATURE = 0.7
"""A later round must be able to come out differently."""
SEEDS_A_REPEAT = 1000
"""Keeps the seeds of repeats and rounds apart; there are never so many rounds."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation with a judge. So many characters at its beginning are `fixed`:
    the suite's own, alike for all its units, and worth a provider's cache. Equal are those that say
    the same."""

    role: Role
    content: str
    fixed: int = field(default=0, compare=False, repr=False)

    def json(self) -> dict[str, str]:
        """Return it as chats have it: `role` and `content`, in a dict of the caller's own."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, eq=False)
class Schema:
    """The JSON Schema of a reply. Many questions share one, so what is made of it is made once;
    equal are those of equal text."""

    value: Mapping[str, Any]

    @cached_property
    def data(self) -> bytes:
        """Return its JSON text in the one form that a key is made of."""
        return canonical(self.value).encode("utf-8", "surrogatepass")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)


class Question(Struct, frozen=True, kw_only=True):
    """One request to a judge, complete but for the judge's own parameters.

    `neutral` is the same prompt about empty content: a judge that decides by probabilities
    measures its own prior on it. `order`, `round`, `repeat` and `reask` tell otherwise equal
    prompts apart; `unit` names the unit to judges that hold recorded answers, and to no other.
    `judge_index` is which judge of a relay is asked. `wants_answer` says that the reply is not a
    verdict but an answer, which a program may give as a whole conversation.
    """

    messages: tuple[Message, ...]
    schema: Schema | None = None
    neutral: tuple[Message, ...] | None = None
    unit: str = ""
    order: str = "12"
    round: int = 1
    repeat: int = 0
    reask: int = 0
    judge_index: int = 0
    wants_answer: bool = False

    @property
    def size(self) -> int:
        """Return the number of characters of the conversation."""
        return sum(len(message.content) for message in self.messages)

    def sampling(
        self, temperature: float | None, seed: int | None
    ) -> tuple[float | None, int | None]:
        """Return the temperature and seed to ask with, from those of the judge: raised, and new,
        from the second round on. Equal questions always have equal ones."""
        if temperature is not None and self.round > 1:
            temperature = max(temperature, LATER_ROUNDS_TEMPERATURE)
        if seed is not None:
            seed += SEEDS_A_REPEAT * self.repeat + self.round - 1
        return temperature, seed

    def again(self, reply: str, complaint: str) -> Question:
        """Return the conversation continued with what was wrong in `reply`.

        An endless turn is cut. An empty one is left out, which endpoints refuse; so that the roles
        still alternate, the complaint then ends the last turn.
        """
        if reply.strip():
            answer = Message("assistant", reply[:REASK_CHARS])
            turns = (*self.messages, answer, Message("user", complaint))
        else:
            *before, last = self.messages
            turns = (*before, Message(last.role, f"{last.content}\n\n{complaint}", last.fixed))
        return replace(self, messages=turns, reask=self.reask + 1)


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one call as the provider counted them; None where it did not say, or where what it
    said cannot be true: `implausible` says what that was. Of the input, some were read from the
    provider's cache, and some written to it."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    implausible: str = ""


class Reply(Struct, frozen=True, kw_only=True):
    """The raw words of a judge. `odds` holds, where the judge decides by probabilities, the
    log-probability of each option of each decided field, by its path in the reply. `sampling` is
    what of temperature and seed was really sent. `reasoning` is what the judge thought before it
    replied, where it shows that: kept, shown, and never read as a verdict. `seconds` is how long it
    took, where it was waited for."""

    text: str
    finish: Finish = "stop"
    usage: Usage = Usage()
    model: str = ""
    odds: Mapping[str, Mapping[str, float]] = {}
    sampling: Mapping[str, float] = {}
    reasoning: str = ""
    seconds: float | None = None


Ask = Callable[[Question], Awaitable[Reply]]


class Judge(Protocol):
    """Whatever answers questions: one request a call, no retry, no cache, no pacing of its own. The
    values that stand here are those of most judges."""

    name: str
    """As the suite names it: `openai/gpt-4.1-mini`, `embedded`."""
    identity: Mapping[str, Any]
    """All of it that can change an answer (provider, base URL, model or weights' hash, parameters);
    never a key. It is hashed into every call's key."""
    style: Style = "full"
    """The prompts it is given: `compact` ones are short and come with `neutral`."""
    slots: int | None = None
    """Requests it takes at once; None for no limit of its own."""
    account: Hashable
    """The account that counts its requests: judges of equal accounts share their requests and
    tokens per minute. It shows no key."""
    caveat: str = ""
    """A caution to be said with every result of this judge; empty for most."""
    unavailable_reason: ProviderRefused | None = None
    """Why it could not send anything, such as a key that is not there: told before a run begins."""

    def load(self) -> None:
        """Bring in the code that answers, where it is the user's own; raises UsageError. Only a run
        calls it: whoever made a suite gets no code of theirs run by anything that only looks."""
        return

    async def answer(self, question: Question) -> Reply:
        """Answer once, or raise one of the call errors, AskAgain or ProviderRefused."""
        ...

    async def close(self) -> None:
        """Give back connections and processes."""
        return


Phase = Literal["waiting", "ended", "refused", "unknown"]
"""`unknown`: in a state that no documentation names."""


class BatchRequest(NamedTuple):
    """A question as a line of a batch: its id there, its body, and what of temperature and seed
    stands in it."""

    id: str
    body: bytes
    sampling: Mapping[str, float]


class BatchState(Struct, frozen=True, kw_only=True):
    """The state of a batch: in the provider's word, and as a phase."""

    id: str
    status: str
    phase: Phase
    answered: int = 0
    complaint: str = ""
    """Why it was refused as a whole."""
    lines: Mapping[int, str] = {}
    """Why single lines of it were refused, by their number from 1."""


class BatchAnswer(NamedTuple):
    """The outcome of one request: an HTTP status and a body, as if it had been sent by itself.
    Where the model was never asked the status is 0, and `absence` says why."""

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

    async def create(self, name: str, requests: Sequence[BatchRequest]) -> BatchState:
        """Make a batch that can be found again by its name, or by its size and age."""
        ...

    async def find(self, name: str, size: int, since: float) -> list[BatchState]:
        """Return the batches of this name; where batches have none, those with so many requests
        made after a moment, in seconds since the epoch. The oldest come first."""
        ...

    async def state(self, ident: str) -> BatchState:
        """Return the state of a batch."""
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


ReadAnswer = Callable[[BatchAnswer, Mapping[str, float]], Reply]
"""Reads an answer by the sampling of its request; raises AskAgain, a call error or
ProviderRefused, as `Judge.answer` does."""


@runtime_checkable
class BatchJudge(Judge, Protocol):
    """A judge whose questions can be written as lines of a batch."""

    @property
    def batches(self) -> BatchEndpoint | None:
        """Return its batch endpoint; None where the provider has none."""
        ...

    def batch_request(self, ident: str, question: Question) -> BatchRequest:
        """Return a question as a line of a batch."""
        ...

    def batch_reader(self) -> ReadAnswer:
        """Return the reader of the answers of one batch. What their errors teach holds for the
        requests after them."""
        ...
