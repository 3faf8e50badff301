"""What is to be said beside the figures of a board, in whole sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.notes import Note
from evenhand.stats.rating import Matches
from evenhand.stats.tables import Bools

NAMED = 5
"""How many names a note gives."""
EXCHANGED = 0.25
"""The least share of passes with a counterpart in the other order for a position term. Orders that
are drawn by chance give half or more."""


def about_votes(apart: Bools, matches: Matches) -> list[str]:
    """What is to be said of the votes that figures are made of."""
    notes: list[str] = []
    if alone := int((~apart).sum()):
        noun, verb = ("vote", "is") if alone == 1 else ("votes", "are")
        sentence = f"{alone} {noun} on a candidate against itself {verb} left out."
        notes.append(Note(sentence, "against_itself", n=alone))
    if len(np.unique(matches.topic)) == 1:
        notes.append(
            Note(
                "All votes are on one topic: nothing says how far topics vary, so win rates have"
                " the interval that one observation leaves.",
                "one_topic",
            )
        )
    return notes


def without_position(exchanged: float) -> str:
    """Why there is no position term."""
    orders = (
        "all pairs of candidates were shown in one order only"
        if exchanged == 0
        else f"most pairs of candidates were shown in one order only ({100 * exchanged:.0f} % of"
        f" passes have a counterpart in the other order, {100 * EXCHANGED:.0f} % are needed)"
    )
    return f"No position term: {orders}, so that it cannot be told from the ratings."


def separate_sets(sets: int) -> list[str]:
    """Return a note where candidates fall into sets that never met."""
    if sets < 2:
        return []
    sentence = (
        f"The candidates fall into {sets} sets that never met: each is rated and"
        " ranked for itself, and ratings of different sets cannot be compared."
    )
    return [Note(sentence, "sets", n=sets)]


def names(candidates: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(candidates) - NAMED} more" if len(candidates) > NAMED else ""
    return ", ".join(candidates[:NAMED]) + more
