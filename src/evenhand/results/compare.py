"""The conclusions from a run: its tables are read, and the question put to the statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from evenhand.errors import UsageError
from evenhand.manifest import Compare
from evenhand.observation import OVERALL, Rule
from evenhand.report.model import ChangedUnits
from evenhand.results.board import leader_of, trust_notes, trust_sentences
from evenhand.results.changed_units import Sides, changed_units
from evenhand.results.expenses import answer_expenses, unanswered_notes
from evenhand.results.observations import observe
from evenhand.runs.early_stop import stored_decision
from evenhand.runs.recorded import Recorded
from evenhand.stats.compare import changes, compare, proper_level
from evenhand.stats.comparison import Comparison, in_points
from evenhand.stats.conditions import EVEN
from evenhand.stats.layout import lay_out, lay_out_runs
from evenhand.stats.observations import Observations
from evenhand.stats.stability import Stability, compare_stability, repeats
from evenhand.stats.variants import Variants
from evenhand.stats.within import Blocks, compare_within
from evenhand.store.archive import Archive
from evenhand.store.ports import Scope
from evenhand.words import Code, Names, Sentence

ID_SHOWN = 6
"""Characters of the id of a run beside its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """A question to a run, or to a run against an earlier one. The suite's `[compare]` holds where
    `by` and `baseline` say nothing."""

    by: Sequence[str] = ()
    baseline: str | None = None
    pair_by: Sequence[str] = ()
    against: Recorded | None = None
    within: str | None = None
    stability: str | None = None
    worst: int = 0
    """How many of the units that changed most are wanted, either way."""
    judge: str | None = None
    rule: Rule | None = None
    level: float = 0.95
    margin: float | None = None
    """Differences within it count as none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswer:
    """A comparison, and what was asked beside it."""

    comparison: Comparison
    blocks: Blocks | None = None
    stability: Stability | None = None
    changed: ChangedUnits | None = None
    trust: tuple[Sentence, ...] = ()

    def out_of(self, most: float | None) -> RunAnswer:
        """Return it as it is shown: what is overall in points, where totals are out of `most`."""
        if most is None:
            return self
        blocks = self.blocks
        if blocks is not None:
            parts = (
                replace(each, comparison=each.comparison.out_of(most)) for each in blocks.blocks
            )
            between = tuple(in_points(test, most) for test in blocks.between)
            blocks = replace(blocks, blocks=tuple(parts), between=between)
        stability = self.stability
        if stability is not None:
            stability = replace(stability, rows=tuple(row.out_of(most) for row in stability.rows))
        changed = self.changed and self.changed.out_of(most)
        comparison = self.comparison.out_of(most)
        return replace(
            self, comparison=comparison, blocks=blocks, stability=stability, changed=changed
        )

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        parts = {"within": self.blocks, "stability": self.stability, "changed": self.changed}
        asked = {name: part.json() for name, part in parts.items() if part is not None}
        return self.comparison.json() | asked


def compare_run(
    store: Archive,
    run: Recorded,
    by: Sequence[str] = (),
    baseline: str | None = None,
    **options: Any,
) -> Comparison:
    """Return the comparison of a run's variants; `options` are those of CompareOptions. Raise
    UsageError."""
    return answer_run(store, run, CompareOptions(by=by, baseline=baseline, **options)).comparison


def answer_run(
    store: Archive, run: Recorded, question: CompareOptions, table: Observations | None = None
) -> RunAnswer:
    """Return the answer of a run to a question, its notes with those on the run's own history;
    `table` are its observations where they are known. Raise UsageError for a question that the run
    cannot answer."""
    proper_level(question.level)
    if question.against is not None:
        refuse_against(run, question.against, question)
        for each in (run, question.against):
            _refuse_unjudged(store, each)
    question = replace(question, margin=own_margin(run, question))
    _refuse_misfits(run, question)
    table = _observe(store, run, question) if table is None else table
    answer = _answer(store, run, question, table)
    comparison = answer.comparison
    notes = (
        *_what_may_differ(run, question.against),
        *comparison.notes,
        *_shared_texts(store, run, question.against),
        *_history(run),
    )
    comparison = replace(comparison, notes=notes)
    if question.against is not None and is_of_same_replies(run, question.against):
        # More units would have the same rules: they decide nothing about these.
        comparison = comparison.without_needed
    asks_else = question.pair_by or question.rule or question.judge or question.against
    if not asks_else:
        by = question.by or _own_compare(run).by
        comparison = with_decision(store, run, comparison, by)
    return replace(answer, comparison=comparison)


def _own_compare(run: Recorded) -> Compare:
    """Return the suite's own `[compare]`, as the run recorded it; an empty one if there is none."""
    return run.manifest.compare or Compare()


