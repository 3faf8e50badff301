"""Who said what of which unit, with the units of two sides numbered alike.

A pair is known by its unit and its two candidates, whichever stands first, and a vote is turned to
name them in the order of their names; a sample or an answer is known by its id.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from evenhand.errors import UsageError, nearest, quoted
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

WINNER, OVERALL = "winner", "overall"
QUESTIONS = ("question_id", "task_name")
"""Fields of samples and answers that name what was asked: units that share it hang together."""
_PLACES = re.compile(r"#\d+-\d+")
_SAID = {FIRST: 0.0, SECOND: 1.0, TIE: 2.0, UNCERTAIN: 2.0, NONE: np.nan}


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

    def only(self, wanted: Sequence[str]) -> Ratings:
        """The ratings of these judges, who may be named by patterns such as `expert_*`."""
        places = [self.judges.index(name) for name in named(self.judges, wanted)]
        return self.where(np.isin(self.judge, places))

    def without(self, unwanted: Sequence[str]) -> Ratings:
        """The ratings of all other judges."""
        places = [self.judges.index(name) for name in named(self.judges, unwanted)]
        return self.where(~np.isin(self.judge, places))

    def where(self, kept: Bools) -> Ratings:
        """Some of the rows."""
        rows = np.cumsum(kept) - 1
        return replace(
            self,
            unit=self.unit[kept],
            judge=self.judge[kept],
            values={name: column[kept] for name, column in self.values.items()},
            means={
                name: (rows[of[kept[of]]], column[kept[of]])
                for name, (of, column) in self.means.items()
            },
        )

    @property
    def present(self) -> list[int]:
        """The judges that have a row, in their order."""
        return [int(one) for one in np.unique(self.judge)]


def named(judges: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """The judges that names or patterns mean; raises UsageError for one that means nobody."""
    found: list[str] = []
    for name in wanted:
        meant = [name] if name in judges else [j for j in judges if fnmatchcase(j, name)]
        if not meant:
            near = nearest(name, judges)
            raise UsageError(
                f"there is no judge {quoted(name)} in the run",
                advice=f"Did you mean {quoted(near)}?"
                if near
                else f"There are: {', '.join(judges[:20])}",
            )
        found += [one for one in meant if one not in found]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Two sides over the units of both; without a second one `other` is None."""

    run: Ratings
    other: Ratings | None
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
        self.known: dict[Hashable, int] = {}

    def of(self, keys: Iterable[Hashable]) -> Ints:
        known = self.known
        return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


def join_votes(votes: Votes, others: Votes | None) -> Joined:
    """Votes joined by unit and candidates."""
    units, topics, sides = _Numbers(), _Numbers(), list[Ratings]()
    cluster, fields = np.zeros(0, dtype=np.int64), dict[str, Field]()
    for one in (votes, others):
        if one is None:
            continue
        rows = np.unique(one.pair, return_index=True)[1]
        number = np.zeros(len(one.pairs), dtype=np.int64)
        numbers = number[one.pair[rows]] = units.of(_vote_keys(one, rows))
        sides.append(_vote_ratings(one, number))
        of_pairs = {k: Field(f.codes[rows], f.levels) for k, f in one.fields.items()}
        _add_fields(fields, of_pairs, numbers, len(units.known))
        known = cluster
        cluster = np.zeros(len(units.known), dtype=np.int64)
        cluster[numbers] = topics.of(one.topics)[one.topic[rows]]
        cluster[: known.size] = known
    names = {name for one in (votes, others) if one is not None for name in one.candidates}
    return Joined(
        run=sides[0],
        other=sides[1] if others is not None else None,
        cluster=cluster,
        fields=_filled(fields, len(units.known)),
        ends=dict.fromkeys(names, (0.0, 1.0)),
        candidates=tuple(sorted(names)),
    )


def _vote_keys(votes: Votes, rows: Ints) -> Iterator[tuple[str, str, str]]:
    columns = (votes.first, votes.second, votes.pair, votes.topic)
    for first, second, pair, topic in zip(*(one[rows].tolist() for one in columns), strict=True):
        low, high = votes.candidates[first], votes.candidates[second]
        if high < low:
            low, high = high, low
        ident = votes.pairs[pair]
        if "#" in ident:
            ident = _unit_of_pair(ident, votes.topics[topic], low, high)
        yield ident, low, high


def _unit_of_pair(ident: str, topic: str, low: str, high: str) -> str:
    """What a pair is about: its id less the part that tells the pairs of one unit apart, which it
    has on a side with several of them and lacks on one with a single pair."""
    for tail in (f"#{low}-{high}", f"#{high}-{low}"):
        if ident.endswith(tail):
            return ident.removesuffix(tail)
    numbered = ident.startswith(f"{topic}#") and _PLACES.fullmatch(ident[len(topic) :])
    return topic if numbered else ident


