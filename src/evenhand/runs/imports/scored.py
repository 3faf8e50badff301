"""What the scores of one judge on one answer come to: those of one repeat are a judgment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Raw
from pydantic_core import from_json

from evenhand.judgment import Evidence, Failure, Judgment, Reason, Verdict
from evenhand.kinds.evidence import SearchText
from evenhand.kinds.rubric.verdict import DimensionScore, RubricVerdict
from evenhand.limits import NOTES_CHARS
from evenhand.runs.imports.tally import Tally

_TELLING: tuple[Reason, ...] = ("schema", "out_of_range", "empty")
"""Of several reasons the first one of these is given."""


class ScoreRow(NamedTuple):
    """A score as it is read again."""

    dimension: str | None
    score: float | None
    failed: str
    detail: str
    repeat: str
    tags: str
    quotes: str = ""
    """A list as JSON; nothing where there are none."""
    rationale: str = ""


class JudgedAnswer(NamedTuple):
    """What the judgments of one unit share."""

    meta: Raw
    output: SearchText


class _Scored(NamedTuple):
    """The score on one dimension, and where its quotes stand."""

    dimension: str
    score: DimensionScore
    evidence: Sequence[Evidence]
    flags: Sequence[str]


def judgments_of(tally: Tally, judged: JudgedAnswer, rows: Sequence[ScoreRow]) -> list[Judgment]:
    """The judgments of one judge on one answer; what is missing or not found is counted."""
    return [_judgment(tally, judged, scores) for scores in repeats(rows)]


def _judgment(tally: Tally, judged: JudgedAnswer, rows: Sequence[ScoreRow]) -> Judgment:
    failed = [row for row in rows if row.failed]
    if len(failed) == len(rows):
        detail = "; ".join(dict.fromkeys(row.detail for row in failed))
        reasons = {row.failed for row in failed}
        reason = next(reason for reason in _TELLING if reason in reasons)
        return Failure(reason=reason, detail=detail)
    tally.missing.update(row.dimension for row in failed if row.dimension is not None)
    tags = dict.fromkeys(tag for row in rows for tag in row.tags.split(",") if tag)
    notes = "; ".join(f"{row.dimension or 'all'}: {row.detail}" for row in failed)
    scored = [_scored(tally, judged.output, row) for row in rows if row.score is not None]
    verdict = RubricVerdict(
        meta_json=judged.meta,
        scores={scores.dimension: scores.score for scores in scored if scores.dimension},
        failure_tags=tuple(tags),
        notes=notes[:NOTES_CHARS],
    )
    flags = ["scores_missing"] if failed else []
    flags += dict.fromkeys(flag for scores in scored for flag in scores.flags)
    evidence = tuple(place for scores in scored for place in scores.evidence)
    return Verdict(value=verdict, flags=tuple(flags), evidence=evidence)


def _scored(tally: Tally, output: SearchText, row: ScoreRow) -> _Scored:
    """A score with the quotes of its row that stand in what was judged. The others are counted,
    and what they quote is no evidence."""
    dimension, fragments, places = row.dimension or "", list[str](), list[Evidence]()
    quotes: list[str] = from_json(row.quotes) if row.quotes else []
    for quote in quotes:
        if span := output.locate(quote):
            fragments.append(output.text[span.start : span.end])
            places.append(Evidence(dimension, span.start, span.end, span.match))
    tally.quotes += len(quotes)
    tally.quotes_found += len(places)
    assert row.score is not None
    return _Scored(
        dimension,
        DimensionScore(row.score, tuple(fragments), row.rationale),
        places,
        [f"quote_missing:{dimension}"] if len(places) < len(quotes) else [],
    )


def repeats(rows: Iterable[ScoreRow]) -> list[list[ScoreRow]]:
    """The rows of each judgment: by the repeat that they name, and where a dimension stands twice
    in one, by the order in which they come. A row without a dimension is a judgment that failed as
    a whole: it hides in no other."""
    judgments_of: dict[str, list[list[ScoreRow]]] = {}
    counts: dict[tuple[str, str | None], int] = {}
    failed: list[list[ScoreRow]] = []
    for row in rows:
        if row.dimension is None:
            failed.append([row])
            continue
        judgments, place = judgments_of.setdefault(row.repeat, []), (row.repeat, row.dimension)
        number = counts[place] = counts.get(place, -1) + 1
        if number == len(judgments):
            judgments.append([])
        judgments[number].append(row)
    return [judgment for judgments in judgments_of.values() for judgment in judgments] + failed
