"""A mean over all units, judged cheaply everywhere and labelled with care on some of them.

Prediction-powered inference (PPI++: Angelopoulos, Duchi and Zrnic, 2023): the mean label of the
labelled units, less a weight times how much higher the judge rates these than the others. The
weight, from 0 to 1, makes the variance least: a judge that knows nothing about the labels gets 0,
and the result is that of the labels alone. It holds if the labelled units are a random part of all.

The interval is that of the core: the question is what varies, and half a labelled question is
added, a quarter at either end of what label less weighted judge can be. So twenty labels on which
judge and people never part do not look as if they never would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np

from evenhand.stats.coefficients import Coefficient, no_coefficient, of_estimate
from evenhand.stats.estimate import HALF, logit_interval, mean
from evenhand.stats.observations import Bools, Floats, Ints
from evenhand.words import Sentence

FEWEST = 3
"""Labelled questions below which nothing is said about the correction."""
SHIFTED = 3.0
"""Standard errors by which labelled units may differ from the others before it is said."""
TOO_FEW = "too few labelled questions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """One mean, three ways."""

    naive: Coefficient
    """The judge's mean over all units."""
    labels: Coefficient
    """The mean label of the labelled units."""
    corrected: Coefficient
    weight: float | None
    """The weight of the judge: 0 is not at all, 1 in full."""
    shift: float | None
    """By how many standard errors the judge rates labelled units higher than the others."""


def corrected_mean(
    judged: Floats,
    labels: Floats,
    question: Ints,
    *,
    ends: tuple[float, float],
    level: float = 0.95,
) -> Corrected:
    """Return the mean label over all units, from a judge's score of each and labels of some; those
    without one are nan."""
    labelled = ~np.isnan(labels)
    naive = of_estimate(mean(judged, question, ends, level, weigh="units"))
    alone = of_estimate(mean(labels[labelled], question[labelled], ends, level, weigh="units"))
    count = np.unique(question[labelled]).size
    if count < FEWEST or labelled.all():
        corrected = alone if count >= FEWEST else no_coefficient(TOO_FEW, int(labelled.sum()))
        return Corrected(naive=naive, labels=alone, corrected=corrected, weight=None, shift=None)
    label_moves = _moves(labels, labelled, question)
    judge_moves = _moves(judged, labelled, question) - _moves(judged, ~labelled, question)
    square = float(judge_moves @ judge_moves)
    weight = float(np.clip(label_moves @ judge_moves / square, 0, 1)) if square > 0 else 0.0
    away = float(judged[labelled].mean() - judged[~labelled].mean())
    residuals = labels[labelled] - weight * judged[labelled]
    value = float(residuals.mean() + weight * judged[~labelled].mean())
    moves, whole = label_moves - weight * judge_moves, count + HALF
    # As many questions as have labels show how the rest varies; one is spent on the weight.
    variance = float(moves @ moves) * count / (count - 1 - (weight > 0))
    # Half a question is added to these: residuals at the ends of what they can be.
    added = np.array([ends[0] - weight * ends[1], ends[1] - weight * ends[0]]) - residuals.mean()
    middle = HALF / 2 * float(added.sum()) / whole
    spread = HALF / 2 * float(((added - middle) ** 2).sum()) / whole**2
    variance = variance * (count / whole) ** 2 + spread
    low, high, _ = logit_interval(value + middle, variance, ends, count, level)
    return Corrected(
        naive=naive,
        labels=alone,
        corrected=Coefficient(value, min(low, value), max(high, value), alone.n),
        weight=weight,
        shift=away / sqrt(square) if square > 0 else None,
    )


def _moves(values: Floats, of: Bools, question: Ints) -> Floats:
    """Return by question how far it moves the mean of some of the units."""
    rests = (values[of] - values[of].mean()) / int(of.sum())
    return np.bincount(question[of], rests, int(question.max()) + 1).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRow:
    """A mean score on a dimension, or the win rate of a candidate, corrected by labels."""

    of: Literal["dimension", "candidate"]
    name: str
    variant: str | None
    judged: int
    labelled: int
    estimate: Corrected

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        naive, alone, corrected = self.estimate.naive, self.estimate.labels, self.estimate.corrected
        return {
            self.of: self.name,
            "variant": self.variant,
            "naive": naive.value,
            "naive_low": naive.low,
            "naive_high": naive.high,
            "corrected": corrected.value,
            "low": corrected.low,
            "high": corrected.high,
            "labels_alone": alone.value,
            "labels_low": alone.low,
            "labels_high": alone.high,
            "labels": self.labelled,
            "judged": self.judged,
            "weight": self.estimate.weight,
        }


def label_notes(rows: Sequence[CorrectedRow]) -> Iterator[Sentence]:
    """Return what has to be known to read corrected figures."""
    part = [row for row in rows if row.labelled < row.judged]
    for row in part:
        shift = row.estimate.shift
        if shift is not None and abs(shift) > SHIFTED:
            way = "higher" if shift > 0 else "lower"
            if row.variant is None:
                yield Sentence(f"agreement.labelled_{way}", name=row.name)
            else:
                about = {"name": row.name, "variant": row.variant}
                yield Sentence(f"agreement.labelled_{way}_variant", **about)
    if any(row.estimate.corrected.value is not None for row in part):
        yield Sentence("agreement.random_part")
    if any(row.estimate.corrected.value is None for row in rows):
        yield Sentence("agreement.few_labels", n=FEWEST)
