"""The sequential test for many sequences at once, for simulations."""

from __future__ import annotations

import numpy as np

from evenhand.stats.observations import Floats, Ints
from evenhand.stats.sequential import KEPT_BACK, Gambler, shared_out, sides_at_end


def decisions(runs: Floats, alpha: float) -> tuple[Ints, Ints]:
    """For each row, as one sequence with its end: 1 better, -1 worse or 0, and after how many
    values. What `Betting` says, for many sequences at once."""
    rows, length = runs.shape
    sides, after = np.zeros(rows, np.int64), np.full(rows, length)
    goal, at_end = shared_out(alpha, length)
    up, down = Gambler(goal, np.full(rows, 0.5)), Gambler(goal, np.full(rows, 0.5))
    for number, values in enumerate(runs.T):
        gained, lost = (
            gambler.bet(column, length - number)
            for gambler, column in ((up, values), (down, 1 - values))
        )
        new = (sides == 0) & (np.maximum(gained, lost) >= goal)
        sides[new], after[new] = np.where(gained >= lost, 1, -1)[new], number + 1
    if length > 1 and (sides == 0).any():
        sides[sides == 0] = sides_at_end(runs[sides == 0], at_end * (1 - KEPT_BACK))
    return sides, after
