"""Observations laid out for a comparison: what belongs to which variant, and what is paired.

An entry is what one unit says of one variant. A unit that was scored is one entry; its variant is
the value of a field. A pair is two: what each candidate won of it, and its variants are the
candidates. Two runs are laid out with the run as the variant. From here on there is one way for
all of them: entries with the same key are paired, and keys about one question are a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand.observation import CRITICAL_FAIL, OVERALL, TAG
from evenhand.stats.observations import (
    NONE,
    Bools,
    Fields,
    Floats,
    Ints,
    Observations,
    Scale,
)

CANDIDATE = "candidate"
CRITICAL = "critical fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A dimension, `overall`, or the share of units with a tag. Of each entry the mean over judges
    and repeats, nan where there is none; and the least and the most that it could be if nothing
    were missing."""

    name: str
    values: Floats
    least: Floats
    most: Floats
    scale: Scale = field(default_factory=Scale)

    def of_entries(self, rows: Bools | Ints) -> Measure:
        """Return the measure of some entries."""
        values, least, most = (each[rows] for each in (self.values, self.least, self.most))
        return replace(self, values=values, least=least, most=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Of one variant: its units, how many lack a score, and its judgments.

    planned = scored + failed + pending.
    """

    units: int
    incomplete: int
    planned: int
    scored: int
    failed: int
    pending: int
    missing_scores: Mapping[str, int] = field(default_factory=dict[str, int])
    """By dimension, how many of the scored judgments say nothing on it."""
    unpaired: int = 0
    """Units that have no partner in a comparison with the baseline."""

    def json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """The judgments of each entry."""

    unit: Ints
    """As a place in `Variants.units`."""
    due: Ints
    judged: Ints
    scored: Ints
    whole: Ints
    """Of these judgments, those that say something on every dimension."""
    silent: Ints
    """A column per dimension: the scored judgments that say nothing on it."""

    def of_entries(self, rows: Bools | Ints) -> Entries:
        """Return the judgments of some entries."""
        return Entries(**{name: getattr(self, name)[rows] for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants:
    """Entries by variant, one of which is the baseline."""

    names: tuple[str, ...]
    """In the order in which they first come."""
    base: int
    by: tuple[str, ...]
    pair_by: tuple[str, ...]
    variant: Ints
    """Of each entry; -1 where nothing says."""
    key: Ints
    cluster: Ints
    """Of each key."""
    measures: tuple[Measure, ...]
    """The dimensions, `overall` last if there is such a figure."""
    flags: tuple[Measure, ...] = ()
    """Failure tags and critical fails that were given, as shares."""
    passes: tuple[Measure, ...] = ()
    """`pass` and the checks by code, as shares."""
    entries: Entries
    units: Sequence[str]
    fields: Fields
    change: Measure | None = None
    """The measure by which units changed, if it is not among `measures`."""
    is_duel: bool = False
    """Whether candidates were set against each other in pairs; else variants have scores."""
    notes: tuple[str, ...] = ()
    """Notes on how the variants were laid out."""

    @property
    def baseline(self) -> str:
        return self.names[self.base]

    @property
    def others(self) -> list[int]:
        """The places of all variants but the baseline."""
        return [place for place in range(len(self.names)) if place != self.base]

    @property
    def is_scale_known(self) -> bool:
        return all(measure.scale.is_known for measure in self.measures)

    def cells(self, values: Floats) -> Floats:
        """Return a value per entry as a row per key and a column per variant: the mean where
        several share a place, nan where none has a value."""
        valued = ~np.isnan(values) & (self.variant >= 0)
        size = self.cluster.size * len(self.names)
        place = self.key[valued] * len(self.names) + self.variant[valued]
        sums, counts = np.bincount(place, values[valued], size), np.bincount(place, minlength=size)
        means = np.full(size, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means.reshape(self.cluster.size, len(self.names))

    @property
    def present(self) -> Bools:
        """Of each key and variant, whether there is an entry at all, judged or not."""
        return np.asarray(~np.isnan(self.cells(np.zeros(self.variant.size))))

    def changed_measure(self) -> Measure:
        """Return what units change by: overall, where there are several dimensions and it is to be
        had, else the first."""
        if self.change is not None:
            return self.change
        last = self.measures[-1]
        is_told = self.is_duel or (len(self.measures) > 2 and np.isfinite(last.values).any())
        return last if is_told else self.measures[0]

    def members(self, place: int) -> dict[int, list[str]]:
        """Return the units of a variant by their key."""
        members: dict[int, list[str]] = {}
        rows = np.flatnonzero(self.variant == place)
        for key, unit in zip(
            self.key[rows].tolist(), self.entries.unit[rows].tolist(), strict=True
        ):
            members.setdefault(key, []).append(self.units[unit])
        return members

    def least_units(self, measure: Measure) -> Ints:
        """Return a row per key and a column per variant: the unit with the least value, as a place
        in `units`; NONE where there is none."""
        place = self.key * len(self.names) + self.variant
        order = np.lexsort((measure.values, place))
        order = order[self.variant[order] >= 0]
        places, first = np.unique(place[order], return_index=True)
        units = np.full(self.cluster.size * len(self.names), NONE)
        units[places] = self.entries.unit[order][first]
        return units.reshape(self.cluster.size, len(self.names))

    def of_units(self, members: Bools) -> Variants:
        """Return the entries of some units alone."""
        rows = members[self.entries.unit]
        keys, key = np.unique(self.key[rows], return_inverse=True)
        return replace(
            self,
            variant=self.variant[rows],
            key=key,
            cluster=self.cluster[keys],
            measures=tuple(measure.of_entries(rows) for measure in self.measures),
            flags=tuple(flag.of_entries(rows) for flag in self.flags),
            passes=tuple(each.of_entries(rows) for each in self.passes),
            change=self.change.of_entries(rows) if self.change else None,
            entries=self.entries.of_entries(rows),
            notes=(),
        )

    def counts(self) -> dict[str, Count]:
        """Return what every variant lacks; of candidates, those beside the baseline."""
        present, there = self.present, self.entries
        in_all = np.asarray(present.all(axis=1))
        dimensions = [measure.name for measure in self.measures if measure.name != OVERALL]
        counts: dict[str, Count] = {}
        for place in self.others if self.is_duel else range(len(self.names)):
            rows = self.variant == place
            # A unit of the baseline takes part in every comparison.
            partners = in_all if place == self.base else present[:, self.base]
            due, judged, scored = (
                int(each[rows].sum()) for each in (there.due, there.judged, there.scored)
            )
            silent = there.silent[rows].sum(axis=0)
            counts[self.names[place]] = Count(
                units=int(rows.sum()),
                incomplete=int((there.whole[rows] < there.due[rows]).sum()),
                planned=due,
                scored=scored,
                failed=judged - scored,
                pending=due - judged,
                missing_scores={
                    name: int(n) for name, n in zip(dimensions, silent, strict=False) if n
                },
                unpaired=int((~partners[self.key[rows]]).sum()),
            )
        return counts


def unit_measure(table: Observations, name: str, called: str = "") -> Measure:
    """Return a measure of each unit."""
    scale, sums, due = table.scale(name), table.unit_sums(name), table.due()
    return Measure(
        name=called or name,
        values=sums.means,
        least=sums.filled(due, scale.low),
        most=sums.filled(due, scale.high),
        scale=scale,
    )


def flag_measure(table: Observations, name: str) -> Measure:
    return unit_measure(table, name, CRITICAL if name == CRITICAL_FAIL else name.removeprefix(TAG))


def unit_entries(table: Observations, dimensions: Sequence[str]) -> Entries:
    """Return the judgments of each unit."""
    size = len(table.units)
    columns = [np.isnan(table.column(name)) for name in dimensions]
    is_silent = np.column_stack(columns) if columns else np.zeros((table.unit.size, 0), np.bool_)
    # A pair that a conflict dropped has no winner, whatever its criteria say.
    is_scored = ~(np.isnan(table.column(table.main)) if table.is_pairs else table.failed)
    is_scored &= ~table.spared
    is_whole = is_scored & ~is_silent.any(axis=1)
    silent = [np.bincount(table.unit[is_scored & column], minlength=size) for column in is_silent.T]
    return Entries(
        unit=np.arange(size),
        due=table.due(),
        judged=np.bincount(table.unit[~table.spared], minlength=size),
        scored=np.bincount(table.unit[is_scored], minlength=size),
        whole=np.bincount(table.unit[is_whole], minlength=size),
        silent=np.column_stack(silent) if silent else np.zeros((size, 0), np.int64),
    )


def candidate_share(table: Observations, candidate: str) -> Measure:
    """Return what a candidate won of each pair; nan where it takes no part, or meets itself."""
    place, won = table.candidates.index(candidate), unit_measure(table, table.main)
    is_apart = table.subject != table.opponent
    is_first, is_second = (is_apart & (side == place) for side in (table.subject, table.opponent))

    def pick(first: Floats, second: Floats) -> Floats:
        return np.where(is_first, first, np.where(is_second, 1 - second, np.nan))

    return Measure(
        name=f"win rate of {candidate}",
        values=pick(won.values, won.values),
        least=pick(won.least, won.most),
        most=pick(won.most, won.least),
    )
