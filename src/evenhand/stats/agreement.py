"""Agreement of judges with people or with each other, and means corrected by labels.

Ratings of one unit are held against each other: every one of the run against every label, or every
two of different judges. What varies is the question: ratings of its units may hang together. Where
there are labels, a row ends in a verdict: a judge is usable as it is, usable if its means are
corrected by the labels, or not usable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from evenhand.errors import UsageError
from evenhand.observation import OVERALL, UNCERTAIN, WINNER
from evenhand.stats import coefficients
from evenhand.stats.agreement_result import BANDS, Agreement, AgreementRow, Usability
from evenhand.stats.coefficients import (
    CATEGORIES,
    TIE,
    Coefficient,
    Column,
    Pairs,
    against,
    among,
    no_coefficient,
    one_per_unit,
)
from evenhand.stats.leans import length_leans, position_leans
from evenhand.stats.observations import (
    NONE,
    Bools,
    Observations,
    field_named,
    in_name_order,
    is_by,
    unit_keys,
    with_one_overall,
)
from evenhand.stats.ppi import CorrectedRow, corrected_mean, label_notes
from evenhand.stats.variants import candidate_share
from evenhand.words import Names, Sentence, few

JUDGES = 10
"""Judges up to which every two are compared by themselves."""
MODERATE, SUBSTANTIAL = (end for end, _ in BANDS[1:3])
"""The least lower end of the interval of kappa, and the least kappa, of a judge that is usable as
it is."""
BIASED = 0.05
"""The part of the scale by which a judge may be off before its means have to be corrected."""
SCALES = 4.0
"""The ratio of the largest scores of the two sides from which they are taken to be on different
scales, unless both scales are known."""
RANKS = ("spearman", "pearson", "kendall")
"""The coefficients that do not depend on the scale."""
TWO_SCALES = "two scales"
SHOWN = 5
"""Dimensions that a note names; more are counted."""
Ties = Literal["keep", "drop"]


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
    ours, other = _comparable(run), None if labels is None else _comparable(labels)
    if other is not None and options.other_judges:
        if run is labels:  # nobody is held against himself
            ours = ours.where(~is_by(ours, options.other_judges))
        other = other.where(is_by(other, options.other_judges))
    if options.judges:
        ours = ours.where(is_by(ours, options.judges))
    if other is not None:
        ours, other = with_one_overall(ours, other)
    return _Comparison(run, ours, other, options).agreement()


def _comparable(table: Observations) -> Observations:
    """Return pairs turned to the order of the candidates' names; one against itself is no contest.
    Scores stay as they are."""
    if not table.is_pairs:
        return table
    return in_name_order(table.where(table.first != table.second))


def _on_units_of(run: Observations, other: Observations) -> Observations:
    """Return the ratings that another table has of the run's units, numbered as those."""
    places = {unit: at for at, unit in enumerate(unit_keys(run))}
    moved = np.array([places.get(unit, NONE) for unit in unit_keys(other)], np.int64)
    unit = moved[other.unit]
    about = ("units", "question", "fields", "candidates", "subject", "opponent")
    return replace(
        replace(other, unit=unit, planned=None).where(unit != NONE),
        **{name: getattr(run, name) for name in about},
    )


def _dimensions(table: Observations) -> list[str]:
    if table.is_pairs:
        return [WINNER, *table.dimensions]
    return [*table.dimensions, *([OVERALL] if len(table.dimensions) != 1 else [])]


def _has_nothing(table: Observations, names: Sequence[str]) -> Bools:
    """Return of each judgment whether it rates none of these dimensions."""
    columns = [np.isnan(table.column(name)) for name in names]
    return np.asarray(np.logical_and.reduce([np.ones(table.unit.size, np.bool_), *columns]))


def _column(table: Observations, name: str) -> Column:
    """Return the ratings on one dimension; of pairs 0 is the first candidate, 1 the second."""
    values = table.column(name)
    ratings = np.where(values == 0.5, TIE, values < 0.5) if table.is_pairs else values
    return Column(table.unit, table.judge, ratings).where(~np.isnan(values))


