"""Ratings of the same units from two sides, judges and people, and which is held against which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

import numpy as np

from evenhand.errors import UsageError, nearest, quoted
from evenhand.observation import OPPONENT_LENGTH, OVERALL, SUBJECT_LENGTH, WINNER
from evenhand.stats.observations import (
    NONE,
    Bools,
    Fields,
    Floats,
    Ints,
    Observations,
    Scale,
    mean_share,
)
from evenhand.units import pair_key

TIE = 2
"""A tie; 0 and 1 are the candidates of a pair in the order of their names."""
Ties = Literal["keep", "drop"]


class Column(NamedTuple):
    """Ratings on one dimension, none missing."""

    unit: Ints
    judge: Ints
    value: Floats

    def where(self, rows: Bools) -> Column:
        """Return some of the ratings."""
        return Column(self.unit[rows], self.judge[rows], self.value[rows])


class Pairs(NamedTuple):
    """Ratings held against each other, row by row."""

    unit: Ints
    a: Floats
    b: Floats

    def where(self, rows: Bools) -> Pairs:
        """Return some of the rows."""
        return Pairs(self.unit[rows], self.a[rows], self.b[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Ratings of units, a row each."""

    units: Sequence[str]
    """The id of each unit, common to both sides; of pairs it includes the two candidates."""
    question: Ints
    """Of each unit."""
    fields: Fields
    length: Floats
    """Of each unit, nan if unknown; of pairs of the first candidate, less that of the second."""
    unit: Ints
    judge: Ints
    judges: tuple[str, ...]
    values: Mapping[str, Floats]
    """By dimension, nan without a rating; of pairs how far the first candidate won, 0 to 1."""
    scales: Mapping[str, Scale]
    candidates: tuple[str, ...] = ()
    seats: Ints | None = None
    """Of each pair its two candidates, in the order of their names."""

    @property
    def is_pairs(self) -> bool:
        """Return True where candidates were set against each other."""
        return self.seats is not None

    @property
    def present(self) -> list[int]:
        """The judges that have a row."""
        return [int(judge) for judge in np.unique(self.judge)]

    def where(self, rows: Bools) -> Side:
        """Return some of the ratings."""
        return replace(
            self,
            unit=self.unit[rows],
            judge=self.judge[rows],
            values={name: column[rows] for name, column in self.values.items()},
        )

    def is_of(self, names: Sequence[str]) -> Bools:
        """Return which ratings are those of judges with these names, or patterns such as
        `expert_*`; raise UsageError for one that names nobody."""
        meant: list[int] = []
        for name in names:
            found = [at for at, judge in enumerate(self.judges) if fnmatchcase(judge, name)]
            if name in self.judges:
                found = [self.judges.index(name)]
            if not found:
                near = nearest(name, self.judges)
                there = f"There are: {', '.join(self.judges[:20])}"
                raise UsageError(
                    f"there is no judge {quoted(name)} in the run",
                    advice=f"Did you mean {quoted(near)}?" if near else there,
                )
            meant += found
        return np.isin(self.judge, meant)

    def column(self, name: str) -> Column:
        """Return the ratings on one dimension; of pairs 0 is the first candidate, 1 the second."""
        values = self.values[name]
        ratings = np.where(values == 0.5, TIE, values < 0.5) if self.is_pairs else values
        return Column(self.unit, self.judge, ratings).where(~np.isnan(values))

    def failed(self, names: Sequence[str]) -> Bools:
        """Return of each row whether it rates none of these dimensions."""
        nothing = np.ones(self.unit.size, np.bool_)
        for name in names:
            nothing &= np.isnan(self.values[name])
        return nothing

    def unit_means(self, name: str) -> Floats:
        """Return of each unit the mean on a dimension; nan where nobody said anything."""
        values = self.values[name]
        rated = ~np.isnan(values)
        sums = np.bincount(self.unit[rated], values[rated], len(self.units))
        counts = np.bincount(self.unit[rated], minlength=len(self.units))
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def side_of(observations: Observations) -> Side:
    """Return the ratings of a run, those of pairs turned to the order of the candidates' names. A
    candidate against itself is no contest."""
    names, seats = list(observations.dimensions), None
    if observations.is_pairs:
        names = [WINNER, *names]
        observations = observations.where(observations.first != observations.second)
        seats = np.stack([observations.subject, observations.opponent], axis=1)
    elif len(names) != 1:
        names.append(OVERALL)
    values = {name: observations.column(name) for name in names}
    length, units = observations.numbers("length"), list(observations.units)
    if seats is not None:
        rank = np.argsort(np.argsort(np.array(observations.candidates, dtype=object)))
        turned = rank[seats[:, 0]] > rank[seats[:, 1]]
        lengths = [observations.numbers(name) for name in (SUBJECT_LENGTH, OPPONENT_LENGTH)]
        length = np.where(turned, -1, 1) * (lengths[0] - lengths[1])
        seats[turned] = seats[turned, ::-1]
        both = [[observations.candidates[code] for code in pair] for pair in seats.tolist()]
        units = [pair_key(unit, pair) for unit, pair in zip(units, both, strict=True)]
        is_turned = turned[observations.unit]
        values = {name: np.where(is_turned, 1 - won, won) for name, won in values.items()}
    return Side(
        units=units,
        question=observations.question,
        fields=observations.fields,
        length=length,
        unit=observations.unit,
        judge=observations.judge,
        judges=observations.judges,
        values=values,
        scales={name: observations.scale(name) for name in names},
        candidates=observations.candidates,
        seats=seats,
    )


