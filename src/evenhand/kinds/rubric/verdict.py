"""The verdict of the kind `rubric`: a score on every dimension, each with its evidence; and what
statistics take of it and of its sample."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Raw, Struct
from msgspec import field as stored

from evenhand.judgment import Judgment, JudgmentReader, Pass, Verdict
from evenhand.kinds.rows import object_text, raw_object
from evenhand.kinds.rubric.rubric import Rubric, parse_rubric
from evenhand.measures import Ends, Scored, ScoredUnit
from evenhand.units import Sample


class DimensionScore(Struct, frozen=True):
    """The score on one dimension, and what it rests on."""

    score: int | float
    evidence: tuple[str, ...]
    """Fragments of the judged output, word for word."""
    rationale: str


class RubricVerdict(Struct, frozen=True, kw_only=True):
    """A score on every dimension of the rubric. The sample's `meta` is kept byte for byte."""

    meta_json: Raw = stored(name="meta")
    scores: dict[str, DimensionScore]
    failure_tags: tuple[str, ...]
    notes: str

    @property
    def meta(self) -> Mapping[str, Any]:
        """The sample's own, key order and the spelling of numbers as they were."""
        return raw_object(self.meta_json)

    @property
    def output(self) -> dict[str, Any]:
        """The contract's own object: meta, scores, failure_tags, notes."""
        scores = {
            dimension: {
                "score": score.score,
                "evidence": list(score.evidence),
                "rationale": score.rationale,
            }
            for dimension, score in self.scores.items()
        }
        return {
            "meta": dict(self.meta),
            "scores": scores,
            "failure_tags": list(self.failure_tags),
            "notes": self.notes,
        }


READER = JudgmentReader(RubricVerdict, Pass)


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
