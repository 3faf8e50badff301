"""May this ship? A run's tables held to the conditions of a gate.

All conditions must be met; one that is not met is enough to fail; else there is not enough
evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import floor
from types import MappingProxyType
from typing import Any

import numpy as np

from evenhand.errors import UsageError, quoted
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
from evenhand.stats.comparison.variants import Layout, chosen, judge_named, layout
from evenhand.stats.decision.conditions import (
    OPEN,
    Condition,
    Judgments,
    at_least,
    count_at_most,
    is_better,
    no_worse_than,
    share_at_most,
    unknown,
)
from evenhand.stats.decision.decision import Outcome
from evenhand.stats.decision.figure import NOTHING, Figure, difference, mean_figure, rate, widened
from evenhand.stats.questions import question_of
from evenhand.stats.tables import Bools, Floats, Ints, Scores, Votes

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

    def fits(self, level: float) -> bool:
        """Whether it errs no more often than a gate of this level may."""
        return self.figure.level >= level - 1e-12

    def unfit(self, level: float) -> Figure:
        """The difference without its interval, which is none of this level."""
        error = 1 - self.figure.level
        why = (
            f"the run stops at an error of {error:.3g} and this gate asks for {1 - level:.3g}: run"
            f" it on with a smaller alpha under [stop], or give"
            f" --level {floor(self.figure.level * 1e4 + 1e-8) / 1e4:g}"
        )
        return replace(self.figure, low=None, high=None, unfit=why)


Decisions = Mapping[tuple[str, str, str], Sequential]
"""By variant, baseline and dimension."""


def is_set(value: Any) -> bool:
    """Whether a flag or condition has a value; 0 is a value like any other."""
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
    for name in request.dimensions:
        _dimension(table, name)
    if not request.by:
        everything = np.ones(len(table.units), dtype=np.bool_)
        whole = _Part(
            None, everything, question_of(table.fields, len(table.units)), counts.left > 0
        )
        conditions = list(_of_units(table, request, whole))
        unscaled = request.min_mean is not None and not table.given_scale
        notes = (UNKNOWN_SCALE,) if unscaled else ()
        return _gate([*conditions, *_failures(counts, request)], request, notes)
    compared = compare_scores(
        table,
        request.by,
        request.baseline,
        pair_by=request.pair_by or None,
        level=request.level,
    )
    places = layout(table, request.by, request.pair_by or None)
    names = _subjects(places.variants, request.baseline, request.variant, "variant")
    spans = {name: high - low for name in request.dimensions for low, high in [_ends(table, name)]}

    def shared(variant: str, dimension: str) -> Shared:
        return shared_scores(table, places, dimension, variant, compared.baseline)

    duels = [*_duels(compared, shared, request, names, spans, decisions, left=counts.left > 0)]
    conditions = [*_against(compared.baseline, request, duels)]
    if not names:
        conditions = _alone(compared.baseline, request, "variant")
    for name in names:
        conditions += _of_units(table, request, _part(places, name, left=counts.left > 0))
    caveats = () if decisions else _notes(compared, names)
    return _gate([*conditions, *_failures(counts, request)], request, caveats)


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
    conditions: list[Condition] = []
    notes: tuple[str, ...] = ()
    if request.baseline is not None:
        compared = compare_votes(votes, request.baseline, judge=request.judge, level=request.level)
        names = _subjects(votes.candidates, request.baseline, candidate, "candidate")
        criteria = (*votes.marks, OVERALL)
        for name in request.dimensions:
            chosen(criteria, name, "criterion")
        spans = dict.fromkeys(request.dimensions, 1.0)
        left = counts.left > 0

        def shared(variant: str, dimension: str) -> Shared:
            return shared_votes(votes, dimension, variant, compared.baseline, request.judge)

        duels = [*_duels(compared, shared, request, names, spans, decisions, left=left)]
        notes = () if decisions else _notes(compared, names)
        conditions += _against(compared.baseline, request, duels)
        conditions += _rates_against(compared.baseline, request, duels)
        if not names:
            conditions = _alone(compared.baseline, request, "candidate")
    elif request.min_win_rate is not None:
        if candidate is None:
            raise UsageError(
                "--min-win-rate needs to know whose",
                advice=f"Name it: --candidate C, of: {_listed(votes.candidates)}.",
            )
        if request.dimensions != (OVERALL,):
            raise UsageError(
                "a win rate on one criterion is against a baseline",
                advice="Add --baseline C.",
            )
        conditions.append(_rate_of(votes, candidate, counts, request))
    return _gate([*conditions, *_failures(counts, request)], request, notes)


def _notes(compared: Comparison, variants: tuple[str, ...]) -> tuple[str, ...]:
    """The notes of a comparison that are not only about variants which are not held to anything."""
    others = {quoted(row.variant) for row in compared.rows if row.variant not in variants}
    names = [quoted(name) for name in variants]
    return tuple(
        note
        for note in compared.notes
        if any(name in note for name in names) or not any(name in note for name in others)
    )


def _nothing_yet(counts: Judgments, request: Conditions) -> Gate:
    """Of a run without a verdict only its failures can be told."""
    why = f"no judgment has a verdict ({counts.failed} failed, {counts.pending} pending)"
    return _gate([*_open_all(request, why), *_failures(counts, request)], request, ())


def _alone(base: str, request: Conditions, what: str) -> list[Condition]:
    """Where there is nobody to hold to the conditions."""
    return _open_all(request, f"there is no {what} beside the baseline {quoted(base)}")


def _open_all(request: Conditions, why: str) -> list[Condition]:
    """Every condition but that on failures, for want of anything to go by."""
    return [
        unknown(name, why, None if name == "better" else getattr(request, name))
        for name in CONDITIONS
        if name != "max_failure_rate" and is_set(getattr(request, name))
    ]


def _failures(counts: Judgments, request: Conditions) -> Iterator[Condition]:
    if request.max_failure_rate is not None:
        yield share_at_most("max_failure_rate", counts, request.max_failure_rate)


def _gate(conditions: list[Condition], request: Conditions, notes: tuple[str, ...]) -> Gate:
    order = list(CONDITIONS)
    conditions.sort(key=lambda condition: order.index(condition.name))
    return Gate(conditions=tuple(conditions), level=request.level, notes=notes)


def _subjects(
    names: tuple[str, ...], baseline: str | None, variant: str | None, what: str
) -> tuple[str, ...]:
    """Who is held to the conditions: the variant if it is named, else all but the baseline."""
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
    """What is known of each variant and dimension; a sequential decision beats a fixed test."""
    for variant, dimension in product(names, request.dimensions):
        row = compared.row(variant, dimension)
        decided = decisions.get((variant, compared.baseline, dimension))
        if row is None:
            yield _Duel(variant, dimension, None, NOTHING)
            continue
        span = spans[dimension]
        if decided:
            row = replace(row, outcome=decided.outcome)
            fits = decided.fits(request.level)
            figure = decided.figure if fits else decided.unfit(request.level)
            figure = widened(figure, figure.n, decided.skipped, (-span, span))
        else:
            figure = difference(shared(variant, dimension), request.level)
        yield _Duel(variant, dimension, row, replace(figure, left=left))


def _against(base: str, request: Conditions, duels: list[_Duel]) -> Iterator[Condition]:
    """The conditions that compare with the baseline."""
    for name in AGAINST:
        margin = None if name == "better" else request.no_worse_than
        if not is_set(getattr(request, name)):
            continue
        for duel in duels:
            if duel.row is None:
                yield unknown(name, _never(duel, base), margin, **duel.where)
            elif margin is None:
                yield is_better(duel.row, duel.difference, base)
            else:
                yield no_worse_than(duel.difference, margin, duel.variant, base, duel.dimension)


def _never(duel: _Duel, base: str) -> str:
    return f"{quoted(duel.variant)} was never compared with {quoted(base)}"


@dataclass(frozen=True, slots=True)
class _Part:
    """Some units of a table: those of a variant, or all; and the clusters of all units."""

    variant: str | None
    units: Bools
    cluster: Ints
    left: bool
    """Whether the run leaves units on purpose."""


def _part(places: Layout, name: str, *, left: bool) -> _Part:
    units = places.variant == places.variants.index(name)
    return _Part(name, units, places.cluster[places.key], left)


def _of_units(scores: Scores, request: Conditions, part: _Part) -> Iterator[Condition]:
    """The conditions on what some units have, whatever the others have."""
    whose = f" of {quoted(part.variant)}" if part.variant is not None else ""
    if request.min_mean is not None:
        for name in request.dimensions:
            values, ends = _dimension(scores, name)
            what = f"the mean{whose}" + ("" if name == OVERALL else f" on {quoted(name)}")
            figure = _mean(scores, part, values, ends, request.level)
            about = {"variant": part.variant, "dimension": name}
            yield at_least("min_mean", figure, request.min_mean, what, **about)
    if request.max_critical_fails is not None:
        rows = part.units[scores.unit]
        fails = int(scores.critical[rows].sum())
        missing = int(_due(scores)[part.units].sum()) - int((~scores.failed[rows]).sum())
        most, name = request.max_critical_fails, "max_critical_fails"
        yield count_at_most(name, fails, missing, most, left=part.left, variant=part.variant)


def _due(scores: Scores) -> Ints:
    """How many judgments each unit is to have."""
    judged = np.bincount(scores.unit, minlength=len(scores.units))
    return np.maximum(judged, np.maximum(scores.planned, 1))


def _ends(scores: Scores, name: str) -> tuple[float, float]:
    return _dimension(scores, name)[1]


def _dimension(scores: Scores, name: str) -> tuple[Floats, tuple[float, float]]:
    """The scores on a dimension, and the ends of its scale; raises UsageError."""
    place, _ = chosen((*scores.dimensions, OVERALL), name, "dimension")
    if place == len(scores.dimensions):
        return scores.overall, (0.0, 1.0)
    return scores.values[:, place], (float(scores.low[place]), float(scores.high[place]))


def _mean(
    scores: Scores, part: _Part, values: Floats, ends: tuple[float, float], level: float
) -> Figure:
    """The mean of some units, each the mean of its judgments."""
    scored, number = ~np.isnan(values), len(scores.units)
    count = np.bincount(scores.unit[scored], minlength=number)
    sums = np.bincount(scores.unit[scored], values[scored], number).astype(np.float64)
    judged = part.units & (count > 0)
    figure = mean_figure(sums[judged] / count[judged], part.cluster[judged], ends, level)
    due = _due(scores)
    least, most = (filled(sums, count, due, end)[part.units] for end in ends)
    bounds = (float(least.mean()), float(most.mean())) if least.size else None
    return replace(figure, bounds=bounds, left=part.left)


def _rates_against(base: str, request: Conditions, duels: list[_Duel]) -> Iterator[Condition]:
    """Win rates in direct comparisons with the baseline."""
    least = request.min_win_rate
    if least is None:
        return
    for duel in duels:
        if duel.row is None:
            yield unknown("min_win_rate", _never(duel, base), least, **duel.where)
            continue
        what = f"the win rate of {quoted(duel.variant)} against {quoted(base)}"
        on = "" if duel.dimension == OVERALL else f" on {quoted(duel.dimension)}"
        yield at_least("min_win_rate", rate(duel.difference), least, what + on, **duel.where)


def _rate_of(votes: Votes, name: str, counts: Judgments, request: Conditions) -> Condition:
    """The win rate against all others, as the leaderboard has it: of pairs, each the mean of its
    votes."""
    place, _ = chosen(votes.candidates, name, "candidate")
    rows = (votes.first == place) != (votes.second == place)
    if request.judge is not None:
        rows &= votes.judge == judge_named(votes.judges, request.judge)
    won = np.where(votes.second == place, votes.preference, 1 - votes.preference)[rows]
    _, begin, pair = np.unique(votes.pair[rows], return_index=True, return_inverse=True)
    decided, due = ~np.isnan(won), np.bincount(pair)
    figure, ends = NOTHING, (0.0, 1.0)
    if decided.any():
        count = np.bincount(pair[decided], minlength=begin.size)
        points = np.bincount(pair[decided], won[decided], begin.size).astype(np.float64)
        judged, topic = count > 0, votes.topic[rows][begin]
        figure = mean_figure(points[judged] / count[judged], topic[judged], ends, request.level)
        least, most = (float(filled(points, count, due, end).mean()) for end in ends)
        figure = replace(figure, bounds=(least, most), counted="pairs")
    assert request.min_win_rate is not None
    figure = replace(figure, left=counts.left > 0)
    about = {"variant": name, "dimension": OVERALL}
    what = f"the win rate of {quoted(name)}"
    return at_least("min_win_rate", figure, request.min_win_rate, what, **about)
