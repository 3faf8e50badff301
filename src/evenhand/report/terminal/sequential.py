"""The decisions of a run that stopped early, in words."""

from __future__ import annotations

from evenhand.report.terminal.tables import safe
from evenhand.stats.outcome import Decision, SequentialTest

_WORDS = {"better": "is better than", "worse": "is worse than"}


def decision_text(test: SequentialTest) -> str:
    """A paragraph for each comparison, and what was saved in all."""
    lines = [line for decision in test.comparisons for line in _comparison(decision)]
    lines += [
        f"Sequential test, looked at after every question; error at most {test.alpha:g}.",
        f"Saved: {test.saved_units} of {test.of} units were not judged; `run --to-the-end` judges"
        " them."
        if test.saved_units
        else "Nothing was saved: every unit is judged.",
    ]
    return "\n".join([*lines, *(f"Note: {safe(note)}" for note in test.notes)])


def _comparison(decision: Decision) -> list[str]:
    variant, baseline = safe(decision.variant), safe(decision.baseline)
    dimension = "" if decision.dimension == "overall" else f" on {safe(decision.dimension)}"
    words = _WORDS.get(decision.outcome)
    headline = (
        f"Decided: {variant} {words} {baseline}{dimension}"
        if words
        else f"Not enough evidence: {variant} against {baseline}{dimension}"
    )
    counted = f"{decision.questions} of {decision.of_questions} questions"
    return [
        f"{headline},",
        f"  after {counted} ({decision.units} of {decision.of} units)",
        f"  {_interval(decision)}",
    ]


def _interval(decision: Decision) -> str:
    low, high, level = decision.low, decision.high, 100 * (1 - decision.alpha)
    if decision.measure == "win_rate":
        return f"win rate between {low:.1%} and {high:.1%} ({level:g} % confidence sequence)"
    return f"difference between {low:+z.3f} and {high:+z.3f} ({level:g} % confidence sequence)"
