"""The conditions of a gate, each met, not met, or open for want of evidence.

A figure of a sample meets or misses its threshold by its interval, never by itself, and that
interval holds however scores are distributed (`bounded`); each question weighs alike. A count is
exact. What is missing is taken at its worst: a condition that it could turn is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from evenhand.observation import OVERALL
from evenhand.stats.bounded import interval
from evenhand.stats.cases import Failing
from evenhand.stats.compare import Shared
from evenhand.stats.comparison import Outcome, Row
from evenhand.stats.estimate import LARGEST, More, more_questions, question_means
from evenhand.stats.expense import COST, LATENCY, Expense
from evenhand.stats.observations import Floats, Ints
from evenhand.words import Code, Sentence, Value, few

OPEN: Outcome = "not enough evidence"
EVEN = 0.5
"""The win rate of a candidate that is as good as the other."""
CONDITIONS = {
    "better": "--better",
    "no_worse_than": "--no-worse-than D",
    "min_mean": "--min-mean M",
    "min_win_rate": "--min-win-rate W",
    "min_pass_rate": "--min-pass-rate R",
    "every": "--every",
    "no_case_worse_than": "--no-case-worse-than D",
    "max_critical_fails": "--max-critical-fails K",
    "max_failure_rate": "--max-failure-rate R",
    "max_cost_increase": "--max-cost-increase P",
    "max_latency_increase": "--max-latency-increase P",
}
INCREASES = {"max_cost_increase": COST, "max_latency_increase": LATENCY}
"""Conditions on what answers took."""
AGAINST = ("better", "no_worse_than", "no_case_worse_than", *INCREASES)
"""Conditions that compare with a baseline."""
_ROUNDING = 1e-12
NAMED = 5
"""So many units that fail are named in a sentence; JSON has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions that a gate sets for a run; None if not set."""

    by: tuple[str, ...] = ()
    pair_by: tuple[str, ...] = ()
    baseline: str | None = None
    variant: str | None = None
    """Held to the conditions; every variant but the baseline unless given."""
    candidate: str | None = None
    dimensions: tuple[str, ...] = (OVERALL,)
    judge: str | None = None
    level: float = 0.95
    better: bool = False
    no_worse_than: float | None = None
    min_mean: float | None = None
    min_win_rate: float | None = None
    min_pass_rate: float | None = None
    every: bool = False
    no_case_worse_than: float | None = None
    max_critical_fails: int | None = None
    max_failure_rate: float | None = None
    max_cost_increase: float | None = None
    max_latency_increase: float | None = None
    full_marks: float | None = None
    """The highest total, where there is one; flags and values are shares of it all the same."""

    def points(self, dimension: str) -> float:
        """Return how many points a reader is told for a value of 1."""
        return (self.full_marks or 1) if dimension == OVERALL else 1


@dataclass(frozen=True, slots=True)
class JudgmentCounts:
    """The judgments of a run in numbers: planned = verdicts + failed + pending."""

    verdicts: int
    failed: int
    pending: int
    left: int = 0
    """Of those to come, how many a run leaves on purpose, because its comparison is decided."""
    unanswered: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of those that failed, by variant, how many had no answer to judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """An estimate with its interval, and the least and most that missing judgments could make of
    it (None where nothing is missing or it is not known)."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    level: float = 0.95
    error: float | None = None
    bounds: tuple[float, float] | None = None
    counted: str = "units"
    """The noun for what `n` counts."""
    unfit: Sentence | None = None
    """Why it cannot decide, whatever it is."""
    points: float = 1
    """What a value of 1 is told as."""
    left: bool = False
    """True if the run leaves units on purpose, which only `--to-the-end` judges."""

    @property
    def as_rate(self) -> Figure:
        """A difference of two shares that make up 1 as the first of them."""
        bounds = self.bounds and (_half(self.bounds[0]), _half(self.bounds[1]))
        value, low, high = (
            None if end is None else _half(end) for end in (self.value, self.low, self.high)
        )
        error = None if self.error is None else self.error / 2
        return replace(self, value=value, low=low, high=high, error=error, bounds=bounds)


def _half(difference: float) -> float:
    return (1 + difference) / 2


NOTHING = Figure(value=None, low=None, high=None, n=0, clusters=0)


