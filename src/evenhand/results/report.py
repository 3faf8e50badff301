"""A run read from the store into one Report.

Every figure comes from the same functions as those of `compare` and `leaderboard`. The same store
and language give the same report to the byte: there is no clock here and no chance.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from evenhand import jsontext
from evenhand.data.write import write_text
from evenhand.engine.prices import dollars
from evenhand.errors import UsageError, quoted
from evenhand.kinds.kind import Scoring, Voting
from evenhand.manifest import Compare, plain
from evenhand.notes import Note
from evenhand.observation import OVERALL, ScoredUnit, VotedUnit
from evenhand.report.changes import ChangedUnits
from evenhand.report.html.build import (
    Coverage,
    JudgeFacts,
    LengthBin,
    ListedUnit,
    Method,
    Position,
    Report,
    Selected,
)
from evenhand.report.html.page import LANGUAGES, Words, require, words
from evenhand.report.html.render import render
from evenhand.report.html.tallies import (
    binned,
    compared_means,
    critical_rates,
    differences,
    distribution,
    meetings,
    pair_lengths,
    plain_means,
    share,
    standings,
    tags,
)
from evenhand.report.html.units import JudgedRow, unit_blocks, unit_line
from evenhand.results.changed_units import Sides, changed_units
from evenhand.results.compare import with_decision
from evenhand.results.observations import observe
from evenhand.results.pairs import figures_of_pairs
from evenhand.results.trust import trust_notes
from evenhand.results.units import judged_row, names_of
from evenhand.runs.exchanges import exchanges
from evenhand.runs.recorded import Recorded
from evenhand.stats.compare import Changes, changes, compare
from evenhand.stats.comparison import Comparison
from evenhand.stats.layout import USUAL, lay_out, usual_fields
from evenhand.stats.leaderboard import Options, leaderboard
from evenhand.stats.observations import Observations
from evenhand.stats.pairwise import PairFigures
from evenhand.stats.repeats import repeats
from evenhand.stats.variants import Variants
from evenhand.store.archive import Archive
from evenhand.store.ports import StoredJudgment, StoredUnit
from evenhand.text import visible

T = TypeVar("T")
UNITS_MOST, BYTES_MOST = 3_000, 16_000_000
"""Units in one file, and the room for their texts: more belong into `view`, which reads the store
page by page."""
TEXT_MOST = 12_000
"""Characters of one text in a file."""
CHANGED = 10
"""Units that got worse most, and as many that got better most."""
FACETS = (
    "variant",
    "candidates",
    "verdicts",
    "reasons",
    "flags",
    "tags",
    "confidence",
    "judges",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The options of a report."""

    language: str | None = None
    """Of the labels; None for that of the suite."""
    by: Sequence[str] = ()
    baseline: str | None = None
    summary: bool = False
    """Whether the units are left out."""
    answer_only: bool = False
    """Whether all is left out but what the first screen says: a third of the time."""


def make_report(store: Archive, recorded: Recorded, options: ReportOptions | None = None) -> Report:
    """Return the report on a run; raise UsageError for names that nobody has."""
    options = options or ReportOptions()
    language = options.language or _spoken(recorded)
    measure = recorded.kind.measure
    sections = _OfPairs if isinstance(measure, Voting) else _OfScores
    report = sections(store, recorded, options, language).report()
    if options.summary or options.answer_only:
        return report
    say = words(language).naming_tags(report.tag_names)
    return replace(report, units=list(_units(store, recorded, report, say)))


def write_report(
    path: Path, store: Archive, recorded: Recorded, options: ReportOptions | None = None
) -> int:
    """Write the report of a run as one HTML file, whole or not at all, and return its bytes."""
    require("jinja2")
    write_text(path, [render(make_report(store, recorded, options))])
    return path.stat().st_size


def _spoken(recorded: Recorded) -> str:
    run_language = recorded.manifest.judging.language
    return run_language if run_language in LANGUAGES else "en"


class _Outcomes(NamedTuple):
    """The number of units, and of their judgments by outcome."""

    units: int
    planned: int
    verdicts: int
    failures: Mapping[str, int]
    left_out: int


