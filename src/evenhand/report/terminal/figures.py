"""The figures of a row of a comparison, as text for a terminal."""

from __future__ import annotations

from evenhand.stats.comparison.comparison import Row

STYLES = {"better": "green", "worse": "red", "not enough evidence": ""}
"""How an outcome is coloured."""


def places_of(row: Row) -> int:
    """Decimals that suit the scale."""
    most = max(abs(row.mean or 0), abs(row.baseline_mean or 0))
    return 3 if most <= 1 else 2 if most < 20 else 1


def gap_text(row: Row) -> str:
    """A difference with its interval."""
    places = places_of(row)
    if row.difference is None:
        return "-"
    if row.low is None or row.high is None:
        return f"{row.difference:+.{places}f} [no interval]"
    return f"{row.difference:+.{places}f} [{row.low:.{places}f}, {row.high:.{places}f}]"


def number_text(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def p_text(value: float | None) -> str:
    if value is None:
        return "-"
    return "<.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.001 else f"{value:.3f}"
