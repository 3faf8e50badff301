"""One variant against the baseline on one dimension, and what a family of such rows decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy.special import betaincinv

from evenhand.errors import UsageError
from evenhand.stats.comparison.comparison import Row
from evenhand.stats.comparison.lopsided import is_lopsided, is_narrow, undoing_share
from evenhand.stats.comparison.means import Estimate, mean, mean_difference
from evenhand.stats.comparison.paired import ENUMERATED, SignTest, sign_flip, sign_flip_bound
from evenhand.stats.comparison.power import units_needed
from evenhand.stats.decision.bounded import interval, sample
from evenhand.stats.decision.decision import Outcome
from evenhand.stats.tables import Floats, Ints
from evenhand.stats.test import holm

ROUNDING = 1e-12
"""What so small a part of its scale is comes of the last bits: thirds that cancel out are 0."""
SURE = 10
"""How many rows have the interval that assumes nothing."""


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


def proper_level(level: float) -> None:
    """Raises UsageError for a level that no interval can have."""
    if not 0.5 <= level < 1:
        raise UsageError(f"there is no level of {level:g}", advice="Give a share such as 0.95.")


def contrast(shared: Shared, level: float, seed: int) -> Row:
    """The figures of one row; what its family decides is open still."""
    low, high = shared.ends
    ours = mean(shared.ours, shared.cluster, shared.ends, level)
    theirs = mean(shared.theirs, shared.cluster, shared.ends, level)
    with np.errstate(over="ignore", invalid="ignore"):  # such figures are left out
        gaps = shared.ours - shared.theirs
    gap = paired_difference(gaps, shared.cluster, high - low, level)
    test, lopsided, undone_by = SignTest(None, True), False, None
    if gap.value is not None:
        sums, _ = _summed(shared.cluster, gaps)
        test = sign_flip(sums, seed)
        lopsided = is_lopsided(sums)
        undone_by = undoing_share(float(gaps.mean()), high - low, gap.clusters, level)
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
        p=test.p,
        exact=test.exact,
        p_adjusted=None,
        effect=None if gap.value is None else effect(gaps),
        outcome="not enough evidence",
        units_needed=None,
        bounds=shared.bounds,
        lopsided=lopsided,
        undone_by=undone_by,
        narrow=is_narrow(gap, high - low, level),
        scale=shared.ends,
    )


def paired_difference(gaps: Floats, cluster: Ints, span: float, level: float) -> Estimate:
    """The mean of paired differences on a scale of this span, with an interval that goes along with
    the test."""
    gap = mean_difference(gaps, cluster, (-span, span), level)
    if gap.value is not None and abs(gap.value) <= ROUNDING * span:
        gap = replace(gap, value=0.0)
    return gap if gap.value is None else _agreeing(gap, *_summed(cluster, gaps), 1 - level)


def win_rate_interval(won: Floats, cluster: Ints, level: float) -> tuple[float, float]:
    """The interval of a win rate between two candidates, of what one of them won of each pair. A
    win rate says the same as the difference of both, so they have one interval."""
    gap = paired_difference(2 * won - 1, cluster, 1.0, level)
    assert gap.low is not None and gap.high is not None, "win rates have a scale"
    return as_rate(gap.low), as_rate(gap.high)


def as_rate(difference: float) -> float:
    """The first of two shares that make up 1, from their difference."""
    return (1 + difference) / 2


def are_apart(won: Floats, cluster: Ints, level: float) -> bool:
    """Whether the test tells two candidates apart, of what one of them won of each pair."""
    sums, _ = _summed(cluster, 2 * won - 1)
    return sums.size > 1 and bool(sums.sum()) and _is_small(sign_flip(sums).p, 1 - level)


def with_sure_ends(rows: Sequence[Row], shared: Callable[[Row], Shared], level: float) -> list[Row]:
    """The rows with the interval that assumes nothing of the scores but the ends of their scale,
    where their own is narrow: of the first few, as each takes a while."""
    sure = list(rows)
    for place in [place for place, row in enumerate(rows) if row.narrow][:SURE]:
        values = shared(rows[place])
        span = values.ends[1] - values.ends[0]
        bounded = sample(values.ours - values.theirs, values.cluster, (-span, span))
        if bounded is not None:
            low, high = interval(bounded, level)
            sure[place] = replace(rows[place], sure_low=low, sure_high=high)
    return sure


def _summed(cluster: Ints, gaps: Floats) -> tuple[Floats, Floats]:
    """The sum of each cluster, and its size. A sum of thirds that cancel out is 0: what their last
    bits leave is the same in each cluster, and the test would take it for a difference."""
    place = np.unique(cluster, return_inverse=True)[1]
    sums, whole = (np.bincount(place, each).astype(np.float64) for each in (gaps, np.abs(gaps)))
    sums[np.abs(sums) <= ROUNDING * whole] = 0.0
    return sums, np.bincount(place).astype(np.float64)


def _agreeing(gap: Estimate, sums: Floats, sizes: Floats, alpha: float) -> Estimate:
    """An interval that leaves out 0 where the test does: if the two part, the bound on the side of
    0 is that of the test, where it has one."""
    # Where nothing varies, the test's interval is a point: what is unseen says more.
    if gap.low is None or gap.high is None or not gap.error or not sums.sum():
        return gap
    sign = 1.0 if sums.sum() > 0 else -1.0
    near = gap.low if sign > 0 else -gap.high
    bound = _sign_bound(sign * sums, sizes, alpha)
    if bound is None and near <= 0 and sums.size <= ENUMERATED:
        bound = _pattern_bound(sign * sums, sizes, alpha)
    if bound is None or (bound > 0) == (near > 0):
        return gap
    return replace(gap, low=bound) if sign > 0 else replace(gap, high=-bound)


def _sign_bound(sums: Floats, sizes: Floats, alpha: float) -> float | None:
    """Where clusters differ in their signs alone, the test is the sign test, and its bound that of
    Clopper and Pearson for the share that is up, among as many that are neither; else None."""
    moved = sums[sums != 0]
    size = float(np.abs(moved).max())
    if np.abs(np.abs(moved) - size).max() > 1e-9 * size:
        return None
    up = int((moved > 0).sum())
    share = float(betaincinv(up, moved.size - up + 1, alpha / 2))
    return float((2 * share - 1) * moved.size * size / sizes.sum())


def _pattern_bound(sums: Floats, sizes: Floats, alpha: float) -> float | None:
    """The bound of the test by all sign patterns, where it rejects 0."""
    return sign_flip_bound(sums, sizes, alpha) if _is_small(sign_flip(sums).p, alpha) else None


def _is_small(p: float | None, alpha: float) -> bool:
    # A level such as 0.95 is no exact binary fraction: its rest is a little more than 0.05.
    return p is not None and p <= alpha + 1e-12


def effect(gaps: Floats) -> float | None:
    """The mean difference in standard deviations of the differences (d_z); None if they are all
    alike, or fewer than two."""
    if gaps.size < 2:
        return None
    spread, least = float(gaps.std(ddof=1)), ROUNDING * float(np.abs(gaps).max())
    middle = float(gaps.mean())
    if spread <= least:
        return None
    return middle / spread if abs(middle) > least else 0.0


def decided(rows: Sequence[Row], level: float, *, more_is_better: bool = True) -> list[Row]:
    """The rows of one family with adjusted p values, outcomes, and what more it would take."""
    adjusted = holm([row.p for row in rows])
    family = sum(row.p is not None for row in rows)
    alpha = 1 - level
    return [
        _with_outcome(replace(row, p_adjusted=p), alpha, alpha / max(1, family), more_is_better)
        for row, p in zip(rows, adjusted, strict=True)
    ]


def _with_outcome(row: Row, alpha: float, share: float, more_is_better: bool) -> Row:
    """A row with its outcome, and how many units more would decide it."""
    outcome = _outcome(row, alpha, more_is_better)
    if outcome != "not enough evidence":
        return replace(row, outcome=outcome, units_needed=0)
    if row.difference is None or row.error is None:
        return row
    spread = row.error * sqrt(row.n)
    needed = units_needed(row.difference, spread, row.n, row.clusters, share)
    # The test is not decided yet, whatever the rule of thumb says: one more at least.
    return replace(row, units_needed=None if needed is None else max(1, needed))


def _outcome(row: Row, alpha: float, more_is_better: bool) -> Outcome:
    if row.clusters < 2 or not row.difference or not _is_small(row.p_adjusted, alpha):
        return "not enough evidence"
    return "better" if (row.difference > 0) == more_is_better else "worse"
