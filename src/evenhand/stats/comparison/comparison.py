"""What a comparison says: the words and figures that every reader of one shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from evenhand.stats.comparison.missing import Count
from evenhand.stats.comparison.repeats import Repeats

Outcome = Literal["better", "worse", "not enough evidence"]
OVERALL = "overall"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A variant against the baseline on one dimension, over the units that both have.

    All figures are of those shared units, so that difference = mean - baseline_mean. What cannot
    be had is None, and a note of the comparison says why.
    """

    dimension: str
    variant: str
    n: int
    clusters: int
    mean: float | None
    mean_low: float | None
    mean_high: float | None
    baseline_mean: float | None
    baseline_low: float | None
    baseline_high: float | None
    difference: float | None
    low: float | None
    high: float | None
    error: float | None
    """The standard error of the difference."""
    higher: int
    """On how many of the n the variant is above the baseline."""
    lower: int
    p: float | None
    exact: bool
    """Whether p is of all sign patterns, or of a sample of them."""
    p_adjusted: float | None
    effect: float | None
    """The mean difference in standard deviations of the paired differences."""
    outcome: Outcome
    units_needed: int | None
    """How many more shared units would decide; 0 where it is decided."""
    bounds: tuple[float, float] | None
    """The least and the greatest difference that missing judgments could make of it."""

    def json(self) -> dict[str, Any]:
        return asdict(self) | {"bounds": list(self.bounds) if self.bounds else None}


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantMean:
    """The mean of one variant on one dimension, over all units of it that have a score."""

    dimension: str
    variant: str
    n: int
    clusters: int
    mean: float | None
    low: float | None
    high: float | None

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Variants beside a baseline."""

    by: str
    baseline: str
    level: float
    rows: tuple[Row, ...]
    """One a variant and dimension, those of dimension `overall` last."""
    means: tuple[VariantMean, ...]
    """Of every variant, the baseline too."""
    tags: tuple[Row, ...] = ()
    """Shares of units with a failure tag or a critical fail; `dimension` is the tag's name."""
    missing: Mapping[str, Count] = field(default_factory=dict)
    repeats: Repeats | None = None
    pair_by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader must know beside the figures: warnings, and why a figure is absent."""
    sequential: Mapping[str, Any] | None = None
    """What a run that was to stop early has decided; the figures here only describe such a run."""

    def row(self, variant: str, dimension: str = OVERALL) -> Row | None:
        """The row of a variant on a dimension."""
        for one in self.rows:
            if (one.variant, one.dimension) == (variant, dimension):
                return one
        return None

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "by": self.by,
            "baseline": self.baseline,
            "level": self.level,
            "pair_by": list(self.pair_by),
            "rows": [one.json() for one in self.rows],
            "means": [one.json() for one in self.means],
            "missing": {name: one.json() for name, one in self.missing.items()},
            "tags": [_tag(one) for one in self.tags],
            "repeats": self.repeats.json() if self.repeats else {},
            "notes": list(self.notes),
            "sequential": dict(self.sequential) if self.sequential else None,
        }


def _tag(row: Row) -> dict[str, Any]:
    """A row about a tag, which has a rate and no mean."""
    new = {"dimension": "tag", "mean": "rate", "baseline_mean": "baseline_rate"}
    new |= {"mean_low": "rate_low", "mean_high": "rate_high"}
    return {new.get(name, name): value for name, value in row.json().items()}