class _Of:
    """The base of reports of every kind."""

    def __init__(
        self, store: Archive, recorded: Recorded, options: ReportOptions, language: str
    ) -> None:
        self.store, self.recorded, self.language = store, recorded, language
        self.scope = recorded.scope
        self.margin = recorded.manifest.compare.margin if recorded.manifest.compare else None
        compare = recorded.manifest.compare or Compare()
        self.by: Sequence[str] = tuple(options.by or compare.by)
        self.baseline = options.baseline or compare.baseline
        self.is_whole = not options.answer_only

    def changed(self, baseline: str, changes: Changes) -> ChangedUnits:
        """Return the units that changed most against the baseline."""
        recorded = self.recorded
        return changed_units(Sides(self.store, recorded, recorded, baseline), changes)

    def coverage(self, outcomes: _Outcomes) -> Coverage:
        spent = self.store.spent(self.recorded.row.id)
        failures = sorted(outcomes.failures.items(), key=lambda item: (-item[1], item[0]))
        return Coverage(
            units=outcomes.units,
            planned=outcomes.planned,
            verdicts=outcomes.verdicts,
            failures=dict(failures),
            pending=outcomes.planned - outcomes.verdicts - sum(outcomes.failures.values()),
            left_out=outcomes.left_out,
            calls=spent.calls,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            cached_tokens=spent.cached_tokens,
            cost_usd=None if spent.unpriced else dollars(spent.cost),
        )

    def method(self, comparison: Comparison | None, rule: str = "") -> Method:
        recorded, manifest = self.recorded, self.recorded.manifest
        judging = manifest.judging
        return Method(
            protocol=manifest.protocol,
            version=judging.protocol,
            prompt=manifest.prompt,
            language=judging.language,
            seed=judging.seed,
            level=comparison.level if comparison else 0.95,
            by=comparison.by if comparison else "",
            baseline=comparison.baseline if comparison else "",
            pair_by=comparison.pair_by if comparison else (),
            rule=rule,
            settings=recorded.settings,
            judges=[
                JudgeFacts(
                    name=judge.name,
                    identity=judge.identity,
                    repeats=judge.repeats,
                    caveat=judge.caveat,
                )
                for judge in recorded.judges
            ],
            evenhand=manifest.evenhand,
            imported=plain(manifest.imported) if manifest.imported else None,
            texts=_texts(judging.texts, judging.language),
            rubric=recorded.rubric,
            names=names_of(recorded, self.language),
        )

    def _selected(self) -> Selected | None:
        selection = self.recorded.selection
        if selection is None:
            return None
        return Selected(selection.condition, len(selection.positions), selection.of)

    def facts(self, outcomes: _Outcomes) -> dict[str, Any]:
        row = self.recorded.row
        return {
            "run": row.id,
            "name": row.name,
            "kind": self.recorded.kind,
            "language": self.language,
            "created": row.created,
            "started": row.started,
            "coverage": self.coverage(outcomes),
            "selected": self._selected(),
            "sequential": self.recorded.manifest.is_sequential,
            "tag_names": self.recorded.tag_names(self.language),
        }


def _texts(texts: Mapping[str, str], language: str) -> dict[str, str]:
    """Return the files of a protocol that this run used."""
    endings = (f"/{language}.md", f"/{language}.toml")
    used = ("protocol.toml", "own.md")
    return {n: t for n, t in sorted(texts.items()) if n in used or n.endswith(endings)}


class _OfScores(_Of):
    """A report of samples or answers."""

    def report(self) -> Report:
        table = observe(self.store, self.recorded)
        by = self.by or usual_fields(table) or _means_by(table)
        comparison = changed = None
        if by:
            variants = lay_out(table, by, self.baseline)
            comparison = replace(compare(variants), repeats=repeats(table))
            if self.is_whole:
                changed = self.changed(variants.baseline, changes(variants, CHANGED))
            comparison = with_decision(self.store, self.recorded, comparison, by)
        elif self.baseline:
            raise UsageError(
                f"a baseline {quoted(self.baseline)}, but nothing to compare by",
                advice="Say by which field: --by FIELD",
            )
        means, against = (
            compared_means(comparison) if comparison else plain_means(table),
            differences(comparison),
        )
        return Report(
            **self.facts(self._outcomes(table)),
            method=self.method(comparison),
            variants=list(dict.fromkeys(mean.variant for mean in comparison.means))
            if comparison
            else [],
            means=means,
            differences=against,
            scores=distribution(table, by, by_tens=self._has_totals) if self.is_whole else (),
            tags=tags(table, by),
            critical=critical_rates(comparison),
            lengths=_lengths(table) if self.is_whole else (),
            changed=changed,
            notes=[
                *(comparison.notes if comparison else self._not_compared(table)),
                *self._missing(),
            ],
        )

    @property
    def _has_totals(self) -> bool:
        """Return True where the dimensions do not weigh alike, so that a total says more."""
        measure = self.recorded.kind.measure
        return isinstance(measure, Scoring) and measure.has_critical_fails

    def _outcomes(self, table: Observations) -> _Outcomes:
        return _Outcomes(
            units=len(table.units),
            planned=len(table.units) * self.recorded.judgments_per_unit - table.left_out,
            verdicts=table.unit.size - sum(table.failures.values()),
            failures=table.failures,
            left_out=table.left_out,
        )

    def _not_compared(self, table: Observations) -> Iterator[str]:
        """Yield why variants that are there are not compared."""
        for name in _several(table):
            yield Note(
                f"There is more than one {name}, but nothing says which units of them belong "
                "together, so they are not compared. evenhand compare --pair-by FIELD names what "
                "they share.",
                "not_compared",
                field=name,
            )

    def _missing(self) -> Iterator[str]:
        """Yield how many judgments made elsewhere lack some of their scores."""
        if not self.recorded.imported:
            return
        read = self.recorded.kind.read_judgment
        judgments = (read(stored.text) for _, stored in self.store.judgments(self.scope))
        lacking = sum("scores_missing" in judgment.flags for judgment in judgments)
        if lacking:
            yield Note(
                f"Judgments without a score on some dimension: {lacking:,}; the notes of each say "
                "which. A dimension without any score is in no figure.",
                "scores_missing",
                n=lacking,
            )


