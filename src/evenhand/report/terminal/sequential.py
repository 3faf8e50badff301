"""What a run that stopped early has decided, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.report.terminal.tables import safe

_SAID = {"better": "is better than", "worse": "is worse than"}


def decision_text(decided: Mapping[str, Any]) -> str:
    """A paragraph for each comparison, and what was saved in all."""
    lines = [line for one in decided["comparisons"] for line in _comparison(one)]
    saved, of = decided["saved_units"], decided["of"]
    lines += [
        f"Sequential test, looked at after every question; error at most {decided['alpha']:g}.",
        f"Saved: {saved} of {of} units were not judged; `run --to-the-end` judges them."
        if saved
        else "Nothing was saved: every unit is judged.",
    ]
    return "\n".join([*lines, *(f"Note: {safe(note)}" for note in decided["notes"])])


def _comparison(one: Mapping[str, Any]) -> list[str]:
    variant, baseline = safe(one["variant"]), safe(one["baseline"])
    dimension = "" if one["dimension"] == "overall" else f" on {safe(one['dimension'])}"
    said = _SAID.get(one["outcome"])
    how = "at the last look, " if said and one["at_end"] else ""
    first = (
        f"Decided: {variant} {said} {baseline}{dimension}"
        if said
        else f"Not enough evidence: {variant} against {baseline}{dimension}"
    )
    counted = f"{one['questions']} of {one['of_questions']} questions"
    return [
        f"{first},",
        f"  {how}after {counted} ({one['units']} of {one['of']} units)",
        f"  {_interval(one)}",
    ]


def _interval(one: Mapping[str, Any]) -> str:
    low, high, level = one["low"], one["high"], 100 * (1 - one["alpha"])
    if one["measure"] == "win_rate":
        return f"win rate between {low:.1%} and {high:.1%} ({level:g} % confidence sequence)"
    return f"difference between {low:+.3f} and {high:+.3f} ({level:g} % confidence sequence)"
