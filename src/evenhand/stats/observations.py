"""Observations: what the judgments of a run say in numbers, as columns.

A row of `values` is a judgment and a column a measure: a dimension or criterion, `overall` or
`winner`, a failure tag. Everything about a unit stands once, in columns of their own. Comparisons,
rankings, agreement, gates and reports all start here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import count

import numpy as np
import numpy.typing as npt

from evenhand.errors import UsageError, nearest
from evenhand.observation import (
    OVERALL,
    PASSED,
    QUESTIONS,
    UNCERTAIN,
    WINNER,
    Rule,
    is_flag,
    is_passing,
)
from evenhand.units import META_FIELDS, pair_key
from evenhand.words import Sentence, few

LISTED = 10
"""The number of names that an error lists of those that are there."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

UNIT = "unit"
"""The field that names a unit, or what others call one."""
NONE = -1
"""The code of a field that a unit does not have."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of what was judged: a code for each unit, NONE where it is absent."""

    codes: Ints
    levels: tuple[str, ...]


Fields = Mapping[str, Field]


def no_such_field(name: str, fields: Collection[str]) -> UsageError:
    """Return the error for a field that is none of these."""
    return UsageError(Sentence("stats.no_such_field", name=name), advice=suggest(name, fields))


def suggest(name: str, names: Collection[str]) -> Sentence:
    """Return the advice for a name that is none of these."""
    near = nearest(name, names)
    return Sentence("stats.did_you_mean", near=near) if near else there_are(names)


def there_are(names: Collection[str]) -> Sentence:
    """Return the advice that lists what is there."""
    return Sentence("stats.there_are", names=few(list(names), LISTED))


def field_named(fields: Fields, name: str) -> Field:
    """Return a field by its name, with or without `meta.` before it; raise UsageError."""
    return fields[plain_name(fields, name)]


def plain_name(fields: Fields, name: str) -> str:
    """Return the name of a field that is there; raise UsageError."""
    for known in (name, name.removeprefix("meta.")):
        if known in fields:
            return known
    raise no_such_field(name, fields)


def place_of(names: Sequence[str], name: str, what: str) -> int:
    """Return the place of a name among those that are there; raise UsageError."""
    if name in names:
        return names.index(name)
    raise UsageError(Sentence(f"stats.no_{what}", name=name), advice=suggest(name, names))


