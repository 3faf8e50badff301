"""Leans of judges: to the answer that is shown first, and to the longer one.

Figures of position are of first rounds, whose two passes show a pair in both orders: a later round
is asked because the first one was inconsistent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from evenhand.observation import OPPONENT_LENGTH, OVERALL, SUBJECT_LENGTH, WINNER
from evenhand.stats import coefficients
from evenhand.stats.coefficients import Coefficient, of_estimate
from evenhand.stats.estimate import Estimate, holm, is_significant, share
from evenhand.stats.observations import Bools, Ints, Observations

OPEN: Literal["not enough evidence"] = "not enough evidence"


class OrderCounts(NamedTuple):
    """Of each first round that was asked in both orders: its topic, how many of its two passes the
    first slot won, how many have a winner, whether they agree, and whose they are."""

    topic: Ints
    slots: Ints
    decided: Ints
    agree: Bools
    judge: Ints


def order_counts(table: Observations) -> OrderCounts:
    """Return what the first rounds say in both orders; a pair seen in one order says nothing."""
    passes, size = table.passes, table.unit.size
    shares = np.full((2, size), np.nan)
    for position in (1, 2):
        rows = (passes.round == 1) & (passes.position == position)
        shares[position - 1, passes.row[rows]] = passes.value[rows]
    # A candidate against itself says nothing of candidates, nor of positions.
    is_both = ~np.isnan(shares).any(axis=0) & (table.first != table.second)
    # The share of the first candidate where it was shown first, and where it was shown second.
    ahead, behind = shares[:, is_both]
    return OrderCounts(
        topic=table.topic[is_both],
        slots=(ahead > 0.5).astype(np.int64) + (behind < 0.5),
        decided=(ahead != 0.5).astype(np.int64) + (behind != 0.5),
        agree=np.sign(ahead - 0.5) == np.sign(behind - 0.5),
        judge=table.judge[is_both],
    )


@dataclass(frozen=True, slots=True)
class Orders:
    """The agreement of the two orders in first rounds."""

    consistency: Estimate
    """The share of first rounds whose two orders agree."""
    first_slot: Estimate
    """The share of calls with a winner that the answer shown first won."""
    first_rounds: int
    contradictions: int

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        rate = self.contradictions / self.first_rounds if self.first_rounds else None
        return {
            **_share_json("consistency", self.consistency),
            **_share_json("first_slot_rate", self.first_slot),
            "first_rounds": self.first_rounds,
            "contradictions": self.contradictions,
            "contradiction_rate": rate,
        }


def _share_json(name: str, share: Estimate) -> dict[str, Any]:
    return {
        name: share.value,
        f"{name}_low": share.low,
        f"{name}_high": share.high,
        f"{name}_n": share.n,
    }


def orders(table: Observations, level: float = 0.95) -> Orders:
    """Return how the two passes of each first round agree."""
    counts = order_counts(table)
    slots, decided, same, rounds = (
        np.bincount(counts.topic, column).astype(np.float64)
        for column in (counts.slots, counts.decided, counts.agree, None)
    )
    return Orders(
        consistency=share(same, rounds, level),
        first_slot=share(slots, decided, level),
        first_rounds=counts.topic.size,
        contradictions=int((~counts.agree).sum()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionLean:
    """The lean of one judge to the answer that it is shown first, or second."""

    judge: str
    first_rounds: int
    consistency: Coefficient
    first_slot: Coefficient
    p: float | None
    p_adjusted: float | None = None
    outcome: Literal["first", "second", "not enough evidence"] = "not enough evidence"


def position_leans(
    table: Observations, judges: Sequence[str], level: float
) -> tuple[PositionLean, ...]:
    """Return one for each of these judges that was asked in both orders; they are one family."""
    names = judges if table.is_pairs else ()
    found = [(name, orders(table.of_judge(name), level)) for name in names]
    leans = [
        PositionLean(
            judge=name,
            first_rounds=of_judge.first_rounds,
            consistency=of_estimate(of_judge.consistency),
            first_slot=of_estimate(of_judge.first_slot),
            p=of_judge.first_slot.p,
        )
        for name, of_judge in found
        if of_judge.first_rounds
    ]
    adjusted = holm([lean.p for lean in leans])
    return tuple(
        replace(lean, p_adjusted=p, outcome=_way(lean) if is_significant(p, level) else OPEN)
        for lean, p in zip(leans, adjusted, strict=True)
    )


def _way(lean: PositionLean) -> Literal["first", "second"]:
    return "first" if (lean.first_slot.value or 0.0) > 0.5 else "second"


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthLean:
    """The relation of a judge's ratings to length, beside that of the labels of the same units: the
    share of pairs that the longer answer won, or Spearman's correlation of score and length."""

    judge: str
    figure: Literal["longer_won", "spearman"]
    value: Coefficient
    labels: Coefficient | None


def length_leans(
    asked: Observations,
    run: Observations,
    labels: Observations | None,
    dimensions: Sequence[str],
    level: float,
) -> tuple[LengthLean, ...]:
    """Return how the ratings of each judge go with length, where lengths are known. `run` and
    `labels` are those of `asked` in the order of the candidates' names."""
    length = asked.numbers("length")
    if run.is_pairs:
        ahead = asked.numbers(SUBJECT_LENGTH) - asked.numbers(OPPONENT_LENGTH)
        length = np.where(run.subject == asked.subject, ahead, -ahead)
    known = ~np.isnan(length) & ~(run.is_pairs & (length == 0))
    measures = [name for name in (WINNER, OVERALL, *dimensions) if name in dimensions]
    if not measures or not (length[known] != 0).any():
        return ()

    def lean(table: Observations) -> Coefficient:
        means = table.unit_means(measures[0])
        kept = known & ~np.isnan(means)
        means, by, question = means[kept], length[kept], run.question[kept]
        if run.is_pairs:
            return coefficients.share(np.where(by > 0, means, 1 - means), question, level)
        return coefficients.spearman(means, by, question, level)

    return tuple(
        LengthLean(
            judge=run.judges[judge],
            figure="longer_won" if run.is_pairs else "spearman",
            value=lean(run.where(run.judge == judge)),
            labels=None if labels is None else lean(labels),
        )
        for judge in np.unique(run.judge)
    )
