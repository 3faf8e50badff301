"""The verdict of the kind `rubric`: a score on every dimension, each with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw, Struct
from msgspec import field as stored

from evenhand.judgment import JudgmentReader, Pass
from evenhand.kinds.rows import raw_object


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
