"""The verdict of the kind `weighted`: a grade out of 100."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from evenhand.judgment import JudgmentReader, Pass

Confidence = Literal["high", "medium", "low"]


class Grade(Struct, frozen=True, kw_only=True):
    """Points on every dimension and their sum. A critical fail is worth nothing."""

    task_name: str
    task_type: str | None
    """As the rubric gives it, or as the judge inferred it; None where code failed the answer before
    anybody was asked what type the task is of."""
    inferred_task_type: str | None
    weights: dict[str, int | float] | None
    """The most points of each dimension; None where there is no type."""
    score: dict[str, int | float]
    total_score: int | float
    reasoning: dict[str, str]
    critical_fail: bool
    critical_fail_reason: str | None
    confidence: Confidence

    @property
    def is_unsure(self) -> bool:
        """Whether the grade was given with low confidence."""
        return self.confidence == "low"

    @property
    def output(self) -> dict[str, Any]:
        """The contract's own object."""
        return asdict(self)


READER = JudgmentReader(Grade, Pass)
