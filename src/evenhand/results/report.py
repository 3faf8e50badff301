"""A run read from the store into one Report.

Every figure comes from the same functions as those of `compare` and `leaderboard`. The same store
and language give the same report to the byte: there is no clock here and no chance.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evenhand import jsontext
from evenhand.data.write import write_text
from evenhand.engine.prices import dollars
from evenhand.errors import UsageError
from evenhand.kinds.kind import Scoring
from evenhand.manifest import Compare
from evenhand.observation import OVERALL, ScoredUnit, VotedUnit
from evenhand.report.html.page import require
from evenhand.report.html.render import render
from evenhand.report.html.tallies import (
    distribution,
    mean_by_length,
    pass_rates,
    plain_means,
    tags,
    unit_scores,
    win_rate_by_length,
)
from evenhand.report.html.units import JudgedRow, UnitLine, unit_blocks, unit_line
from evenhand.report.model import (
    WARNINGS,
    Coverage,
    ListedQuestions,
    ListedUnit,
    OtherRun,
    Report,
    Selected,
)
from evenhand.results.board import family_notes, order_sentences, position_notes, trust_sentences
from evenhand.results.compare import CompareOptions, answer_run, lay_out_question, own_fields
from evenhand.results.observations import observe
from evenhand.results.units import judged_row, names_of, text_of
from evenhand.runs.exchanges import exchanges
from evenhand.runs.recorded import Recorded
from evenhand.stats.comparison import Comparison, in_points
from evenhand.stats.layout import USUAL, lay_out, usual_fields
from evenhand.stats.leaderboard import BoardOptions, leaderboard
from evenhand.stats.leans import Orders, orders
from evenhand.stats.matrix import matrix_of_variants, question_matrix
from evenhand.stats.observations import Observations
from evenhand.store.archive import Archive
from evenhand.store.ports import StoredJudgment, StoredUnit
from evenhand.text import visible
from evenhand.words import LANGUAGES, Sentence, Words, words

T = TypeVar("T")
UNITS_MOST, BYTES_MOST = 3_000, 16_000_000
"""Units in one file, and the room for their texts: more belong into `view`, which reads the store
page by page."""
QUESTIONS_MOST, CELLS_MOST = 2_000, 20_000
"""Rows of the matrix, and its cells."""
TEXT_MOST = 12_000
"""Characters of one text in a file."""
TITLE_MOST = 200
CHANGED = 10
"""Units that got worse most, and as many that got better most."""
_TOLD_ELSEWHERE = frozenset(
    {"notes.stopped", "notes.inconsistent", "notes.inconsistent_import", "notes.own_family_leads"}
)
"""The notes of a comparison that a report tells as warnings, or beside the answer."""
FACETS = (
    "variant",
    "candidates",
    "passed",
    "verdicts",
    "reasons",
    "flags",
    "tags",
    "confidence",
    "judges",
    "scores",
    "results",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The options of a report."""

    language: str | None = None
    """Of the labels; None for that of the suite."""
    title: str = ""
    """The heading; empty for the name of the run."""
    by: Sequence[str] = ()
    baseline: str | None = None
    against: Recorded | None = None
    within: str | None = None
    stability: str | None = None
    summary: bool = False
    """True to leave the units out."""
    answer_only: bool = False
    """True to leave out all but what the first screen says: a third of the time."""

    @property
    def asks_comparison(self) -> bool:
        """Return True if an option makes no sense without a comparison."""
        return bool(self.by or self.baseline or self.against or self.within or self.stability)


