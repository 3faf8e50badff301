"""The fronts of the topics of a run, from its observations: the same that single judgments give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenhand.observation import UNCERTAIN, Voted
from evenhand.stats.observations import NONE, Observations
from evenhand.stats.pairwise import Front, Judged, Topics

_TOPIC = "topic"


def fronts(table: Observations, sizes: Mapping[str, int] | None = None) -> dict[str, Front]:
    """Return the fronts of every topic by all judgments of its pairs. `sizes` are how many
    candidates topics have, where that is not told by the units."""
    if _TOPIC not in table.fields:
        return {}
    field, topics = table.fields[_TOPIC], Topics()
    names = [field.levels[code] if code != NONE else "" for code in field.codes.tolist()]
    judgments: list[list[tuple[str, Voted]]] = [[] for _ in table.units]
    for row, (unit, judge) in enumerate(
        zip(table.unit.tolist(), table.judge.tolist(), strict=True)
    ):
        judgments[unit].append((table.judges[judge], _voted(table, row)))
    sizes = _sizes(table, names) if sizes is None else sizes
    sides = zip(table.subject.tolist(), table.opponent.tolist(), strict=True)
    for topic, (first, second), voted in zip(names, sides, judgments, strict=True):
        pair = table.candidates[first], table.candidates[second]
        topics.add(Judged(topic, sizes.get(topic, 2), pair, voted))
    return topics.fronts()


def _sizes(table: Observations, names: list[str]) -> Mapping[str, int]:
    """Return how many candidates each topic has, judged or not."""
    members: dict[str, set[int]] = {}
    sides = zip(table.subject.tolist(), table.opponent.tolist(), strict=True)
    for topic, pair in zip(names, sides, strict=True):
        members.setdefault(topic, set()).update(pair if pair[0] != pair[1] else ())
    return {topic: len(there) for topic, there in members.items()}


def _voted(table: Observations, row: int) -> Voted:
    """Return what a judgment says, in words."""
    won = float(table.values[row, table.measures.index(table.main)])
    if np.isnan(won):
        return Voted(None)
    is_uncertain = table.values[row, table.measures.index(UNCERTAIN)] == 1
    winner = "uncertain" if is_uncertain else "A" if won > 0.5 else "B" if won < 0.5 else "tie"
    marks = {name: float(table.column(name)[row]) for name in table.dimensions}
    return Voted(
        winner,
        marks={
            name: "A+" if mark > 0.5 else "B+" if mark < 0.5 else "tie"
            for name, mark in marks.items()
            if not np.isnan(mark)
        },
    )
