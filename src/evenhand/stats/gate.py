"""May this ship? The observations of a run held to the conditions of a gate.

All conditions must be met; one that is not met is enough to fail; else there is not enough
evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import floor
from types import MappingProxyType
from typing import Any

import numpy as np

from evenhand.errors import UsageError
from evenhand.observation import CRITICAL_FAIL, OVERALL, PASSED
from evenhand.stats.cases import failing_units, falling_cases
from evenhand.stats.compare import bounds, cells_of, compare, pair_cells
from evenhand.stats.comparison import Outcome, Row
from evenhand.stats.conditions import (
    AGAINST,
    CONDITIONS,
    INCREASES,
    OPEN,
    Condition,
    Conditions,
    Figure,
    JudgmentCounts,
    at_least,
    count_at_most,
    difference_figure,
    in_points,
    increase_at_most,
    is_better,
    mean_figure,
    no_worse_than,
    none_of,
    share_at_most,
    subject,
    unknown_condition,
)
from evenhand.stats.estimate import mean_of_questions
from evenhand.stats.expense import Expense
from evenhand.stats.layout import conflict_notes, lay_out
from evenhand.stats.observations import Bools, Ints, Observations, place_of, there_are
from evenhand.stats.stability import judge_noise
from evenhand.stats.variants import Measure, Variants, candidate_share, unit_measure
from evenhand.words import Code, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """All conditions of a run: `better` if all are met, `worse` if one is not."""

    conditions: tuple[Condition, ...]
    level: float
    notes: tuple[str, ...] = ()
    trust: tuple[Sentence, ...] = ()
    """How far the judges themselves may be trusted."""

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
            lower = floor(figure.level * 1e4 + 1e-8) / 1e4
            errors = {"error": 1 - figure.level, "asked": 1 - level}
            why = Sentence("gate.unfit", **errors, level=Code(f"--level {lower:g}"))
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
    counts: JudgmentCounts,
    request: Conditions,
    decisions: Decisions = MappingProxyType({}),
    expenses: Sequence[Expense] = (),
) -> Gate:
    """Hold the variants of a run, its candidates, or all of it to the conditions. A figure is
    widened by what is missing of its own units; `expenses` are what the answers took."""
    if not counts.verdicts:
        return _nothing_yet(counts, request)
    if request.judge is not None:
        table = table.of_judge(request.judge)
    names = (*table.dimensions, OVERALL)
    for name in request.dimensions:
        place_of(names, name, "criterion" if table.is_pairs else "dimension")
    if (request.every or request.min_pass_rate is not None) and PASSED not in table.measures:
        raise UsageError(Sentence("gate.no_pass"))
    is_left, lost = counts.left > 0, sum(counts.unanswered.values())
    if request.by or (table.is_pairs and request.baseline is not None):
        conditions, notes = _of_variants(
            table, request, decisions, counts.unanswered, is_left=is_left
        )
        conditions += _of_expenses(request, expenses)
        return _gate(conditions, counts, request, notes)
    if table.is_pairs:
        return _gate([*_of_candidate(table, request, is_left=is_left)], counts, request)
    units = np.ones(len(table.units), np.bool_)
    is_known = all(table.scale(name).is_known for name in request.dimensions)
    says_unknown = request.min_mean is not None and not is_known
    notes = (Sentence("notes.unknown_scale"),) if says_unknown else ()
    return _gate(
        [*_of_units(table, request, units, table.question, is_left, lost=lost)],
        counts,
        request,
        notes,
    )


def _of_variants(
    table: Observations,
    request: Conditions,
    decisions: Decisions,
    unanswered: Mapping[str, int],
    *,
    is_left: bool,
) -> tuple[list[Condition], tuple[str, ...]]:
    """Return the conditions on every variant beside the baseline, and the notes of their
    comparison. A sequential decision beats a fixed test."""
    variants = lay_out(table, request.by, request.baseline, request.pair_by)
    compared = compare(variants, request.level)
    is_duel = variants.is_duel
    what = "candidate" if is_duel else "variant"
    everybody = table.candidates if is_duel else variants.names
    wanted = (request.candidate if is_duel else None) or request.variant
    names = _subjects(everybody, request.baseline, wanted, what)
    if not names:
        return _open_all(request, Sentence(f"gate.no_{what}", baseline=compared.baseline)), ()
    conditions: list[Condition] = []
    for name, dimension in product(names, request.dimensions):
        row = compared.row(name, dimension)
        if row is None:
            conditions += _never_met(request, name, compared.baseline, dimension)
            continue
        decided = decisions.get((name, compared.baseline, dimension))
        figure = _difference(variants, name, dimension, request.level, decided)
        if decided:
            row = replace(row, outcome=decided.outcome)
        figure = replace(figure, left=is_left, points=request.points(dimension))
        if is_duel and not decided:
            figure = replace(figure, counted="pairs")
        figure = figure.as_rate if is_duel else figure
        conditions += _against(request, row, figure, compared.baseline, is_duel=is_duel)
        if request.no_case_worse_than is not None:
            conditions.append(_no_case_worse(table, request, variants, row, left=is_left))
    for name in names if not is_duel else ():
        units = variants.variant == variants.names.index(name)
        cluster = variants.cluster[variants.key]
        lost = unanswered.get(name, 0)
        conditions += _of_units(table, request, units, cluster, is_left, name, lost)
    notes = () if decisions else compared.notes
    if request.no_case_worse_than is not None and judge_noise(table, table.main) is None:
        notes = (Sentence("notes.judged_once"), *notes)
    if is_duel and wanted and notes:
        notes = _notes_between(table, notes, {wanted, compared.baseline})
    return conditions, notes


def _of_expenses(request: Conditions, expenses: Sequence[Expense]) -> Iterator[Condition]:
    """Yield the conditions on what the answers of each variant took."""
    wanted = request.candidate or request.variant
    for name, measure in INCREASES.items():
        most = getattr(request, name)
        if most is None:
            continue
        found = [each for each in expenses if each.measure == measure and each.questions]
        if not found:
            raise UsageError(Sentence("gate.no_expenses"))
        for each in found:
            if wanted in (None, each.variant):
                yield increase_at_most(name, each, most, request.baseline or "")


def _notes_between(table: Observations, notes: tuple[str, ...], names: set[str]) -> tuple[str, ...]:
    """Return the notes of a comparison, with the conflicts between these two candidates alone."""
    places = [table.candidates.index(name) for name in names]
    between = np.isin(table.subject, places) & np.isin(table.opponent, places)
    units = between & (table.subject != table.opponent)
    others = [note for note in notes if getattr(note, "key", "") != "notes.conflicts"]
    return (*conflict_notes(table, units), *others)


def _difference(
    variants: Variants, name: str, dimension: str, level: float, decided: Sequential | None
) -> Figure:
    """Return the difference of a variant to the baseline, with what missing judgments could make of
    it."""
    measure = next(each for each in variants.measures if each.name == dimension)
    if decided:
        return decided.at(level, measure.scale.high - measure.scale.low)
    cells, place = cells_of(variants, measure), variants.names.index(name)
    missing = bounds(variants, cells, place, by_question=True)
    return replace(difference_figure(pair_cells(variants, cells, place), level), bounds=missing)


def _against(
    request: Conditions, row: Row, figure: Figure, base: str, *, is_duel: bool
) -> Iterator[Condition]:
    """Yield the conditions that compare a variant with the baseline."""
    if request.better:
        yield is_better(row, figure, base, is_duel=is_duel)
    if request.no_worse_than is not None:
        margin, names = request.no_worse_than, (row.variant, base, row.dimension)
        condition = no_worse_than(figure, margin, *names, is_duel=is_duel)
        least = -2 * margin if is_duel else -margin
        if condition.outcome == OPEN and row.low is not None and row.low >= least:
            reason = Sentence("gate.both", first=condition.reason, second=Sentence("gate.wider"))
            condition = replace(condition, reason=reason)
        yield condition
    if is_duel and request.min_win_rate is not None:
        who = subject(row.variant, row.dimension, base)
        about = {"variant": row.variant, "dimension": row.dimension}
        yield at_least("min_win_rate", figure, request.min_win_rate, who, **about)


def _never_met(request: Conditions, variant: str, base: str, dimension: str) -> Iterator[Condition]:
    why = Sentence("gate.never_compared", variant=variant, baseline=base)
    for name in (*AGAINST, "min_win_rate"):
        if is_set(value := getattr(request, name)):
            about = {"variant": variant, "dimension": dimension}
            yield unknown_condition(name, why, _threshold(value), **about)


def _threshold(value: float | None) -> float | None:
    """Return the number that a condition names, if it names one."""
    return None if isinstance(value, bool) else value


def _no_case_worse(
    table: Observations, request: Conditions, variants: Variants, row: Row, *, left: bool
) -> Condition:
    """Return the condition that no case falls by more than a margin on a dimension, or from pass to
    fail."""
    name, margin = "no_case_worse_than", request.no_case_worse_than
    assert margin is not None
    cases = falling_cases(table, variants, row, margin, request.level)
    if not cases.of:
        why, about = Sentence("gate.nothing_judged"), {"dimension": row.dimension}
        return unknown_condition(name, why, margin, variant=row.variant, **about)
    told = in_points(margin, request.points(row.dimension))
    return none_of(
        name,
        cases,
        subject(row.variant, row.dimension),
        left=left,
        values={"baseline": variants.baseline, "margin": told},
        variant=row.variant,
        dimension=row.dimension,
        threshold=margin,
    )


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
        raise UsageError(Sentence("gate.whose_rate"), advice=there_are(table.candidates))
    if request.dimensions != (OVERALL,):
        raise UsageError(Sentence("gate.criterion_without_baseline"))
    share = candidate_share(table, name)
    units = ~np.isnan(share.least)
    figure = _mean(share.of_entries(units), table.question[units], request.level)
    figure = replace(figure, counted="pairs", left=is_left)
    about = {"variant": name, "dimension": OVERALL}
    yield at_least("min_win_rate", figure, least, subject(name), **about)


def _gate(
    conditions: list[Condition],
    counts: JudgmentCounts,
    request: Conditions,
    notes: tuple[str, ...] = (),
) -> Gate:
    if request.max_failure_rate is not None:
        failures = share_at_most("max_failure_rate", counts, request.max_failure_rate)
        conditions = [*conditions, failures]
    order = list(CONDITIONS)
    conditions = sorted(conditions, key=lambda condition: order.index(condition.name))
    return Gate(conditions=tuple(conditions), level=request.level, notes=notes)


def _nothing_yet(counts: JudgmentCounts, request: Conditions) -> Gate:
    why = Sentence("gate.no_verdict", failed=counts.failed, pending=counts.pending)
    return _gate(_open_all(request, why), counts, request)


def _open_all(request: Conditions, why: Sentence) -> list[Condition]:
    """Return every condition but that on failures, for want of anything to go by."""
    return [
        unknown_condition(name, why, _threshold(getattr(request, name)))
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
        raise UsageError(Sentence("gate.is_baseline", variant=variant), advice=there_are(names))
    return (variant,)


def _of_units(
    table: Observations,
    request: Conditions,
    units: Bools,
    cluster: Ints,
    is_left: bool,
    variant: str | None = None,
    lost: int = 0,
) -> Iterator[Condition]:
    """Yield the conditions on what some units have, whatever the others have; `cluster` is the
    question of each unit, `lost` the number of answers that could not be made."""
    means = [("min_mean", name, request.min_mean) for name in request.dimensions]
    means.append(("min_pass_rate", PASSED, request.min_pass_rate))
    for condition, name, least in means:
        if least is None:
            continue
        figure = _mean(unit_measure(table, name).of_entries(units), cluster[units], request.level)
        figure = replace(figure, left=is_left, points=request.points(name))
        who = subject(variant, OVERALL if name == PASSED else name)
        about = {"variant": variant, "dimension": name}
        yield at_least(condition, figure, least, who, **about)
    if request.every:
        failing, who = failing_units(table, units), subject(variant)
        failing = failing._replace(unsure=failing.unsure + lost)
        yield none_of("every", failing, who, left=is_left, variant=variant, dimension=PASSED)
    if request.max_critical_fails is not None:
        rows = units[table.unit]
        fails = int(np.nansum(table.column(CRITICAL_FAIL)[rows]))
        missing = int(table.due()[units].sum()) - int((~table.failed & ~table.spared)[rows].sum())
        most, name = request.max_critical_fails, "max_critical_fails"
        yield count_at_most(name, fails, missing, most, left=is_left, variant=variant)


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
