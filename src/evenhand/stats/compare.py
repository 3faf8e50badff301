"""Is one variant better than another? Paired differences with intervals, tests and outcomes.

Variants of scores, candidates of pairs and two runs are compared in the same way, once they are
laid out. The dimensions of all variants are one family of tests, the overall rows another, tags a
third.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import NamedTuple

import numpy as np

from evenhand.errors import UsageError
from evenhand.observation import OVERALL, PASSED
from evenhand.stats.caveats import comparison_notes
from evenhand.stats.comparison import Comparison, Outcome, Row, VariantMean
from evenhand.stats.estimate import (
    ROUNDING,
    Estimate,
    difference,
    holm,
    is_significant,
    mean,
    mean_of_questions,
    more_questions,
)
from evenhand.stats.observations import Floats, Ints
from evenhand.stats.variants import Measure, Variants
from evenhand.words import Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The values of a variant and of the baseline on what both have, in the same order."""

    dimension: str
    variant: str
    ours: Floats
    theirs: Floats
    cluster: Ints
    key: Ints
    """Which pair of units each value is of: a key of the layout, or a pair of the votes."""
    ends: tuple[float, float]
    bounds: tuple[float, float] | None
    is_win_rate: bool = False
    """True if values are win rates and `theirs` is 1 less `ours`: pairs weigh alike, and the
    difference says the same as the rate."""


def proper_level(level: float) -> None:
    """Raise UsageError for a level that no interval can have."""
    if not 0.5 <= level < 1:
        raise UsageError(Sentence("stats.no_level", level=level))


def contrast(shared: Shared, level: float) -> Row:
    """Return the figures of one row; what its family decides is open still."""
    with np.errstate(over="ignore", invalid="ignore"):  # such figures are left out
        gaps = shared.ours - shared.theirs
    if shared.is_win_rate:
        ours = mean(shared.ours, shared.cluster, shared.ends, level, weigh="units")
        theirs, gap = _rest_of_one(ours), _double(ours)
    else:
        ours = mean(shared.ours, shared.cluster, shared.ends, level)
        theirs = mean(shared.theirs, shared.cluster, shared.ends, level)
        gap = difference(gaps, shared.cluster, shared.ends[1] - shared.ends[0], level)
    return Row(
        dimension=shared.dimension,
        variant=shared.variant,
        n=gap.n,
        clusters=gap.clusters,
        mean=ours.value,
        mean_low=ours.low,
        mean_high=ours.high,
        baseline_mean=theirs.value,
        baseline_low=theirs.low,
        baseline_high=theirs.high,
        difference=gap.value,
        low=gap.low,
        high=gap.high,
        error=gap.error,
        higher=int((gaps > 0).sum()),
        lower=int((gaps < 0).sum()),
        p=gap.p,
        p_adjusted=None,
        effect=None if gap.value is None else effect(gaps),
        outcome="not enough evidence",
        bounds=shared.bounds,
        scale=shared.ends,
    )


def _rest_of_one(rate: Estimate) -> Estimate:
    if rate.value is None or rate.low is None or rate.high is None:
        return rate
    return replace(rate, value=1 - rate.value, low=1 - rate.high, high=1 - rate.low)


def _double(rate: Estimate) -> Estimate:
    """Return a win rate as the difference between both sides' rates, from -1 to 1."""
    if rate.value is None or rate.low is None or rate.high is None:
        return rate
    value = 2 * rate.value - 1
    return replace(
        rate,
        value=value if abs(value) > ROUNDING else 0.0,
        low=2 * rate.low - 1,
        high=2 * rate.high - 1,
        error=None if rate.error is None else 2 * rate.error,
    )


def effect(gaps: Floats) -> float | None:
    """Return the mean difference in standard deviations of the differences (d_z); None if they are
    all alike, or fewer than two."""
    if gaps.size < 2:
        return None
    spread, least = float(gaps.std(ddof=1)), ROUNDING * float(np.abs(gaps).max())
    middle = float(gaps.mean())
    if spread <= least:
        return None
    return middle / spread if abs(middle) > least else 0.0