def widest(sides: Sequence[Side], name: str) -> tuple[float, float]:
    """Return the widest scale of a dimension that any side knows."""
    scales = [side.scales[name] for side in sides if name in side.scales]
    return min(scale.low for scale in scales), max(scale.high for scale in scales)


def with_one_overall(sides: Sequence[Side]) -> list[Side]:
    """Return the sides with an overall score that means the same on both. Where nobody says what
    the scales are, it is the mean of all dimensions on the widest that either side shows."""
    names = [name for name in sides[0].values if name != OVERALL]
    if not all(OVERALL in side.values and set(names) < set(side.values) for side in sides):
        return list(sides)
    if all(side.scales[OVERALL].is_known for side in sides):
        return list(sides)
    ends = [widest(sides, name) for name in names]
    found: list[Side] = []
    for side in sides:
        overall = mean_share([side.values[name] for name in names], ends)
        found.append(replace(side, values={**side.values, OVERALL: overall}))
    return found


def on_units_of(run: Side, other: Side) -> Side:
    """Return the ratings that another side has of the run's units, numbered as those."""
    places = {unit: at for at, unit in enumerate(run.units)}
    moved = np.array([places.get(unit, NONE) for unit in other.units], dtype=np.int64)
    unit = moved[other.unit]
    side = replace(other, unit=unit).where(unit != NONE)
    return replace(side, units=run.units, question=run.question, fields=run.fields)


def against(first: Column, second: Column) -> Pairs:
    """Return every rating of one side with every rating of the other on the same unit."""
    i, j = _crossed(first.unit, second.unit)
    return Pairs(first.unit[i], first.value[i], second.value[j])


def among(column: Column) -> Pairs:
    """Return every two ratings of one unit by different judges, each two once."""
    i, j = _crossed(column.unit, column.unit)
    once = column.judge[i] < column.judge[j]
    return Pairs(column.unit[i], column.value[i], column.value[j]).where(once)


def _crossed(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return the places of all pairs of rows with equal units."""
    order = np.argsort(second, kind="stable")
    starts = np.searchsorted(second[order], first, "left")
    counts = np.searchsorted(second[order], first, "right") - starts
    i = np.repeat(np.arange(first.size), counts)
    within = np.arange(i.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return i, order[np.repeat(starts, counts) + within]


def one_per_unit(column: Column, *, votes: bool, each: bool = False) -> Column:
    """Return one rating per unit, or per unit and judge: of votes the most frequent, a tie where no
    single one is; of scores the mean."""
    judge = column.judge if each else np.zeros_like(column.judge)
    span = int(judge.max(initial=0)) + 1
    keys, place = np.unique(column.unit * span + judge, return_inverse=True)
    counts = np.bincount(place, minlength=keys.size)
    values = np.bincount(place, column.value, keys.size) / np.maximum(counts, 1)
    if votes:
        table = np.bincount(place * 3 + column.value.astype(np.int64), minlength=keys.size * 3)
        table = table.reshape(-1, 3)
        is_single = (table == table.max(axis=1, keepdims=True, initial=0)).sum(axis=1) == 1
        values = np.where(is_single, table.argmax(axis=1), TIE).astype(np.float64)
    return Column(keys // span, keys % span, values)


def repeats_as_judges(side: Side) -> Side:
    """Return the repeats of the only judge as if each were a judge of its own."""
    order = np.argsort(side.unit, kind="stable")
    turn = np.empty_like(side.unit)
    turn[order] = np.arange(order.size) - np.searchsorted(side.unit[order], side.unit[order])
    names = tuple(f"repeat {number + 1}" for number in range(int(turn.max(initial=0)) + 1))
    return replace(side, judge=turn, judges=names)
