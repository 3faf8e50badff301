"""A mean over all units, judged cheaply everywhere and labelled with care on some of them.

Prediction-powered inference: the judge's mean is corrected by how far it is off where there are
labels. A judge that knows nothing about the labels is given no weight, so the result is never much
worse than that of the labels alone. It holds if the labelled units are a random part of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from evenhand.stats.agreement.coefficient import Coefficient, quantile, undefined
from evenhand.stats.estimate import mean
from evenhand.stats.tables import Bools, Floats, Ints

FEWEST = 3
"""Labelled units, or topics, below which nothing is said about the correction."""
TOO_FEW = f"fewer than {FEWEST} labelled units or topics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """One mean, three ways."""

    naive: Coefficient
    """What the judge says of all units."""
    labels: Coefficient
    """What the labels say of theirs."""
    corrected: Coefficient
    weight: float | None
    """How much the judge counts: 0 is not at all, 1 in full."""
    shift: float | None
    """By how many standard errors the judge rates labelled units higher than the others."""


def corrected_mean(
    judged: Floats,
    labels: Floats,
    cluster: Ints,
    *,
    ends: tuple[float, float],
    level: float = 0.95,
) -> Corrected:
    """The mean label over all units, from a judge's score of each and labels of some (else nan)."""
    labelled = ~np.isnan(labels)
    cluster = np.unique(cluster, return_inverse=True)[1]
    naive = _mean(judged, cluster, ends, level)
    alone = _mean(labels[labelled], cluster[labelled], ends, level)
    groups = np.unique(cluster[labelled]).size
    if groups < FEWEST or labelled.all():
        corrected = alone if groups >= FEWEST else undefined(TOO_FEW, int(labelled.sum()))
        return Corrected(naive=naive, labels=alone, corrected=corrected, weight=None, shift=None)
    label, judge = _moves(judged, labels, labelled, cluster)
    square = float(judge @ judge)
    weight = min(1.0, max(0.0, float(label @ judge) / square)) if square > 0 else 0.0
    away = float(judged[labelled].mean() - judged[~labelled].mean())
    value = float(labels[labelled].mean()) - weight * away
    moves = label - weight * judge
    # As many clusters as have labels show how the rest varies; one is spent on the weight.
    error = sqrt(float(moves @ moves) * groups / (groups - 1 - (weight > 0)))
    return Corrected(
        naive=naive,
        labels=alone,
        corrected=_bounded(value, quantile(groups, level) * error, alone, ends),
        weight=weight,
        shift=away / sqrt(square) if square > 0 else None,
    )


def _mean(values: Floats, cluster: Ints, ends: tuple[float, float], level: float) -> Coefficient:
    estimate = mean(values, cluster, ends, level, weigh="units")
    return Coefficient(estimate.value, estimate.low, estimate.high, estimate.n)


def _bounded(
    value: float, reach: float, alone: Coefficient, ends: tuple[float, float]
) -> Coefficient:
    """A corrected mean on its scale. Where nothing varies it is as uncertain as the labels."""
    if reach <= 1e-9 * (ends[1] - ends[0]):
        return Coefficient(value, alone.low, alone.high, alone.n)
    low, high = max(ends[0], value - reach), min(ends[1], value + reach)
    return Coefficient(value, min(low, value), max(high, value), alone.n)


def _moves(judged: Floats, labels: Floats, labelled: Bools, cluster: Ints) -> tuple[Floats, Floats]:
    """By cluster, how far it moves the mean label, and the judge's mean of the labelled units less
    that of the others."""
    count = int(cluster.max()) + 1

    def moved(values: Floats, of: Bools) -> Floats:
        rests = (values[of] - values[of].mean()) / int(of.sum())
        return np.asarray(np.bincount(cluster[of], rests, minlength=count), dtype=np.float64)

    return moved(labels, labelled), moved(judged, labelled) - moved(judged, ~labelled)