def decide_rows(
    rows: Sequence[Row], level: float, *, margin: float | None = None, more_is_better: bool = True
) -> list[Row]:
    """Return the rows of one family with adjusted p values and outcomes.

    A row is better or worse if its interval, widened by Holm's correction, leaves out 0; it is the
    same if its interval lies within the margin. One that is open says what more it would take.
    """
    adjusted = holm([row.p for row in rows])
    family = max(1, sum(row.p is not None for row in rows))
    found: list[Row] = []
    for row, p in zip(rows, adjusted, strict=True):
        outcome = _outcome(replace(row, p_adjusted=p), level, margin, more_is_better)
        more = None
        if outcome == "not enough evidence":
            more = more_questions(row.difference, row.error, row.clusters, (1 - level) / family)
        found.append(replace(row, p_adjusted=p, outcome=outcome, more_questions=more))
    return found


def _outcome(row: Row, level: float, margin: float | None, more_is_better: bool) -> Outcome:
    if row.clusters < 2 or row.difference is None or row.low is None or row.high is None:
        return "not enough evidence"
    if margin is not None and -margin <= row.low and row.high <= margin:
        return "same"
    if not is_significant(row.p_adjusted, level) or not row.difference:
        return "not enough evidence"
    return "better" if (row.difference > 0) == more_is_better else "worse"


def compare(variants: Variants, level: float = 0.95, margin: float | None = None) -> Comparison:
    """Return the comparison of every variant with the baseline, dimension by dimension and
    overall; raise UsageError for a level that no interval can have.

    Of candidates `mean` is the win rate against the baseline, ties and uncertain verdicts half, and
    `baseline_mean` the rest of 1.
    """
    proper_level(level)
    # Both sides of a win rate move: a difference between them is twice what a rate is off a half.
    widest = 2 * margin if margin is not None and variants.is_duel else margin
    rows = {measure.name: _contrasts(variants, measure, level) for measure in variants.measures}
    tags = [row for flag in variants.flags for row in _contrasts(variants, flag, level)]
    passes = [row for each in variants.passes for row in _contrasts(variants, each, level)]
    checks = [row for row in passes if row.dimension != PASSED]
    passes = [row for row in passes if row.dimension == PASSED]
    dimensions = [row for name, of_name in rows.items() if name != OVERALL for row in of_name]
    comparison = Comparison(
        by=" / ".join(variants.by),
        baseline=variants.baseline,
        level=level,
        margin=margin,
        rows=(
            *decide_rows(dimensions, level, margin=widest),
            *decide_rows(rows.get(OVERALL, []), level, margin=widest),
        ),
        means=tuple(_means(variants, rows, level)),
        tags=tuple(decide_rows(tags, level, more_is_better=False)),
        passes=(*decide_rows(passes, level), *decide_rows(checks, level)),
        missing=variants.counts(),
        pair_by=variants.pair_by,
        is_duel=variants.is_duel,
    )
    notes = comparison_notes(comparison, variants)
    comparison = replace(comparison, notes=(*notes, *variants.notes))
    return comparison if variants.is_scale_known else comparison.without_scales


class Cells(NamedTuple):
    """A measure with a row per key and a column per variant: its values, and the least and the
    most that they could be."""

    measure: Measure
    values: Floats
    least: Floats
    most: Floats


def cells_of(variants: Variants, measure: Measure) -> Cells:
    """Return a measure laid out by key and variant."""
    columns = (measure.values, measure.least, measure.most)
    return Cells(measure, *(variants.cells(column) for column in columns))


def _contrasts(variants: Variants, measure: Measure, level: float) -> list[Row]:
    cells = cells_of(variants, measure)
    return [contrast(pair_cells(variants, cells, place), level) for place in variants.others]


def pair_cells(variants: Variants, cells: Cells, place: int) -> Shared:
    """Return what a variant and the baseline have on a measure, on the keys that both have."""
    ours, theirs = cells.values[:, place], cells.values[:, variants.base]
    paired = ~np.isnan(ours) & ~np.isnan(theirs)
    return Shared(
        dimension=cells.measure.name,
        variant=variants.names[place],
        ours=ours[paired],
        theirs=theirs[paired],
        cluster=variants.cluster[paired],
        key=np.flatnonzero(paired),
        ends=cells.measure.scale.ends,
        bounds=bounds(variants, cells, place, by_question=not variants.is_duel),
        is_win_rate=variants.is_duel,
    )


