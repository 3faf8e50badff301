"""Does a judge lean to the answer that it is shown first? Of votes in both orders, judge by judge.

Only first rounds in which both orders were asked count: what was seen in one order alone says
nothing of position. Topics are the clusters; p is that of a sign-flip test of how many more passes
of a topic the first slot won than the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from evenhand.stats.estimate import share
from evenhand.stats.proportion import Proportion
from evenhand.stats.ranking.leaderboard import order_counts, orders
from evenhand.stats.tables import Votes
from evenhand.stats.test import holm

Lean = Literal["first", "second", "not enough evidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionLean:
    """How a judge's verdicts depend on the order in which it is shown two answers."""

    judge: str
    first_rounds: int
    consistency: Proportion
    """The share of first rounds whose two orders agree."""
    first_slot: Proportion
    """The share of passes with a winner that the answer shown first won."""
    p: float | None
    p_adjusted: float | None
    outcome: Lean
    """To which slot it leans."""

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "judge": self.judge,
            "first_rounds": self.first_rounds,
            "consistency": _json(self.consistency),
            "first_slot": _json(self.first_slot),
            "p": self.p,
            "p_adjusted": self.p_adjusted,
            "outcome": self.outcome,
        }


def _json(share: Proportion) -> dict[str, Any]:
    return {"value": share.value, "low": share.low, "high": share.high, "n": share.n}


def position_leans(
    votes: Votes, judges: Sequence[str], level: float = 0.95
) -> tuple[PositionLean, ...]:
    """One for each of these judges that was asked in both orders; the judges are one family."""
    leans: list[PositionLean] = []
    for name in judges:
        of_judge = votes.where(votes.judge == votes.judges.index(name))
        counts = order_counts(of_judge)
        if not counts.topic.size:
            continue
        figures = orders(of_judge, level)
        slots, trials = (
            np.bincount(counts.topic, part).astype(float) for part in (counts.slots, counts.decided)
        )
        leans.append(
            PositionLean(
                judge=name,
                first_rounds=figures.first_rounds,
                consistency=figures.consistency,
                first_slot=figures.first_slot,
                p=share(slots, trials, level).p,
                p_adjusted=None,
                outcome="not enough evidence",
            )
        )
    adjusted = holm([lean.p for lean in leans])
    return tuple(_decided(lean, p, 1 - level) for lean, p in zip(leans, adjusted, strict=True))


def _decided(lean: PositionLean, p: float | None, alpha: float) -> PositionLean:
    """A lean is what both the test and the interval say."""
    outcome: Lean = "not enough evidence"
    if p is not None and lean.first_slot.value is not None and p <= alpha + 1e-12:
        if lean.first_slot.low > 0.5:
            outcome = "first"
        elif lean.first_slot.high < 0.5:
            outcome = "second"
    return replace(lean, p_adjusted=p, outcome=outcome)
