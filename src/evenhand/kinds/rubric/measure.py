"""What statistics take of samples and of verdicts about them."""

from __future__ import annotations

from functools import lru_cache

from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.rows import object_text
from evenhand.kinds.rubric.rubric import Rubric, parse_rubric
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.measures import Ends, Scored, ScoredUnit
from evenhand.units import Sample


def measure_sample(sample: Sample) -> ScoredUnit:
    """Return the fields of a sample, the ends of its own rubric, and its length."""
    ends: Ends = {} if sample.rubric is None else _ends_of_text(object_text(sample.rubric))
    return ScoredUnit(sample.meta, ends, len(sample.model_output))


def measure_judgment(judgment: Judgment) -> Scored | None:
    """Return the scores of a verdict; None where there is none."""
    if not isinstance(judgment, Verdict):
        return None
    verdict = judgment.value
    assert isinstance(verdict, RubricVerdict)
    scores = {name: float(score.score) for name, score in verdict.scores.items()}
    return Scored(scores, tags=verdict.failure_tags, notes=verdict.notes)


def ends_of(rubric: Rubric) -> Ends:
    """Return the lowest and the highest band of each dimension."""
    return {
        dimension.id: (float(min(dimension.scores)), float(max(dimension.scores)))
        for dimension in rubric.dimensions
    }


@lru_cache(maxsize=64)
def _ends_of_text(text: str) -> Ends:
    return ends_of(parse_rubric(text))