class _Comparison:
    """A run held against labels, or its judges among themselves."""

    def __init__(
        self,
        asked: Observations,
        run: Observations,
        other: Observations | None,
        options: AgreementOptions,
    ) -> None:
        self.asked, self.run, self.other, self.options = asked, run, other, options
        self.labels = None if other is None else _on_units_of(run, other)
        self.is_votes = run.is_pairs
        shared = _dimensions(run) if other is None else _dimensions(other)
        self.dimensions = [name for name in _dimensions(run) if name in shared]
        self.notes: list[Sentence] = []
        self.tied = dict[str, int]()
        """Of each dimension the units that have a tie and nothing else to compare."""
        self.two_scales = set[str]()
        self.variants: list[tuple[str, Bools]] = []
        if options.by is not None:
            field = field_named(run.fields, options.by)
            self.variants = [
                (level, field.codes == field.levels.index(level)) for level in sorted(field.levels)
            ]

    def agreement(self) -> Agreement:
        """Return all rows and notes."""
        level = self.options.level
        judges = [self.run.judges[judge] for judge in np.unique(self.run.judge)]
        nothing = _has_nothing(self.run, self.dimensions)
        rated = np.unique(self.run.unit[~nothing])
        only_other = failed_other = 0
        corrected: list[CorrectedRow] = []
        if self.other is None or self.labels is None:
            rows, matched = self._among_judges()
        else:
            self._check_dimensions(self.other)
            failed = _has_nothing(self.other, self.dimensions)
            labelled = self.labels.unit[~_has_nothing(self.labels, self.dimensions)]
            matched = np.intersect1d(rated, labelled).size
            only_other = np.unique(self.other.unit[~failed]).size - matched
            failed_other = int(failed.sum())
            rows = [row for name in self.dimensions for row in self._against_labels(name)]
            corrected = list(self._corrected_rows(self.labels))
        notes = [*self.notes, *self._count_notes(rows), *label_notes(corrected), *_why(rows)]
        if self.is_votes and any(
            (table.column(UNCERTAIN) == 1).any() for table in (self.run, self.other) if table
        ):
            notes.append(Sentence("agreement.uncertain_is_tie"))
        return Agreement(
            matched=matched,
            only_run=rated.size - matched,
            only_other=only_other,
            failed_run=int(nothing.sum()),
            failed_other=failed_other,
            rows=tuple(rows),
            corrected=tuple(corrected),
            positions=position_leans(self.asked, judges[:JUDGES], level),
            lengths=length_leans(self.asked, self.run, self.labels, self.dimensions, level),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _check_dimensions(self, other: Observations) -> None:
        """Note dimensions of one side alone; raise UsageError where none is shared."""
        ours, theirs = (table.dimensions for table in (self.run, other))
        if not self.is_votes and ours and theirs and not set(ours) & set(theirs):
            sides = {"ours": Names(ours), "theirs": Names(theirs)}
            raise UsageError(Sentence("agreement.no_shared_dimension", **sides))
        if alone := sorted(set(ours) ^ set(theirs)):
            self.notes.append(Sentence("agreement.only_one_side", dimensions=Names(alone)))

    def _count_notes(self, rows: Sequence[AgreementRow]) -> Iterator[Sentence]:
        """Yield why rows have fewer units than were matched, or more comparisons than units."""
        for name, number in self.tied.items():
            yield Sentence("agreement.tied", n=number, dimension=name)
        annotators = 1 if self.labels is None else np.unique(self.labels.judge).size
        if annotators > 1 and not self.options.majority and any(row.n > row.units for row in rows):
            yield Sentence("agreement.annotators", n=annotators)

    def _count_tied(self, name: str, pairs: Pairs) -> None:
        """Keep how many units are left out of a dimension where ties are dropped."""
        kept = pairs.unit[(pairs.a != TIE) & (pairs.b != TIE)]
        number = np.unique(pairs.unit).size - np.unique(kept).size
        if number and self.options.ties == "drop":
            self.tied[name] = number

    def _against_labels(self, name: str) -> Iterator[AgreementRow]:
        """Return the rows of a dimension: all judges, each judge, each variant."""
        assert self.labels is not None
        run, labels = _column(self.run, name), _column(self.labels, name)
        if self.options.majority:
            labels = one_per_unit(labels, is_votes=self.is_votes)
        pairs = against(self._single(run), labels)
        self._count_tied(name, pairs)
        if scales := self._scales(name, pairs):
            ends = dict(zip(("low", "high", "other_low", "other_high"), scales, strict=True))
            self.notes.insert(0, Sentence("agreement.two_scales", dimension=name, **ends))
            self.two_scales.add(name)
        yield self._row(name, pairs)
        present = np.unique(self.run.judge)
        for judge in present if present.size > 1 else ():
            of_judge = self._single(run.where(run.judge == judge))
            yield replace(self._row(name, against(of_judge, labels)), judge=self.run.judges[judge])
        for variant, units in self.variants:
            yield replace(self._row(name, pairs.where(units[pairs.unit])), variant=variant)

    def _single(self, column: Column) -> Column:
        return one_per_unit(column, is_votes=self.is_votes) if self.options.majority else column

    def _among_judges(self) -> tuple[list[AgreementRow], int]:
        """Return the rows of judges among themselves, and how many units two of them rated. The
        repeats of an only judge are compared with each other."""
        present = np.unique(self.run.judge)
        if present.size == 1 and self.run.unit.size > np.unique(self.run.unit).size:
            repeats, judge = np.unique(self.run.repeat, return_inverse=True)
            names = tuple(f"repeat {number + 1}" for number in range(repeats.size))
            self.run = replace(self.run, judge=judge, judges=names)
            self.notes.append(Sentence("agreement.repeats"))
        rows, matched = list[AgreementRow](), set[int]()
        for name in self.dimensions:
            column = one_per_unit(_column(self.run, name), is_votes=self.is_votes, each=True)
            pairs = among(column)
            self._count_tied(name, pairs)
            matched.update(pairs.unit.tolist())
            if self.options.ties == "drop":
                column = column.where(column.value != TIE)
            rows += self._of_panel(name, column)
        return rows, len(matched)

    def _of_panel(self, name: str, column: Column) -> Iterator[AgreementRow]:
        present = [int(judge) for judge in np.unique(column.judge)]

        def of_two(column: Column, i: int, j: int) -> AgreementRow:
            pairs = against(*(column.where(column.judge == judge) for judge in (i, j)))
            row = self._row(name, pairs)
            return replace(row, judge=self.run.judges[i], other=self.run.judges[j])

        def whole(column: Column) -> AgreementRow:
            if len(present) == 2:
                return of_two(column, *present)
            return self._row(name, among(column), column)

        yield whole(column)
        if 2 < len(present) <= JUDGES:
            for i, j in combinations(present, 2):
                yield of_two(column, i, j)
        for variant, units in self.variants:
            yield replace(whole(column.where(units[column.unit])), variant=variant)

    def _row(self, name: str, pairs: Pairs, panel: Column | None = None) -> AgreementRow:
        """Return the row of ratings held against each other; of several judges they are those of a
        panel."""
        if self.options.ties == "drop":
            pairs = pairs.where((pairs.a != TIE) & (pairs.b != TIE))
        figures = self._figures(name, pairs, panel)
        if name in self.two_scales:
            nothing = no_coefficient(TWO_SCALES, pairs.a.size)
            figures |= {figure: nothing for figure in figures if figure not in RANKS}
        row = AgreementRow(
            dimension=name,
            n=pairs.a.size,
            units=np.unique(pairs.unit).size,
            clusters=np.unique(self.run.question[pairs.unit]).size,
            figures=figures,
            confusion=self._confusion(pairs),
        )
        return row if self.labels is None else replace(row, verdict=self._verdict(row, pairs))

    def _ends(self, name: str) -> tuple[float, float]:
        scale = self.run.scale(name)
        return (scale if self.labels is None else scale.joined(self.labels.scale(name))).ends

    def _scales(self, name: str, pairs: Pairs) -> tuple[float, ...] | None:
        """Return the ends of both scales where they are two."""
        if self.is_votes or name == OVERALL or self.labels is None or not pairs.a.size:
            return None
        ours, theirs = self.run.scale(name), self.labels.scale(name)
        if ours.is_known and theirs.is_known:
            return None if ours == theirs else (*ours.ends, *theirs.ends)
        ends = [(float(side.min()), float(side.max())) for side in pairs[1:]]
        most = sorted(max(map(abs, pair)) for pair in ends)
        is_other = most[1] >= SCALES * most[0] and all(low < high for low, high in ends)
        return (*ends[0], *ends[1]) if is_other else None

    def _figures(self, name: str, pairs: Pairs, panel: Column | None) -> dict[str, Coefficient]:
        (unit, a, b), level, every = pairs, self.options.level, self.options.every
        question, both = self.run.question[unit], np.append(a, b)
        is_votes, rated = self.is_votes, (np.tile(np.arange(a.size), 2), both, question)
        if panel is not None:
            rated = panel.unit, panel.value, self.run.question
        same = coefficients.share((a == b).astype(np.float64), question, level)
        if not is_votes and np.unique(both).size > CATEGORIES:
            same = no_coefficient(coefficients.TOO_MANY, a.size)
        alpha = coefficients.alpha(*rated, level, interval=not is_votes)
        nominal = (
            {} if is_votes or not every else {"alpha_nominal": coefficients.alpha(*rated, level)}
        )
        if panel is not None:
            return {"agreement": same, "alpha": alpha, **nominal}
        if is_votes:
            kappa = coefficients.kappa(a, b, question, level)
            return {"agreement": same, "kappa": kappa, "alpha": alpha}
        low, high = self._ends(name)
        span = max(high - low, float(np.ptp(both)) if both.size else 0.0)
        figures = {
            "agreement": same,
            "kappa_quadratic": coefficients.kappa(a, b, question, level, quadratic=True),
            "alpha": alpha,
            "spearman": coefficients.spearman(a, b, question, level),
            "bias": coefficients.bias(a, b, question, span, level),
        }
        if self.labels is not None and a.size and np.isin(both, (0, 1)).all():
            bad = b == 0
            figures["bad_passed"] = coefficients.share(a[bad], question[bad], level)
            figures["good_failed"] = coefficients.share(1 - a[~bad], question[~bad], level)
        if every:
            figures["kappa"] = coefficients.kappa(a, b, question, level)
            figures |= nominal
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
        two = sorted(self.run.candidates) if len(self.run.candidates) == 2 else None
        names = [self._rating(level, two or ("first", "second")) for level in levels.tolist()]
        return {"labels": names, "counts": counts.tolist()}

    def _rating(self, value: float, names: Sequence[str] = ("first", "second")) -> str:
        return (*names, "tie")[int(value)] if self.is_votes else f"{value:g}"

    def _verdict(self, row: AgreementRow, pairs: Pairs) -> Usability | None:
        """Return what the judge is good for; None where the labels cannot tell."""
        if not pairs.a.size:
            return None
        if np.ptp(pairs.a) == 0 and row.n > 1:
            said = self._rating(float(pairs.a[0]))
            return Usability("not usable", Sentence("agreement.because_constant", rating=said))
        kappa = row.figures["kappa" if self.is_votes else "kappa_quadratic"]
        if kappa.value is None:
            return None
        if kappa.low is None or kappa.low <= 0:
            reason = Sentence("agreement.because_chance", n=row.clusters)
            return Usability("not usable", reason)
        bias, (low, high) = row.figures.get("bias"), self._ends(row.dimension)
        if bias and bias.value is not None and bias.low is not None and bias.high is not None:
            is_off = abs(bias.value) >= BIASED * (high - low)
            if is_off and not bias.low <= 0 <= bias.high:
                way = "higher" if bias.value > 0 else "lower"
                return Usability("usable corrected", Sentence(f"agreement.because_{way}"))
        if kappa.value < SUBSTANTIAL or kappa.low < MODERATE:
            return Usability("usable corrected", Sentence("agreement.because_differs"))
        return Usability("usable", Sentence("agreement.because_same"))

    def _corrected_rows(self, labels: Observations) -> Iterator[CorrectedRow]:
        """Return mean scores by dimension, or win rates by candidate, of each variant too."""
        names = [name for name in self.dimensions if name not in self.two_scales]
        for name in sorted(self.run.candidates) if self.is_votes else names:
            judged, known = (
                candidate_share(table, name).values if self.is_votes else table.unit_means(name)
                for table in (self.run, labels)
            )
            for variant, units in [(None, np.ones(judged.size, np.bool_)), *self.variants]:
                kept = units & ~np.isnan(judged)
                if labelled := int((~np.isnan(known[kept])).sum()):
                    ends = (0.0, 1.0) if self.is_votes else self._ends(name)
                    question, level = self.run.question[kept], self.options.level
                    yield CorrectedRow(
                        of="candidate" if self.is_votes else "dimension",
                        name=name,
                        variant=variant,
                        judged=int(kept.sum()),
                        labelled=labelled,
                        estimate=corrected_mean(
                            judged[kept], known[kept], question, ends=ends, level=level
                        ),
                    )


def _why(rows: Sequence[AgreementRow]) -> Iterator[Sentence]:
    """Return why figures are missing, once for all rows of which it is true."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for figure in row.figures.values():
            if figure.why and figure.why != TWO_SCALES and row.variant is None:
                reasons.setdefault(figure.why, []).append(row.dimension)
    for why, names in reasons.items():
        where = few(list(dict.fromkeys(names)), SHOWN)
        yield Sentence("agreement.no_figure", dimensions=where, why=why)
