"""What statistics take of answers and of their grades."""

from __future__ import annotations

from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.weighted.form import FULL_MARKS
from evenhand.kinds.weighted.verdict import Grade
from evenhand.measures import Scored, ScoredUnit
from evenhand.units import Answer


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
