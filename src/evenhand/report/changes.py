"""The units that changed most between a variant and the baseline, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


class JudgeReason(NamedTuple):
    """A judge's score on one dimension or criterion, with its reason."""

    judge: str
    about: str
    score: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSide:
    """A unit on one side of a comparison. Where several units share its place, the first of them,
    and the value of all."""

    name: str
    """The variant, the candidate or the run."""
    run: str
    unit: str
    units: int
    value: float | None
    """None where it has no verdict."""
    output: str
    scores: Mapping[str, float]
    reasons: tuple[JudgeReason, ...]
    winner: str = ""
    """Of a pair the candidate that won, `tie` or `uncertain`; nothing of samples and answers."""
    failures: tuple[str, ...] = ()
    """Why judgments of it have no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPair:
    """A question: its answers under the baseline and under the variant, and how far apart."""

    question: str
    fields: Mapping[str, str]
    """The fields that the two answers have in common."""
    difference: float | None
    baseline: ChangedSide
    variant: ChangedSide


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedUnits:
    """The pairs that changed most, the worst and the best first, and how many there are."""

    dimension: str
    n: int
    worse: int
    better: int
    worst: tuple[ChangedPair, ...]
    best: tuple[ChangedPair, ...]

    @property
    def sorted(self) -> list[ChangedPair]:
        """All of them, the worst first."""
        return [*self.worst, *reversed(self.best)]

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        counted = {"dimension": self.dimension, "n": self.n}
        sides = {"worst": self.worst, "best": self.best}
        pairs = {name: [pair_json(pair) for pair in side] for name, side in sides.items()}
        return counted | {"worse": self.worse, "better": self.better} | pairs


def pair_json(pair: ChangedPair) -> dict[str, Any]:
    """A question with both answers as JSON has it."""
    value = asdict(pair)
    for side in ("baseline", "variant"):
        value[side]["reasons"] = [reason._asdict() for reason in getattr(pair, side).reasons]
    return value
