"""Verdicts by something beside what they say: given with low confidence, or with notes."""

from __future__ import annotations

from collections.abc import Callable

from evenhand.errors import UsageError, quoted
from evenhand.judgment import Judgment
from evenhand.kinds.kind import Scoring
from evenhand.runs.recorded import Recorded

Selector = Callable[[Judgment], bool]
ONLY = ("low-confidence", "notes")
"""What verdicts can be listed by, beside what they say."""


def selector(recorded: Recorded, only: str) -> Selector:
    """Which verdicts one of `ONLY` stands for; raises UsageError where the kind has none such."""
    measure = recorded.kind.measure
    has_any = isinstance(measure, Scoring) and (
        measure.has_notes if only == "notes" else measure.has_confidence
    )
    if not has_any:
        raise UsageError(
            f"run {quoted(recorded.id)} judged by the kind {recorded.kind_name}, which has no"
            f" {only.removeprefix('low-')}",
            advice="Leave out --only.",
        )
    assert isinstance(measure, Scoring)
    score = measure.judgment

    def is_wanted(judgment: Judgment) -> bool:
        scored = score(judgment)
        if scored is None:
            return False
        return bool(scored.notes.strip()) if only == "notes" else scored.confidence == "low"

    return is_wanted
