"""Is one variant better than another? Paired differences with intervals, tests and outcomes.

`compare_scores` takes a table of scores, `compare_votes` one of votes; both give a `Comparison`.
The dimensions of all variants are one family of tests, the overall rows another, tags a third.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from evenhand.stats.comparison.against import compare_votes, shared_votes
from evenhand.stats.comparison.caveats import score_notes
from evenhand.stats.comparison.comparison import OVERALL, Comparison, Row, VariantMean
from evenhand.stats.comparison.contrast import Shared, contrast, decided, proper_level
from evenhand.stats.comparison.missing import counts, filled
from evenhand.stats.comparison.repeats import repeats
from evenhand.stats.comparison.variants import Layout, chosen, judge_named, layout
from evenhand.stats.estimate import mean, mean_of_questions
from evenhand.stats.tables import Bools, Floats, Ints, Scores

CRITICAL = "critical fail"

__all__ = [
    "CRITICAL",
    "compare_scores",
    "compare_votes",
    "of_judge",
    "shared_scores",
    "shared_votes",
]


def compare_scores(
    scores: Scores,
    by: str | Sequence[str],
    baseline: str | None = None,
    *,
    pair_by: Sequence[str] | None = None,
    judge: str | None = None,
    level: float = 0.95,
    margin: float | None = None,
) -> Comparison:
    """Variants of what was scored beside a baseline, dimension by dimension and overall.

    Units are paired on the fields of their ids less `by`, or on `pair_by`; without a baseline the
    variant that comes first is taken. Raises UsageError for names that nobody has.
    """
    proper_level(level)
    fields = [by] if isinstance(by, str) else list(by)
    variants = variant_scores(scores, fields, baseline, pair_by=pair_by, judge=judge)
    return compare_variants(variants, level, margin)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantScores:
    """Scores laid out by variant, one of which is the baseline."""

    scores: Scores
    places: Layout
    base: int
    """The place of the baseline among the variants."""
    notes: Sequence[str] = ()
    has_overall: bool = True
    """Whether the dimensions come to something together, as win rates of candidates do not."""

    @property
    def baseline(self) -> str:
        return self.places.variants[self.base]


def variant_scores(
    scores: Scores,
    by: Sequence[str],
    baseline: str | None = None,
    *,
    pair_by: Sequence[str] | None = None,
    judge: str | None = None,
) -> VariantScores:
    """Scores laid out as `compare_scores` compares them; raises UsageError for names that nobody
    has."""
    judged = scores if judge is None else of_judge(scores, judge)
    places = layout(judged, by, pair_by)
    base, notes = chosen(places.variants, baseline)
    return VariantScores(scores=judged, places=places, base=base, notes=notes)


def compare_variants(
    variants: VariantScores, level: float, margin: float | None = None
) -> Comparison:
    """The comparison of scores that are laid out."""
    judged, places, base = variants.scores, variants.places, variants.base
    measures = measures_of(variants)
    tags = [_measure(judged, places, *tag) for tag in _tags(judged)]
    table = [_contrasts(measure, places, base, level) for measure in measures]
    several = len(measures) - 1 if variants.has_overall else len(measures)
    tagged = [row for tag in tags for row in _contrasts(tag, places, base, level)]
    comparison = Comparison(
        by=" / ".join(places.by),
        baseline=places.variants[base],
        level=level,
        margin=margin,
        rows=(
            *decided([row for rows in table[:several] for row in rows], level, margin=margin),
            *decided([row for rows in table[several:] for row in rows], level, margin=margin),
        ),
        means=tuple(
            variant_mean for measure in measures for variant_mean in _means(measure, places, level)
        ),
        tags=tuple(decided(tagged, level, more_is_better=False)),
        missing=counts(judged, places, base),
        repeats=repeats(judged, with_overall=variants.has_overall),
        pair_by=places.pair_by,
    )
    notes = score_notes(comparison, judged, places, base)
    comparison = replace(comparison, notes=(*notes, *variants.notes))
    return comparison if judged.given_scale else comparison.without_scales


def of_judge(scores: Scores, name: str) -> Scores:
    """The judgments of one judge, with every unit still there."""
    place = judge_named(scores.judges, name)
    rows = scores.judge == place
    # Where nobody says how many it is to give, as many as it gave of any unit.
    most = int(scores.repeat[rows].max(initial=0)) + 1
    planned = np.minimum(scores.planned, most) if scores.due is None else scores.due[:, place]
    return replace(
        scores,
        values=scores.values[rows],
        totals=None if scores.totals is None else scores.totals[rows],
        most=None if scores.most is None else scores.most[rows],
        unit=scores.unit[rows],
        judge=scores.judge[rows],
        repeat=scores.repeat[rows],
        tags=scores.tags[rows],
        critical=scores.critical[rows],
        planned=planned,
        due=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One dimension, a row per key and a column per variant: the values, nan where there is none,
    and the least and greatest that they could be if nothing were missing."""

    name: str
    values: Floats
    least: Floats
    most: Floats
    ends: tuple[float, float]


