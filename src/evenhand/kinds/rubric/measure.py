"""What statistics take of samples and of verdicts about them."""

from __future__ import annotations

from functools import lru_cache

from msgspec import UNSET, Struct

from evenhand.judgment import Judgment, JudgmentText, Verdict
from evenhand.kinds.rubric.rubric import Rubric, parse_rubric
from evenhand.kinds.rubric.unit import read_body
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.kinds.shared.raw import object_text, raw_object
from evenhand.measures import Ends, Scored, ScoredUnit
from evenhand.storedtext import StoredText
from evenhand.units import Sample


def scored_unit(body: str) -> ScoredUnit:
    """A sample in its stored text, of which no more is read than statistics take."""
    stored = read_body(body)
    ends: Ends = {} if stored.rubric is UNSET else _ends_of_text(bytes(stored.rubric).decode())
    return ScoredUnit(raw_object(stored.meta), ends, len(stored.model_output))


def measured(sample: Sample) -> ScoredUnit:
    """The same of a sample that was read."""
    ends: Ends = {} if sample.rubric is None else _ends_of_text(object_text(sample.rubric))
    return ScoredUnit(sample.meta, ends, len(sample.model_output))


def scored(judgment: Judgment) -> Scored | None:
    """The scores of a verdict; None where there is none."""
    if not isinstance(judgment, Verdict):
        return None
    verdict = judgment.value
    assert isinstance(verdict, RubricVerdict)
    scores = {name: float(score.score) for name, score in verdict.scores.items()}
    return Scored(scores, tags=verdict.failure_tags, notes=verdict.notes)


class _Score(Struct, frozen=True):
    score: float


class _Scores(Struct, frozen=True):
    scores: dict[str, _Score]
    failure_tags: tuple[str, ...]
    notes: str


class _ScoresBody(Struct, frozen=True):
    """A judgment as it is stored, but for evidence, reasons and passes."""

    output: _Scores | None


_bodies: StoredText[_ScoresBody] = StoredText(_ScoresBody, "a judgment")


def stored_scores(text: JudgmentText) -> Scored | None:
    """The scores in the stored text of a verdict; None where there is none."""
    output = _bodies.read(text.body).output
    if output is None:
        return None
    scores = {name: score.score for name, score in output.scores.items()}
    return Scored(scores, tags=output.failure_tags, notes=output.notes)


def ends_of(rubric: Rubric) -> Ends:
    """The lowest and the highest band of each dimension."""
    return {
        dimension.id: (float(min(dimension.scores)), float(max(dimension.scores)))
        for dimension in rubric.dimensions
    }


@lru_cache(maxsize=64)
def _ends_of_text(text: str) -> Ends:
    return ends_of(parse_rubric(text))
