"""The outcome of one unit over all its judges and repeats, for every kind of judging, from what the
kind gives to statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evenhand.judgment import Judgment
from evenhand.kinds.kind import Kind, Scoring, Voting
from evenhand.observation import Scored, ScoredUnit, VotedUnit
from evenhand.stats.pairwise import voted_winner


class Outcome(NamedTuple):
    """The result of all judgments of a unit. Means are over its verdicts."""

    codes: tuple[str, ...]
    """The results, each once: a winner, `scored`, `graded`, `critical`, `failed`, `left_out`, or
    `pending` if there is none yet."""
    verdicts: int = 0
    candidates: tuple[str, ...] = ()
    winner: str | None = None
    """Of a pair with a verdict, what its panel says."""
    scores: Mapping[str, float] = {}
    total: float | None = None
    """The mean total, on the scale that totals have, if dimensions do not weigh alike."""
    tags: tuple[str, ...] = ()
    confidence: tuple[str, ...] = ()


def unit_outcome(
    kind: Kind, unit: ScoredUnit | VotedUnit, judged: Sequence[tuple[str, Judgment]]
) -> Outcome:
    """The outcome of a unit, from (judge, judgment)."""
    measure = kind.measure
    if isinstance(measure, Voting):
        assert isinstance(unit, VotedUnit)
        votes = [(judge, measure.judgment(judgment)) for judge, judgment in judged]
        winner = voted_winner(votes)
        codes = _codes(judged) if winner is None else (winner,)
        return Outcome(codes, candidates=unit.candidates, winner=winner)
    return _scored(measure, [judgment for _, judgment in judged])


def _codes(judged: Sequence[tuple[str, Judgment]]) -> tuple[str, ...]:
    """Of judgments without a verdict."""
    names = {"failure": "failed"}
    codes = (names.get(judgment.status, judgment.status) for _, judgment in judged)
    return tuple(dict.fromkeys(codes)) or ("pending",)


def _scored(measure: Scoring, judgments: Sequence[Judgment]) -> Outcome:
    verdicts: list[Scored] = []
    codes: dict[str, None] = {}
    for judgment in judgments:
        scored = measure.judgment(judgment)
        if scored is None:
            codes |= dict.fromkeys(_codes([("", judgment)]))
            continue
        graded = "scored" if scored.total is None else "graded"
        codes["critical" if scored.is_critical else graded] = None
        verdicts.append(scored)
    names = dict.fromkeys(name for scored in verdicts for name in scored.scores)
    totals = [scored.total for scored in verdicts if scored.total is not None]
    return Outcome(
        codes=tuple(codes) or ("pending",),
        verdicts=len(verdicts),
        scores={
            name: _mean([verdict.scores[name] for verdict in verdicts if name in verdict.scores])
            for name in names
        },
        total=(measure.full_marks or 1) * _mean(totals) if totals else None,
        tags=tuple(dict.fromkeys(tag for scored in verdicts for tag in scored.tags)),
        confidence=tuple(
            dict.fromkeys(verdict.confidence for verdict in verdicts if verdict.confidence)
        ),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