def _dimensions(scores: Scores) -> Iterator[tuple[str, Floats, tuple[float, float]]]:
    for place, name in enumerate(scores.dimensions):
        yield name, scores.values[:, place], (float(scores.low[place]), float(scores.high[place]))
    yield OVERALL, scores.overall, (0.0, 1.0)


def _tags(scores: Scores) -> Iterator[tuple[str, Floats, tuple[float, float]]]:
    """Tags and critical fails as shares; what was never given is not compared."""
    tags: list[tuple[str, Bools]] = [
        (name, scores.tags[:, place]) for place, name in enumerate(scores.tag_names)
    ]
    critical = [(CRITICAL, scores.critical)] if scores.tells_critical else []
    for name, flags in [*tags, *critical]:
        if flags.any():
            yield name, np.where(scores.failed, np.nan, flags), (0.0, 1.0)


def measures_of(variants: VariantScores) -> list[Measure]:
    """Every dimension laid out, overall last if there is such a figure."""
    scores, places = variants.scores, variants.places
    dimensions = list(_dimensions(scores))
    shown = dimensions if variants.has_overall else dimensions[:-1]
    return [_measure(scores, places, *dimension) for dimension in shown]


def measure_of(variants: VariantScores, place: int) -> Measure:
    """The one of them at a place."""
    dimension = list(_dimensions(variants.scores))[place]
    return _measure(variants.scores, variants.places, *dimension)


def _measure(
    scores: Scores, places: Layout, name: str, values: Floats, ends: tuple[float, float]
) -> Measure:
    """The mean of each unit over judges and repeats, laid out by key and variant."""
    scored, number = ~np.isnan(values), len(scores.units)
    count = np.bincount(scores.unit[scored], minlength=number)
    sums = np.bincount(scores.unit[scored], values[scored], number).astype(np.float64)
    means = np.divide(sums, count, out=np.full(number, np.nan), where=count > 0)
    planned = np.maximum(np.bincount(scores.unit, minlength=number), scores.planned)
    least, most = (
        places.cells(np.where(_asked(scores, name), filled(sums, count, planned, end), np.nan))
        for end in ends
    )
    return Measure(name=name, values=places.cells(means), least=least, most=most, ends=ends)


def _asked(scores: Scores, name: str) -> Bools:
    """Of each unit whether its judgments say anything on a dimension: what does not cannot be
    missing."""
    if scores.asked is None or name not in scores.dimensions:
        return np.ones(len(scores.units), dtype=np.bool_)
    return scores.asked[:, scores.dimensions.index(name)]


def _contrasts(measure: Measure, places: Layout, base: int, level: float) -> list[Row]:
    """Every other variant against the baseline."""
    others = (place for place in range(len(places.variants)) if place != base)
    return [contrast(shared_of(measure, places, place, base), level) for place in others]


def shared_of(measure: Measure, places: Layout, place: int, base: int) -> Shared:
    """What a variant and the baseline have on the units that both have."""
    ours, theirs = measure.values[:, place], measure.values[:, base]
    paired = ~np.isnan(ours) & ~np.isnan(theirs)
    return Shared(
        dimension=measure.name,
        variant=places.variants[place],
        ours=ours[paired],
        theirs=theirs[paired],
        cluster=places.cluster[paired],
        key=np.flatnonzero(paired),
        ends=measure.ends,
        bounds=_bounds(measure, places.cluster, place, base),
    )


def shared_scores(
    scores: Scores, places: Layout, dimension: str, variant: str, baseline: str
) -> Shared:
    """The values behind one row of a comparison that is laid out so; all names must be there."""
    measure = next(
        _measure(scores, places, *column)
        for column in _dimensions(scores)
        if column[0] == dimension
    )
    return shared_of(
        measure, places, places.variants.index(variant), places.variants.index(baseline)
    )


def _bounds(measure: Measure, cluster: Ints, place: int, base: int) -> tuple[float, float] | None:
    """How far missing judgments could move the difference over all pairs there are."""
    with np.errstate(over="ignore", invalid="ignore"):  # such bounds are left out
        low = measure.least[:, place] - measure.most[:, base]
        high = measure.most[:, place] - measure.least[:, base]
        paired = ~np.isnan(low)
        if not paired.any():
            return None
        means = [mean_of_questions(side[paired], cluster[paired]) for side in (low, high)]
        ends = round(means[0], 12), round(means[1], 12)
    return ends if all(map(isfinite, ends)) else None


def _means(measure: Measure, places: Layout, level: float) -> Iterator[VariantMean]:
    """The mean of each variant over all its units that have a score."""
    for place, name in enumerate(places.variants):
        scored = ~np.isnan(measure.values[:, place])
        estimate = mean(measure.values[scored, place], places.cluster[scored], measure.ends, level)
        yield VariantMean(
            dimension=measure.name,
            variant=name,
            n=estimate.n,
            clusters=estimate.clusters,
            mean=estimate.value,
            low=estimate.low,
            high=estimate.high,
            scale=measure.ends,
        )
