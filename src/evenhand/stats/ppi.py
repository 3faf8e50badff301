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
from math import log, sqrt
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from evenhand.observation import WINNER
from evenhand.stats.coefficients import Coefficient, of_estimate, undefined
from evenhand.stats.estimate import HALF, log_odds_interval, mean
from evenhand.stats.observations import Bools, Floats, Ints
from evenhand.stats.sides import Side, widest

FEWEST = 3
"""Labelled questions below which nothing is said about the correction."""
TOO_FEW = f"fewer than {FEWEST} labelled questions"
SHIFTED = 3.0
"""Standard errors by which labelled units may differ from the others before it is said."""
EDGE = 1e-9
"""A part of the scale: an estimate on its end, or beyond, is taken to lie so far inside."""


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
        corrected = alone if count >= FEWEST else undefined(TOO_FEW, int(labelled.sum()))
        return Corrected(naive=naive, labels=alone, corrected=corrected, weight=None, shift=None)
    label_moves = _moves(labels, labelled, question)
    judge_moves = _moves(judged, labelled, question) - _moves(judged, ~labelled, question)
    square = float(judge_moves @ judge_moves)
    weight = float(np.clip(label_moves @ judge_moves / square, 0, 1)) if square > 0 else 0.0
    away = float(judged[labelled].mean() - judged[~labelled].mean())
    residuals = labels[labelled] - weight * judged[labelled]
    value = float(residuals.mean() + weight * judged[~labelled].mean())
    moves = label_moves - weight * judge_moves
    # As many questions as have labels show how the rest varies; one is spent on the weight.
    variance = float(moves @ moves) * count / (count - 1 - (weight > 0))
    added = np.array([ends[0] - weight * ends[1], ends[1] - weight * ends[0]]) - residuals.mean()
    low, high = _interval(value, variance, added, count, ends, level)
    return Corrected(
        naive=naive,
        labels=alone,
        corrected=Coefficient(value, low, high, alone.n),
        weight=weight,
        shift=away / sqrt(square) if square > 0 else None,
    )


def _moves(values: Floats, of: Bools, question: Ints) -> Floats:
    """Return by question how far it moves the mean of some of the units."""
    rests = (values[of] - values[of].mean()) / int(of.sum())
    return np.bincount(question[of], rests, int(question.max()) + 1).astype(np.float64)


def _interval(
    value: float,
    variance: float,
    added: Floats,
    count: int,
    ends: tuple[float, float],
    level: float,
) -> tuple[float, float]:
    """Return the ends of the interval on the scale of log odds; `added` are the residuals, about
    their mean, of which half a question is added to `count`."""
    low, span, whole = ends[0], ends[1] - ends[0], count + HALF
    shift = HALF / 2 * float(added.sum()) / whole
    spread = HALF / 2 * float(((added - shift) ** 2).sum()) / whole**2
    part = float(np.clip((value + shift - low) / span, EDGE, 1 - EDGE))
    error = sqrt(variance * (count / whole) ** 2 + spread) / span / (part * (1 - part))
    logit = np.array(log(part / (1 - part)))
    least, most = (
        low + span * float(expit(end))
        for end in log_odds_interval(logit, np.array(error), count, level)
    )
    return min(least, value), max(most, value)


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


Variants = Sequence[tuple[str | None, Bools]]
"""Names of variants, and of which units each is; the first is all units."""


def corrected_rows(
    run: Side, labels: Side, names: Sequence[str], variants: Variants, level: float
) -> Iterator[CorrectedRow]:
    """Return mean scores by dimension, or win rates by candidate, of each variant."""
    for name, (judged, known), ends in _unit_means(run, labels, names):
        for variant, units in variants:
            kept = units & ~np.isnan(judged)
            if labelled := int((~np.isnan(known[kept])).sum()):
                question = run.question[kept]
                yield CorrectedRow(
                    of="candidate" if run.is_pairs else "dimension",
                    name=name,
                    variant=variant,
                    judged=int(kept.sum()),
                    labelled=labelled,
                    estimate=corrected_mean(
                        judged[kept], known[kept], question, ends=ends, level=level
                    ),
                )


def _unit_means(
    run: Side, labels: Side, names: Sequence[str]
) -> Iterator[tuple[str, list[Floats], tuple[float, float]]]:
    """Return what labels correct: a name, the mean of each unit by the judges and by the labels,
    and the ends of the scale."""
    if run.seats is None:
        for name in names:
            means = [side.unit_means(name) for side in (run, labels)]
            yield name, means, widest((run, labels), name)
        return
    won = [side.unit_means(WINNER) for side in (run, labels)]
    for code, name in sorted(enumerate(run.candidates), key=lambda pair: pair[1]):
        first, second = (run.seats == code).T
        means = [np.where(first, each, np.where(second, 1 - each, np.nan)) for each in won]
        yield name, means, (0.0, 1.0)


def label_notes(rows: Sequence[CorrectedRow]) -> Iterator[str]:
    """Return what has to be known to read corrected figures."""
    part = [row for row in rows if row.labelled < row.judged]
    for row in part:
        if row.estimate.shift is not None and abs(row.estimate.shift) > SHIFTED:
            of = row.name if row.variant is None else f"{row.name}, {row.variant}"
            way = "higher" if row.estimate.shift > 0 else "lower"
            yield f"{of}: the judge rates labelled units {way} than others: no random part of them"
    if any(row.estimate.corrected.value is not None for row in part):
        yield "corrected figures hold if the labelled units are a random part of the judged ones"
    if short := [row for row in rows if row.estimate.corrected.value is None]:
        yield f"nothing is corrected with {short[0].estimate.corrected.why}"
