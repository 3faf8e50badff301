"""What statistics are computed from: the judgments of a run as columns.

A `Scores` table holds one row per judgment of a sample or an answer, a `Votes` table one row per
judgment of a pair. Failures are rows without a value, so that nothing that is missing is hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import numpy.typing as npt

from evenhand.errors import no_such_field
from evenhand.measures import Rule

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

UNIT = "unit"
"""The field that names a unit, or what others call one."""
FIRST, SECOND, TIE, UNCERTAIN, NONE = 0, 1, 2, 3, -1
"""Outcomes of a vote: which candidate is better. NONE is a failure, or a conflict that was dropped.
"""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of what was judged: a code for each unit, -1 where it is absent."""

    codes: Ints
    levels: tuple[str, ...]


Fields = Mapping[str, Field]


def field_named(fields: Fields, name: str) -> Field:
    """A field by its name, with or without `meta.` before it; raises UsageError."""
    column = fields.get(name) or fields.get(name.removeprefix("meta."))
    if column is None:
        raise no_such_field(name, fields)
    return column


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The judgments of samples or answers."""

    dimensions: tuple[str, ...]
    low: Floats
    """The lowest score that each dimension's scale has."""
    high: Floats
    values: Floats
    """A row per judgment, a column per dimension; nan where there is no score."""
    unit: Ints
    """Of each row, as a place in `units`."""
    judge: Ints
    repeat: Ints
    tags: Bools
    """A row per judgment, a column per name of `tag_names`."""
    tag_names: tuple[str, ...]
    critical: Bools
    """Whether an answer met a critical-fail condition."""
    units: Sequence[str]
    """Every unit of the run by its id, judged or not."""
    lengths: Floats | None = None
    """Of what was judged in each of `units`, in characters; None where nobody counted."""
    fields: Fields
    """What `meta` says of each unit; `id_fields` are those that tell units apart."""
    id_fields: tuple[str, ...]
    judges: tuple[str, ...]
    planned: int | Ints
    """How many judgments each unit is to have, or all of them alike; 0 where that is not known, as
    of imported ones."""
    due: Ints | None = None
    """The same by judge, a row per unit and a column per judge; None where that is not known."""
    totals: Floats | None = None
    """The totals of answers from 0 to 1: their dimensions do not weigh alike."""
    most: Floats | None = None
    """Laid out as `values`: the points to be had in each judgment, nan where it does not say; None
    where none does. Points may differ from unit to unit, as by the type of a task."""
    asked: Bools | None = None
    """A row per unit, a column per dimension: whether a judgment of the unit says anything on it,
    as a pair does of its two candidates alone; None where all do on all."""
    tells_critical: bool = True
    """Whether those who judged could say that a critical-fail condition was met."""
    given_scale: bool = True
    """Whether `low` and `high` are the rubric's; else they are the least and most observed."""

    @property
    def failed(self) -> Bools:
        """Of each row, whether it has no score at all."""
        return np.asarray(np.isnan(self.values).all(axis=1), dtype=np.bool_)

    @property
    def overall(self) -> Floats:
        """Of each row, the mean of its scores, each scaled from the lowest to the highest band; of
        answers the total, from 0 to 1."""
        if self.totals is not None:
            return self.totals
        if not self.dimensions:
            return np.full(self.unit.size, np.nan)
        span = np.where(self.high > self.low, self.high - self.low, 1.0)
        return np.asarray(((self.values - self.low) / span).mean(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """What was said in each order, in first rounds: the raw matter of position effects."""

    vote: Ints
    """The row of the Votes table that a pass belongs to."""
    turned: Bools
    """Whether the second candidate of the vote was shown first."""
    outcome: Ints
    """FIRST, SECOND or TIE, of the vote's candidates."""
    preference: Floats
    """How far the second candidate is preferred, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """The candidates of pairs, and how many their rows have."""

    candidates: Ints
    """Of each pair both candidates, by their numbers."""
    sizes: Mapping[str, int]
    """Of each row that has more than two candidates how many it has, judged or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """The judgments of pairs, each about candidates `first` and `second` as the unit has them."""

    candidates: tuple[str, ...]
    first: Ints
    second: Ints
    outcome: Ints
    preference: Floats
    """How far the second candidate is preferred: 0, 0.5 or 1, or between; nan without a verdict."""
    pair: Ints
    """Of each row, as a place in `pairs`: one topic with its two candidates."""
    topic: Ints
    """Of each row, the topic as a number from 0: votes on one topic, or question, hang together."""
    judge: Ints
    repeat: Ints
    marks: Mapping[str, Ints] = field(default_factory=dict)
    """By criterion, FIRST, SECOND, TIE or NONE."""
    first_length: Floats
    """In characters; nan where not known."""
    second_length: Floats
    fields: Fields
    """What `meta` says, with a code for each row."""
    pairs: Sequence[str]
    """The unit ids of the pairs that have a judgment."""
    rows: Sequence[str]
    """Of each of `pairs`, the row of the data that it comes from: one has several candidates."""
    seats: Seats | None = None
    """Of all `pairs`, in their order; None where nobody asks for the fronts of rows."""
    topics: Sequence[str]
    judges: tuple[str, ...]
    passes: Passes
    rule: Rule = "uncertain"
    conflict: Bools
    """Of each row, whether no round brought the orders together, so that the rule decided."""
    pending: Bools | None = None
    """Of each row, whether its judgment is still to come, so that it has no verdict; None where
    nobody asks for such rows. `pairs` are then all of the run."""

    @property
    def conflicts(self) -> int:
        return int(self.conflict.sum())

    @property
    def made(self) -> Bools:
        """Of each row, whether the judgment is there, a verdict or a failure."""
        if self.pending is None:
            return np.ones(self.outcome.size, dtype=np.bool_)
        return ~self.pending

    def where(self, rows: Bools) -> Votes:
        """Some of the votes, with their passes."""
        moved, pass_rows = np.cumsum(rows) - 1, rows[self.passes.vote]
        columns = {
            attribute.name: getattr(self, attribute.name)[rows]
            for attribute in fields(self)
            if isinstance(getattr(self, attribute.name), np.ndarray)
        }
        passes = {
            attribute.name: getattr(self.passes, attribute.name)[pass_rows]
            for attribute in fields(Passes)
        }
        return replace(
            self,
            **columns,
            marks={name: marks[rows] for name, marks in self.marks.items()},
            fields={
                name: Field(column.codes[rows], column.levels)
                for name, column in self.fields.items()
            },
            passes=Passes(**passes | {"vote": moved[self.passes.vote[pass_rows]]}),
        )
