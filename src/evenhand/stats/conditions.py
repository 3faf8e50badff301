"""The conditions of a gate, each met, not met, or open for want of evidence.

A figure of a sample meets or misses its threshold by its interval, never by itself, and that
interval holds however scores are distributed (`bounded`); each question weighs alike. A count is
exact. What is missing is taken at its worst: a condition that it could turn is open.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from evenhand.errors import quote
from evenhand.observation import OVERALL
from evenhand.stats.bounded import interval
from evenhand.stats.compare import Shared
from evenhand.stats.comparison import Outcome, Row
from evenhand.stats.estimate import LARGEST, More, more_questions, question_means
from evenhand.stats.observations import Floats, Ints

OPEN: Outcome = "not enough evidence"
CONDITIONS = {
    "better": "--better",
    "no_worse_than": "--no-worse-than D",
    "min_mean": "--min-mean M",
    "min_win_rate": "--min-win-rate W",
    "max_critical_fails": "--max-critical-fails K",
    "max_failure_rate": "--max-failure-rate R",
}
AGAINST = ("better", "no_worse_than")
"""Conditions that compare with a baseline."""
MISSING = "judge what is missing (evenhand run; what failed, with --retry-failures)"
LEFT = "judge what is missing (evenhand run --to-the-end; what failed, with --retry-failures)"
UNSEEN = "compare finds it, but a gate also reckons with rare failures that were not seen"
_ROUNDING = 1e-12


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
    max_critical_fails: int | None = None
    max_failure_rate: float | None = None


@dataclass(frozen=True, slots=True)
class JudgmentCounts:
    """The judgments of a run in numbers: planned = verdicts + failed + pending."""

    verdicts: int
    failed: int
    pending: int
    left: int = 0
    """Of those to come, how many a run leaves on purpose, because its comparison is decided."""


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
    unfit: str = ""
    """Why it cannot decide, whatever it is."""
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

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim of a condition in words: `yes` if it is met, `no` if it is not."""

    name: str
    yes: str
    no: str
    unit: str = "it"
    threshold: float | None = None
    dimension: str | None = None
    variant: str | None = None
    signed: bool = False


def no_worse_than(figure: Figure, margin: float, variant: str, base: str, of: str) -> Condition:
    """Return whether the difference to the baseline is not below -margin: non-inferiority."""
    worse = f"worse than {quote(base)} by more than {margin:g}{on_dimension(of)}"
    claim = Claim(
        name="no_worse_than",
        yes=f"{quote(variant)} is not {worse}",
        no=f"{quote(variant)} is {worse}",
        unit="the difference",
        threshold=margin,
        dimension=of,
        variant=variant,
        signed=True,
    )
    return _held_to(claim, figure, -margin)


def is_better(row: Row, figure: Figure, base: str) -> Condition:
    """Return whether a variant is better: by the comparison, and by the gate's own interval."""
    claim = Claim(
        name="better",
        yes=f"{quote(row.variant)} is better than {quote(base)}{on_dimension(row.dimension)}",
        no=f"{quote(row.variant)} is worse than {quote(base)}{on_dimension(row.dimension)}",
        unit="the difference",
        dimension=row.dimension,
        variant=row.variant,
        signed=True,
    )
    if figure.unfit:
        return _condition(claim, figure, OPEN, figure.unfit)
    if row.outcome == OPEN:
        return _open(claim, figure, row.more_questions)
    # The run's own sequential test has no standard error: its interval is the decision itself.
    low, high = figure.low, figure.high
    if figure.error is not None and low is not None and high is not None and low <= 0 <= high:
        return _open(claim, figure, _more(figure, 0.0), UNSEEN)
    return _unless_missing(claim, figure, row.outcome, 0.0)


def at_least(name: str, figure: Figure, least: float, what: str, **about: Any) -> Condition:
    """Return whether a mean or a rate is not below its threshold; `what` says of whom."""
    yes, no = f"{what} is at least {least:g}", f"{what} is below {least:g}"
    return _held_to(Claim(name=name, yes=yes, no=no, threshold=least, **about), figure, least)


def _held_to(claim: Claim, figure: Figure, threshold: float) -> Condition:
    """Return what the interval says of a threshold that a figure must not be below."""
    if figure.unfit:
        return _condition(claim, figure, OPEN, figure.unfit)
    if figure.value is None or figure.low is None or figure.high is None:
        why = "nothing was judged that says so" if not figure.n else "there is no interval"
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
    sign = "+" if claim.signed else ""
    why = (
        f"missing judgments could make it anything from {least:{sign}z.3g} to {most:{sign}z.3g}:"
        f" {LEFT if figure.left else MISSING}"
    )
    return _condition(claim, figure, OPEN, why)


