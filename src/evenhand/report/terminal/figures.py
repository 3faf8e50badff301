"""The figures of a row of a comparison, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from evenhand.report.html.answer import SMALL
from evenhand.stats.comparison import Row

STYLES = {"better": "green", "worse": "red", "same": "cyan", "not enough evidence": ""}
"""The colour of each outcome."""


def places_of(row: Row) -> int:
    """Decimals that suit the scale, as the sentences have them; three where a difference would read
    like none."""
    most = max(abs(row.mean or 0), abs(row.baseline_mean or 0))
    return 3 if most <= 1 or 0 < abs(row.difference or 0) < SMALL else 2


def gap_text(row: Row) -> str:
    """A difference with its interval."""
    places = places_of(row)
    if row.difference is None:
        return "-"
    difference = f"{row.difference:+z.{places}f}"
    if row.low is None or row.high is None:
        return f"{difference} [no interval]"
    return f"{difference} [{number_text(row.low, places)}, {number_text(row.high, places)}]"


def number_text(value: float | None, places: int) -> str:
    """With so many decimals; nothing is neither above nor below nothing, so there is no -0.000."""
    return "-" if value is None else f"{value:z.{places}f}"


class Tested(Protocol):
    """A row with a p-value, alone and corrected for the tests beside it."""

    @property
    def p(self) -> float | None: ...

    @property
    def p_adjusted(self) -> float | None: ...


def p_heading(rows: Iterable[Tested]) -> str:
    """The name of a column of p values; it says so where they are corrected for their number."""
    return "p (Holm)" if any(row.p_adjusted != row.p for row in rows) else "p"


def p_text(value: float | None) -> str:
    if value is None:
        return "-"
    return "<.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.001 else f"{value:.3f}"
