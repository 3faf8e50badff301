"""Leans of judges: to the answer that is shown first, and to the longer one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.observation import OVERALL, WINNER
from evenhand.stats import coefficients
from evenhand.stats.coefficients import Coefficient, of_estimate
from evenhand.stats.estimate import share
from evenhand.stats.holm import holm
from evenhand.stats.leaderboard import order_counts
from evenhand.stats.observations import Observations
from evenhand.stats.sides import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionLean:
    """The dependence of a judge's verdicts on the order in which it is shown two answers."""

    judge: str
    first_rounds: int
    consistency: Coefficient
    """The share of first rounds whose two orders agree."""
    first_slot: Coefficient
    """The share of calls with a winner that the answer shown first won."""
    p: float | None
    p_adjusted: float | None = None
    outcome: Literal["first", "second", "not enough evidence"] = "not enough evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthLean:
    """The relation of a judge's ratings to length, beside that of the labels of the same units: the
    share of pairs that the longer answer won, or Spearman's correlation of score and length."""

    judge: str
    figure: Literal["longer_won", "spearman"]
    value: Coefficient
    labels: Coefficient | None


def position_leans(
    observations: Observations, judges: Sequence[str], level: float = 0.95
) -> tuple[PositionLean, ...]:
    """Return one for each of these judges that was asked in both orders; they are one family."""
    leans: list[PositionLean] = []
    for name in judges:
        counts = order_counts(observations.of_judge(name))
        if not counts.topic.size:
            continue
        slots, decided, same, rounds = (
            np.bincount(counts.topic, column).astype(np.float64)
            for column in (counts.slots, counts.decided, counts.agree, None)
        )
        first_slot = share(slots, decided, level)
        leans.append(
            PositionLean(
                judge=name,
                first_rounds=counts.topic.size,
                consistency=of_estimate(share(same, rounds, level)),
                first_slot=of_estimate(first_slot),
                p=first_slot.p,
            )
        )
    adjusted = holm([lean.p for lean in leans])
    return tuple(_leaning(lean, p, 1 - level) for lean, p in zip(leans, adjusted, strict=True))


def _leaning(lean: PositionLean, p: float | None, alpha: float) -> PositionLean:
    if p is None or p > alpha + 1e-12 or lean.first_slot.value is None:
        return replace(lean, p_adjusted=p)
    return replace(lean, p_adjusted=p, outcome="first" if lean.first_slot.value > 0.5 else "second")


def length_leans(run: Side, labels: Side | None, level: float) -> Iterator[LengthLean]:
    """Return how the ratings of each judge go with length, where lengths are known."""
    if not (run.length[~np.isnan(run.length)] != 0).any():
        return
    sides = [run] if labels is None else [run, labels]
    order = (WINNER, OVERALL, *run.values)
    name = next((name for name in order if all(name in side.values for side in sides)), None)
    if name is None:
        return
    for judge in run.present:
        yield LengthLean(
            judge=run.judges[judge],
            figure="longer_won" if run.is_pairs else "spearman",
            value=_length_lean(run.where(run.judge == judge), run, name, level),
            labels=None if labels is None else _length_lean(labels, run, name, level),
        )


def _length_lean(side: Side, run: Side, name: str, level: float) -> Coefficient:
    means = side.unit_means(name)
    kept = ~np.isnan(means) & ~np.isnan(run.length) & ~(run.is_pairs & (run.length == 0))
    means, length, question = means[kept], run.length[kept], run.question[kept]
    if run.is_pairs:
        return coefficients.share(np.where(length > 0, means, 1 - means), question, level)
    return coefficients.spearman(means, length, question, level)
