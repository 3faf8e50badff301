"""Single units that fail, and single cases that fall from a baseline to a variant.

Nothing is estimated here: what is missing decides nothing, and a case falls if it does so beyond
the noise of the judge, where repeats tell that. A case is a unit of the variant with its partner
under the baseline.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from evenhand.observation import PASSED
from evenhand.stats.compare import Cells, cells_of
from evenhand.stats.comparison import Row
from evenhand.stats.observations import Bools, Floats, Observations
from evenhand.stats.stability import judge_noise
from evenhand.stats.variants import Variants, unit_measure

HALF = 0.5
"""A unit of which no more judgments pass than this fails."""
_ROUNDING = 1e-9


class Failing(NamedTuple):
    """The units or cases that fail for sure, the number that may yet, and how many there are."""

    units: tuple[str, ...]
    unsure: int
    of: int


class _Cases(NamedTuple):
    """Of each case, whether something holds for sure, and whether it holds or may yet."""

    surely: Bools
    maybe: Bools


def failing_units(table: Observations, units: Bools) -> Failing:
    """Return which of some units fail, by half of their judgments or more."""
    passing = unit_measure(table, PASSED)
    is_failed, may_fail = units & (passing.most <= HALF), units & (passing.least <= HALF)
    return Failing(
        tuple(table.units[place] for place in np.flatnonzero(is_failed).tolist()),
        int((may_fail & ~is_failed).sum()),
        int((units & ~np.isnan(passing.least)).sum()),
    )


def falling_cases(
    table: Observations, variants: Variants, row: Row, margin: float, level: float
) -> Failing:
    """Return which cases of a row of a comparison fall by more than a margin, or from pass to
    fail."""
    place, base = variants.names.index(row.variant), variants.base
    surely = maybe = np.zeros(variants.cluster.size, np.bool_)
    measures = [each for each in variants.measures if each.name == row.dimension]
    of = 0
    for measure in (*measures, *(each for each in variants.passes if each.name == PASSED)):
        cells = cells_of(variants, measure)
        is_pass = measure.name == PASSED
        falls = _falls(table, variants, cells, place, 0.0 if is_pass else margin, level)
        if is_pass:
            flips = (cells.most[:, place] <= HALF) & (cells.least[:, base] > HALF)
            may_flip = (cells.least[:, place] <= HALF) & (cells.most[:, base] > HALF)
            falls = _Cases(falls.surely & flips, falls.maybe & may_flip)
        surely, maybe = surely | falls.surely, maybe | falls.maybe
        is_there = ~np.isnan(cells.least[:, place]) & ~np.isnan(cells.least[:, base])
        of = max(of, int(is_there.sum()))
    units = variants.members(place)
    names = tuple(units[key][0] for key in np.flatnonzero(surely).tolist())
    return Failing(names, int((maybe & ~surely).sum()), of)


def _falls(
    table: Observations,
    variants: Variants,
    cells: Cells,
    place: int,
    margin: float,
    level: float,
) -> _Cases:
    """Return which cases fall by more than a margin, beyond the noise of the judge where repeats
    tell it: so far that any of many cases seldom does by noise alone."""
    least = cells.least[:, place] - cells.most[:, variants.base]
    most = cells.most[:, place] - cells.least[:, variants.base]
    reach: Floats | float = margin + _ROUNDING
    if noise := judge_noise(table, cells.measure.name):
        variance, free = noise
        errors = variance / np.maximum(table.unit_sums(cells.measure.name).counts, 1)
        variances = variants.cells(errors[variants.entries.unit])
        error = np.sqrt(variances[:, place] + variances[:, variants.base])
        chance = (1 - level) / 2 / max(1, int((~np.isnan(least)).sum()))
        reach = reach + float(stdtrit(free, 1 - chance)) * error
    return _Cases(most < -reach, least < -reach)