def own_fields(run: Recorded) -> tuple[str, ...]:
    """Return the fields that the suite compares its runs by."""
    return tuple(_own_compare(run).by)


def own_baseline(run: Recorded, question: CompareOptions) -> str | None:
    """Return the baseline that is named, or the suite's: that belongs to the suite's fields;
    candidates are all that pairs have."""
    own = _own_compare(run)
    fields = question.by or own.by
    is_own = run.has_votes or _plain(fields) == _plain(own.by or fields)
    return own.baseline if question.baseline is None and is_own else question.baseline


def own_margin(run: Recorded, question: CompareOptions) -> float | None:
    """Return the margin that is asked for, or the suite's; raise UsageError for one below 0."""
    margin = _own_compare(run).margin if question.margin is None else question.margin
    if margin is not None and not 0 < margin < inf:
        raise UsageError(Sentence("compare.no_margin", margin=margin))
    return margin


def _answer(
    store: Archive, run: Recorded, question: CompareOptions, table: Observations
) -> RunAnswer:
    variants = lay_out_question(store, run, question, table)
    within, stability, level = question.within, question.stability, question.level
    comparison = compare(variants, level, question.margin)
    refuse_wide_margin(comparison)
    leader = leader_of(comparison) if run.has_votes and question.against is None else None
    notes = (*trust_notes(run, table, leader, question.judge), *comparison.notes)
    if question.against is None:
        notes = (*unanswered_notes(store, run, () if run.has_votes else variants.by), *notes)
    comparison = replace(comparison, notes=notes)
    if question.against is None:
        expenses = answer_expenses(store, run, variants.by, variants.baseline, level)
        comparison = replace(comparison, expenses=expenses)
    if not run.has_votes and question.against is None:
        comparison = replace(comparison, repeats=repeats(table))
    changed = None
    if question.worst:
        sides = Sides(store, run, question.against or run, variants.baseline)
        changed = changed_units(sides, changes(variants, question.worst))
    return RunAnswer(
        comparison=comparison,
        blocks=compare_within(variants, within, level, question.margin) if within else None,
        stability=compare_stability(table, variants, stability, level) if stability else None,
        changed=changed,
        trust=trust_sentences(run, table, int(table.failed.sum()), question.judge),
    )


def refuse_wide_margin(comparison: Comparison) -> None:
    """Raise UsageError for a margin as wide as the scale of what is overall: all would be same."""
    margin = comparison.margin or 0.0
    if margin >= EVEN and comparison.is_duel:
        raise UsageError(Sentence("compare.wide_margin_of_pairs", margin=margin))
    if margin >= 1 and any(row.dimension == OVERALL for row in comparison.rows):
        raise UsageError(Sentence("compare.wide_margin", margin=margin))


def _observe(store: Archive, run: Recorded, question: CompareOptions) -> Observations:
    """Return the observations of a run, of one judge if it is named."""
    table = observe(store, run, question.rule)
    return table if question.judge is None else table.of_judge(question.judge)


def lay_out_question(
    store: Archive, run: Recorded, question: CompareOptions, table: Observations
) -> Variants:
    """Return the variants of a run, or two runs as variants; raise UsageError."""
    if question.against is None:
        by = () if run.has_votes else question.by or _own_compare(run).by
        return lay_out(table, by, own_baseline(run, question), question.pair_by)
    earlier = _observe(store, question.against, question)
    return lay_out_runs(run_names(run, question.against), (table, earlier), question.pair_by)


def run_names(run: Recorded, earlier: Recorded) -> tuple[str, str]:
    """Return what two runs are called: their names; where these are alike, with the day or the
    minute in which they were begun, or a part of their ids."""
    runs = run.row, earlier.row
    names = [[row.name for row in runs]]
    starts = [row.created.replace("T", " ") for row in runs]
    for ends in ([start[:10] for start in starts], [start[:16] for start in starts]):
        names.append([f"{row.name} {end}" for row, end in zip(runs, ends, strict=True)])
    names.append([f"{row.name} {row.id[:ID_SHOWN]}" for row in runs])
    first, second = next((each for each in names if each[0] != each[1]), names[-1])
    return first, second


def _refuse_misfits(run: Recorded, question: CompareOptions) -> None:
    """Raise UsageError for what a run of this kind cannot be asked."""
    if run.has_votes:
        _only_candidates(question.by or _own_compare(run).by, question.pair_by)
        if question.stability is not None:
            raise UsageError(Sentence("compare.not_for_pairs", flag=Code("--stability")))
    else:
        refuse_rule(question.rule)
    if question.stability is not None and question.against is not None:
        raise UsageError(Sentence("compare.stability_of_one_run"))


