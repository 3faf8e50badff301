"""One Report: everything that a report says about a run, as plain values; and the units that
changed most.

Figures are the rows of statistics themselves. Nothing here knows of HTML, and of no language but
for the units, whose texts are ready to be shown. What cannot be had is None, never a number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from evenhand.kinds.kind import Kind, Voting
from evenhand.manifest import Manifest
from evenhand.observation import OVERALL
from evenhand.report.html.units import Block, UnitLine
from evenhand.stats.comparison import Comparison, VariantMean
from evenhand.stats.estimate import Estimate
from evenhand.stats.leaderboard import Board
from evenhand.stats.leans import Orders
from evenhand.stats.matrix import QuestionMatrix
from evenhand.stats.stability import Stability
from evenhand.stats.within import Blocks
from evenhand.words import Sentence

WARNINGS = frozenset({"notes.trust_contradicts", "notes.trust_contradicts_of"})
"""The sentences about judges that are warnings."""


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

    def out_of(self, most: float) -> ChangedSide:
        """Return it with its value in points out of `most`."""
        return replace(self, value=None if self.value is None else self.value * most)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPair:
    """A question: its answers under the baseline and under the variant, and how far apart."""

    question: str
    fields: Mapping[str, str]
    """The fields that the two answers have in common."""
    difference: float | None
    baseline: ChangedSide
    variant: ChangedSide

    def out_of(self, most: float) -> ChangedPair:
        """Return it as it is shown where totals, shares from 0 to 1, are points out of `most`."""
        gap = self.difference
        return replace(
            self,
            difference=None if gap is None else gap * most,
            baseline=self.baseline.out_of(most),
            variant=self.variant.out_of(most),
        )

    def json(self) -> dict[str, Any]:
        value = asdict(self)
        for side in ("baseline", "variant"):
            value[side]["reasons"] = [reason._asdict() for reason in getattr(self, side).reasons]
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedUnits:
    """The pairs that changed most, the worst and the best first, and how many there are."""

    dimension: str
    n: int
    worse: int
    better: int
    worst: tuple[ChangedPair, ...]
    best: tuple[ChangedPair, ...]

    def out_of(self, most: float | None) -> ChangedUnits:
        """Return it as it is shown: what is overall in points, where totals are out of `most`."""
        if most is None or self.dimension != OVERALL:
            return self
        worst, best = (
            tuple(pair.out_of(most) for pair in each) for each in (self.worst, self.best)
        )
        return replace(self, worst=worst, best=best)

    @property
    def sorted(self) -> list[ChangedPair]:
        """Return all of them, the worst first."""
        return [*self.worst, *reversed(self.best)]

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        counted = {"dimension": self.dimension, "n": self.n}
        sides = {"worst": self.worst, "best": self.best}
        pairs = {name: [pair.json() for pair in side] for name, side in sides.items()}
        return counted | {"worse": self.worse, "better": self.better} | pairs


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
    usage: Mapping[str, int]
    """Tokens; of the input, `cached_tokens` is what providers read from their caches."""
    cost_usd: float | None
    """None where a price is not known."""


def score_text(dimension: str, value: str) -> str:
    """Return a score and what it is of; the total alone where it is of no dimension."""
    return f"{dimension}: {value}" if dimension else value


@dataclass(frozen=True, slots=True)
class Bar:
    """The count of one observed value: a score of a dimension, a tag."""

    group: str
    variant: str
    value: str
    count: int
    of: int

    @property
    def score(self) -> str:
        """Return the dimension and its score as one text, as units have it among their `scores`."""
        return score_text(self.group, self.value)


class PassRate(NamedTuple):
    """The judgments of a variant that pass, and their share, in which questions weigh alike."""

    variant: str
    passed: int
    of: int
    rate: Estimate


class LengthBin(NamedTuple):
    """Units of about one length, and the mean of what they got."""

    least: float
    most: float
    mean: Estimate


class ListedUnit(NamedTuple):
    """A unit of a report: its line, the values it is found by, and the blocks that it opens to."""

    line: UnitLine
    who: str
    """The variant or the candidates."""
    facets: Mapping[str, Sequence[str]]
    blocks: Sequence[Block]


class ListedQuestions(NamedTuple):
    """The matrix of a report: as many questions as a file has room for, of how many."""

    matrix: QuestionMatrix
    texts: Sequence[str]
    listed: Mapping[str, int]
    """The places of the report's units, by id."""
    of: int


class OtherRun(NamedTuple):
    """A run that another is compared with."""

    name: str
    id: str
    started: str


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
    title: str = ""
    """The heading; empty for the name of the run."""
    arguments: Sequence[str] = ()
    """The options of the command that made it."""
    kind: Kind
    language: str
    """Of the labels."""
    created: str
    started: str
    manifest: Manifest
    coverage: Coverage
    settings: Mapping[str, Any] = field(default_factory=dict)
    rubric: object = None
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of dimensions and criteria, by id."""
    tag_names: Mapping[str, str] = field(default_factory=dict)
    """The names of the failure tags, in the language of the labels where the protocol has it."""
    selected: Selected | None = None
    """The part of the run that the report is about, if not all."""
    rule: str = ""
    """Of pairs: how orders that contradict each other are counted."""
    comparison: Comparison | None = None
    means: Sequence[VariantMean] = ()
    board: Board | None = None
    """Of pairs."""
    orders: Mapping[str, Orders] = field(default_factory=dict)
    """Of pairs that were judged in both orders: what the orders tell of each judge."""
    scores: Sequence[Bar] = ()
    tags: Sequence[Bar] = ()
    passes: Sequence[PassRate] = ()
    lengths: Sequence[LengthBin] = ()
    notes: Sequence[str] = ()
    """Notes to read beside the values, in English."""
    faults: Collection[str] = ()
    """Dimensions on which more is worse, and which figures turn round."""
    warnings: Sequence[str] = ()
    """Warnings to read before believing the values: shown above them."""
    trust: Sequence[Sentence] = ()
    """Who judged, and what is known of them."""
    changed: ChangedUnits | None = None
    """Those that changed most, where variants were compared."""
    against: OtherRun | None = None
    """The run that this one is compared with, if not with itself."""
    blocks: Blocks | None = None
    """The comparison inside each value of a field, where that was asked for."""
    stability: Stability | None = None
    """How much answers vary over repeated runs, where that was asked for."""
    units: Sequence[ListedUnit] | None = None
    """As many of the run as a file has room for; None in a summary."""
    questions: ListedQuestions | None = None
    """Where variants or candidates have questions in common; None in a summary."""

    @property
    def level(self) -> float:
        """Return the level of the intervals."""
        return self.comparison.level if self.comparison else 0.95

    @property
    def stopping(self) -> str:
        """Return the key of the text on a run that was to stop early: `sequential` if the answer is
        its own decision, `stopped` if the values are of another question; empty for any other
        run."""
        if not self.manifest.is_sequential:
            return ""
        return "sequential" if self.comparison and self.comparison.sequential else "stopped"

    @property
    def is_pairs(self) -> bool:
        """Return True for votes between two candidates, False for scores."""
        return isinstance(self.kind.measure, Voting)
