"""What comes out: a settled judgment of one unit by one judge, with everything that led to it.

A failure is a value beside verdicts, never a score. All classes here are frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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


@dataclass(frozen=True, slots=True)
class Problem:
    """One breach of the contract that only the judge can mend.

    `message` is for people and logs, in English; `told` is for the judge, in its language.
    """

    code: Reason
    path: str
    message: str
    told: str = ""


@dataclass(frozen=True, slots=True)
class Fix:
    """One breach of the contract that code mended."""

    code: FixCode
    path: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quote and where it stands: code points of the judged text, half-open."""

    dimension: str
    start: int
    end: int
    match: Match


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """The outcome for one unit: a verdict with its output, a failure with its reason, or the word
    that this judge was left out of it."""

    status: Literal["verdict", "failure", "left_out"]
    output: Mapping[str, Any] | None = None
    reason: Reason | None = None
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()
    fixes: tuple[Fix, ...] = ()
    flags: tuple[str, ...] = ()
    passes: tuple[Mapping[str, Any], ...] = field(default=())


def verdict(output: Mapping[str, Any], **rest: Any) -> Judgment:
    """A judgment that stands."""
    return Judgment(status="verdict", output=output, **rest)


def failure(reason: Reason, detail: str, **rest: Any) -> Judgment:
    """A judgment that could not be had, and why."""
    return Judgment(status="failure", reason=reason, detail=detail, **rest)


def left_out(detail: str, **rest: Any) -> Judgment:
    """No judgment: this judge must not judge this unit."""
    return Judgment(status="left_out", detail=detail, **rest)
