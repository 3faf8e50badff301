"""What judged pairs come to: the panel's verdict of each, the fronts of topics, and how they were
settled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from evenhand.observation import UNCERTAIN
from evenhand.stats.estimate import Estimate
from evenhand.stats.leans import Orders, orders
from evenhand.stats.observations import NONE, Floats, Ints, Observations, in_name_order
from evenhand.stats.votes import OUTCOMES

WON, LOST, TIED, OPEN = range(4)
"""The outcomes of a pair for its first candidate, in the order of `OUTCOMES`."""
SETTLED = ("stable", "resolved", "one_order", "uncertain")
FRONTS_LISTED = 10_000
"""Of more topics, those of two candidates are not listed among other figures."""
_MARKS = {WON: "A+", LOST: "B+", TIED: "tie"}


# The verdict of a panel


def panel(table: Observations, measure: str) -> Ints:
    """Return of each unit what more than half of its judges say, each by more than half of its
    repeats; NONE without a verdict. Without such a majority a pair is uncertain, and on a criterion
    a tie."""
    outcomes = _outcomes(table, measure)
    otherwise = OPEN if measure == table.main else TIED
    rows, judges = outcomes != NONE, max(len(table.judges), 1)
    places, group = np.unique(table.unit[rows] * judges + table.judge[rows], return_inverse=True)
    by_judge = _majorities(group, outcomes[rows], places.size, otherwise)
    units, group = np.unique(places // judges, return_inverse=True)
    results = np.full(len(table.units), NONE)
    results[units] = _majorities(group, by_judge, units.size, otherwise)
    return results


def _outcomes(table: Observations, measure: str) -> Ints:
    """Return the outcome that each judgment says; NONE where it says nothing."""
    won: Floats = table.column(measure)
    outcomes = np.where(won > 0.5, WON, np.where(won < 0.5, LOST, TIED))
    if measure == table.main:
        outcomes[table.column(UNCERTAIN) == 1] = OPEN
    return np.where(np.isnan(won), NONE, outcomes)


def _majorities(group: Ints, codes: Ints, size: int, otherwise: int) -> Ints:
    """Return of each group the code that more than half of its members have."""
    counts = np.bincount(group * 4 + codes, minlength=size * 4).reshape(size, 4)
    is_clear = 2 * counts.max(axis=1, initial=0) > counts.sum(axis=1)
    return np.where(is_clear, counts.argmax(axis=1), otherwise)


def tally(table: Observations, results: Ints) -> Ints:
    """Return how often each candidate won, lost, tied, and had no clear result, from the result of
    each unit; a candidate against itself says nothing of candidates."""
    is_told, size = (results != NONE) & (table.subject != table.opponent), len(table.candidates)
    result = results[is_told]
    turned = np.array([LOST, WON, TIED, OPEN])[result]
    sides = table.subject[is_told] * 4 + result, table.opponent[is_told] * 4 + turned
    return np.bincount(np.concatenate(sides), minlength=size * 4).reshape(size, 4)


# The figures of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteSummary:
    """The verdicts and passes of all judges together, or of one."""

    outcomes: Counter[str]
    settled: Counter[str]
    """By what their passes say; a verdict without passes is in no count."""
    orders: Orders
    passes: int
    """The calls whose reply names a winner."""
    extra_calls: int
    """Those of later rounds."""

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        return {
            "outcomes": {name: self.outcomes[name] for name in OUTCOMES},
            "settled": dict(self.settled),
            "first_rounds": self.orders.first_rounds,
            "consistency": _share_json(self.orders.consistency),
            "first_slot": _share_json(self.orders.first_slot),
            "passes": self.passes,
            "extra_calls": self.extra_calls,
        }


class Standing(NamedTuple):
    """The record of one candidate in its pairs, each counted once, by the verdict of the panel."""

    wins: int
    losses: int
    ties: int
    uncertain: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSummary:
    """The figures of one run of pairs."""

    votes: VoteSummary
    standings: Mapping[str, Standing]
    """Of each candidate that has a verdict."""
    panel: Counter[str]
    fronts: Mapping[str, Front]
    judges: Mapping[str, VoteSummary]
    """The figures of each judge, if there are several."""

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        return {
            **self.votes.json(),
            "candidates": {name: each._asdict() for name, each in self.standings.items()},
            "panel": dict(self.panel),
            "fronts": fronts_json(self.fronts),
            "judges": {name: votes.json() for name, votes in self.judges.items()},
        }


def _share_json(share: Estimate) -> dict[str, Any]:
    return {name: getattr(share, name) for name in ("value", "low", "high", "n")}


def summarise_pairs(table: Observations) -> PairSummary:
    """Return the figures of these judgments of pairs."""
    results = panel(table, table.main)
    counts = zip(table.candidates, tally(table, results).tolist(), strict=True)
    judges = np.unique(table.judge).tolist()
    return PairSummary(
        votes=_summarise_votes(table),
        standings={name: Standing(*counted) for name, counted in counts if any(counted)},
        panel=_count(results, OUTCOMES),
        fronts=topic_fronts(table),
        judges={
            table.judges[judge]: _summarise_votes(table.where(table.judge == judge))
            for judge in (judges if len(judges) > 1 else ())
        },
    )


def _summarise_votes(table: Observations) -> VoteSummary:
    outcomes, passes = _outcomes(table, table.main), table.passes
    calls, is_later = np.bincount(passes.row, minlength=outcomes.size), passes.round > 1
    later = np.bincount(passes.row[is_later], minlength=outcomes.size)
    conditions = [outcomes == NONE, table.conflict, calls == 0, calls == 1, later > 0]
    settled = np.select(conditions, [NONE, 3, NONE, 2, 1], 0)
    return VoteSummary(
        outcomes=_count(outcomes, OUTCOMES),
        settled=_count(settled, SETTLED),
        orders=orders(table),
        passes=passes.row.size,
        extra_calls=int(is_later.sum()),
    )


def _count(codes: Ints, names: Sequence[str]) -> Counter[str]:
    """Return how often each name comes, of codes that are places among them or NONE."""
    counts = np.bincount(codes[codes != NONE], minlength=len(names)).tolist()
    return Counter({name: count for name, count in zip(names, counts, strict=True) if count})


# Fronts: which candidates of a topic are kept when all its pairs are judged


@dataclass(frozen=True, slots=True)
class Front:
    """The candidates of one topic that nothing speaks against."""

    candidates: list[str]
    front: list[str]
    pareto: list[str]
    complete: bool
    """True if every pair of the topic has a verdict."""


def fronts_json(fronts: Mapping[str, Front]) -> dict[str, dict[str, Any]]:
    """Return fronts by topic as `--json` prints them; of very many topics those with more than two
    candidates alone."""
    least = 2 if len(fronts) <= FRONTS_LISTED else 3
    return {row: asdict(sets) for row, sets in fronts.items() if len(sets.candidates) >= least}


class _Pair(NamedTuple):
    """A pair of a topic, its candidates in the order of their names."""

    names: tuple[str, str]
    is_judged: bool
    result: int
    """By the panel; NONE without a verdict."""
    marks: list[int]
    """By the panel, on each criterion."""


def topic_fronts(table: Observations) -> dict[str, Front]:
    """Return fronts by topic; a candidate beside itself has no part in them."""
    if "topic" not in table.fields:
        return {}
    table, codes = in_name_order(table), table.fields["topic"].codes
    # Marks of a verdict that the rule for conflicts drops are dropped with it.
    told = table.where(~np.isnan(table.column(table.main)))
    columns = [panel(told, name) for name in (told.main, *told.dimensions)]
    is_judged = np.bincount(table.unit, minlength=len(table.units)) > 0
    pairs: defaultdict[int, list[_Pair]] = defaultdict(list)
    for topic, first, second, judged, (result, *marks) in zip(
        codes.tolist(),
        table.subject.tolist(),
        table.opponent.tolist(),
        is_judged.tolist(),
        np.column_stack(columns).tolist(),
        strict=True,
    ):
        if first != second:
            sides = table.candidates[first], table.candidates[second]
            pairs[topic].append(_Pair(sides, judged, result, marks))
    names = *table.fields["topic"].levels, ""
    fronts = {names[topic]: _front(met) for topic, met in pairs.items()}
    return {topic: front for topic, front in fronts.items() if front is not None}


def _front(pairs: Sequence[_Pair]) -> Front | None:
    """Return the fronts of one topic; none of one without any verdict, nor where two candidates met
    twice, which are several questions. A pair that is missing or failed beats and dominates
    nothing, and a candidate that nobody judged yet is not named."""
    told = [pair for pair in pairs if pair.result != NONE]
    if not told or len({pair.names for pair in pairs}) < len(pairs):
        return None
    names = sorted({name for pair in pairs if pair.is_judged for name in pair.names})
    number = {name: place for place, name in enumerate(names)}
    beats: list[tuple[int, int]] = []
    marks: dict[tuple[int, int], list[str]] = {}
    for pair in told:
        first, second = (number[name] for name in pair.names)
        if pair.result in (WON, LOST):
            beats.append((first, second) if pair.result == WON else (second, first))
        marks[first, second] = [_MARKS[mark] for mark in pair.marks if mark != NONE]
    size = len({name for pair in pairs for name in pair.names})
    return Front(
        candidates=names,
        front=[names[place] for place in schwartz(len(names), beats)],
        pareto=[names[place] for place in pareto(len(names), marks)],
        complete=len(told) == size * (size - 1) // 2,
    )


def schwartz(size: int, beats: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return the union of all minimal non-empty sets that no outsider beats, of candidates that are
    numbers from 0; `beats` is (winner, loser).

    A candidate is in it if and only if it reaches, by a chain of beats, everyone who reaches it.
    Whom each reaches is a row of bits, so that hundreds of candidates are no matter.
    """
    beats = list(beats)
    reached, outside, is_growing = [0] * size, 0, True
    for winner, loser in beats:
        reached[winner] |= 1 << loser
    while is_growing:
        is_growing = False
        for winner, loser in beats:
            further = reached[winner] | reached[loser]
            if further != reached[winner]:
                reached[winner], is_growing = further, True
    for winner, loser in beats:
        if not reached[loser] >> winner & 1:
            outside |= 1 << loser | reached[loser]
    return tuple(candidate for candidate in range(size) if not outside >> candidate & 1)


def pareto(size: int, marks: Mapping[tuple[int, int], Sequence[str]]) -> tuple[int, ...]:
    """Return the candidates that no other equals or betters on every settled criterion, bettering
    one.

    `marks[i, j]` with i < j are the settled marks of that pair: `A+` if i is better, `B+` if j is,
    or `tie`. A pair that is absent, or without marks, dominates nothing.
    """
    dominated: set[int] = set()
    for (first, second), pair_marks in marks.items():
        kinds = set(pair_marks) - {"tie"}
        if len(kinds) == 1:
            dominated.add(second if kinds == {"A+"} else first)
    return tuple(candidate for candidate in range(size) if candidate not in dominated)