def mean_figure(values: Floats, cluster: Ints, ends: tuple[float, float], level: float) -> Figure:
    """Return the mean of questions with its interval; without one of fewer than two questions, of
    values without a scale, and of values too large to compute with, which have no mean either."""
    clusters = np.unique(cluster).size
    bare = replace(NOTHING, n=values.size, clusters=clusters, level=level)
    # Written so that what is not a number is too large as well.
    if not values.size or not max(float(np.abs(values).max()), *map(abs, ends)) <= LARGEST:
        return bare
    means = question_means(values, cluster)
    found = replace(bare, value=float(means.mean()))
    low, high = min(ends[0], float(values.min())), max(ends[1], float(values.max()))
    if clusters < 2 or low == high:
        return found
    least, most = interval(means, (low, high), level)
    error = float(means.std(ddof=1)) / clusters**0.5
    return replace(found, low=least, high=most, error=error)


def difference_figure(shared: Shared, level: float) -> Figure:
    """Return the mean difference of what a variant and the baseline share."""
    span = shared.ends[1] - shared.ends[0]
    with np.errstate(over="ignore", invalid="ignore"):  # of such values there is no figure
        gaps = shared.ours - shared.theirs
    return replace(mean_figure(gaps, shared.cluster, (-span, span), level), bounds=shared.bounds)


