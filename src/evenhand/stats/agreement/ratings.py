"""Who said what of which unit, with the units of two sides numbered alike.

A pair is known by its unit and its two candidates, whichever stands first, and a vote is turned to
name them in the order of their names; a sample or an answer is known by its id.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from evenhand.errors import UsageError, nearest, quoted
from evenhand.stats.questions import question_of
from evenhand.stats.tables import (
    FIRST,
    NONE,
    SECOND,
    TIE,
    UNCERTAIN,
    Bools,
    Field,
    Fields,
    Floats,
    Ints,
    Scores,
    Votes,
)
from evenhand.units import pair_key

WINNER, OVERALL = "winner", "overall"
_RATING = {FIRST: 0.0, SECOND: 1.0, TIE: 2.0, UNCERTAIN: 2.0, NONE: np.nan}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """One side. A row is a judgment; `values` has a column a dimension, nan without a value."""

    unit: Ints
    """As numbered for both sides."""
    judge: Ints
    judges: tuple[str, ...]
    values: Mapping[str, Floats]
    means: Mapping[str, tuple[Ints, Floats]]
    """What a mean is taken of: by candidate or dimension, rows and their shares or scores."""

    def only(self, patterns: Sequence[str]) -> Ratings:
        """The ratings of these judges, who may be named by patterns such as `expert_*`."""
        places = [self.judges.index(name) for name in matching_judges(self.judges, patterns)]
        return self.where(np.isin(self.judge, places))

    def without(self, patterns: Sequence[str]) -> Ratings:
        """The ratings of all other judges."""
        places = [self.judges.index(name) for name in matching_judges(self.judges, patterns)]
        return self.where(~np.isin(self.judge, places))

    def where(self, mask: Bools) -> Ratings:
        """Some of the rows."""
        rows = np.cumsum(mask) - 1
        return replace(
            self,
            unit=self.unit[mask],
            judge=self.judge[mask],
            values={name: column[mask] for name, column in self.values.items()},
            means={
                name: (rows[of[mask[of]]], column[mask[of]])
                for name, (of, column) in self.means.items()
            },
        )

    @property
    def present(self) -> list[int]:
        """The judges that have a row, in their order."""
        return [int(code) for code in np.unique(self.judge)]


def matching_judges(judges: Sequence[str], patterns: Iterable[str]) -> list[str]:
    """The judges that names or patterns mean; raises UsageError for one that means nobody."""
    matches: list[str] = []
    for name in patterns:
        meant = [name] if name in judges else [j for j in judges if fnmatchcase(j, name)]
        if not meant:
            near = nearest(name, judges)
            raise UsageError(
                f"there is no judge {quoted(name)} in the run",
                advice=f"Did you mean {quoted(near)}?"
                if near
                else f"There are: {', '.join(judges[:20])}",
            )
        matches += [judge for judge in meant if judge not in matches]
    return matches


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Two sides over the units of both; without a second one `against` is None."""

    run: Ratings
    against: Ratings | None
    cluster: Ints
    """Of each unit: units of one topic or question hang together."""
    fields: Fields
    """Of each unit."""
    ends: Mapping[str, tuple[float, float]]
    """Of what a mean is taken of: the least and the most that it can be."""
    candidates: tuple[str, ...] = ()
    """Of pairs, by name."""


class _Numbers:
    """Things numbered in the order in which they first come."""

    def __init__(self) -> None:
        self.numbers: dict[Hashable, int] = {}

    def of(self, keys: Iterable[Hashable]) -> Ints:
        numbers = self.numbers
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def join_votes(votes: Votes, others: Votes | None) -> Joined:
    """Votes joined by unit and candidates."""
    units, topics, sides = _Numbers(), _Numbers(), list[Ratings]()
    cluster, fields = np.zeros(0, dtype=np.int64), dict[str, Field]()
    tables = [table for table in (votes, others) if table is not None]
    for table in tables:
        rows = np.unique(table.pair, return_index=True)[1]
        number = np.zeros(len(table.pairs), dtype=np.int64)
        numbers = number[table.pair[rows]] = units.of(_vote_keys(table, rows))
        sides.append(_vote_ratings(table, number))
        of_pairs = {k: Field(f.codes[rows], f.levels) for k, f in table.fields.items()}
        _add_fields(fields, of_pairs, numbers, len(units.numbers))
        earlier = cluster
        cluster = np.zeros(len(units.numbers), dtype=np.int64)
        cluster[numbers] = topics.of(table.topics)[table.topic[rows]]
        cluster[: earlier.size] = earlier
    names = {name for table in tables for name in table.candidates}
    return Joined(
        run=sides[0],
        against=sides[1] if others is not None else None,
        cluster=cluster,
        fields=_filled(fields, len(units.numbers)),
        ends=dict.fromkeys(names, (0.0, 1.0)),
        candidates=tuple(sorted(names)),
    )


