"""One Report: everything that a report says about a run, as plain values.

It knows nothing of HTML and of no language but for the units, whose texts are ready to be shown.
What cannot be had is None, never a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evenhand.kinds.kind import Kind, Voting
from evenhand.report.changes import ChangedUnits
from evenhand.report.html.units import Block, UnitLine
from evenhand.stats.outcome import Decision, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFacts:
    """One judge: its name, what of it can change an answer, how often it judged, and what must be
    said with every result of it."""

    name: str
    identity: Mapping[str, Any]
    repeats: int
    caveat: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The counts and the cost of a run: planned = verdicts + failures + pending."""

    units: int
    planned: int
    verdicts: int
    failures: Mapping[str, int]
    pending: int
    left_out: int
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """Of the input, what providers read from their caches."""
    cost_usd: float | None
    """None where a price is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean of one variant on one dimension, with its interval."""

    dimension: str
    variant: str
    n: int
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A variant against the baseline on one dimension; of pairs, `mean` is its win rate."""

    dimension: str
    variant: str
    baseline: str
    n: int
    questions: int
    mean: float | None
    mean_low: float | None
    mean_high: float | None
    baseline_mean: float | None
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    effect: float | None
    outcome: Outcome
    needed: str | None
    """The number of further questions that would decide, in words."""
    margin: float | None = None
    """Differences within it count as none."""
    higher: int = 0
    """On how many of the n the variant is above the baseline, and below on how many under it."""
    lower: int = 0
    scale: tuple[float, float] | None = None
    """The lowest and the highest that a mean can be; None where nobody says."""
    held: bool = False
    """True if only the correction for several tests leaves it open."""
    sequential: Decision | None = None
    """The decision of the run's own sequential test here, if any; the outcome is then its own."""
    baseline_low: float | None = None
    baseline_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The record of one candidate against all others."""

    candidate: str
    n: int
    """Pairs with a verdict, of which the win rate is the mean."""
    wins: int
    losses: int
    ties: int
    uncertain: int
    win_rate: float | None
    low: float | None
    high: float | None
    votes: int = 0
    """The judgments of those pairs, of each judge and repeat."""
    rating: float | None = None
    rating_low: float | None = None
    rating_high: float | None = None
    rank_low: int | None = None
    """The best place that it may have, and below the worst."""
    rank_high: int | None = None
    set: int | None = None
    """A number that all have in common who met, directly or through others: only they have places
    among each other."""

    @property
    def pairs(self) -> int:
        """Return the number of its pairs, each counted once."""
        return self.wins + self.losses + self.ties + self.uncertain


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """The win rate of one candidate against another; ties and uncertain verdicts count half."""

    candidate: str
    other: str
    n: int
    rate: float


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its interval; `value` is None without a trial."""

    value: float | None
    low: float
    high: float
    n: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The position consistency and first-slot share of one judge, from its two orders."""

    judge: str
    consistency: Share
    first_slot: Share


@dataclass(frozen=True, slots=True)
class Bar:
    """The count of one observed value: a score of a dimension, a tag."""

    group: str
    variant: str
    value: str
    count: int
    of: int


@dataclass(frozen=True, slots=True)
class LengthBin:
    """Units of about one length: of what they are the mean, and how far it goes."""

    least: float
    most: float
    middle: float
    n: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """The method of measurement, with enough detail to repeat it."""

    protocol: str
    version: str
    prompt: str | None
    language: str
    seed: int
    level: float
    by: str
    baseline: str
    pair_by: Sequence[str]
    rule: str
    settings: Mapping[str, Any]
    judges: Sequence[JudgeFacts]
    evenhand: str
    imported: Mapping[str, Any] | None
    texts: Mapping[str, str]
    """The protocol's own texts in the language of the run."""
    rubric: object
    names: Mapping[str, str]
    """The names of dimensions and criteria, by id."""


class ListedUnit(NamedTuple):
    """A unit of a report: its line, the values it is found by, and the blocks that it opens to."""

    line: UnitLine
    who: str
    """The variant or the candidates."""
    facets: Mapping[str, Sequence[str]]
    blocks: Sequence[Block]


class Selected(NamedTuple):
    """Some units of a run: by which condition, how many, and of how many."""

    condition: str
    units: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that a report says."""

    run: str
    name: str
    kind: Kind
    language: str
    """Of the labels."""
    created: str
    started: str
    coverage: Coverage
    method: Method
    selected: Selected | None = None
    """The part of the run that the report is about, if not all."""
    sequential: bool = False
    """True if the run was to stop once its comparison was decided."""
    variants: Sequence[str] = ()
    means: Sequence[Mean] = ()
    differences: Sequence[Difference] = ()
    standings: Sequence[Standing] = ()
    meetings: Sequence[Meeting] = ()
    positions: Sequence[Position] = ()
    agreement: Share | None = None
    contradictions: Mapping[str, int] = field(default_factory=dict)
    """Of first rounds, how often the orders differ on each criterion."""
    scores: Sequence[Bar] = ()
    tags: Sequence[Bar] = ()
    critical: Mapping[str, float] = field(default_factory=dict)
    """The share of critical fails of each variant that is compared; empty where there was none."""
    tag_names: Mapping[str, str] = field(default_factory=dict)
    """The names of the failure tags, in the language of the labels where the protocol has it."""
    lengths: Sequence[LengthBin] = ()
    notes: Sequence[str] = ()
    """Notes to read beside the values, in English."""
    warnings: Sequence[str] = ()
    """Warnings to read before believing the values: shown above them."""
    changed: ChangedUnits | None = None
    """Those that changed most, where variants were compared."""
    units: Sequence[ListedUnit] | None = None
    """As many of the run as a file has room for; None in a summary."""

    @property
    def stopping(self) -> str:
        """Return the key of the text on a run that was to stop early: `sequential` if the answer is
        its own decision, `stopped` if the values are of another question; empty for any other
        run."""
        if not self.sequential:
            return ""
        return (
            "sequential"
            if any(difference.sequential for difference in self.differences)
            else "stopped"
        )

    @property
    def is_pairs(self) -> bool:
        """Return True for votes between two candidates, False for scores."""
        return isinstance(self.kind.measure, Voting)

    @property
    def full_marks(self) -> int | None:
        """Return the greatest possible total; None if verdicts have none."""
        measure = self.kind.measure
        return None if isinstance(measure, Voting) else measure.full_marks
