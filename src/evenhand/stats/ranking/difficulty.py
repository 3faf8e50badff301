"""How hard instructions are, as AlpacaEval has it for win rates at equal lengths."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.stats.tables import Bools, Floats, Votes

INDEX = "index"
"""The field that says the place of an instruction, by which AlpacaEval joins difficulties."""


def difficulties(votes: Votes, difficulty: Mapping[str, float]) -> Floats:
    """Of each vote, by its unit, its row of the data or its topic, else by the index of its
    instruction; nan where there is none."""
    names_of = zip(votes.pairs, votes.rows, strict=True)
    by_pair = [difficulty.get(pair, difficulty.get(row, np.nan)) for pair, row in names_of]
    by_topic = np.array([difficulty.get(topic, np.nan) for topic in votes.topics], np.float64)
    values = np.array(by_pair, np.float64)[votes.pair]
    values = np.where(np.isnan(values), by_topic[votes.topic], values)
    if np.isnan(values).all() and (index := votes.fields.get(INDEX)):
        levels = [difficulty.get(level, np.nan) for level in index.levels]
        values = np.array([*levels, np.nan], np.float64)[index.codes]
    if values.size and np.isnan(values).all():
        known, here = (
            ", ".join(map(quoted, sorted(some)[:3])) for some in (difficulty, votes.rows)
        )
        raise UsageError(
            f"no vote has one of the difficulties that were given, of {known}",
            advice=f"Name the units as the run does: {here}.",
        )
    return values


def without_difficulty(missing: Bools) -> list[str]:
    """What is to be said of votes that have none."""
    number = int(missing.sum())
    if not number:
        return []
    noun = "vote has" if number == 1 else "votes have"
    return [f"{number} {noun} no difficulty, and no part in win rates at equal lengths."]