# What a condition says of a figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition and what came of it: `better` is met, `worse` is not met."""

    name: str
    """As the flag or the key of `[gate]` has it."""
    outcome: Outcome
    reason: str
    value: float | None
    low: float | None
    high: float | None
    threshold: float | None
    dimension: str | None
    variant: str | None
    n: int
    clusters: int
    """On how many questions: what is about one hangs together."""
    more: More | None = None
    """The number of further questions that would decide, in words; None if unknown."""
    units: tuple[str, ...] = ()
    """Those that fail, where none may."""
    points: float = 1
    """What a value of 1 is told as."""

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a condition asks, and of whom; `values` fill its sentence."""

    name: str
    values: Mapping[str, Value]
    threshold: float | None = None
    dimension: str | None = None
    variant: str | None = None
    is_rate: bool = False
    """True for what is told in percent."""


def subject(
    variant: str | None = None, dimension: str = OVERALL, baseline: str | None = None
) -> Sentence:
    """Return who a condition is about: a variant, perhaps against another, or the whole run."""
    key = "versus" if baseline is not None else "run" if variant is None else "variant"
    if dimension != OVERALL:
        key += "_on"
    return Sentence(f"gate.{key}", variant=variant, baseline=baseline, dimension=dimension)


def in_points(value: float, points: float) -> Value:
    """Return a threshold as it is told."""
    if points == 1:
        return value
    return Sentence("gate.points", value=round(value * points, 9), most=points)


def no_worse_than(
    figure: Figure, margin: float, variant: str, base: str, of: str, *, is_duel: bool = False
) -> Condition:
    """Return whether the difference to the baseline is not below -margin: non-inferiority. Of a
    duel, whether the win rate is not below a half by more than it."""
    told = in_points(margin, figure.points)
    claim = Claim(
        name="no_worse_than",
        values={
            "who": subject(variant, of),
            "baseline": base,
            "margin": Sentence("gate.rate_points", value=round(100 * margin, 9))
            if is_duel
            else told,
        },
        threshold=round(EVEN - margin, 9) if is_duel else margin,
        dimension=of,
        variant=variant,
        is_rate=is_duel,
    )
    return _held_to(claim, figure, EVEN - margin if is_duel else -margin)


def is_better(row: Row, figure: Figure, base: str, *, is_duel: bool = False) -> Condition:
    """Return whether a variant is better: by the comparison, and by the gate's own interval. The
    figure of a duel is its win rate."""
    claim = Claim(
        name="better",
        values={"who": subject(row.variant, row.dimension), "baseline": base},
        dimension=row.dimension,
        variant=row.variant,
        is_rate=is_duel,
    )
    if figure.unfit:
        return _condition(claim, figure, OPEN, figure.unfit)
    if row.outcome == OPEN:
        return _open(claim, figure, row.more_questions)
    # The run's own sequential test has no standard error: its interval is the decision itself.
    low, high, none = figure.low, figure.high, EVEN if is_duel else 0.0
    if figure.error is not None and low is not None and high is not None and low <= none <= high:
        why = Sentence("gate.unseen" if row.outcome == "better" else "gate.wider")
        return _open(claim, figure, _more(figure, none), why)
    return _unless_missing(claim, figure, row.outcome, none)


def at_least(name: str, figure: Figure, least: float, who: Sentence, **about: Any) -> Condition:
    """Return whether a mean or a rate is not below its threshold."""
    is_rate = name in ("min_win_rate", "min_pass_rate")
    told = round(100 * least, 9) if is_rate else in_points(least, figure.points)
    values = {"who": who, "least": told}
    claim = Claim(name=name, values=values, threshold=least, is_rate=is_rate, **about)
    return _held_to(claim, figure, least)


def _held_to(claim: Claim, figure: Figure, threshold: float) -> Condition:
    """Return what the interval says of a threshold that a figure must not be below."""
    if figure.unfit:
        return _condition(claim, figure, OPEN, figure.unfit)
    if figure.value is None or figure.low is None or figure.high is None:
        why = Sentence("gate.no_interval" if figure.n else "gate.nothing_judged")
        return _condition(claim, figure, OPEN, why)
    if figure.low >= threshold - _ROUNDING:
        return _unless_missing(claim, figure, "better", threshold)
    if figure.high < threshold - _ROUNDING:
        return _unless_missing(claim, figure, "worse", threshold)
    return _open(claim, figure, _more(figure, threshold))


def _unless_missing(claim: Claim, figure: Figure, outcome: Outcome, threshold: float) -> Condition:
    """Return the outcome; open where missing judgments could carry the figure over a threshold."""
    least, most = figure.bounds or (None, None)
    is_turned = least is not None and outcome == "better" and least < threshold - _ROUNDING
    is_turned |= most is not None and outcome == "worse" and most >= threshold - _ROUNDING
    if not is_turned:
        return _condition(claim, figure, outcome)
    key, points = ("turned_rate", 100) if claim.is_rate else ("turned", figure.points)
    digits = 3 if points == 1 else 1
    low, high = (None if end is None else round(points * end, digits) for end in (least, most))
    why = Sentence(f"gate.{key}", low=low, high=high)
    return _condition(claim, figure, OPEN, why, _missing(is_left=figure.left))


def _missing(*, is_left: bool) -> Sentence:
    """Return how to have missing judgments made; `is_left` if the run leaves some on purpose."""
    return Sentence("gate.judge_left" if is_left else "gate.judge_missing")


def _more(figure: Figure, threshold: float) -> More | None:
    if figure.value is None:
        return None
    return more_questions(figure.value - threshold, figure.error, figure.clusters, 1 - figure.level)


def _open(claim: Claim, figure: Figure, more: More | None, *why: Sentence) -> Condition:
    """Return a condition that more questions may decide."""
    said = Sentence("gate.more", more=more) if more else Sentence("gate.more_unknown")
    left = [_missing(is_left=True)] if figure.left else []
    return replace(_condition(claim, figure, OPEN, *why, said, *left), more=more)


def count_at_most(
    name: str, number: int, missing: int, most: int, *, left: bool = False, **about: Any
) -> Condition:
    """Return whether critical fails are few: exact but for judgments that are missing."""
    who = subject(about.get("variant"))
    values: dict[str, Value] = {"who": who, "n": number, "most": most}
    claim = Claim(name=name, values=values, threshold=most, **about)
    figure = Figure(value=number, low=number, high=number + missing, n=0, clusters=0)
    why = Sentence("gate.missing", n=missing)
    return _exact(claim, figure, most, why, _missing(is_left=left))


def none_of(
    name: str,
    failing: Failing,
    who: Sentence,
    *,
    left: bool = False,
    values: Mapping[str, Value] | None = None,
    **about: Any,
) -> Condition:
    """Return whether none of some units or cases fails: exact but for those that are not judged in
    full. The first of those that fail are named."""
    number, of = len(failing.units), failing.of
    told = {"who": who, "n": number, "of": of, "names": few(failing.units, NAMED)}
    claim = Claim(name=name, values={**told, **(values or {})}, **about)
    figure = Figure(value=number, low=number, high=number + failing.unsure, n=of, clusters=of)
    why = Sentence("gate.unsure", n=failing.unsure)
    found = _exact(claim, figure, 0, why, _missing(is_left=left))
    return replace(found, units=failing.units)


def share_at_most(name: str, counts: JudgmentCounts, most: float) -> Condition:
    """Return whether few judgments failed: exact once none is pending; those that a run leaves on
    purpose are not awaited."""
    awaited = counts.pending - counts.left
    done = counts.verdicts + counts.failed
    planned = done + awaited
    values: dict[str, Value] = {"n": counts.failed, "of": done, "most": 100 * most}
    claim = Claim(name=name, values=values, threshold=most)
    if not planned:
        return _condition(claim, NOTHING, OPEN, Sentence("gate.nothing_planned"))
    figure = Figure(
        value=counts.failed / done if done else None,
        low=counts.failed / planned,
        high=(counts.failed + awaited) / planned,
        n=done,
        clusters=done,
        counted="judgments",
    )
    return _exact(claim, figure, most, Sentence("gate.pending", n=awaited))


def _exact(claim: Claim, figure: Figure, most: float, *why: Sentence) -> Condition:
    """Return what a count between what it is and what it can still become says."""
    assert figure.low is not None and figure.high is not None
    if figure.low > most + _ROUNDING:
        return _condition(claim, figure, "worse")
    if figure.high <= most + _ROUNDING:
        return _condition(claim, figure, "better")
    return _condition(claim, figure, OPEN, *why)


def increase_at_most(name: str, expense: Expense, most: float, base: str) -> Condition:
    """Return whether answers take at most so much more than those of the baseline."""
    variant = expense.variant
    values = {"who": subject(variant), "baseline": base, "most": round(100 * most, 9)}
    claim = Claim(name=name, values=values, threshold=most, variant=variant, is_rate=True)
    figure = Figure(
        value=expense.change,
        low=expense.low,
        high=expense.high,
        n=expense.questions,
        clusters=expense.questions,
        counted="questions",
    )
    if figure.low is None or figure.high is None:
        return _condition(claim, figure, OPEN, Sentence("gate.no_interval"))
    if figure.high <= most + _ROUNDING:
        return _condition(claim, figure, "better")
    if figure.low > most + _ROUNDING:
        return _condition(claim, figure, "worse")
    return _condition(claim, figure, OPEN, Sentence("gate.more_unknown"))


def unknown_condition(
    name: str, why: Sentence, threshold: float | None = None, **about: Any
) -> Condition:
    """Return a condition for which there is nothing to go by."""
    claim = Claim(name=name, values={}, threshold=threshold, **about)
    flag = Code(CONDITIONS[name].split()[0])
    return _result(claim, NOTHING, OPEN, Sentence("gate.unknown", condition=flag, why=why))


_CLAIMS = {"better": "better", "worse": "worse"}


def _condition(claim: Claim, figure: Figure, outcome: Outcome, *why: Sentence) -> Condition:
    reason = Sentence(f"gate.{claim.name}_{_CLAIMS.get(outcome, 'open')}", **claim.values)
    if (measured := _measured(claim, figure)) is not None:
        reason = Sentence("gate.with_figure", claim=reason, figure=measured)
    else:
        reason = Sentence("gate.alone", claim=reason)
    for sentence in why:
        reason = Sentence("gate.both", first=reason, second=sentence)
    return _result(claim, figure, outcome, reason)


def _result(claim: Claim, figure: Figure, outcome: Outcome, reason: Sentence) -> Condition:
    return Condition(
        name=claim.name,
        outcome=outcome,
        reason=reason,
        value=figure.value,
        low=figure.low,
        high=figure.high,
        threshold=claim.threshold,
        dimension=claim.dimension,
        variant=claim.variant,
        n=figure.n,
        clusters=figure.clusters,
        points=figure.points,
    )


def _measured(claim: Claim, figure: Figure) -> Sentence | None:
    """Return the value with its interval and what it rests on; None of what the claim tells."""
    if figure.value is None or "of" in claim.values or not figure.clusters:
        return None
    grouped = "" if figure.clusters == figure.n else "_grouped"
    basis = Sentence(f"gate.of_{figure.counted}{grouped}", n=figure.n, clusters=figure.clusters)
    value, low, high, most = figure.value, figure.low, figure.high, figure.points
    if value is None or low is None or high is None or low >= high:
        return Sentence("gate.measured_alone", value=most * (value or 0.0), basis=basis)
    most = 100 if claim.is_rate else most
    ends = {"value": most * value, "low": most * low, "high": most * high}
    if claim.is_rate:
        key = "win_rate" if claim.name in AGAINST[:2] else "measured_rate"
        return Sentence(f"gate.{key}", **ends, basis=basis)
    is_small = max(abs(ends["low"]), abs(ends["high"])) <= 1
    scale = "_hundred" if most > 1 else "" if is_small else "_points"
    key = "difference" if claim.name in ("better", "no_worse_than") else "measured"
    return Sentence(f"gate.{key}{scale}", **ends, basis=basis)
