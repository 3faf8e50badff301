"""From a run in the store to the conditions of its gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from evenhand.errors import UsageError
from evenhand.kinds.kind import Kind, Scoring, Voting
from evenhand.manifest import plain
from evenhand.observation import OVERALL, Rule
from evenhand.results.board import position_notes, trust_sentences
from evenhand.results.compare import field_names, is_own_question, refuse_rule
from evenhand.results.expenses import answer_expenses, count_unanswered
from evenhand.results.observations import observe
from evenhand.runs.early_stop import stored_decision
from evenhand.runs.recorded import Recorded
from evenhand.stats.compare import proper_level
from evenhand.stats.comparison import Decision
from evenhand.stats.conditions import AGAINST, CONDITIONS, EVEN, Conditions, Figure, JudgmentCounts
from evenhand.stats.expense import Expense
from evenhand.stats.gate import Gate, Sequential, hold_to, is_set
from evenhand.stats.observations import Observations, place_of
from evenhand.store.archive import Archive
from evenhand.words import Code, Sentence

PER_VARIANT = {"baseline": "--baseline", "variant": "--variant", "pair_by": "--pair-by"}
"""What means nothing for scores unless a field tells variants apart."""


def conditions_of(recorded: Recorded, flags: Mapping[str, Any]) -> tuple[Conditions, Rule | None]:
    """Return the conditions that the flags set, over `[gate]` and `[compare]` of the suite, and the
    rule for conflicts; raise UsageError for no condition or one that does not fit."""
    manifest, pairs = recorded.manifest, recorded.has_votes
    compared = plain(manifest.compare) if manifest.compare else {}
    compared.pop("margin", None)
    flag_fields = _by(flags.get("by") or (), pairs=pairs)
    if flag_fields and flag_fields != _by(compared.get("by") or (), pairs=pairs):
        compared = {}  # a baseline of other variants than those asked for means nothing
    conditions = plain(manifest.gate) if manifest.gate else {}
    conditions |= {name: value for name, value in flags.items() if is_set(value)}
    settings = {**compared, **conditions}
    if not any(is_set(settings.get(name)) for name in CONDITIONS):
        raise UsageError(Sentence("gate.no_condition", flags=Code(", ".join(CONDITIONS.values()))))
    settings["full_marks"] = recorded.full_marks
    settings["dimensions"] = tuple(settings.pop("dimension", None) or (OVERALL,))
    settings["by"] = _by(settings.get("by") or (), pairs=pairs)
    settings["pair_by"] = tuple(field_names(settings.get("pair_by") or ()))
    rule: Rule | None = settings.pop("on_conflict", None)
    request = Conditions(**settings)
    if not pairs:
        refuse_rule(rule)
    proper_level(request.level)
    _numbers(request)
    _fits(request, recorded.kind)
    if not pairs and not request.by:
        _whole(conditions)
    return request, rule


def _by(names: Iterable[str], *, pairs: bool) -> tuple[str, ...]:
    """Return the fields that tell variants apart; none for pairs, which have candidates."""
    fields = tuple(field_names(names))
    return () if pairs and fields == ("candidate",) else fields


def _numbers(request: Conditions) -> None:
    """Refuse what is no number: nothing can be held to it."""
    for name, flag in CONDITIONS.items():
        value = getattr(request, name)
        if value is not None and not isfinite(value):
            raise UsageError(
                Sentence("gate.not_finite", flag=Code(flag.split()[0]), value=Code(value))
            )


def _fits(request: Conditions, kind: Kind) -> None:
    """Refuse what judgments of this kind cannot answer."""
    measure = kind.measure
    pairs = isinstance(measure, Voting)
    if pairs and request.min_mean is not None:
        raise UsageError(Sentence("gate.pairs_without_mean"))
    if pairs and (request.by or request.pair_by):
        raise UsageError(Sentence("gate.pairs_by_candidate"))
    if pairs and request.no_case_worse_than is not None:
        raise UsageError(Sentence("gate.cases_of_scores"))
    if not pairs and request.min_win_rate is not None:
        raise UsageError(Sentence("gate.win_rate_of_pairs"))
    if not pairs and request.candidate is not None:
        raise UsageError(Sentence("gate.candidates_of_pairs"))
    if request.max_critical_fails is not None and not _has_critical_fails(measure):
        raise UsageError(Sentence("gate.critical_of_answers"))
    compared = [name for name in AGAINST if is_set(getattr(request, name))]
    if compared and request.baseline is None:
        raise UsageError(Sentence("gate.needs_baseline", flag=Code(CONDITIONS[compared[0]])))
    if compared and not pairs and not request.by:
        raise UsageError(Sentence("gate.needs_by", flag=Code(CONDITIONS[compared[0]])))


def _has_critical_fails(measure: Scoring | Voting) -> bool:
    return isinstance(measure, Scoring) and measure.has_critical_fails


def _whole(conditions: Mapping[str, Any]) -> None:
    """Refuse to hold all units to what was meant for variants."""
    for name, flag in PER_VARIANT.items():
        if is_set(conditions.get(name)):
            raise UsageError(Sentence("gate.needs_by", flag=Code(flag)))


def gate_run(
    store: Archive, recorded: Recorded, request: Conditions, rule: Rule | None = None
) -> Gate:
    """Hold a run to its conditions."""
    test = stored_decision(store, recorded)
    comparisons = test.comparisons if test else ()
    unanswered = count_unanswered(store, recorded, request.by)
    counts = _counts(store, recorded, request.judge)
    # Nobody can judge an answer that could not be made.
    failed = counts.failed + sum(unanswered.values())
    counts = replace(counts, failed=failed, unanswered=unanswered)
    if comparisons and not any(decision.is_open for decision in comparisons):
        counts = replace(counts, left=counts.pending)
    decisions = _sequential(comparisons, recorded, request, rule)
    table = observe(store, recorded, rule)
    _on_scale(request, table)
    expenses: Sequence[Expense] = ()
    if request.baseline is not None:
        expenses = answer_expenses(store, recorded, request.by, request.baseline, request.level)
    gate = hold_to(table, counts, request, decisions, expenses)
    notes: list[str] = [] if recorded.selection is None else [recorded.selection.text]
    notes += [*position_notes(recorded, table, request.judge), *gate.notes]
    if recorded.manifest.is_sequential:
        notes.append(Sentence("gate.stopped"))
    trust = trust_sentences(recorded, table, counts.failed, request.judge)
    return replace(gate, notes=tuple(notes), trust=trust)


def _on_scale(request: Conditions, table: Observations) -> None:
    """Refuse a threshold that the scale itself meets or misses: nothing could ever change that."""
    for name in request.dimensions:
        measure = table.main if name == OVERALL else name
        if measure not in table.measures or not table.scale(measure).is_known:
            continue
        low, high = table.scale(measure).ends
        margin = request.no_worse_than
        if table.is_pairs and margin is not None and margin >= EVEN:
            raise UsageError(Sentence("gate.margin_of_pairs", value=margin))
        about = {"dimension": name, "low": low, "high": high}
        mean = request.min_mean
        if mean is not None and not low <= mean <= high:
            raise UsageError(Sentence("gate.mean_off_scale", value=mean, **about))
        margins = {
            "--no-worse-than": request.no_worse_than,
            "--no-case-worse-than": request.no_case_worse_than,
        }
        for flag, margin in margins.items():
            if margin is not None and margin >= high - low:
                error = Sentence("gate.margin_off_scale", flag=Code(flag), value=margin, **about)
                raise UsageError(error)


def _sequential(
    comparisons: Iterable[Decision],
    recorded: Recorded,
    request: Conditions,
    rule: Rule | None,
) -> dict[tuple[str, str, str], Sequential]:
    """Return the decisions of the run's own test by variant, baseline and dimension; none unless
    the gate asks just what that test was about."""
    if request.judge or rule or request.pair_by or not is_own_question(recorded, request.by):
        return {}
    results: dict[tuple[str, str, str], Sequential] = {}
    for decision in comparisons:
        ends = [decision.estimate, decision.low, decision.high]
        if decision.measure == "win_rate":
            ends = [None if end is None else 2 * end - 1 for end in ends]
        figure = Figure(
            value=ends[0],
            low=ends[1],
            high=ends[2],
            n=decision.questions,
            clusters=decision.questions,
            counted="questions",
            level=1 - decision.alpha,
        )
        key = decision.variant, decision.baseline, decision.dimension
        results[key] = Sequential(decision.outcome, figure, decision.skipped)
    return results


def _counts(store: Archive, recorded: Recorded, judge: str | None) -> JudgmentCounts:
    """Return the counts of judgments of the run, or of one judge in it. A run made elsewhere awaits
    none."""
    scope = recorded.scope
    counts = store.counts(scope, recorded.judgments_per_unit)
    failed = sum(counts.failures.values())
    statuses, pending = Counter(verdict=counts.verdicts, failure=failed), counts.pending
    if judge is not None:
        place = place_of(recorded.names, judge, "judge")
        judged = (stored for _, stored in store.judgments(scope) if stored.judge == place)
        statuses = Counter(stored.text.status for stored in judged)
        units = (counts.planned + counts.left_out) // recorded.judgments_per_unit
        pending = units * recorded.judge_groups[place].repeats - statuses.total()
    return JudgmentCounts(
        statuses["verdict"], statuses["failure"], 0 if recorded.imported else pending
    )
