"""The decisions of a run that was to stop early: the values that all their readers share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Outcome = Literal["better", "worse", "same", "not enough evidence"]
"""`same` is a difference that lies within a margin which was named."""
Measure = Literal["difference", "win_rate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision about one variant, or its state while undecided, with counts of units and of
    questions."""

    variant: str
    baseline: str
    dimension: str
    outcome: Outcome
    alpha: float
    units: int
    of: int
    saved_units: int
    questions: int
    of_questions: int
    skipped: int
    measure: Measure
    """The measure that the estimate and its interval are of."""
    estimate: float | None
    low: float
    high: float
    at_end: bool
    """True if all planned questions have entered."""

    @property
    def is_open(self) -> bool:
        """Return True if another run would judge more for this comparison."""
        entered = self.questions + self.skipped
        return self.outcome == "not enough evidence" and entered < self.of_questions


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialTest:
    """The state of a run's sequential test: a decision for each variant, and the units saved."""

    comparisons: Sequence[Decision]
    alpha: float
    """Of all comparisons together."""
    baseline: str
    dimension: str
    of: int
    saved_units: int
    notes: Sequence[str] = ()

    def decision(self, variant: str) -> Decision | None:
        """Return the decision about a variant; None if the test is not about it."""
        return next(
            (decision for decision in self.comparisons if decision.variant == variant), None
        )

    def json(self) -> dict[str, Any]:
        """As `--json` prints it: where there is one comparison, its keys stand on top too."""
        single = len(self.comparisons) == 1
        alone = asdict(self.comparisons[0]) if single else {"outcome": None, "variant": None}
        return {
            **alone,
            "alpha": self.alpha,
            "baseline": self.baseline,
            "dimension": self.dimension,
            "of": self.of,
            "saved_units": self.saved_units,
            "sequential": True,
            "comparisons": [asdict(decision) for decision in self.comparisons],
            "notes": list(self.notes),
        }
