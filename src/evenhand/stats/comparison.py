"""The result of a comparison: the words and values that all its readers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from evenhand.notebook import Shown, ShownTable
from evenhand.stats.estimate import More
from evenhand.stats.expense import Expense
from evenhand.stats.variants import Count

if TYPE_CHECKING:
    from evenhand.stats.stability import Repeats

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

    @property
    def is_decided(self) -> bool:
        """Return True if every comparison is decided."""
        return all(each.outcome != "not enough evidence" for each in self.comparisons)

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
    p_adjusted: float | None
    effect: float | None
    """The mean difference in standard deviations of the paired differences."""
    outcome: Outcome
    more_questions: More | None = None
    """The number of further questions that would decide, in words; None if decided or unknown."""
    decided_by: Literal["fixed", "sequential"] = "fixed"
    """The test that the outcome is from: the one at a number of units fixed before, or the
    sequential test of a run that was to stop early, which these values only describe."""
    bounds: tuple[float, float] | None = None
    """The least and the greatest difference that missing judgments could make of it."""
    scale: tuple[float, float] | None = None
    """The lowest and the highest that a score can be; None where nobody says."""

    def json(self) -> dict[str, Any]:
        return asdict(self) | {"bounds": _pair(self.bounds), "scale": _pair(self.scale)}


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
    scale: tuple[float, float] | None = None
    """The lowest and the highest that a score can be; None where nobody says."""

    def json(self) -> dict[str, Any]:
        return asdict(self) | {"scale": _pair(self.scale)}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Shown):
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
    passes: tuple[Row, ...] = ()
    """Shares of units that pass, then that pass each check by code."""
    missing: Mapping[str, Count] = field(default_factory=dict)
    repeats: Repeats | None = None
    pair_by: tuple[str, ...] = ()
    is_duel: bool = False
    """Whether candidates were compared in pairs; else variants have scores."""
    notes: tuple[str, ...] = ()
    """Notes for the reader: warnings, and why a value is absent."""
    margin: float | None = None
    """Differences within it count as none; None where nobody named one."""
    expenses: tuple[Expense, ...] = ()
    """What the answers took, where the suite made them."""
    sequential: SequentialTest | None = None
    """The decisions of a run that was to stop early, if they are about this comparison."""

    def _tables(self) -> Iterator[ShownTable]:
        header = ("dimension", "variant", "n", self.baseline, "mean", "difference", "low", "high")
        rows = [
            (
                *(row.dimension, row.variant, row.n, row.baseline_mean, row.mean),
                *(row.difference, row.low, row.high, row.p, row.outcome),
            )
            for row in (*self.rows, *self.passes)
        ]
        yield ShownTable((*header, "p", "outcome"), rows, f"by {self.by}", self.notes)

    def under(self, test: SequentialTest) -> Comparison:
        """Return a copy with the outcomes of the run's own sequential test: on the rows that it
        decides, no other test of the same question counts."""
        rows = tuple(
            _decide(row, test.decision(row.variant))
            if self.is_one_dimension or row.dimension == test.dimension
            else row
            for row in self.rows
        )
        return replace(self, rows=rows, sequential=test)

    @property
    def without_scales(self) -> Comparison:
        """Return a copy without the scales of dimensions, for scales whose ends are only the least
        and the greatest value observed."""
        return replace(
            self,
            rows=tuple(_drop_scale(row) for row in self.rows),
            means=tuple(_drop_scale(mean) for mean in self.means),
        )

    @property
    def without_needed(self) -> Comparison:
        """Return a copy without `more_questions`, for use where more units would decide nothing."""
        rows = tuple(replace(row, more_questions=None) for row in self.rows)
        return replace(self, rows=rows)

    def out_of(self, most: float | None) -> Comparison:
        """Return a copy to be shown, in which overall values, shares from 0 to 1, are points out of
        `most`; as it is where totals have no scale of their own."""
        if most is None:
            return self
        test, margin = self.sequential, self.margin
        if test is not None:
            test = replace(test, comparisons=[in_points(each, most) for each in test.comparisons])
        return replace(
            self,
            rows=tuple(in_points(row, most) for row in self.rows),
            means=tuple(in_points(mean, most) for mean in self.means),
            repeats=self.repeats and self.repeats.out_of(most),
            sequential=test,
            margin=margin if margin is None or self.is_one_dimension else margin * most,
        )

    @property
    def by_fields(self) -> list[str]:
        """Return the fields that tell the variants apart."""
        return self.by.split(" / ")

    @property
    def is_one_dimension(self) -> bool:
        """Return True if the overall value only repeats that of the single dimension. Pairs never
        do: their overall value is the winner, whatever their criteria say."""
        dimensions = {row.dimension for row in self.rows} - {OVERALL}
        return len(dimensions) == 1 and not self.is_duel

    def decision(self, row: Row) -> Decision | None:
        """Return the decision of the sequential test on a row; None if another test decides it."""
        if self.sequential is None or row.decided_by != "sequential":
            return None
        return self.sequential.decision(row.variant)

    def row(self, variant: str, dimension: str = OVERALL) -> Row | None:
        """The row of a variant on a dimension."""
        for row in self.rows:
            if (row.variant, row.dimension) == (variant, dimension):
                return row
        return None

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "by": self.by,
            "baseline": self.baseline,
            "level": self.level,
            "margin": self.margin,
            "pair_by": list(self.pair_by),
            "rows": [row.json() for row in self.rows],
            "means": [mean.json() for mean in self.means],
            "missing": {name: count.json() for name, count in self.missing.items()},
            "passes": [row.json() for row in self.passes],
            "expenses": [asdict(each) for each in self.expenses],
            "tags": [_tag(row) for row in self.tags],
            "repeats": self.repeats.json() if self.repeats else {},
            "notes": list(self.notes),
            "sequential": self.sequential.json() if self.sequential else None,
        }


_Figure = TypeVar("_Figure", Row, VariantMean)
_OVERALL_VALUES = (
    *("mean", "mean_low", "mean_high", "baseline_mean", "baseline_low", "baseline_high"),
    *("difference", "low", "high", "error", "bounds", "scale", "gap", "estimate"),
)
_Shown = TypeVar("_Shown", bound=Any)


def in_points(figure: _Shown, most: float) -> _Shown:
    """Return a row, mean, test or decision; of what is overall, with its values times `most`."""
    if figure.dimension != OVERALL:
        return figure
    values = {name: getattr(figure, name, None) for name in _OVERALL_VALUES}
    points = {
        name: tuple(end * most for end in value) if isinstance(value, tuple) else value * most
        for name, value in values.items()
        if value is not None
    }
    return replace(figure, **points)


def _drop_scale(figure: _Figure) -> _Figure:
    return figure if figure.dimension == OVERALL else replace(figure, scale=None)


def _pair(ends: tuple[float, float] | None) -> list[float] | None:
    return list(ends) if ends else None


def _decide(row: Row, decision: Decision | None) -> Row:
    if decision is None:
        return row
    return replace(row, outcome=decision.outcome, decided_by="sequential", more_questions=None)


def _tag(row: Row) -> dict[str, Any]:
    """A row about a tag, which has a rate and no mean."""
    new = {"dimension": "tag", "mean": "rate", "baseline_mean": "baseline_rate"}
    new |= {"mean_low": "rate_low", "mean_high": "rate_high"}
    return {new.get(name, name): value for name, value in row.json().items()}
