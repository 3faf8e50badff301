"""The number of further questions that would decide, in words: it is too rough for digits."""

from __future__ import annotations

from math import inf, log2
from typing import Literal

from scipy.special import ndtri

POWER = 0.8
More = Literal["a few dozen", "several hundred", "more than is practical"]
_DOZENS, _HUNDREDS = 100, 1000


def more_questions(
    difference: float | None, error: float | None, questions: int, alpha: float
) -> More | None:
    """Return how many more would find the observed difference at 80 % power, given its standard
    error; None where nothing can be said."""
    if difference is None or error is None:
        return None
    if not difference:
        return "more than is practical"
    # Fewer questions than these decide nothing, however alike they are.
    least = 2 + log2(1 / alpha)
    quantiles = float(-ndtri(alpha / 2) + ndtri(POWER))
    return in_words(max(least, questions * (quantiles * error / difference) ** 2) - questions)


def in_words(more: float = inf) -> More:
    """Return a number of questions as a range in words."""
    if more <= _DOZENS:
        return "a few dozen"
    return "several hundred" if more <= _HUNDREDS else "more than is practical"
