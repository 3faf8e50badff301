"""One variant against the baseline on one dimension, and what a family of such rows decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.errors import UsageError
from evenhand.stats.comparison import Row
from evenhand.stats.estimate import ROUNDING, Estimate, difference, mean
from evenhand.stats.holm import holm
from evenhand.stats.observations import Floats, Ints
from evenhand.stats.outcome import Outcome
from evenhand.stats.power import more_questions


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
        raise UsageError(f"there is no level of {level:g}", advice="Give a share such as 0.95.")


def contrast(shared: Shared, level: float) -> Row:
    """Return the figures of one row; what its family decides is open still."""
    with np.errstate(over="ignore", invalid="ignore"):  # such figures are left out
        gaps = shared.ours - shared.theirs
    if shared.is_win_rate:
        ours = mean(shared.ours, shared.cluster, shared.ends, level, weigh="units")
        theirs, gap = _rest_of_one(ours), _doubled(ours)
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


def _doubled(rate: Estimate) -> Estimate:
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


def decided(
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
        outcome = _outcome(replace(row, p_adjusted=p), 1 - level, margin, more_is_better)
        more = None
        if outcome == "not enough evidence":
            more = more_questions(row.difference, row.error, row.clusters, (1 - level) / family)
        found.append(replace(row, p_adjusted=p, outcome=outcome, more_questions=more))
    return found


def _outcome(row: Row, alpha: float, margin: float | None, more_is_better: bool) -> Outcome:
    if row.clusters < 2 or row.difference is None or row.low is None or row.high is None:
        return "not enough evidence"
    if margin is not None and -margin <= row.low and row.high <= margin:
        return "same"
    # A level such as 0.95 is no exact binary fraction: its rest is a little more than 0.05.
    if row.p_adjusted is None or row.p_adjusted > alpha + 1e-12 or not row.difference:
        return "not enough evidence"
    return "better" if (row.difference > 0) == more_is_better else "worse"
