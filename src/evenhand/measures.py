"""The values that statistics take from units and judgments, whatever their kind: scores on
dimensions, or a vote between two. A kind makes these of its units and verdicts; statistics know no
kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Rule = Literal["tie", "uncertain", "drop", "split"]
"""What two orders that name different winners come to, where no later round settled it: a tie;
`uncertain`, half a win to each; nothing; or the mean of what the orders say."""
Ends = Mapping[str, tuple[float, float]]
"""The lowest and the highest score of each dimension, as far as they are given."""
QUESTIONS = ("question_id", "task_name", "question")
"""Fields of units that say what was asked; the first that is there is believed."""


class ScoredUnit(NamedTuple):
    """A unit that is scored."""

    fields: Mapping[str, Any]
    """What identifies it beside its id, and sets it apart from others, by name."""
    ends: Ends
    """Of the unit's own rubric, where it brings one."""
    length: int
    """Of what was judged, in characters."""


class Scored(NamedTuple):
    """The scores of a verdict."""

    scores: Mapping[str, float]
    """By dimension."""
    most: Mapping[str, float] = {}
    """The most points of each dimension, where the verdict itself says so."""
    total: float | None = None
    """From 0 to 1, where dimensions do not weigh alike; else the mean of the scaled scores is."""
    tags: tuple[str, ...] = ()
    is_critical: bool = False
    confidence: str = ""
    """How sure the judge was, where it says so."""
    notes: str = ""
    """What else the judge says of what it could not tell."""


class VotedUnit(NamedTuple):
    """Two candidates on one topic."""

    topic: str
    """Votes on one topic hang together."""
    candidates: tuple[str, str]
    lengths: tuple[int | None, int | None]
    """Of their texts in characters; None where nobody knows."""
    fields: Mapping[str, Any]


class PassVote(NamedTuple):
    """One call in one order, said of the candidates as the unit has them; None where the reply
    names no winner."""

    round: int
    order: str
    winner: str | None
    marks: Mapping[str, str | None] = {}
    preference: float | None = None
    contradicts_itself: bool = False


class Voted(NamedTuple):
    """The vote of a judgment between two candidates: `A`, `B`, `tie` or `uncertain`; None where
    there is no verdict, which may still have passes."""

    winner: str | None
    settled: str = ""
    marks: Mapping[str, str] = {}
    """By criterion, `A+`, `B+` or `tie`."""
    preference: float | None = None
    """How far the second is preferred, from 0 to 1, where the judge said so."""
    passes: tuple[PassVote, ...] = ()
    is_order_known: bool = True
    """Whether anybody knows which candidate was shown first."""