@dataclass(frozen=True, slots=True)
class Scale:
    """The least and the most that a measure can be. Where nobody says, it is what was observed."""

    low: float = 0.0
    high: float = 1.0
    is_known: bool = True

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    def joined(self, other: Scale) -> Scale:
        """Return the scale that holds both."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Scale(low, high, self.is_known and other.is_known)


def mean_share(columns: Sequence[Floats], ends: Sequence[tuple[float, float]]) -> Floats:
    """Return the mean of dimensions, each as a share of the way from one end to the other."""
    parts = [
        (values - low) / ((high - low) or 1.0)
        for values, (low, high) in zip(columns, ends, strict=True)
    ]
    return np.asarray(np.mean(parts, axis=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Single calls about pairs, one for each order that was asked."""

    row: Ints
    """The judgment that a call belongs to."""
    round: Ints
    position: Ints
    """The position of the unit's first candidate, 1 or 2; 0 if unknown."""
    value: Floats
    """The share that the first candidate won, from 0 to 1."""

    def where(self, rows: Bools) -> Passes:
        """Return the passes of some judgments, with their new places."""
        moved, kept = np.cumsum(rows) - 1, rows[self.row]
        return Passes(
            row=moved[self.row[kept]],
            round=self.round[kept],
            position=self.position[kept],
            value=self.value[kept],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """The judgments of a run, verdicts and failures, in numbers."""

    measures: tuple[str, ...]
    scales: tuple[Scale, ...]
    values: Floats
    """A row per judgment, a column per measure; nan where it says nothing."""
    unit: Ints
    """Of each judgment, as a place in `units`."""
    judge: Ints
    repeat: Ints
    conflict: Bools
    """Of each judgment of a pair, whether no round brought its orders together, so that `rule`
    decided."""
    passes: Passes
    units: Sequence[str]
    """Every unit of the run by its id, judged or not."""
    fields: Fields
    id_fields: tuple[str, ...]
    """The fields that tell units apart."""
    question: Ints
    """Of each unit: what is judged about one question hangs together."""
    candidates: tuple[str, ...] = ()
    """Of pairs; in the order in which they were first judged."""
    subject: Ints
    """Of each unit its first candidate, as a place in `candidates`; NONE where it is no pair."""
    opponent: Ints
    judges: tuple[str, ...]
    planned: Ints | None
    """The number of judgments each judge is to give of each unit: a row per unit, a column per
    judge. None if unknown, as for judgments made elsewhere."""
    failures: Mapping[str, int]
    """The judgments without a verdict, by reason."""
    left_out: int = 0
    """Judgments that judges were left out of."""
    rule: Rule = "uncertain"

    @property
    def is_pairs(self) -> bool:
        """Return True where two candidates were set against each other."""
        return WINNER in self.measures

    @property
    def main(self) -> str:
        """The measure that says what a judgment comes to."""
        return WINNER if self.is_pairs else OVERALL

    @property
    def dimensions(self) -> list[str]:
        """The dimensions or criteria."""
        others = (OVERALL, WINNER, UNCERTAIN)
        names = (name for name in self.measures if not is_flag(name) and not is_passing(name))
        return [name for name in names if name not in others]

    @property
    def pass_measures(self) -> list[str]:
        """The measures that are passed or not: `pass` first, then checks by code."""
        return sorted(filter(is_passing, self.measures), key=lambda name: name != PASSED)

    @property
    def flags(self) -> list[str]:
        """The measures that are there or not: failure tags and critical fails."""
        return [name for name in self.measures if is_flag(name)]

    def column(self, measure: str) -> Floats:
        """Return what each judgment says on a measure."""
        return self.values[:, self.measures.index(measure)]

    def scale(self, measure: str) -> Scale:
        return self.scales[self.measures.index(measure)]

    @property
    def failed(self) -> Bools:
        """Of each judgment, whether it says nothing at all."""
        return np.asarray(np.isnan(self.values).all(axis=1), dtype=np.bool_)

    @property
    def spared(self) -> Bools:
        """Of each judgment, whether code decided it by a check, and no judge was asked."""
        said = self.values[:, [not is_passing(name) for name in self.measures]]
        return np.asarray(np.isnan(said).all(axis=1) & ~self.failed, dtype=np.bool_)

    @property
    def first(self) -> Ints:
        """Of each judgment, the first candidate of its pair."""
        return self.subject[self.unit]

    @property
    def second(self) -> Ints:
        return self.opponent[self.unit]

    @property
    def topic(self) -> Ints:
        """Of each judgment, its question."""
        return self.question[self.unit]

    def numbers(self, field: str) -> Floats:
        """Return a field that holds numbers, of each unit; nan where it is absent."""
        if field not in self.fields:
            return np.full(len(self.units), np.nan)
        column = self.fields[field]
        return np.array([*map(float, column.levels), np.nan])[column.codes]

    def due(self) -> Ints:
        """Return how many judgments each unit is to have: at least those that it has."""
        judged = np.bincount(self.unit[~self.spared], minlength=len(self.units))
        return judged if self.planned is None else np.maximum(judged, self.planned.sum(axis=1))

    def unit_means(self, measure: str) -> Floats:
        """Return the mean of each unit over judges and repeats; nan without a value."""
        return self.unit_sums(measure).means

    def unit_sums(self, measure: str) -> UnitSums:
        values = self.column(measure)
        valued, size = ~np.isnan(values), len(self.units)
        sums = np.bincount(self.unit[valued], values[valued], size).astype(np.float64)
        return UnitSums(sums, np.bincount(self.unit[valued], minlength=size))

    def where(self, rows: Bools) -> Observations:
        """Return some of the judgments, with every unit still there."""
        return replace(
            self,
            values=self.values[rows],
            unit=self.unit[rows],
            judge=self.judge[rows],
            repeat=self.repeat[rows],
            conflict=self.conflict[rows],
            passes=self.passes.where(rows),
        )

    def of_judge(self, name: str) -> Observations:
        """Return the judgments of one judge; raise UsageError for one that is not there."""
        place = place_of(self.judges, name, "judge")
        planned = self.planned
        if planned is not None:
            planned = np.where(np.arange(len(self.judges)) == place, planned, 0)
        return replace(self.where(self.judge == place), planned=planned)

    def of_units(self, members: Bools) -> Observations:
        """Return some of the units, with their judgments."""
        moved, part = np.cumsum(members) - 1, self.where(members[self.unit])
        return replace(
            part,
            unit=moved[part.unit],
            units=[unit for unit, is_in in zip(self.units, members, strict=True) if is_in],
            fields={n: Field(f.codes[members], f.levels) for n, f in self.fields.items()},
            question=self.question[members],
            subject=self.subject[members],
            opponent=self.opponent[members],
            planned=None if self.planned is None else self.planned[members],
        )


def is_by(table: Observations, names: Sequence[str]) -> Bools:
    """Return which ratings are by judges of these names, or patterns such as `expert_*`; raise
    UsageError for one that names nobody."""
    meant: list[int] = []
    for name in names:
        found = [at for at, judge in enumerate(table.judges) if fnmatchcase(judge, name)]
        if name in table.judges:
            found = [table.judges.index(name)]
        if not found:
            advice = suggest(name, table.judges)
            raise UsageError(Sentence("stats.no_judge", name=name), advice=advice)
        meant += found
    return np.isin(table.judge, meant)


def with_one_overall(table: Observations, other: Observations) -> tuple[Observations, Observations]:
    """Return two tables whose overall scores mean the same. Where nobody says what the scales are,
    it is the mean of their common dimensions, each as a share of the widest range of the two."""
    if table.is_pairs or (table.scale(OVERALL).is_known and other.scale(OVERALL).is_known):
        return table, other
    names = [name for name in table.dimensions if name in other.measures]
    if not names:
        return table, other
    ends = [table.scale(name).joined(other.scale(name)).ends for name in names]
    rescaled: list[Observations] = []
    for each in (table, other):
        values = each.values.copy()
        columns = [each.column(name) for name in names]
        values[:, each.measures.index(OVERALL)] = mean_share(columns, ends)
        rescaled.append(replace(each, values=values))
    return rescaled[0], rescaled[1]


def in_name_order(table: Observations) -> Observations:
    """Return pairs whose first candidate is the one whose name comes first."""
    rank = np.argsort(np.argsort(np.array(table.candidates, dtype=object)))
    is_turned = rank[table.subject] > rank[table.opponent]
    contested = [table.main, *table.dimensions]
    turned = np.outer(is_turned[table.unit], np.isin(table.measures, contested))
    passes, is_pass_turned = table.passes, is_turned[table.unit[table.passes.row]]
    is_known = is_pass_turned & (passes.position > 0)
    return replace(
        table,
        subject=np.where(is_turned, table.opponent, table.subject),
        opponent=np.where(is_turned, table.subject, table.opponent),
        values=np.where(turned, 1 - table.values, table.values),
        passes=replace(
            passes,
            position=np.where(is_known, 3 - passes.position, passes.position),
            value=np.where(is_pass_turned, 1 - passes.value, passes.value),
        ),
    )


def unit_keys(table: Observations, pair_by: Sequence[str] = ()) -> list[str]:
    """Return of each unit what it is known by in every run: its id, or the fields `pair_by`; of a
    pair the id and its candidates."""
    if table.is_pairs:
        names = table.candidates
        sides = zip(table.subject.tolist(), table.opponent.tolist(), strict=True)
        return [
            pair_key(unit, [names[first], names[second]])
            for unit, (first, second) in zip(table.units, sides, strict=True)
        ]
    columns = [field_named(table.fields, name) for name in pair_by or (UNIT,)]
    texts = [[(*column.levels, "")[code] for code in column.codes.tolist()] for column in columns]
    return ["\x00".join(values) for values in zip(*texts, strict=True)]


def without_judgments(units: Sequence[str], fields: Fields) -> Observations:
    """Return the observations of units to be scored that nobody has judged yet."""
    nothing, nowhere = np.zeros(0, np.int64), np.full(len(units), NONE)
    return Observations(
        measures=(OVERALL,),
        scales=(Scale(),),
        values=np.zeros((0, 1)),
        unit=nothing,
        judge=nothing,
        repeat=nothing,
        conflict=np.zeros(0, np.bool_),
        passes=Passes(row=nothing, round=nothing, position=nothing, value=np.zeros(0)),
        units=units,
        fields=fields,
        id_fields=id_fields(fields),
        question=questions(fields, len(units)),
        subject=nowhere,
        opponent=nowhere,
        judges=(),
        planned=None,
        failures={},
    )


@dataclass(frozen=True, slots=True)
class UnitSums:
    """Of each unit the sum of what its judgments say on a measure, and how many say anything."""

    sums: Floats
    counts: Ints

    @property
    def means(self) -> Floats:
        means = np.full(self.sums.size, np.nan)
        return np.asarray(np.divide(self.sums, self.counts, out=means, where=self.counts > 0))

    def filled(self, due: Ints, value: float) -> Floats:
        """Return the means if every judgment that is missing had given this value; nan of a unit
        that is to have none."""
        expected = np.maximum(due, self.counts)
        sums, means = self.sums + (expected - self.counts) * value, np.full(due.size, np.nan)
        return np.asarray(np.divide(sums, expected, out=means, where=expected > 0))


class FieldColumns:
    """The fields of units, gathered unit by unit."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, defaultdict[str, int]] = defaultdict(_numbering)
        self._codes: dict[str, list[int]] = {}
        self._size = 0

    def add(self, values: Mapping[str, str]) -> None:
        """Take the fields of the next unit."""
        for name, value in values.items():
            codes = self._codes.setdefault(name, [])
            if len(codes) < self._size:
                codes += [NONE] * (self._size - len(codes))
            codes.append(self._numbers[name][value])
        self._size += 1

    def fields(self) -> dict[str, Field]:
        """Return every field with a code for each unit."""
        fields: dict[str, Field] = {}
        for name, codes in self._codes.items():
            absent = [NONE] * (self._size - len(codes))
            fields[name] = Field(np.array(codes + absent, np.int64), tuple(self._numbers[name]))
        return fields


def _numbering() -> defaultdict[str, int]:
    """Return numbers for values, in the order in which they first come."""
    following: Callable[[], int] = count().__next__
    return defaultdict(following)


def id_fields(fields: Fields) -> tuple[str, ...]:
    """Return the fields that tell units apart: those that their ids are made of where the question
    or task is named everywhere, else the id itself."""
    present = [name for name in ("task_name", *META_FIELDS) if name in fields]
    whole = [name for name in ("task_name", "question_id") if name in present]
    if any((fields[name].codes >= 0).all() for name in whole):
        return tuple(present)
    return (UNIT,)


def questions(fields: Fields, size: int, last: str = UNIT) -> Ints:
    """Return of each unit the question that it is about, as a number from 0: by the first field
    that says what was asked, else by the `last`. A unit that says nothing stands for itself."""
    code = np.arange(size)
    names = [name for name in QUESTIONS if name in fields][:1]
    for name in [*([last] if last in fields else []), *names]:
        codes = fields[name].codes
        code = np.where(codes >= 0, codes, code + len(fields[name].levels))
    return np.asarray(np.unique(code, return_inverse=True)[1])