def _more(figure: Figure, threshold: float) -> More | None:
    if figure.value is None:
        return None
    return more_questions(figure.value - threshold, figure.error, figure.clusters, 1 - figure.level)


def _open(claim: Claim, figure: Figure, more: More | None, why: str = "") -> Condition:
    """Return a condition that more questions may decide."""
    if more is None:
        said = "more questions may decide it"
    elif more == "more than is practical":
        said = "deciding it would take more questions than is practical"
    else:
        said = f"{more} more questions may decide it (run --until-decided)"
    parts = [part for part in (why, said, LEFT if figure.left else "") if part]
    return replace(_condition(claim, figure, OPEN, "; ".join(parts)), more=more)


def count_at_most(
    name: str, number: int, missing: int, most: int, *, left: bool = False, **about: Any
) -> Condition:
    """Return whether critical fails are few: exact but for judgments that are missing."""
    whose = f" of {quote(about['variant'])}" if about.get("variant") else ""
    claim = Claim(
        name=name,
        yes=f"the critical fails{whose} are at most {most}",
        no=f"the critical fails{whose} are more than {most}",
        unit="there are",
        threshold=most,
        **about,
    )
    figure = Figure(value=number, low=number, high=number + missing, n=0, clusters=0)
    why = f"{_judgments(missing)} missing: {LEFT if left else MISSING}"
    return _exact(claim, figure, most, why)


def share_at_most(name: str, counts: JudgmentCounts, most: float) -> Condition:
    """Return whether few judgments failed: exact once none is pending; those that a run leaves on
    purpose are not awaited."""
    awaited = counts.pending - counts.left
    done = counts.verdicts + counts.failed
    planned = done + awaited
    claim = Claim(
        name=name,
        yes=f"the share of failed judgments is at most {most:g}",
        no=f"the share of failed judgments is more than {most:g}",
        threshold=most,
    )
    if not planned:
        return _condition(claim, NOTHING, OPEN, "nothing is planned")
    figure = Figure(
        value=counts.failed / done if done else None,
        low=counts.failed / planned,
        high=(counts.failed + awaited) / planned,
        n=done,
        clusters=done,
        counted="judgments",
    )
    return _exact(claim, figure, most, f"{_judgments(awaited)} pending: evenhand run")


def _exact(claim: Claim, figure: Figure, most: float, why: str) -> Condition:
    """Return what a count between what it is and what it can still become says."""
    assert figure.low is not None and figure.high is not None
    if figure.low > most + _ROUNDING:
        return _condition(claim, figure, "worse")
    if figure.high <= most + _ROUNDING:
        return _condition(claim, figure, "better")
    return _condition(claim, figure, OPEN, why)


def _judgments(number: int) -> str:
    return "1 judgment is" if number == 1 else f"{number} judgments are"


def unknown_condition(
    name: str, why: str, threshold: float | None = None, **about: Any
) -> Condition:
    """Return a condition for which there is nothing to go by."""
    claim = Claim(name=name, yes="", no="", threshold=threshold, **about)
    return replace(_condition(claim, NOTHING, OPEN), reason=f"{name}: {why}.")


def _condition(claim: Claim, figure: Figure, outcome: Outcome, why: str = "") -> Condition:
    leads = {"better": claim.yes, "worse": claim.no, OPEN: f"cannot tell yet whether {claim.yes}"}
    lead = leads[outcome]
    parts = [part for part in (_figure_text(claim, figure), why) if part]
    return Condition(
        name=claim.name,
        outcome=outcome,
        reason=f"{lead[0].upper()}{lead[1:]}: {'; '.join(parts)}.",
        value=figure.value,
        low=figure.low,
        high=figure.high,
        threshold=claim.threshold,
        dimension=claim.dimension,
        variant=claim.variant,
        n=figure.n,
        clusters=figure.clusters,
    )


def _figure_text(claim: Claim, figure: Figure) -> str:
    if figure.value is None:
        return ""
    sign = "+" if claim.signed else ""
    if figure.clusters == 0:
        return f"{claim.unit} {figure.value:g}"
    value, bounds = f"{figure.value:{sign}z.3g}", ""
    if figure.low is not None and figure.high is not None and figure.low < figure.high:
        form = f"{sign}z.{3 if abs(figure.value) <= 1 else 2}f"
        value, bounds = f"{figure.value:{form}}", f" [{figure.low:{form}}, {figure.high:{form}}]"
    counted = figure.counted.removesuffix("s") if figure.n == 1 else figure.counted
    among = ""
    if figure.clusters != figure.n:
        among = f" on {figure.clusters} question{'' if figure.clusters == 1 else 's'}"
    return f"{claim.unit} is {value}{bounds} over {figure.n} {counted}{among}"


def on_dimension(dimension: str) -> str:
    return "" if dimension == OVERALL else f" on {quote(dimension)}"