def _lengths(table: Observations) -> list[LengthBin]:
    """Return the overall score by length of what was judged."""
    means = table.unit_means(OVERALL)
    return binned(table.numbers("length"), means, np.arange(means.size), (0.0, 1.0))


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


class _OfPairs(_Of):
    """A report of pairs."""

    def report(self) -> Report:
        table = observe(self.store, self.recorded)
        variants = self._variants(table)
        comparison = None
        if variants is not None:
            comparison = with_decision(self.store, self.recorded, compare(variants), self.by)
        board = leaderboard(table, Options()).board
        report = Report(
            **self.facts(self._outcomes(table)),
            method=self.method(comparison, table.rule),
            variants=list(table.candidates),
            differences=differences(comparison),
            standings=standings(board),
            meetings=meetings(board),
            warnings=trust_notes(
                self.recorded, table, board.rows[0].candidate if board.rows else None
            ),
            notes=_and_others(comparison.notes if comparison else (), board.notes),
        )
        return self._with_orders(report, table, variants) if self.is_whole else report

    def _with_orders(
        self, report: Report, table: Observations, variants: Variants | None
    ) -> Report:
        """Return a report with what the two orders tell, lengths, and what changed most."""
        run = self.recorded
        figures = figures_of_pairs(run.kind, self.store, self.scope, run.judge_groups, run.rule)
        return replace(
            report,
            positions=_positions(figures, run),
            agreement=share(figures.agreement) if figures.agreement.n else None,
            contradictions=dict(figures.contradictions.most_common()),
            lengths=pair_lengths(table),
            changed=self.changed(variants.baseline, changes(variants, CHANGED))
            if variants
            else None,
        )

    def _outcomes(self, table: Observations) -> _Outcomes:
        counts = self.recorded.counts(self.store)
        return _Outcomes(
            units=len(table.units),
            planned=counts.planned,
            verdicts=counts.verdicts,
            failures=counts.failures,
            left_out=counts.left_out,
        )

    def _variants(self, table: Observations) -> Variants | None:
        """Return the candidates against the baseline that is named; of two, against the first."""
        if self.by and self.by != ("candidate",):
            raise UsageError(
                "pairs are compared by candidate", advice="Leave out --by; name a --baseline."
            )
        if not self.baseline and len(table.candidates) != 2:
            return None
        return lay_out(table, (), self.baseline)


def _positions(figures: PairFigures, recorded: Recorded) -> list[Position]:
    apart = figures.judges or dict.fromkeys(recorded.names[:1], figures)
    return [
        Position(
            judge=name, consistency=share(figure.consistency), first_slot=share(figure.first_slot)
        )
        for name, figure in apart.items()
        if figure.first_rounds
    ]


def _units(store: Archive, recorded: Recorded, report: Report, say: Words) -> Iterator[ListedUnit]:
    """Yield the units with their judgments, as many as a file has room for."""
    kind, room = recorded.kind, BYTES_MOST
    by = [name.removeprefix("meta.") for name in report.method.by.split(" / ")]
    for unit, judged in islice(judged_units(store, recorded), UNITS_MOST):
        unit_shown = kind.present(kind.load(unit.body), [row.judgment for row in judged])
        line = unit_line(kind, unit.id, unit_shown, judged, say)
        variant = _variant(unit.id, unit_shown.measured, by)
        values: Mapping[str, Any] = {**line, "variant": variant}
        facets = {name: values[name] for name in FACETS}
        blocks = unit_blocks(unit_shown, judged, say, report.method.names, most=TEXT_MOST)
        room -= len(jsontext.compact(blocks))
        if room < 0:
            return
        yield ListedUnit(line, " · ".join(line["candidates"] or variant), facets, blocks)


def _variant(ident: str, unit: ScoredUnit | VotedUnit, by: Sequence[str]) -> list[str]:
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


def _and_others(notes: Sequence[str], board_notes: Sequence[str]) -> list[str]:
    """Return the notes of a comparison, and those of a board that say something else."""
    keys = {note.key for note in notes if isinstance(note, Note)}
    return [*notes, *(note for note in board_notes if getattr(note, "key", "") not in keys)]
