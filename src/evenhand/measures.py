"""What statistics take of a judgment, whatever its kind: scores on dimensions, or a vote between
two. A kind makes these of its verdicts; statistics know no kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


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
    """What a judgment says of two candidates: `A`, `B`, `tie` or `uncertain`; None where there is
    no verdict, which may still have passes."""

    winner: str | None
    settled: str = ""
    marks: Mapping[str, str] = {}
    """By criterion, `A+`, `B+` or `tie`."""
    preference: float | None = None
    """How far the second is preferred, from 0 to 1, where the judge said so."""
    passes: tuple[PassVote, ...] = ()