def make_report(store: Archive, recorded: Recorded, options: ReportOptions | None = None) -> Report:
    """Return the report on a run; raise UsageError for names that nobody has."""
    options = options or ReportOptions()
    run_language = recorded.manifest.judging.language
    language = options.language or (run_language if run_language in LANGUAGES else "en")
    row, selection = recorded.row, recorded.selection
    table = observe(store, recorded)
    make_figures = _pair_figures if recorded.has_votes else _score_figures
    report = Report(
        run=row.id,
        name=row.name,
        title=" ".join(options.title.split())[:TITLE_MOST],
        arguments=_arguments(recorded, options),
        kind=recorded.kind,
        language=language,
        created=row.created,
        started=row.started,
        manifest=recorded.manifest,
        coverage=_coverage(store, recorded, len(table.units)),
        settings=recorded.settings,
        rubric=recorded.rubric,
        names=names_of(recorded, language),
        tag_names=recorded.tag_names(language),
        faults=recorded.faults,
        trust=trust_sentences(recorded, table, int(table.failed.sum())),
        selected=Selected(selection.condition, len(selection.positions), selection.of)
        if selection
        else None,
        against=_other_run(options.against),
        **make_figures(store, recorded, options, table),
    )
    if options.summary or options.answer_only:
        return report
    say = words(language).naming_tags(report.tag_names)
    report = replace(report, units=list(_units(store, recorded, report, table, say)))
    questions = _questions(store, recorded, report, table, options.against)
    return replace(report, questions=questions)


def _other_run(run: Recorded | None) -> OtherRun | None:
    return None if run is None else OtherRun(run.row.name, run.id, run.row.started)


def _arguments(run: Recorded, options: ReportOptions) -> list[str]:
    """Return the options of the command that makes the report again, but for what the comparison
    says itself."""
    against, selection = options.against, run.selection
    named = {
        "--title": options.title,
        "--against": against and against.id,
        "--within": options.within,
        "--stability": options.stability,
    }
    found = [part for flag, value in named.items() if value for part in (flag, value)]
    conditions = {"--where": selection.where, "--without": selection.without} if selection else {}
    for flag, texts in conditions.items():
        found += [
            part
            for name, values in texts.items()
            for value in values
            for part in (flag, f"{name}={value}")
        ]
    return found


def write_report(
    path: Path, store: Archive, recorded: Recorded, options: ReportOptions | None = None
) -> int:
    """Write the report of a run as one HTML file, whole or not at all, and return its bytes."""
    require("jinja2")
    write_text(path, [render(make_report(store, recorded, options))])
    return path.stat().st_size


def _coverage(store: Archive, recorded: Recorded, units: int) -> Coverage:
    counts, spent = recorded.counts(store), store.spent(recorded.id)
    failures = sorted(counts.failures.items(), key=lambda item: (-item[1], item[0]))
    return Coverage(
        units=units,
        planned=counts.planned,
        verdicts=counts.verdicts,
        failures=dict(failures),
        pending=counts.pending,
        left_out=counts.left_out,
        calls=spent.calls,
        usage=spent.usage,
        cost_usd=None if spent.unpriced else dollars(spent.cost),
    )


