"""The units that changed most between a variant and the baseline, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


class JudgeReason(NamedTuple):
    """What a judge says of one dimension or criterion, and why."""

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
    value: float
    output: str
    scores: Mapping[str, float]
    reasons: tuple[JudgeReason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPair:
    """A question that got worse or better: its answers under the baseline and under the variant."""

    question: str
    fields: Mapping[str, str]
    """What the two answers have in common."""
    difference: float
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
        pairs = {"worst": [_json(p) for p in self.worst], "best": [_json(p) for p in self.best]}
        return counted | {"worse": self.worse, "better": self.better} | pairs


def _json(pair: ChangedPair) -> dict[str, Any]:
    value = asdict(pair)
    for side in ("baseline", "variant"):
        value[side]["reasons"] = [reason._asdict() for reason in getattr(pair, side).reasons]
    return value
