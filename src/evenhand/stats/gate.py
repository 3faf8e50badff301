"""May this ship? The observations of a run held to the conditions of a gate.

All conditions must be met; one that is not met is enough to fail; else there is not enough
evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import floor
from types import MappingProxyType
from typing import Any

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.observation import CRITICAL_FAIL, OVERALL
from evenhand.stats.caveats import UNKNOWN_SCALE
from evenhand.stats.compare import bounds, cells_of, compare, shared
from evenhand.stats.comparison import Comparison, Row
from evenhand.stats.conditions import (
    AGAINST,
    CONDITIONS,
    NOTHING,
    OPEN,
    Condition,
    Conditions,
    Figure,
    Judgments,
    at_least,
    count_at_most,
    difference_figure,
    is_better,
    mean_figure,
    no_worse_than,
    on_dimension,
    share_at_most,
    unknown,
)
from evenhand.stats.estimate import mean_of_questions
from evenhand.stats.layout import lay_out
from evenhand.stats.observations import Bools, Ints, Observations, place_of
from evenhand.stats.outcome import Outcome
from evenhand.stats.variants import Measure, Variants, candidate_share, unit_measure


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
    """The result for one variant of a run that stops once it is decided: the outcome, and the
    difference with an interval that holds whenever one looks, at the level of the figure."""

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


def hold_to(
    table: Observations,
    counts: Judgments,
    request: Conditions,
    decisions: Decisions = MappingProxyType({}),
) -> Gate:
    """Hold the variants of a run, its candidates, or all of it to the conditions. A figure is
    widened by what is missing of its own units."""
    if not counts.verdicts:
        return _nothing_yet(counts, request)
    if request.judge is not None:
        table = table.of_judge(request.judge)
    names = (*table.dimensions, OVERALL)
    for name in request.dimensions:
        place_of(names, name, "criterion" if table.is_pairs else "dimension")
    is_left = counts.left > 0
    if request.by or (table.is_pairs and request.baseline is not None):
        conditions, notes = _of_variants(table, request, decisions, is_left=is_left)
        return _gate(conditions, counts, request, notes)
    if table.is_pairs:
        return _gate([*_of_candidate(table, request, is_left=is_left)], counts, request)
    whole = _Part(None, np.ones(len(table.units), np.bool_), table.question, is_left)
    is_known = all(table.scale(name).is_known for name in request.dimensions)
    notes = (UNKNOWN_SCALE,) if request.min_mean is not None and not is_known else ()
    return _gate([*_of_units(table, request, whole)], counts, request, notes)


def _of_variants(
    table: Observations, request: Conditions, decisions: Decisions, *, is_left: bool
) -> tuple[list[Condition], tuple[str, ...]]:
    """Return the conditions on every variant beside the baseline, and the notes of their
    comparison."""
    variants = lay_out(table, request.by, request.baseline, request.pair_by)
    compared = compare(variants, request.level)
    is_duel = variants.is_duel
    everybody = table.candidates if is_duel else variants.names
    wanted = (request.candidate if is_duel else None) or request.variant
    what = "candidate" if is_duel else "variant"
    names = _subjects(everybody, request.baseline, wanted, what)
    if not names:
        return _alone(compared.baseline, request, what), ()
    duels = [*_duels(compared, variants, request, names, decisions, left=is_left)]
    conditions = [*_against(compared.baseline, request, duels)]
    if is_duel:
        conditions += _rates_against(compared.baseline, request, duels)
    else:
        for name in names:
            units = variants.variant == variants.names.index(name)
            part = _Part(name, units, variants.cluster[variants.key], is_left)
            conditions += _of_units(table, request, part)
    return conditions, () if decisions else _notes(compared, names)


def _of_candidate(
    table: Observations, request: Conditions, *, is_left: bool
) -> Iterator[Condition]:
    """Yield the condition on the win rate of a candidate against all others."""
    name, least = request.candidate or request.variant, request.min_win_rate
    if name is not None:
        place_of(table.candidates, name, "candidate")
    if least is None:
        return
    if name is None:
        raise UsageError(
            "--min-win-rate needs to know whose",
            advice=f"Name it: --candidate C, of: {_listed(table.candidates)}.",
        )
    if request.dimensions != (OVERALL,):
        raise UsageError(
            "a win rate on one criterion is against a baseline", advice="Add --baseline C."
        )
    share = candidate_share(table, name)
    units = ~np.isnan(share.least)
    figure = _mean(share.of_entries(units), table.question[units], request.level)
    figure = replace(figure, counted="pairs", left=is_left)
    about = {"variant": name, "dimension": OVERALL}
    what = f"the win rate of {quoted(name)}{_weighing(figure)}"
    yield at_least("min_win_rate", figure, least, what, **about)


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
        unknown(name, why, None if name == "better" else getattr(request, name))
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
    place_of(names, variant, what)
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
    variants: Variants,
    request: Conditions,
    names: tuple[str, ...],
    decisions: Decisions,
    *,
    left: bool,
) -> Iterator[_Duel]:
    """Yield what is known of each variant and dimension; a sequential decision beats a fixed
    test."""
    measures = {measure.name: measure for measure in variants.measures}
    cells = {name: cells_of(variants, measures[name]) for name in request.dimensions}
    for variant, dimension in product(names, request.dimensions):
        row = compared.row(variant, dimension)
        decided = decisions.get((variant, compared.baseline, dimension))
        figure, measure = NOTHING, measures[dimension]
        if row is not None and decided:
            row = replace(row, outcome=decided.outcome)
            figure = decided.at(request.level, measure.scale.high - measure.scale.low)
        elif row is not None:
            place = variants.names.index(variant)
            paired = shared(variants, cells[dimension], place)
            missing = bounds(variants, cells[dimension], place, by_question=True)
            figure = replace(difference_figure(paired, request.level), bounds=missing)
        yield _Duel(variant, dimension, row, replace(figure, left=left))


def _against(base: str, request: Conditions, duels: list[_Duel]) -> Iterator[Condition]:
    """Yield the conditions that compare with the baseline."""
    for name in AGAINST:
        margin = None if name == "better" else request.no_worse_than
        if not is_set(getattr(request, name)):
            continue
        for duel in duels:
            if duel.row is None:
                yield unknown(name, _never_met(duel, base), margin, **duel.where)
            elif margin is None:
                yield is_better(duel.row, duel.difference, base)
            else:
                yield no_worse_than(duel.difference, margin, duel.variant, base, duel.dimension)


def _rates_against(base: str, request: Conditions, duels: list[_Duel]) -> Iterator[Condition]:
    """Yield the conditions on win rates in direct comparisons with the baseline."""
    least = request.min_win_rate
    for duel in duels if least is not None else ():
        if duel.row is None:
            yield unknown("min_win_rate", _never_met(duel, base), least, **duel.where)
            continue
        on = on_dimension(duel.dimension)
        whose = f"{quoted(duel.variant)} against {quoted(base)}"
        what = f"the win rate of {whose}{on}{_weighing(duel.difference)}"
        assert least is not None
        yield at_least("min_win_rate", duel.difference.as_rate, least, what, **duel.where)


def _weighing(figure: Figure) -> str:
    """Return how pairs weigh in a gate where some topics have several: not as in a win rate."""
    return "" if figure.clusters == figure.n else ", topics weighing alike,"


def _never_met(duel: _Duel, base: str) -> str:
    return f"{quoted(duel.variant)} was never compared with {quoted(base)}"


@dataclass(frozen=True, slots=True)
class _Part:
    """Some units of a table: those of a variant, or all; and the questions of all units."""

    variant: str | None
    units: Bools
    cluster: Ints
    left: bool
    """True if the run leaves units on purpose."""


def _of_units(table: Observations, request: Conditions, part: _Part) -> Iterator[Condition]:
    """Yield the conditions on what some units have, whatever the others have."""
    whose = f" of {quoted(part.variant)}" if part.variant is not None else ""
    if request.min_mean is not None:
        for name in request.dimensions:
            measure = unit_measure(table, name).of_entries(part.units)
            figure = _mean(measure, part.cluster[part.units], request.level)
            about = {"variant": part.variant, "dimension": name}
            figure, what = replace(figure, left=part.left), f"the mean{whose}{on_dimension(name)}"
            yield at_least("min_mean", figure, request.min_mean, what, **about)
    if request.max_critical_fails is not None:
        rows = part.units[table.unit]
        fails = int(np.nansum(table.column(CRITICAL_FAIL)[rows]))
        due = int(table.due()[part.units].sum())
        missing = due - int((~table.failed[rows]).sum())
        most, name = request.max_critical_fails, "max_critical_fails"
        yield count_at_most(name, fails, missing, most, left=part.left, variant=part.variant)


def _mean(measure: Measure, cluster: Ints, level: float) -> Figure:
    """Return the mean of units, with what the judgments that are missing could make of it."""
    judged = ~np.isnan(measure.values)
    figure = mean_figure(measure.values[judged], cluster[judged], measure.scale.ends, level)
    is_due = ~np.isnan(measure.least)
    if not is_due.any():
        return figure
    least, most = (
        mean_of_questions(each[is_due], cluster[is_due]) for each in (measure.least, measure.most)
    )
    return replace(figure, bounds=(least, most))