def _compare(
    store: Archive,
    recorded: Recorded,
    options: ReportOptions,
    table: Observations,
    by: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the figures of a comparison, as `compare` has them, but for notes that a report tells
    elsewhere."""
    question = CompareOptions(
        by=by,
        baseline=options.baseline,
        against=options.against,
        within=options.within,
        stability=options.stability,
        worst=0 if options.answer_only else CHANGED,
    )
    answer = answer_run(store, recorded, question, table).out_of(recorded.full_marks)
    comparison = answer.comparison
    notes = tuple(n for n in comparison.notes if getattr(n, "key", "") not in _TOLD_ELSEWHERE)
    return {
        "comparison": replace(comparison, notes=notes),
        "blocks": answer.blocks,
        "stability": answer.stability,
        "changed": answer.changed,
    }


def _score_figures(
    store: Archive, recorded: Recorded, options: ReportOptions, table: Observations
) -> dict[str, Any]:
    """Return the figures of samples or answers."""
    by = _score_fields(recorded, options, table)
    compared: dict[str, Any] = {}
    if by or options.asks_comparison:
        compared = _compare(store, recorded, options, table, by)
    comparison: Comparison | None = compared.get("comparison")
    means = [in_points(mean, recorded.full_marks or 1) for mean in plain_means(table)]
    notes = comparison.notes if comparison else _not_compared(table)
    is_short = options.answer_only or options.against is not None
    return compared | {
        "means": comparison.means if comparison else means,
        # Counts of one run say nothing of two.
        "tags": () if options.against else tags(table, by),
        "passes": () if options.against else pass_rates(table, by),
        "scores": () if is_short else distribution(table, by, by_tens=_has_totals(recorded)),
        "lengths": () if is_short else mean_by_length(table),
        "notes": [*notes, *_missing_scores(store, recorded)],
    }


def _score_fields(
    recorded: Recorded, options: ReportOptions, table: Observations
) -> tuple[str, ...]:
    """Return the fields that tell variants apart; empty where two runs are compared."""
    if options.against is not None:
        return tuple(options.by)
    named = options.by or own_fields(recorded)
    return tuple(named or usual_fields(table) or _means_by(table))


def _has_totals(recorded: Recorded) -> bool:
    """Return True where dimensions do not weigh alike, so that a total says more."""
    measure = recorded.kind.measure
    return isinstance(measure, Scoring) and measure.has_critical_fails


def _not_compared(table: Observations) -> Iterator[str]:
    """Yield why variants that are there are not compared."""
    for name in _several(table):
        yield Sentence("notes.not_compared", field=name)


def _missing_scores(store: Archive, recorded: Recorded) -> Iterator[str]:
    """Yield how many judgments made elsewhere lack some of their scores."""
    if not recorded.imported:
        return
    judgments = (recorded.judgment(stored) for _, stored in store.judgments(recorded.scope))
    lacking = sum("scores_missing" in judgment.flags for judgment in judgments)
    if lacking:
        yield Sentence("notes.scores_missing", n=lacking)


def _means_by(table: Observations) -> list[str]:
    """Return the field whose values have means of their own though they share no question."""
    fields = _several(table)
    try:
        return [name for name in fields if lay_out(table, [name])]
    except UsageError:
        return []


def _several(table: Observations) -> list[str]:
    """Return the first field that usually tells variants apart and has several values."""
    fields = [n for n in USUAL if n in table.fields and len(table.fields[n].levels) > 1]
    return fields[:1]


def _pair_figures(
    store: Archive, recorded: Recorded, options: ReportOptions, table: Observations
) -> dict[str, Any]:
    """Return the figures of pairs: every candidate against the baseline that is named, of two
    against the first, and the board of all."""
    if options.against is not None:
        raise UsageError(Sentence("results.pairs_against"))
    has_base = (recorded.manifest.compare or Compare()).baseline or len(table.candidates) == 2
    compared: dict[str, Any] = {}
    if has_base or options.asks_comparison:
        compared = _compare(store, recorded, options, table, options.by)
    board = leaderboard(table, BoardOptions()).board
    leader = board.rows[0].candidate if board.rows else None
    notes = compared["comparison"].notes if compared else ()
    keys = {note.key for note in notes if isinstance(note, Sentence)}
    return compared | {
        "rule": table.rule,
        "board": board,
        "warnings": _warnings(recorded, table, leader),
        # Those of the board that say something else.
        "notes": [*notes, *(n for n in board.notes if getattr(n, "key", "") not in keys)],
        "orders": {} if options.answer_only else _orders(table),
        "lengths": () if options.answer_only else win_rate_by_length(table),
    }


def _warnings(run: Recorded, votes: Observations, leader: str | None) -> list[str]:
    """Return what speaks against the judges of pairs; that they contradict themselves, once."""
    warned = [*position_notes(run, votes)]
    warned = warned or [told for told in order_sentences(votes) if told.key in WARNINGS]
    return [*warned, *family_notes(run, votes.candidates, leader)]


def _orders(table: Observations) -> dict[str, Orders]:
    """Return what the two orders tell of each judge."""
    figures = {name: orders(table.of_judge(name)) for name in table.judges}
    return {name: found for name, found in figures.items() if found.first_rounds}


def _units(
    store: Archive, recorded: Recorded, report: Report, table: Observations, say: Words
) -> Iterator[ListedUnit]:
    """Yield the units with their judgments, as many as a file has room for."""
    kind, room = recorded.kind, BYTES_MOST
    by = report.comparison.by_fields if report.comparison else ()
    by = [name.removeprefix("meta.") for name in by]
    scores = (
        [[] for _ in table.units]
        if recorded.has_votes
        else unit_scores(table, by_tens=_has_totals(recorded))
    )
    judged_first = islice(judged_units(store, recorded), UNITS_MOST)
    for (unit, judged), scored in zip(judged_first, scores, strict=False):
        unit_shown = kind.present(kind.load(unit.body), [row.judgment for row in judged])
        line = unit_line(kind, unit.id, unit_shown, judged, say)
        variant = name_variant(unit.id, unit_shown.measured, by)
        values: Mapping[str, Any] = {**line, "variant": variant, "scores": scored}
        values = {**values, "results": _pair_results(line)}
        facets = {name: values[name] for name in FACETS}
        blocks = unit_blocks(unit_shown, judged, say, report.names, most=TEXT_MOST)
        room -= len(jsontext.compact(blocks))
        if room < 0:
            return
        yield ListedUnit(line, " · ".join(line["candidates"] or variant), facets, blocks)


def _questions(
    store: Archive,
    recorded: Recorded,
    report: Report,
    table: Observations,
    earlier: Recorded | None,
) -> ListedQuestions | None:
    """Return the matrix of a report; None where no two variants have a question in common."""
    comparison, units = report.comparison, report.units or ()
    if not comparison and not recorded.has_votes:
        return None
    if earlier is None:
        by, base = (comparison.by_fields, comparison.baseline) if comparison else ((), None)
        matrix = question_matrix(table, by, base)
    else:
        question = CompareOptions(against=earlier)
        matrix = matrix_of_variants(lay_out_question(store, recorded, question, table))
    if matrix is None:
        return None
    most = min(len(matrix.values), QUESTIONS_MOST, CELLS_MOST // len(matrix.names))
    shown = matrix.of_rows(np.arange(most))
    listed = {unit: place for place, unit in enumerate(table.units[: len(units)])}
    texts: list[str] = []
    own = set(table.units)
    for unit in (matrix.units[place] for place in shown.first.tolist()):
        text = units[listed[unit]].line["text"] if unit in listed else ""
        source = recorded if earlier is None or unit in own else earlier
        texts.append(text or text_of(store, source, unit))
    if earlier is not None:  # its units are not in this file, whatever their ids are
        shown = shown.without_base_units
    shown = shown.out_of(recorded.full_marks if shown.measure == OVERALL else None)
    return ListedQuestions(shown, texts, listed, len(matrix.values))


def _pair_results(line: UnitLine) -> list[str]:
    """Return who won a pair and who lost it, or of both that it is open."""
    ends = {"A": ("won", "lost"), "B": ("lost", "won")}
    ends |= dict.fromkeys(("tie", "uncertain"), ("open", "open"))
    found = ends.get(line["verdicts"][0], ())
    return [f"{end}: {name}" for end, name in zip(found, line["candidates"], strict=False)]


def name_variant(ident: str, unit: ScoredUnit | VotedUnit, by: Sequence[str]) -> list[str]:
    """Return the variant of a unit, as the comparison names it, in a list; an empty list for pairs,
    which have candidates, and for a unit without a value of the fields."""
    if isinstance(unit, VotedUnit):
        return []
    fields = {"unit": ident, **unit.fields}
    values = [jsontext.as_text(fields[name]) for name in by if fields.get(name) is not None]
    return [visible(" / ".join(values))] if values else []


def judged_units(
    store: Archive, recorded: Recorded
) -> Iterator[tuple[StoredUnit, list[JudgedRow]]]:
    """Yield every unit of a run with its judgments and what was said; without any where it is
    pending."""
    scope = recorded.scope
    groups = groupby(store.judgments(scope), key=lambda place: place[0].no)
    no, group = next(groups, (None, iter(())))
    for unit in store.units(scope):
        judged: list[JudgedRow] = []
        if unit.no == no:
            judged = [_row(store, recorded, unit, stored) for _, stored in group]
            no, group = next(groups, (None, iter(())))
        yield unit, judged


def _row(store: Archive, recorded: Recorded, unit: StoredUnit, stored: StoredJudgment) -> JudgedRow:
    trace = [] if recorded.imported else _at_once(exchanges(recorded, store, unit, stored))
    judgment, row = judged_row(recorded, unit, stored)
    return JudgedRow(judgment, row | {"exchanges": [exchange.json() for exchange in trace]})


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work that only the ledger answers, so that it never waits; it may be
    done inside a running event loop."""
    while True:
        try:
            work.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
