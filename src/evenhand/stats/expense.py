"""What answers took, money and time, variant by variant: means, and their change against a baseline
on the questions that both answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from evenhand.stats.observations import Floats

COST, LATENCY = "cost_usd", "latency_s"
EXPENSES = (COST, LATENCY)
_ROUNDING = 1e-9
Taken = Mapping[str, Sequence[float]]
"""By question, what each answer to it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expense:
    """What the answers of a variant took on average, and by how much more or less than those of the
    baseline; None where nobody knows."""

    variant: str
    measure: str
    n: int
    """Answers."""
    mean: float
    questions: int = 0
    """Those that the baseline answered too."""
    change: float | None = None
    """0.1 is a tenth more."""
    low: float | None = None
    high: float | None = None


def compare_expenses(
    measure: str, taken: Mapping[str, Taken], baseline: str, level: float = 0.95
) -> Iterator[Expense]:
    """Yield what the answers of each variant took, the baseline first."""
    for name in sorted(taken, key=lambda name: name != baseline):
        values = [value for each in taken[name].values() for value in each]
        found = Expense(variant=name, measure=measure, n=len(values), mean=float(np.mean(values)))
        if name == baseline or baseline not in taken:
            yield found
            continue
        shared = [question for question in taken[name] if question in taken[baseline]]
        ours, theirs = (
            np.array([np.mean(taken[each][question]) for question in shared])
            for each in (name, baseline)
        )
        yield _with_change(found, ours, theirs, level)


def _with_change(found: Expense, ours: Floats, theirs: Floats, level: float) -> Expense:
    """Return the expense with the ratio of means less 1; its interval leaves out one question at a
    time, on the log scale."""
    count = ours.size
    fields = {name: getattr(found, name) for name in ("variant", "measure", "n", "mean")}
    if not count or not theirs.sum() > 0 or not ours.sum() > 0:
        return Expense(**fields, questions=count)
    change = float(ours.sum() / theirs.sum()) - 1
    sums = np.array([[ours.sum()], [theirs.sum()]])
    left = sums - np.array([ours, theirs])
    if count < 2 or not (left > _ROUNDING * sums).all():
        # All of one sum is of a single question.
        return Expense(**fields, questions=count, change=change)
    rest = np.log(left[0]) - np.log(left[1])
    error = float(np.sqrt((count - 1) / count * np.square(rest - rest.mean()).sum()))
    reach = error * float(stdtrit(count - 1, (1 + level) / 2))
    low, high = (float((1 + change) * np.exp(side * reach)) - 1 for side in (-1, 1))
    return Expense(**fields, questions=count, change=change, low=low, high=high)
