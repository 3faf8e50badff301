"""What statistics take of samples and of verdicts about them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec import UNSET, Struct

from evenhand.judgment import Judgment, JudgmentText, Verdict
from evenhand.kinds.rubric.rubric import Rubric, parse_rubric
from evenhand.kinds.rubric.unit import read_measured
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.kinds.shared.raw import object_text
from evenhand.measures import Ends, Scored, ScoredPage, ScoredUnit
from evenhand.storedtext import StoredText, stored_object
from evenhand.units import Sample


def scored_unit(body: str) -> ScoredUnit:
    """A sample in its stored text, of which no more is read than statistics take."""
    return scored_units([body])[0]


def scored_units(bodies: Sequence[str]) -> list[ScoredUnit]:
    """Many of them at once."""
    return [
        ScoredUnit(
            stored_object(bytes(sample.meta).decode(), "the meta of a unit"),
            {} if sample.rubric is UNSET else _ends_of_text(bytes(sample.rubric).decode()),
            len(sample.model_output),
        )
        for sample in read_measured(bodies)
    ]


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


class _Score(Struct, frozen=True, gc=False):
    score: float


class _Scores(Struct, frozen=True, gc=False):
    scores: dict[str, _Score]
    failure_tags: tuple[str, ...]


class _ScoresBody(Struct, frozen=True, gc=False):
    """A judgment as it is stored, but for evidence, reasons and passes."""

    output: _Scores | None


_bodies: StoredText[_ScoresBody] = StoredText(_ScoresBody, "a judgment")


def stored_scores(texts: Sequence[JudgmentText]) -> ScoredPage:
    """The scores and tags in the stored texts of judgments."""
    columns: dict[str, tuple[list[int], list[float]]] = {}
    tags: list[tuple[int, str]] = []
    for row, body in enumerate(_bodies.read_all([text.body for text in texts])):
        if (output := body.output) is None:
            continue
        for name, score in output.scores.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = ([], [])
            column[0].append(row)
            column[1].append(score.score)
        if output.failure_tags:
            tags += [(row, tag) for tag in output.failure_tags]
    return ScoredPage(columns, tags)


def ends_of(rubric: Rubric) -> Ends:
    """The lowest and the highest band of each dimension."""
    return {
        dimension.id: (float(min(dimension.scores)), float(max(dimension.scores)))
        for dimension in rubric.dimensions
    }


@lru_cache(maxsize=64)
def _ends_of_text(text: str) -> Ends:
    return ends_of(parse_rubric(text))