def refuse_against(run: Recorded, earlier: Recorded, question: CompareOptions) -> None:
    """Raises UsageError for two runs that cannot be compared, or a question that is about one."""
    if run.id == earlier.id:
        raise UsageError(Sentence("compare.same_run", run=run.id))
    if run.has_votes != earlier.has_votes:
        kinds = {"kind": run.kind_name, "other_kind": earlier.kind_name}
        raise UsageError(Sentence("compare.two_kinds", run=run.id, other=earlier.id, **kinds))
    if question.by or question.baseline:
        raise UsageError(Sentence("compare.by_with_against"))
    if question.within is not None and run.has_votes:
        raise UsageError(Sentence("compare.within_with_against"))


def _refuse_unjudged(store: Archive, run: Recorded) -> None:
    """Raises UsageError for a run without a verdict among the units that are asked for: it has
    nothing in common with another, whatever its units are."""
    counts = run.counts(store)
    failed = sum(counts.failures.values())
    # Of pairs that failed it can be told who they are of.
    if counts.verdicts or (failed and run.has_votes):
        return
    what = Sentence("compare.unjudged", run=run.id, failed=failed, pending=counts.pending)
    raise UsageError(what)


def _what_may_differ(run: Recorded, earlier: Recorded | None) -> Iterator[Sentence]:
    """Yield what else than the answers may differ between two runs."""
    if earlier is None:
        return
    if is_of_same_replies(run, earlier):
        yield Sentence("notes.same_replies")
    elif run.row.judging != earlier.row.judging:
        yield Sentence("notes.judged_otherwise")


def _shared_texts(store: Archive, run: Recorded, earlier: Recorded | None) -> Iterator[Sentence]:
    """Yield how many texts two runs have in common."""
    if earlier is None or is_of_same_replies(run, earlier):
        return
    changes = store.changes(run.id, earlier.id)
    here = sum(1 for _ in store.units(Scope(run.id)))
    same = here - changes.added - changes.changed
    names = run_names(run, earlier)
    counts = {"same": same, "changed": changes.changed}
    counts |= {"added": changes.added, "removed": changes.removed}
    yield Sentence("notes.shared_texts", run=names[0], earlier=names[1], **counts)
    if same and run.row.judging == earlier.row.judging:
        yield Sentence("notes.shared_judgments")


def is_of_same_replies(run: Recorded, earlier: Recorded) -> bool:
    """Return True if one of two runs was settled from the replies of the other, or both from a
    third's."""
    sources = [each.manifest.settled_from or each.id for each in (run, earlier)]
    return sources[0] == sources[1]


def with_decision(
    store: Archive, run: Recorded, comparison: Comparison, by: Sequence[str]
) -> Comparison:
    """Return a comparison by these fields with what the sequential test of the run has decided,
    where that was about the same fields and baseline; otherwise as it is."""
    if not is_own_question(run, by):
        return comparison
    test = stored_decision(store, run)
    if test is None or test.baseline != comparison.baseline:
        return comparison
    return comparison.under(test)


def is_own_question(run: Recorded, by: Sequence[str]) -> bool:
    """Return True if these fields are those that the run is to be compared by. For pairs, no field
    is the same as `candidate`."""
    compare = run.manifest.compare or Compare()
    return _told_apart(run, by) == _told_apart(run, compare.by)


def _told_apart(run: Recorded, by: Sequence[str]) -> list[str]:
    fields = _plain(by)
    return [] if run.has_votes and fields == ["candidate"] else fields


def _plain(fields: Sequence[str]) -> list[str]:
    return [name.removeprefix("meta.") for name in fields]


def refuse_rule(rule: Rule | None) -> None:
    """Scores have no orders that could contradict each other; raises UsageError."""
    if rule is not None:
        raise UsageError(Sentence("compare.only_for_pairs", flag=Code("--on-conflict")))


def field_names(names: Iterable[str]) -> list[str]:
    """Fields that were named one by one, or several with commas."""
    return [name.strip() for each in names for name in each.split(",") if name.strip()]


def _only_candidates(fields: Sequence[str], pair_by: Sequence[str]) -> None:
    """Pairs are compared by candidate and nothing else; raises UsageError."""
    if list(fields) not in ([], ["candidate"]):
        raise UsageError(Sentence("compare.pairs_by", fields=Names(fields)))
    if pair_by:
        raise UsageError(Sentence("compare.not_for_pairs", flag=Code("--pair-by")))


def _history(run: Recorded) -> list[Sentence]:
    """Return the notes that a reader needs on how the run came about."""
    return [Sentence("notes.stopped")] if run.manifest.is_sequential else []
