"""May this ship? The conditions of a gate, each met, not met, or open for want of evidence.

A figure of a sample meets or misses its threshold by its interval, never by itself, and that
interval holds however scores are distributed (`bounded`); each question weighs alike. A count is
exact. What is missing is taken at its worst: a condition that it could turn is open. All conditions
must be met; one that is not met is enough to fail; else there is not enough evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from math import floor
from types import MappingProxyType
from typing import Any

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.stats.bounded import interval
from evenhand.stats.comparison.caveats import UNKNOWN_SCALE
from evenhand.stats.comparison.compare import (
    compare_scores,
    compare_votes,
    of_judge,
    shared_scores,
    shared_votes,
)
from evenhand.stats.comparison.comparison import OVERALL, Comparison, Row
from evenhand.stats.comparison.contrast import Shared
from evenhand.stats.comparison.missing import filled
from evenhand.stats.comparison.variants import chosen, judge_named, layout
from evenhand.stats.estimate import LARGEST, mean_of_questions, question_means
from evenhand.stats.outcome import Outcome
from evenhand.stats.power import More, more_questions
from evenhand.stats.questions import question_of
from evenhand.stats.tables import Bools, Floats, Ints, Scores, Votes

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
    """What a gate asks of a run; None is not asked for."""

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
class Judgments:
    """How many there are, and how many are still to come: planned = the sum of all three."""

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
    """What `n` is the number of."""
    unfit: str = ""
    """Why it cannot decide, whatever it is."""
    left: bool = False
    """Whether the run leaves units on purpose, which only `--to-the-end` judges."""

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


def _difference(shared: Shared, level: float) -> Figure:
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
    """How many more questions would decide, in words; None where that cannot be said."""

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a condition says of whom, in words: `yes` where it is met, `no` where it is not."""

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
    worse = f"worse than {quoted(base)} by more than {margin:g}{_on(of)}"
    claim = Claim(
        name="no_worse_than",
        yes=f"{quoted(variant)} is not {worse}",
        no=f"{quoted(variant)} is {worse}",
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
        yes=f"{quoted(row.variant)} is better than {quoted(base)}{_on(row.dimension)}",
        no=f"{quoted(row.variant)} is worse than {quoted(base)}{_on(row.dimension)}",
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
    whose = f" of {quoted(about['variant'])}" if about.get("variant") else ""
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


def share_at_most(name: str, counts: Judgments, most: float) -> Condition:
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


def _unknown(name: str, why: str, threshold: float | None = None, **about: Any) -> Condition:
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


def _on(dimension: str) -> str:
    return "" if dimension == OVERALL else f" on {quoted(dimension)}"


# A run's tables held to the conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """All conditions of a run: `better` if all are met, `worse` if one is not."""

    conditions: tuple[Condition, ...]
    level: float
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        outcomes = {condition.outcome for condition in self.conditions}
        if "worse" in outcomes:
            return "worse"
        return "better" if outcomes == {"better"} else OPEN

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "outcome": self.outcome,
            "reasons": [condition.reason for condition in self.conditions],
            "level": self.level,
            "conditions": [condition.json() for condition in self.conditions],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Sequential:
    """What a run that stops once it is decided says of a variant: the outcome, and the difference
    with an interval that holds whenever one looks, at the level of the figure."""

    outcome: Outcome
    figure: Figure
    skipped: int
    """Questions that a failure left out."""

    def at(self, level: float, span: float) -> Figure:
        """Return the difference for a gate of this level; without its interval where that errs more
        often than the gate may."""
        figure = self.figure
        if figure.level < level - 1e-12:
            why = (
                f"the run stops at an error of {1 - figure.level:.3g} and this gate asks for"
                f" {1 - level:.3g}: run it on with a smaller alpha under [stop], or give"
                f" --level {floor(figure.level * 1e4 + 1e-8) / 1e4:g}"
            )
            figure = replace(figure, low=None, high=None, unfit=why)
        if not self.skipped or figure.value is None:
            return figure
        whole, known = figure.n + self.skipped, figure.value * figure.n
        bounds = (known - span * self.skipped) / whole, (known + span * self.skipped) / whole
        return replace(figure, bounds=bounds)


Decisions = Mapping[tuple[str, str, str], Sequential]
"""By variant, baseline and dimension."""


def is_set(value: Any) -> bool:
    """Return whether a flag or condition has a value; 0 is a value like any other."""
    return value is not None and value is not False and value != ()


def gate_scores(
    scores: Scores,
    counts: Judgments,
    request: Conditions,
    decisions: Decisions = MappingProxyType({}),
) -> Gate:
    """Hold samples or answers to the conditions."""
    if not counts.verdicts:
        return _nothing_yet(counts, request)
    table = scores if request.judge is None else of_judge(scores, request.judge)
    spans = {name: high - low for name in request.dimensions for low, high in [_ends(table, name)]}
    if not request.by:
        everything = np.ones(len(table.units), dtype=np.bool_)
        cluster = question_of(table.fields, len(table.units))
        whole = _Part(None, everything, cluster, counts.left > 0)
        is_unscaled = request.min_mean is not None and not table.given_scale
        unscaled = (UNKNOWN_SCALE,) if is_unscaled else ()
        return _gate([*_of_units(table, request, whole)], counts, request, unscaled)
    compared = compare_scores(
        table,
        request.by,
        request.baseline,
        pair_by=request.pair_by or None,
        level=request.level,
    )
    places = layout(table, request.by, request.pair_by or None)
    names = _subjects(places.variants, request.baseline, request.variant, "variant")

    def shared(variant: str, dimension: str) -> Shared:
        return shared_scores(table, places, dimension, variant, compared.baseline)

    if not names:
        return _gate(_alone(compared.baseline, request, "variant"), counts, request)
    duels = [*_duels(compared, shared, request, names, spans, decisions, left=counts.left > 0)]
    conditions = [*_against(compared.baseline, request, duels)]
    for name in names:
        units = places.variant == places.variants.index(name)
        part = _Part(name, units, places.cluster[places.key], counts.left > 0)
        conditions += _of_units(table, request, part)
    notes = () if decisions else _notes(compared, names)
    return _gate(conditions, counts, request, notes)


def gate_votes(
    votes: Votes,
    counts: Judgments,
    request: Conditions,
    decisions: Decisions = MappingProxyType({}),
) -> Gate:
    """Hold the candidates of pairs to the conditions. What is still to come stands among the votes:
    a figure is widened by what is pending of its own candidates."""
    if not counts.verdicts:
        return _nothing_yet(counts, request)
    candidate = request.candidate or request.variant
    if candidate is not None:
        chosen(votes.candidates, candidate, "candidate")
    if request.baseline is None:
        rates = [] if request.min_win_rate is None else [_rate_of_all(votes, counts, request)]
        return _gate(rates, counts, request)
    compared = compare_votes(votes, request.baseline, judge=request.judge, level=request.level)
    names = _subjects(votes.candidates, request.baseline, candidate, "candidate")
    for name in request.dimensions:
        chosen((*votes.marks, OVERALL), name, "criterion")
    if not names:
        return _gate(_alone(compared.baseline, request, "candidate"), counts, request)

    def shared(variant: str, dimension: str) -> Shared:
        return shared_votes(votes, dimension, variant, compared.baseline, request.judge)

    spans = dict.fromkeys(request.dimensions, 1.0)
    duels = [*_duels(compared, shared, request, names, spans, decisions, left=counts.left > 0)]
    conditions = [
        *_against(compared.baseline, request, duels),
        *_rates_against(compared.baseline, request, duels),
    ]
    notes = () if decisions else _notes(compared, names)
    return _gate(conditions, counts, request, notes)


def _gate(
    conditions: list[Condition],
    counts: Judgments,
    request: Conditions,
    notes: tuple[str, ...] = (),
) -> Gate:
    if request.max_failure_rate is not None:
        failures = share_at_most("max_failure_rate", counts, request.max_failure_rate)
        conditions = [*conditions, failures]
    order = list(CONDITIONS)
    conditions = sorted(conditions, key=lambda condition: order.index(condition.name))
    return Gate(conditions=tuple(conditions), level=request.level, notes=notes)


def _notes(compared: Comparison, variants: tuple[str, ...]) -> tuple[str, ...]:
    """Return the notes of a comparison but those only about variants held to nothing."""
    others = {quoted(row.variant) for row in compared.rows if row.variant not in variants}
    names = [quoted(name) for name in variants]
    return tuple(
        note
        for note in compared.notes
        if any(name in note for name in names) or not any(name in note for name in others)
    )


def _nothing_yet(counts: Judgments, request: Conditions) -> Gate:
    why = f"no judgment has a verdict ({counts.failed} failed, {counts.pending} pending)"
    return _gate(_open_all(request, why), counts, request)


def _alone(base: str, request: Conditions, what: str) -> list[Condition]:
    return _open_all(request, f"there is no {what} beside the baseline {quoted(base)}")


def _open_all(request: Conditions, why: str) -> list[Condition]:
    """Return every condition but that on failures, for want of anything to go by."""
    return [
        _unknown(name, why, None if name == "better" else getattr(request, name))
        for name in CONDITIONS
        if name != "max_failure_rate" and is_set(getattr(request, name))
    ]


def _subjects(
    names: tuple[str, ...], baseline: str | None, variant: str | None, what: str
) -> tuple[str, ...]:
    """Return who is held to the conditions: the variant if it is named, else all but the
    baseline."""
    if variant is None:
        return tuple(name for name in names if name != baseline)
    chosen(names, variant, what)
    if variant == baseline:
        raise UsageError(
            f"the {what} {quoted(variant)} is the baseline itself",
            advice=f"Name another one, of: {_listed(names)}.",
        )
    return (variant,)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(quoted(name) for name in names[:10])


@dataclass(frozen=True, slots=True)
class _Duel:
    """A variant against the baseline on one dimension; None where they never met."""

    variant: str
    dimension: str
    row: Row | None
    difference: Figure

    @property
    def where(self) -> dict[str, Any]:
        return {"variant": self.variant, "dimension": self.dimension}


def _duels(
    compared: Comparison,
    shared: Callable[[str, str], Shared],
    request: Conditions,
    names: tuple[str, ...],
    spans: Mapping[str, float],
    decisions: Decisions,
    *,
    left: bool,
) -> Iterator[_Duel]:
    """Yield what is known of each variant and dimension; a sequential decision beats a fixed
    test."""
    for variant, dimension in product(names, request.dimensions):
        row = compared.row(variant, dimension)
        decided = decisions.get((variant, compared.baseline, dimension))
        figure = NOTHING
        if row is not None and decided:
            row = replace(row, outcome=decided.outcome)
            figure = decided.at(request.level, spans[dimension])
        elif row is not None:
            figure = _difference(shared(variant, dimension), request.level)
        yield _Duel(variant, dimension, row, replace(figure, left=left))


def _against(base: str, request: Conditions, duels: list[_Duel]) -> Iterator[Condition]:
    """Yield the conditions that compare with the baseline."""
    for name in AGAINST:
        margin = None if name == "better" else request.no_worse_than
        if not is_set(getattr(request, name)):
            continue
        for duel in duels:
            if duel.row is None:
                yield _unknown(name, _never_met(duel, base), margin, **duel.where)
            elif margin is None:
                yield is_better(duel.row, duel.difference, base)
            else:
                yield no_worse_than(duel.difference, margin, duel.variant, base, duel.dimension)


def _rates_against(base: str, request: Conditions, duels: list[_Duel]) -> Iterator[Condition]:
    """Yield the conditions on win rates in direct comparisons with the baseline."""
    least = request.min_win_rate
    for duel in duels if least is not None else ():
        if duel.row is None:
            yield _unknown("min_win_rate", _never_met(duel, base), least, **duel.where)
            continue
        what = f"the win rate of {quoted(duel.variant)} against {quoted(base)}{_on(duel.dimension)}"
        assert least is not None
        yield at_least("min_win_rate", duel.difference.as_rate, least, what, **duel.where)


def _never_met(duel: _Duel, base: str) -> str:
    return f"{quoted(duel.variant)} was never compared with {quoted(base)}"


def _rate_of_all(votes: Votes, counts: Judgments, request: Conditions) -> Condition:
    """Return the condition on the win rate of a candidate against all others."""
    name, least = request.candidate or request.variant, request.min_win_rate
    if name is None:
        raise UsageError(
            "--min-win-rate needs to know whose",
            advice=f"Name it: --candidate C, of: {_listed(votes.candidates)}.",
        )
    if request.dimensions != (OVERALL,):
        raise UsageError(
            "a win rate on one criterion is against a baseline", advice="Add --baseline C."
        )
    place, _ = chosen(votes.candidates, name, "candidate")
    rows = (votes.first == place) != (votes.second == place)
    if request.judge is not None:
        rows &= votes.judge == judge_named(votes.judges, request.judge)
    won = np.where(votes.second == place, votes.preference, 1 - votes.preference)[rows]
    _, begin, pair = np.unique(votes.pair[rows], return_index=True, return_inverse=True)
    topic = votes.topic[rows][begin]
    figure = _mean(won, pair, topic, np.bincount(pair), (0.0, 1.0), request.level)
    figure = replace(figure, counted="pairs", left=counts.left > 0)
    what, about = f"the win rate of {quoted(name)}", {"variant": name, "dimension": OVERALL}
    assert least is not None
    return at_least("min_win_rate", figure, least, what, **about)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some units of a table: those of a variant, or all; and the questions of all units."""

    variant: str | None
    units: Bools
    cluster: Ints
    left: bool
    """Whether the run leaves units on purpose."""


def _of_units(scores: Scores, request: Conditions, part: _Part) -> Iterator[Condition]:
    """Yield the conditions on what some units have, whatever the others have."""
    whose = f" of {quoted(part.variant)}" if part.variant is not None else ""
    rows = part.units[scores.unit]
    judged = np.bincount(scores.unit, minlength=len(scores.units))
    due = np.maximum(judged, np.maximum(scores.planned, 1))[part.units]
    if request.min_mean is not None:
        unit = (np.cumsum(part.units) - 1)[scores.unit[rows]]
        for name in request.dimensions:
            values, ends = _values(scores, name)[rows], _ends(scores, name)
            figure = _mean(values, unit, part.cluster[part.units], due, ends, request.level)
            about = {"variant": part.variant, "dimension": name}
            figure, what = replace(figure, left=part.left), f"the mean{whose}{_on(name)}"
            yield at_least("min_mean", figure, request.min_mean, what, **about)
    if request.max_critical_fails is not None:
        fails = int(scores.critical[rows].sum())
        missing = int(due.sum()) - int((~scores.failed[rows]).sum())
        most, name = request.max_critical_fails, "max_critical_fails"
        yield count_at_most(name, fails, missing, most, left=part.left, variant=part.variant)


def _mean(
    values: Floats,
    unit: Ints,
    cluster: Ints,
    due: Ints,
    ends: tuple[float, float],
    level: float,
) -> Figure:
    """Return the mean of units, each the mean of its judgments (nan: failed), with what those that
    are due and missing could make of it."""
    scored = ~np.isnan(values)
    count = np.bincount(unit[scored], minlength=due.size)
    sums = np.bincount(unit[scored], values[scored], due.size).astype(np.float64)
    judged = count > 0
    figure = mean_figure(sums[judged] / count[judged], cluster[judged], ends, level)
    if not due.size:
        return figure
    least, most = (mean_of_questions(filled(sums, count, due, end), cluster) for end in ends)
    return replace(figure, bounds=(least, most))


def _values(scores: Scores, name: str) -> Floats:
    return scores.overall if name == OVERALL else scores.values[:, scores.dimensions.index(name)]


def _ends(scores: Scores, name: str) -> tuple[float, float]:
    """Return the ends of the scale of a dimension; raise UsageError for a name that nobody has."""
    place, _ = chosen((*scores.dimensions, OVERALL), name, "dimension")
    if place == len(scores.dimensions):
        return 0.0, 1.0
    return float(scores.low[place]), float(scores.high[place])
