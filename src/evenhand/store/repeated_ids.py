"""The error for units that are called the same."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from evenhand.errors import DataError, quoted

LISTED = 5
"""How many ids that repeat are told."""


def repeated_ids(units: Iterable[tuple[str, str]]) -> DataError:
    """Which ids stand twice, and where: of units with their places, in the order of the data."""
    first: dict[str, str] = {}
    twice: dict[str, str] = {}
    for ident, origin in units:
        if ident not in first:
            first[ident] = origin
        elif ident not in twice:
            twice[ident] = origin
    places = [
        f"{quoted(ident)} at {origin}, in a file that is named twice"
        if first[ident] == origin
        else f"{quoted(ident)} at {first[ident]} and {origin}"
        for ident, origin in islice(twice.items(), LISTED)
    ]
    more = len(twice) - len(places)
    listed = "; ".join(places) + (f"; and {more} more" if more else "")
    return DataError(
        f"ids must be unique, but these repeat: {listed}",
        advice="Give each row an id of its own (`id`, for pairs `pair_id`, for answers"
        " `task_name`), or meta fields that tell it apart; files that hold the same questions"
        ' are told apart so: data = [{ file = "v1.csv", prompt_variant = "v1" }, ...]',
    )