def _vote_keys(votes: Votes, rows: Ints) -> Iterator[str]:
    columns = (votes.pair, votes.first, votes.second)
    for pair, *both in zip(*(column[rows].tolist() for column in columns), strict=True):
        yield pair_key(votes.pairs[pair], [votes.candidates[code] for code in both])


def _vote_ratings(votes: Votes, number: Ints) -> Ratings:
    places = np.argsort(np.argsort(np.array(votes.candidates, dtype=object)))
    turned = places[votes.first] > places[votes.second] if votes.pair.size else votes.pair < 0
    outcomes = {WINNER: votes.outcome, **votes.marks}
    means: dict[str, tuple[Ints, Floats]] = {}
    for code, name in enumerate(votes.candidates):
        rows = np.flatnonzero((votes.first == code) | (votes.second == code))
        second = votes.second[rows] == code
        shares = np.where(second, votes.preference[rows], 1 - votes.preference[rows])
        means[name] = (rows, shares)
    every = Ratings(
        unit=number[votes.pair],
        judge=votes.judge,
        judges=votes.judges,
        values={name: _turned(column, turned) for name, column in outcomes.items()},
        means=means,
    )
    # A candidate against itself is no contest.
    return every.where(votes.first != votes.second)


def _turned(outcome: Ints, turned: Bools) -> Floats:
    """Outcomes as 0 where the first candidate by name is better, 1 the second, 2 a tie."""
    values = np.full(outcome.size, np.nan)
    for code, value in _RATING.items():
        values[outcome == code] = value
    return np.where(turned & (values < 2), 1 - values, values)


def join_scores(scores: Scores, others: Scores | None) -> Joined:
    """Scores joined by the ids of their units."""
    units, sides = _Numbers(), list[Ratings]()
    fields: dict[str, Field] = {}
    tables = [table for table in (scores, others) if table is not None]
    overall = _overall(tables)
    for table, whole in zip(tables, overall, strict=True):
        number = units.of(table.units)
        values = {name: table.values[:, at] for at, name in enumerate(table.dimensions)} | whole
        rows = np.arange(table.unit.size)
        means = {name: (rows, column) for name, column in values.items()}
        sides.append(
            Ratings(
                unit=number[table.unit],
                judge=table.judge,
                judges=table.judges,
                values=values,
                means=means,
            )
        )
        _add_fields(fields, table.fields, number, len(units.numbers))
    filled = _filled(fields, len(units.numbers))
    return Joined(
        run=sides[0],
        against=sides[1] if others is not None else None,
        cluster=question_of(filled, len(units.numbers)),
        fields=filled,
        ends=_ends(tables),
    )


def _overall(tables: Sequence[Scores]) -> list[dict[str, Floats]]:
    """The overall score of each row where a table has several dimensions, all of them in common: on
    the widest scale that either side knows, so that both mean the same."""
    shared = set(tables[0].dimensions)
    alike = all(set(table.dimensions) == shared for table in tables)
    if not alike or len(shared) < 2 or OVERALL in shared:
        return [{} for _ in tables]
    if all(table.totals is not None for table in tables):
        return [{OVERALL: table.overall} for table in tables]
    ends, overall = _ends(tables), list[dict[str, Floats]]()
    for table in tables:
        low, high = (np.array([ends[name][at] for name in table.dimensions]) for at in (0, 1))
        overall.append({OVERALL: replace(table, low=low, high=high, totals=None).overall})
    return overall


def _ends(tables: Sequence[Scores]) -> dict[str, tuple[float, float]]:
    """The widest scale of each dimension that either side knows."""
    ends = {OVERALL: (0.0, 1.0)}
    for table in tables:
        for name, low, high in zip(table.dimensions, table.low, table.high, strict=True):
            span = ends.get(name, (np.inf, -np.inf))
            ends[name] = min(span[0], float(low)), max(span[1], float(high))
    return ends


def _add_fields(to: dict[str, Field], fields: Fields, number: Ints, count: int) -> None:
    """Add what one side knows of its units to what is known; the first side is believed."""
    for name, field in fields.items():
        earlier = to.get(name, Field(np.zeros(0, dtype=np.int64), ()))
        levels = {level: code for code, level in enumerate(earlier.levels)}
        recoded = np.array(
            [levels.setdefault(level, len(levels)) for level in field.levels] + [NONE]
        )
        codes = np.full(count, NONE, dtype=np.int64)
        codes[: earlier.codes.size] = earlier.codes
        open_ = codes[number] == NONE
        codes[number[open_]] = recoded[field.codes[open_]]
        to[name] = Field(codes, tuple(levels))


def _filled(fields: Mapping[str, Field], count: int) -> dict[str, Field]:
    """Fields that only the first side has, with nothing for units of the second."""
    filled: dict[str, Field] = {}
    for name, field in fields.items():
        codes = np.full(count, NONE, dtype=np.int64)
        codes[: field.codes.size] = field.codes
        filled[name] = Field(codes, field.levels)
    return filled
