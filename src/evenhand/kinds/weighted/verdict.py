"""The verdict of the kind `weighted`: a grade out of 100; and what statistics take of it and of its
answer."""

from __future__ import annotations

from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import asdict

from evenhand.judgment import Judgment, JudgmentReader, Pass, Verdict
from evenhand.measures import Scored, ScoredUnit
from evenhand.units import Answer

Confidence = Literal["high", "medium", "low"]
CONFIDENCE: tuple[Confidence, ...] = get_args(Confidence)
FULL_MARKS = 100


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
        """Return True if the grade was given with low confidence."""
        return self.confidence == "low"

    @property
    def output(self) -> dict[str, Any]:
        """The contract's own object."""
        return asdict(self)


READER = JudgmentReader(Grade, Pass)


def measure_answer(answer: Answer) -> ScoredUnit:
    """Return the fields of an answer, and its length."""
    fields = {"task_name": answer.task_name, **answer.meta}
    return ScoredUnit(fields, {}, len(answer.answer))


def measure_judgment(judgment: Judgment) -> Scored | None:
    """Return the points of a grade; None where there is none. Where code failed an answer whose
    type nobody knows, the grade does not say the most points of each dimension."""
    if not isinstance(judgment, Verdict):
        return None
    grade = judgment.value
    assert isinstance(grade, Grade)
    return Scored(
        scores={name: float(score) for name, score in grade.score.items()},
        most={name: float(weight) for name, weight in (grade.weights or {}).items()},
        total=float(grade.total_score) / FULL_MARKS,
        is_critical=grade.critical_fail,
        confidence=grade.confidence,
    )
