"""What is to be said beside the figures of a board, in whole sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.notes import Note, few
from evenhand.stats.ranking.bootstrap import LEAST, Rated
from evenhand.stats.ranking.duels import Duels
from evenhand.stats.tables import Bools

NAMED = 5
"""How many names a note gives."""
EXCHANGED = 0.25
"""The least share of passes with a counterpart in the other order for a position term. Orders that
are drawn by chance give half or more."""
FEW_DECIDED = 10
"""With fewer decided votes for each candidate the intervals of ratings are too narrow: by
simulation they hold 82 to 87 % of the time at 3, 92 to 93 % at 9, and 96 to 97 % at 45."""


def about_votes(apart: Bools, duels: Duels) -> list[str]:
    """What is to be said of the votes that figures are made of."""
    notes: list[str] = []
    if alone := int((~apart).sum()):
        noun, verb = ("vote", "is") if alone == 1 else ("votes", "are")
        sentence = f"{alone} {noun} on a candidate against itself {verb} left out."
        notes.append(Note(sentence, "against_itself", n=alone))
    if len(np.unique(duels.topic)) == 1:
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


def about_ratings(
    rated: Rated, duels: Duels, candidates: Sequence[str], *, sets: int, regular: bool, flat: bool
) -> list[str]:
    """What is to be said of ratings: of so many sets of candidates, `regular` where some would be
    infinite, `flat` where no vote was decided."""
    notes: list[str] = []
    if flat:
        sentence = "All votes are ties or uncertain: all ratings are equal, without intervals."
        notes.append(Note(sentence, "all_ties"))
    elif rated.topics < LEAST:
        sentence = f"With fewer than {LEAST} topics ratings have no intervals, and ranks no limits."
        notes.append(Note(sentence, "few_topics", least=LEAST))
    if sets > 1:
        notes.append(
            Note(
                f"The candidates fall into {sets} sets that never met: each is rated and"
                " ranked for itself, and ratings of different sets cannot be compared.",
                "sets",
                n=sets,
            )
        )
    if regular:
        notes.append(_infinite(rated, candidates))
    if rated.shaky and not flat:
        of = rated.rounds.shape[1]
        sentence = (
            f"{rated.shaky} of {of} resamples needed such a vote too."
            if regular
            else f"In {rated.shaky} of {of} resamples someone never won or never lost: there every"
            " candidate has one vote more, half won and half lost."
        )
        notes.append(Note(sentence, "shaky_too" if regular else "shaky", n=rated.shaky, of=of))
    decided = int((~duels.tie).sum())
    if not flat and rated.rounds.size and 2 * decided < FEW_DECIDED * duels.size:
        notes.append(
            Note(
                f"Only {decided:,} votes were decided, fewer than {FEW_DECIDED} for each candidate:"
                " intervals of ratings, and places, hold less often than they say.",
                "few_decided",
                n=decided,
                few=FEW_DECIDED,
            )
        )
    return notes


def _infinite(rated: Rated, candidates: Sequence[str]) -> Note:
    """Who makes ratings infinite, and what is done about it."""
    above, below = (
        [candidates[place] for place in np.flatnonzero(places).tolist()]
        for places in (rated.above, rated.below)
    )
    ends = [("never lost", above), ("never won", below)]
    why = [f"{what}: {names(which)}" for what, which in ends if which]
    reason = "; ".join(why) or "some never beat the others"
    return Note(
        f"Some ratings would be infinite ({reason}). So every candidate of such a set has one vote"
        " more, half won and half lost.",
        "infinite_both"
        if above and below
        else "infinite_above"
        if above
        else "infinite_below"
        if below
        else "infinite",
        above=few(above, NAMED),
        below=few(below, NAMED),
    )


def names(candidates: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(candidates) - NAMED} more" if len(candidates) > NAMED else ""
    return ", ".join(candidates[:NAMED]) + more
