"""Agreement of judges with people or with each other, and means corrected by labels.

Ratings of one unit are held against each other: every one of the run against every label, or every
two of different judges. What varies is the question: ratings of its units may hang together. Where
there are labels, a row ends in a verdict: a judge is usable as it is, usable if its means are
corrected by the labels, or not usable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.observation import OVERALL, UNCERTAIN, WINNER
from evenhand.stats import coefficients
from evenhand.stats.coefficients import CATEGORIES, NOTHING, Coefficient, undefined
from evenhand.stats.leans import LengthLean, PositionLean, length_leans, position_leans
from evenhand.stats.observations import Observations, field_named
from evenhand.stats.ppi import CorrectedRow, corrected_rows, label_notes
from evenhand.stats.sides import (
    TIE,
    Column,
    Pairs,
    Side,
    Ties,
    against,
    among,
    on_units_of,
    one_per_unit,
    repeats_as_judges,
    side_of,
    widest,
    with_one_overall,
)

JUDGES = 10
"""Judges up to which every two are compared by themselves."""
SUBSTANTIAL, MODERATE = 0.6, 0.4
"""The least kappa, and the least lower end of its interval, of a judge that is usable as it is: the
bounds of Landis and Koch (1977)."""
BIASED = 0.05
"""The part of the scale by which a judge may be off before its means have to be corrected."""
SCALES = 4.0
"""The ratio of the largest scores of the two sides from which they are taken to be on different
scales, unless both scales are known."""
VOTE_FIGURES = ("agreement", "kappa", "alpha")
SCORE_FIGURES = ("agreement", "kappa_quadratic", "alpha", "spearman", "bias")
RANKS = ("spearman", "pearson", "kendall")
"""The coefficients that do not depend on the scale."""
TWO_SCALES = "the two sides are on different scales"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The use that a judge is fit for, with the reason."""

    outcome: Literal["usable", "usable corrected", "not usable"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The coefficients of one dimension, of all judges or of some, of all units or a variant."""

    dimension: str
    judge: str | None = None
    other: str | None = None
    variant: str | None = None
    n: int
    """The number of pairs of ratings compared."""
    units: int
    clusters: int
    figures: Mapping[str, Coefficient]
    confusion: Mapping[str, Any] | None = None
    """The count of each rating of the run (rows) with each of the other side (columns)."""
    verdict: Verdict | None = None

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        about = asdict(self)
        figures: dict[str, Any] = about.pop("figures")
        return about | figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The agreement between two sides, or among the judges of one."""

    matched: int
    """Units rated by both sides, or by two judges of the one."""
    only_run: int
    only_other: int
    failed_run: int
    """Judgments without a verdict."""
    failed_other: int
    rows: tuple[Row, ...]
    corrected: tuple[CorrectedRow, ...]
    positions: tuple[PositionLean, ...] = ()
    """Of each judge of pairs that was asked in both orders."""
    lengths: tuple[LengthLean, ...] = ()
    notes: tuple[str, ...]
    """The most important first."""

    def row(
        self,
        dimension: str | None = None,
        *,
        judge: str | None = None,
        other: str | None = None,
        variant: str | None = None,
    ) -> Row:
        """Return one row; without a dimension the first that fits. Raise KeyError."""
        for row in self.rows:
            is_match = (row.judge, row.other, row.variant) == (judge, other, variant)
            if is_match and dimension in (None, row.dimension):
                return row
        raise KeyError((dimension, judge, other, variant))

    @property
    def main(self) -> Row:
        """The row that says how far all agree on the whole: the winner, or the overall score."""
        whole = [row for row in self.rows if row.dimension in (WINNER, OVERALL)]
        return (whole or list(self.rows))[0]

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        return {
            "units": {
                "matched": self.matched,
                "only_run": self.only_run,
                "only_against": self.only_other,
            },
            "failures": {"run": self.failed_run, "against": self.failed_other},
            "rows": [row.json() for row in self.rows],
            "corrected": [row.json() for row in self.corrected],
            "positions": [asdict(lean) for lean in self.positions],
            "lengths": [asdict(lean) for lean in self.lengths],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementOptions:
    """Which ratings are compared, and how."""

    judges: Sequence[str] = ()
    """The judges of the run that count; names or patterns. Without any all do."""
    other_judges: Sequence[str] = ()
    ties: Ties = "keep"
    majority: bool = False
    """One rating a side and unit: the most frequent vote, or the mean score."""
    by: str | None = None
    level: float = 0.95
    every: bool = False
    """Also figures that few ask for."""


def agreement_of(
    run: Observations, labels: Observations | None, options: AgreementOptions
) -> Agreement:
    """Return how far the judges of a run agree with other ratings of the same units; without any,
    among themselves."""
    sides = [side_of(each) for each in (run, labels) if each is not None]
    sides = with_one_overall(_chosen(sides, run is labels, options))
    found = _Comparison(sides, options).agreement()
    notes = tuple(_pair_notes([each for each in (run, labels) if each is not None], options.ties))
    judges = [sides[0].judges[judge] for judge in sides[0].present][:JUDGES]
    positions = position_leans(run, judges, options.level) if run.is_pairs else ()
    return replace(found, positions=positions, notes=(*found.notes, *notes))


def _pair_notes(tables: Sequence[Observations], ties: Ties) -> Iterator[str]:
    tables = [table for table in tables if table.is_pairs]
    dropped = sum(int(table.conflict.sum()) for table in tables if table.rule == "drop")
    if dropped:
        yield f"{dropped} judgments whose orders contradict each other are left out"
    if same := sum(int((table.first == table.second).sum()) for table in tables):
        yield f"left out: {same} of a candidate against itself"
    if any((table.column(UNCERTAIN) == 1).any() for table in tables):
        yield "uncertain counts as a tie"
    if ties == "drop":
        yield "where either side is a tie, the two votes are left out"


def _chosen(sides: list[Side], same: bool, options: AgreementOptions) -> list[Side]:
    """Return the sides with the chosen judges. Of one run, nobody is held against himself."""
    run, *others = sides
    if others and options.other_judges:
        if same:
            run = run.where(~run.is_of(options.other_judges))
        others = [others[0].where(others[0].is_of(options.other_judges))]
    return [run.where(run.is_of(options.judges)) if options.judges else run, *others]


class _Comparison:
    """One side held against another, or the judges of one among themselves."""

    def __init__(self, sides: Sequence[Side], options: AgreementOptions) -> None:
        self.run, self.options = sides[0], options
        self.other = sides[1] if len(sides) > 1 else None
        self.labels = None if self.other is None else on_units_of(self.run, self.other)
        self.is_votes = self.run.is_pairs
        self.field = None if options.by is None else field_named(self.run.fields, options.by)
        self.dimensions = [
            name for name in self.run.values if self.labels is None or name in self.labels.values
        ]
        self.notes: list[str] = []
        self.two_scales = set[str]()

    def agreement(self) -> Agreement:
        """Return all rows and notes."""
        rated = np.unique(self.run.unit[~self.run.failed(self.dimensions)])
        only_other = failed_other = 0
        corrected: list[CorrectedRow] = []
        if self.other is None or self.labels is None:
            rows, matched = self._among_judges()
        else:
            self._check_dimensions(self.other)
            failed = self.other.failed(self.dimensions)
            labelled = np.unique(self.labels.unit[~self.labels.failed(self.dimensions)])
            matched = np.intersect1d(rated, labelled).size
            only_other = np.unique(self.other.unit[~failed]).size - matched
            failed_other = int(failed.sum())
            rows = [row for name in self.dimensions for row in self._against_labels(name)]
            corrected = list(
                corrected_rows(
                    self.run,
                    self.labels,
                    [name for name in self.dimensions if name not in self.two_scales],
                    [(None, np.ones(len(self.run.units), np.bool_)), *self._variants()],
                    self.options.level,
                )
            )
            self._note_sides(matched)
        return Agreement(
            matched=matched,
            only_run=rated.size - matched,
            only_other=only_other,
            failed_run=int(self.run.failed(self.dimensions).sum()),
            failed_other=failed_other,
            rows=tuple(rows),
            corrected=tuple(corrected),
            lengths=tuple(length_leans(self.run, self.labels, self.options.level)),
            notes=tuple(dict.fromkeys([*self.notes, *label_notes(corrected), *_why(rows)])),
        )

    def _check_dimensions(self, other: Side) -> None:
        """Note dimensions of one side alone; raise UsageError where none is shared."""
        if not self.dimensions and self.run.values and other.values:
            ours, theirs = (", ".join(map(quoted, side.values)) for side in (self.run, other))
            raise UsageError(
                f"the two sides have no dimension in common: {ours} against {theirs}",
                advice="Import one of them again with the other's names of dimensions.",
            )
        if alone := sorted((set(self.run.values) ^ set(other.values)) - {OVERALL}):
            self.notes.append(f"only one side has: {', '.join(alone)}")

    def _note_sides(self, matched: int) -> None:
        assert self.labels is not None
        several = [side.unit.size > np.unique(side.unit).size for side in (self.run, self.labels)]
        if not matched:
            self.notes.append("no unit is rated by both sides: they are joined by the ids of units")
        elif any(several) and not self.options.majority:
            self.notes.append(
                "a side has several judgments of a unit: each is held against each of the other"
            )

    def _variants(self) -> Iterator[tuple[str, Any]]:
        """Return the values of the chosen field, and of which units each is."""
        if self.field is not None:
            for variant in sorted(self.field.levels):
                yield variant, self.field.codes == self.field.levels.index(variant)

    def _against_labels(self, name: str) -> Iterator[Row]:
        """Return the rows of a dimension: all judges, each judge, each variant."""
        assert self.labels is not None
        run, labels = self.run.column(name), self.labels.column(name)
        if self.options.majority:
            labels = one_per_unit(labels, votes=self.is_votes)
        pairs = against(self._single(run), labels)
        if scales := self._scales(name, pairs):
            said = "the run's scores go from {:g} to {:g}, the other side's from {:g} to {:g}"
            self.notes.insert(0, f"{name}: {TWO_SCALES}: {said.format(*scales)}")
            self.two_scales.add(name)
        yield self._row(name, pairs)
        for judge in self.run.present if len(self.run.present) > 1 else ():
            of_judge = self._single(run.where(run.judge == judge))
            yield replace(self._row(name, against(of_judge, labels)), judge=self.run.judges[judge])
        for variant, units in self._variants():
            yield replace(self._row(name, pairs.where(units[pairs.unit])), variant=variant)

    def _single(self, column: Column) -> Column:
        return one_per_unit(column, votes=self.is_votes) if self.options.majority else column

    def _among_judges(self) -> tuple[list[Row], int]:
        """Return the rows of judges among themselves, and how many units two of them rated."""
        if len(self.run.present) == 1 and self.run.unit.size > np.unique(self.run.unit).size:
            self.run = repeats_as_judges(self.run)
            self.notes.append("there is one judge: its repeats are compared with each other")
        elif len(self.run.present) < 2:
            self.notes.append("there is one judge and no repeat: nothing to compare")
        elif len(self.run.present) > JUDGES:
            self.notes.append(f"more than {JUDGES} judges are not compared two by two; see --judge")
        rows, matched = list[Row](), set[int]()
        for name in self.dimensions:
            column = one_per_unit(self.run.column(name), votes=self.is_votes, each=True)
            if self.options.ties == "drop":
                column = column.where(column.value != TIE)
            matched.update(among(column).unit.tolist())
            rows += self._of_panel(name, column)
        return rows, len(matched)

    def _of_panel(self, name: str, column: Column) -> Iterator[Row]:
        present = [int(judge) for judge in np.unique(column.judge)]

        def whole(column: Column) -> Row:
            if len(present) == 2:
                return self._of_two(name, column, *present)
            pairs = among(column)
            return replace(
                self._row(name, pairs, is_labelled=False), figures=self._panel(column, pairs)
            )

        yield whole(column)
        if 2 < len(present) <= JUDGES:
            for i, j in combinations(present, 2):
                yield self._of_two(name, column, i, j)
        for variant, units in self._variants():
            yield replace(whole(column.where(units[column.unit])), variant=variant)

    def _of_two(self, name: str, column: Column, i: int, j: int) -> Row:
        pairs = against(*(column.where(column.judge == judge) for judge in (i, j)))
        row = self._row(name, pairs, is_labelled=False)
        return replace(row, judge=self.run.judges[i], other=self.run.judges[j])

    def _panel(self, column: Column, pairs: Pairs) -> dict[str, Coefficient]:
        level, question = self.options.level, self.run.question
        figures = {
            "agreement": self._agreement(pairs),
            "alpha": coefficients.alpha(
                column.unit, column.value, question, level, interval=not self.is_votes
            ),
        }
        if not self.is_votes and self.options.every:
            nominal = coefficients.alpha(column.unit, column.value, question, level)
            figures["alpha_nominal"] = nominal
        return figures

    def _agreement(self, pairs: Pairs) -> Coefficient:
        if not self.is_votes and np.unique(np.concatenate(pairs[1:])).size > CATEGORIES:
            return undefined(coefficients.TOO_MANY, pairs.a.size)
        same = (pairs.a == pairs.b).astype(np.float64)
        return coefficients.share(same, self.run.question[pairs.unit], self.options.level)

    def _row(self, name: str, pairs: Pairs, *, is_labelled: bool = True) -> Row:
        if self.options.ties == "drop":
            pairs = pairs.where((pairs.a != TIE) & (pairs.b != TIE))
        figures = self._figures(name, pairs, is_labelled)
        if name in self.two_scales:
            nothing = undefined(TWO_SCALES, pairs.a.size)
            figures |= {figure: nothing for figure in figures if figure not in RANKS}
        row = Row(
            dimension=name,
            n=pairs.a.size,
            units=np.unique(pairs.unit).size,
            clusters=np.unique(self.run.question[pairs.unit]).size,
            figures=figures,
            confusion=self._confusion(pairs),
        )
        return replace(row, verdict=self._verdict(row, pairs)) if is_labelled else row

    def _span(self, name: str) -> float:
        sides = [self.run] if self.labels is None else [self.run, self.labels]
        low, high = widest(sides, name)
        return high - low

    def _scales(self, name: str, pairs: Pairs) -> tuple[float, ...] | None:
        """Return the ends of both scales where they are two."""
        if self.is_votes or name == OVERALL or self.labels is None or not pairs.a.size:
            return None
        ours, theirs = self.run.scales[name], self.labels.scales[name]
        if ours.is_known and theirs.is_known:
            return None if ours == theirs else (*ours.ends, *theirs.ends)
        ends = [(float(side.min()), float(side.max())) for side in pairs[1:]]
        most = sorted(max(map(abs, pair)) for pair in ends)
        is_other = most[1] >= SCALES * most[0] and all(low < high for low, high in ends)
        return (*ends[0], *ends[1]) if is_other else None

    def _figures(self, name: str, pairs: Pairs, is_labelled: bool) -> dict[str, Coefficient]:
        (unit, a, b), level = pairs, self.options.level
        question, both = self.run.question[unit], np.append(a, b)
        item = np.tile(np.arange(a.size), 2)
        if not a.size:
            names = VOTE_FIGURES if self.is_votes else SCORE_FIGURES
            return dict.fromkeys(names, undefined(NOTHING))
        figures = {"agreement": self._agreement(pairs)}
        if self.is_votes:
            figures["kappa"] = coefficients.kappa(a, b, question, level)
            figures["alpha"] = coefficients.alpha(item, both, question, level)
            return figures
        span = max(self._span(name), float(np.ptp(both)))
        figures["kappa_quadratic"] = coefficients.kappa(a, b, question, level, quadratic=True)
        figures["alpha"] = coefficients.alpha(item, both, question, level, interval=True)
        figures["spearman"] = coefficients.spearman(a, b, question, level)
        figures["bias"] = coefficients.bias(a, b, question, span, level)
        if is_labelled and np.isin(both, (0, 1)).all():
            bad = b == 0
            figures["bad_passed"] = coefficients.share(a[bad], question[bad], level)
            figures["good_failed"] = coefficients.share(1 - a[~bad], question[~bad], level)
        if self.options.every:
            figures["kappa"] = coefficients.kappa(a, b, question, level)
            figures["alpha_nominal"] = coefficients.alpha(item, both, question, level)
            figures["pearson"] = coefficients.pearson(a, b, question, level)
            figures["kendall"] = coefficients.kendall(a, b, question, level)
            figures |= coefficients.errors(a, b, question, span, level)
        return figures

    def _confusion(self, pairs: Pairs) -> dict[str, Any] | None:
        levels = np.unique(np.append(pairs.a, pairs.b))
        if not 0 < levels.size <= CATEGORIES:
            return None
        cells = np.searchsorted(levels, pairs.a) * levels.size + np.searchsorted(levels, pairs.b)
        counts = np.bincount(cells, minlength=levels.size**2).reshape(levels.size, -1)
        names = [f"{level:g}" for level in levels]
        if self.is_votes:
            two = sorted(self.run.candidates) if len(self.run.candidates) == 2 else None
            names = [(*(two or ("first", "second")), "tie")[int(level)] for level in levels]
        return {"labels": names, "counts": counts.tolist()}

    def _verdict(self, row: Row, pairs: Pairs) -> Verdict | None:
        """Return what the judge is good for; None where the labels cannot tell."""
        if not pairs.a.size:
            return None
        if np.ptp(pairs.a) == 0 and row.n > 1:
            said = self._rating(float(pairs.a[0]))
            return Verdict("not usable", f"the judge says {said} of every unit")
        kappa = row.figures["kappa" if self.is_votes else "kappa_quadratic"]
        if kappa.value is None:
            return None
        if kappa.low is None or kappa.low <= 0:
            reason = f"{row.clusters} questions do not show more agreement than chance gives"
            return Verdict("not usable", reason)
        bias = row.figures.get("bias")
        if bias and bias.value is not None and bias.low is not None and bias.high is not None:
            is_off = abs(bias.value) >= BIASED * self._span(row.dimension)
            if is_off and not bias.low <= 0 <= bias.high:
                way = "higher" if bias.value > 0 else "lower"
                return Verdict("usable corrected", f"the judge rates {way} than the labels")
        if kappa.value < SUBSTANTIAL or kappa.low < MODERATE:
            return Verdict("usable corrected", "the judge often parts from the labels")
        return Verdict("usable", "the judge mostly says what the labels say")

    def _rating(self, value: float) -> str:
        return ("first", "second", "tie")[int(value)] if self.is_votes else f"{value:g}"


def _why(rows: Sequence[Row]) -> Iterator[str]:
    """Return why figures are missing, once for all rows of which it is true."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for figure in row.figures.values():
            if figure.why and figure.why != TWO_SCALES and row.variant is None:
                reasons.setdefault(figure.why, []).append(row.dimension)
    for why, names in reasons.items():
        yield f"{', '.join(dict.fromkeys(names))}: no figure where {why}"