def bounds(
    variants: Variants, cells: Cells, place: int, *, by_question: bool
) -> tuple[float, float] | None:
    """Return how far missing judgments could move the difference over all pairs there are: with
    questions or with pairs weighing alike, as in the difference itself."""
    with np.errstate(over="ignore", invalid="ignore"):  # such bounds are left out
        low = cells.least[:, place] - cells.most[:, variants.base]
        high = cells.most[:, place] - cells.least[:, variants.base]
        paired = ~np.isnan(low)
        if not paired.any():
            return None
        means = [
            mean_of_questions(each[paired], variants.cluster[paired])
            if by_question
            else float(each[paired].mean())
            for each in (low, high)
        ]
        # A half that is made of thirds is a half, whatever its last bits are.
        ends = round(means[0], 12), round(means[1], 12)
    return ends if all(map(isfinite, ends)) else None


def _means(
    variants: Variants, rows: Mapping[str, Sequence[Row]], level: float
) -> Iterator[VariantMean]:
    """Yield the mean of each variant over all its units that have a score. A win rate is one
    against the baseline, and stands in its row already."""
    for measure in variants.measures:
        if variants.is_duel:
            for row in rows[measure.name]:
                yield VariantMean(
                    dimension=row.dimension,
                    variant=row.variant,
                    n=row.n,
                    clusters=row.clusters,
                    mean=row.mean,
                    low=row.mean_low,
                    high=row.mean_high,
                )
            continue
        cells = variants.cells(measure.values)
        for place, name in enumerate(variants.names):
            scored = ~np.isnan(cells[:, place])
            ends = measure.scale.ends
            estimate = mean(cells[scored, place], variants.cluster[scored], ends, level)
            yield VariantMean(
                dimension=measure.name,
                variant=name,
                n=estimate.n,
                clusters=estimate.clusters,
                mean=estimate.value,
                low=estimate.low,
                high=estimate.high,
                scale=ends,
            )


class Change(NamedTuple):
    """A variant against the baseline on one key: the values, and the units of both."""

    variant: str
    value: float
    baseline_value: float
    units: tuple[str, ...]
    baseline_units: tuple[str, ...]

    @property
    def difference(self) -> float:
        return self.value - self.baseline_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The keys that got worse and better most, and the counts of all that did."""

    dimension: str
    worst: tuple[Change, ...]
    best: tuple[Change, ...]
    worse: int
    better: int
    n: int


def changes(variants: Variants, number: int) -> Changes:
    """Return the keys with the lowest and the highest difference, `number` of each at most; of
    equal ones those that come first."""
    measure = variants.changed_measure()
    cells = cells_of(variants, measure)
    parts = [pair_cells(variants, cells, place) for place in variants.others]
    differences = np.concatenate([np.zeros(0), *(part.ours - part.theirs for part in parts)])
    rows = [(owner, at) for owner, part in enumerate(parts) for at in range(part.key.size)]
    members = {place: variants.members(place) for place in (*variants.others, variants.base)}

    def change(row: int) -> Change:
        owner, at = rows[row]
        part, key = parts[owner], int(parts[owner].key[at])
        return Change(
            part.variant,
            float(part.ours[at]),
            float(part.theirs[at]),
            tuple(members[variants.others[owner]].get(key, ())),
            tuple(members[variants.base].get(key, ())),
        )

    worse, better = int((differences < 0).sum()), int((differences > 0).sum())
    worst = np.argsort(differences, kind="stable")[: min(worse, number)]
    best = np.argsort(-differences, kind="stable")[: min(better, number)]
    return Changes(
        dimension=measure.name,
        worst=tuple(map(change, worst.tolist())),
        best=tuple(map(change, best.tolist())),
        worse=worse,
        better=better,
        n=differences.size,
    )
