"""The settled judgment of one unit by one judge, with everything that led to it.

A judgment is a verdict, a failure or left out, and never half of two: each is a class of its own. A
failure is a value beside verdicts, never a score. What a verdict says is a value of its kind.

A store keeps a judgment as a JSON text, which is written and read here alone. Whoever reads one
knows its kind, which brings the classes of the verdict and of its passes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, final

from msgspec import Struct
from msgspec.json import Encoder, decode
from msgspec.structs import asdict

from evenhand.jsontext import StoredText

Status = Literal["verdict", "failure", "left_out"]
Reason = Literal[
    "refused",
    "filtered",
    "truncated",
    "empty",
    "not_json",
    "ambiguous",
    "schema",
    "out_of_range",
    "evidence_missing",
    "meta_changed",
    "transport",
    "timeout",
    "context_overflow",
    "judge_crash",
]
FixCode = Literal[
    "meta", "total", "weights", "zeroed", "tags", "snapped", "unwrapped", "cut", "rescaled"
]
Match = Literal["exact", "folded", "unified"]

RETRIED_BY_NEXT_RUN: frozenset[Reason] = frozenset({"transport", "timeout", "judge_crash"})


_encoder = Encoder()


class Problem(Struct, frozen=True, omit_defaults=True):
    """One broken rule of the contract that only the judge can mend.

    `message` is for people and logs, in English; `wording` is for the judge, in its language, and
    not stored.
    """

    code: Reason
    path: str
    message: str
    wording: str = ""


class Fix(Struct, frozen=True, array_like=True):
    """One broken rule of the contract that code mended."""

    code: FixCode
    path: str


class Evidence(Struct, frozen=True, array_like=True):
    """A quote and where it stands: code points, half-open, of the judged text, or of a turn of a
    transcript: its text, a line break, its tool calls."""

    dimension: str
    start: int
    end: int
    match: Match
    turn: int | None = None
    """The number of the turn."""

    def json(self) -> dict[str, Any]:
        """Return it as rows about judgments have it, without a turn where there is none."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Pass(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a judgment: the how-manieth try it was, and what broke the contract in it. A kind
    whose calls say more has a class of its own under this one."""

    reask: int
    problems: tuple[Problem, ...]
    odds: dict[str, dict[str, float]] = {}
    """Log-probabilities by the path of what was decided, where the judge tells them."""
    sampling: dict[str, float] = {}
    """What of temperature and seed was really sent."""
    uncut: dict[str, str] = {}
    """Texts that code cut to the length of the contract, as the judge wrote them, by their path."""

    def json(self) -> dict[str, Any]:
        """Return it as rows about judgments have it: plain JSON values."""
        value: dict[str, Any] = decode(_encoder.encode(self))
        return value


class VerdictValue(Protocol):
    """The content of a verdict: a `RubricVerdict`, a `PairVerdict`, a `Grade`."""

    @property
    def output(self) -> dict[str, Any]:
        """Return the contract's own JSON object, keys in the contract's order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment(ABC):
    """The outcome for one unit by one judge: a `Verdict`, a `Failure` or `LeftOut`.

    `.status` says which: `"verdict"`, `"failure"` or `"left_out"`. `.output` is the contract's own
    JSON object of a verdict, and None of the others; `.reason` and `.detail` say why there is none.
    """

    fixes: tuple[Fix, ...] = ()
    flags: tuple[str, ...] = ()
    passes: tuple[Pass, ...] = ()
    """Every call that led to it, in the order in which they were made."""

    @property
    @abstractmethod
    def status(self) -> Status: ...

    @property
    def output(self) -> Mapping[str, Any] | None:
        return None

    @property
    def reason(self) -> Reason | None:
        return None

    @property
    def detail(self) -> str:
        return ""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Judgment):
    """A judgment that stands: `.value` is what it says, in the class of its kind."""

    value: VerdictValue
    evidence: tuple[Evidence, ...] = field(default=())

    @property
    def status(self) -> Literal["verdict"]:
        return "verdict"

    @property
    def output(self) -> dict[str, Any]:
        return self.value.output


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Judgment):
    """A judgment that could not be had, and why."""

    reason: Reason = field()
    detail: str = field()

    @property
    def status(self) -> Literal["failure"]:
        return "failure"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(Judgment):
    """No judgment: this judge must not judge this unit."""

    detail: str = field()

    @property
    def status(self) -> Literal["left_out"]:
        return "left_out"


class JudgmentText(NamedTuple):
    """A judgment as a store keeps it: its status, its reason, and all the rest as one JSON text;
    what it says in numbers, as a JSON list."""

    status: Status
    reason: Reason | None
    body: str
    observations: str = "[]"


V = TypeVar("V", bound=VerdictValue)
P = TypeVar("P", bound=Pass)


class _Body(Struct, Generic[V, P], frozen=True):
    output: V | None
    detail: str
    evidence: tuple[Evidence, ...]
    fixes: tuple[Fix, ...]
    flags: tuple[str, ...]
    passes: tuple[P, ...]
    calls: tuple[str, ...]


def write_judgment(
    judgment: Judgment, calls: tuple[str, ...] = (), observations: Sequence[Struct] = ()
) -> JudgmentText:
    """Return the text of a judgment of any kind, with the keys of the calls that it rests on."""
    body = _Body(
        output=judgment.value if isinstance(judgment, Verdict) else None,
        detail=judgment.detail,
        evidence=judgment.evidence,
        fixes=judgment.fixes,
        flags=judgment.flags,
        passes=judgment.passes,
        calls=calls,
    )
    texts = (_encoder.encode(value).decode() for value in (body, observations))
    return JudgmentText(judgment.status, judgment.reason, *texts)


class JudgmentReader(Generic[V, P]):
    """Reads the judgments of one kind back from their texts."""

    def __init__(self, value: type[V], pass_type: type[P]) -> None:
        body = _Body[value, pass_type]  # type: ignore[valid-type]
        self._bodies: StoredText[_Body[V, P]] = StoredText(body, "a judgment")

    def read(self, text: JudgmentText) -> Judgment:
        """Return the judgment of a text that `write_judgment` wrote; raise StoreError."""
        body = self._bodies.read(text.body)
        fixes, flags, passes = body.fixes, body.flags, body.passes
        if body.output is not None:
            return Verdict(
                value=body.output, evidence=body.evidence, fixes=fixes, flags=flags, passes=passes
            )
        if text.reason is not None:
            return Failure(
                reason=text.reason, detail=body.detail, fixes=fixes, flags=flags, passes=passes
            )
        return LeftOut(detail=body.detail, fixes=fixes, flags=flags, passes=passes)


def bad_tries(judgment: Judgment, calls: tuple[str, ...]) -> tuple[str, ...]:
    """Of the calls that a failure rests on, those of the conversations that failed: those whose
    last reply breaks the contract, and those of which nothing else is known. None where the call
    that failed gave no reply and began a conversation."""
    passes = judgment.passes
    starts = [number for number, pass_ in enumerate(passes) if not pass_.reask]
    failed = (
        calls[start:end]
        for start, end in pairwise((*starts, len(passes)))
        if passes[end - 1].problems
    )
    return (*chain.from_iterable(failed), *calls[len(passes) :])