def _vote_ratings(votes: Votes, number: Ints) -> Ratings:
    places = np.argsort(np.argsort(np.array(votes.candidates, dtype=object)))
    turned = places[votes.first] > places[votes.second] if votes.pair.size else votes.pair < 0
    said = {WINNER: votes.outcome, **votes.marks}
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
        values={name: _turned(column, turned) for name, column in said.items()},
        means=means,
    )
    # A candidate against itself is no contest.
    return every.where(votes.first != votes.second)


def _turned(outcome: Ints, turned: Bools) -> Floats:
    """Outcomes as 0 where the first candidate by name is better, 1 the second, 2 a tie."""
    said = np.full(outcome.size, np.nan)
    for code, value in _SAID.items():
        said[outcome == code] = value
    return np.where(turned & (said < 2), 1 - said, said)


def join_scores(scores: Scores, others: Scores | None) -> Joined:
    """Scores joined by the ids of their units."""
    units, sides = _Numbers(), list[Ratings]()
    fields: dict[str, Field] = {}
    tables = [one for one in (scores, others) if one is not None]
    overall = _overall(tables)
    for one, whole in zip(tables, overall, strict=True):
        number = units.of(one.units)
        values = {name: one.values[:, at] for at, name in enumerate(one.dimensions)} | whole
        rows = np.arange(one.unit.size)
        means = {name: (rows, column) for name, column in values.items()}
        sides.append(
            Ratings(
                unit=number[one.unit],
                judge=one.judge,
                judges=one.judges,
                values=values,
                means=means,
            )
        )
        _add_fields(fields, one.fields, number, len(units.known))
    filled = _filled(fields, len(units.known))
    return Joined(
        run=sides[0],
        other=sides[1] if others is not None else None,
        cluster=_questions(filled, len(units.known)),
        fields=filled,
        ends=_ends(tables),
    )


def _overall(tables: Sequence[Scores]) -> list[dict[str, Floats]]:
    """The overall score of each row where a table has several dimensions, all of them in common: on
    the widest scale that either side knows, so that both mean the same."""
    shared = set(tables[0].dimensions)
    alike = all(set(one.dimensions) == shared for one in tables)
    if not alike or len(shared) < 2 or OVERALL in shared:
        return [{} for _ in tables]
    if all(one.totals is not None for one in tables):
        return [{OVERALL: one.overall} for one in tables]
    ends, found = _ends(tables), list[dict[str, Floats]]()
    for one in tables:
        low, high = (np.array([ends[name][at] for name in one.dimensions]) for at in (0, 1))
        found.append({OVERALL: replace(one, low=low, high=high, totals=None).overall})
    return found


def _ends(tables: Sequence[Scores]) -> dict[str, tuple[float, float]]:
    """The widest scale of each dimension that either side knows."""
    found = {OVERALL: (0.0, 1.0)}
    for one in tables:
        for name, low, high in zip(one.dimensions, one.low, one.high, strict=True):
            known = found.get(name, (np.inf, -np.inf))
            found[name] = min(known[0], float(low)), max(known[1], float(high))
    return found


def _questions(fields: Fields, count: int) -> Ints:
    for name in QUESTIONS:
        if name in fields and (fields[name].codes >= 0).all():
            return fields[name].codes
    return np.arange(count)


def _add_fields(to: dict[str, Field], fields: Fields, number: Ints, count: int) -> None:
    """Add what one side knows of its units to what is known; the first side is believed."""
    for name, one in fields.items():
        known = to.get(name, Field(np.zeros(0, dtype=np.int64), ()))
        levels = {level: code for code, level in enumerate(known.levels)}
        recoded = np.array([levels.setdefault(level, len(levels)) for level in one.levels] + [NONE])
        codes = np.full(count, NONE, dtype=np.int64)
        codes[: known.codes.size] = known.codes
        open_ = codes[number] == NONE
        codes[number[open_]] = recoded[one.codes[open_]]
        to[name] = Field(codes, tuple(levels))


def _filled(fields: Mapping[str, Field], count: int) -> dict[str, Field]:
    """Fields that only the first side has, with nothing for units of the second."""
    found: dict[str, Field] = {}
    for name, one in fields.items():
        codes = np.full(count, NONE, dtype=np.int64)
        codes[: one.codes.size] = one.codes
        found[name] = Field(codes, one.levels)
    return found
