"""A judge as a classifier of what labels say: precision, recall and F1, as plain means over the
classes."""

from __future__ import annotations

import numpy as np

from evenhand.stats.agreement.coefficient import (
    NOTHING,
    ONE_CLUSTER,
    Coefficient,
    undefined,
    wilson,
)
from evenhand.stats.tables import Bools, Floats, Ints

MACRO = ("precision", "recall", "f1")


def macro(
    judged: Ints, label: Ints, classes: int, cluster: Ints, level: float = 0.95
) -> dict[str, Coefficient]:
    """Macro precision, recall and F1 over the classes that occur; a share of nothing is 0."""
    if judged.size == 0:
        return dict.fromkeys(MACRO, undefined(NOTHING))
    place = np.unique(cluster, return_inverse=True)[1]
    count, cells = int(place.max()) + 1, classes * classes
    tables = np.bincount(place * cells + judged * classes + label, minlength=count * cells)
    tables = tables.reshape(count, classes, classes)
    whole = tables.sum(axis=0)
    present = (whole.sum(axis=0) + whole.sum(axis=1)) > 0
    values = _macro(whole[None], present)[:, 0]
    # Each cluster is left out in turn.
    parts = _macro(whole - tables, present)
    coefficients: dict[str, Coefficient] = {}
    for name, value, part, least in zip(MACRO, values, parts, _least(whole), strict=True):
        if count < 2:
            coefficients[name] = Coefficient(float(value), None, None, judged.size, ONE_CLUSTER)
            continue
        rests = part - part.mean()
        variance = max(float(rests @ rests) * (count - 1) / count, least)
        bounds = wilson(float(value), variance, count, level)
        coefficients[name] = Coefficient(float(value), *bounds, judged.size)
    return coefficients


def _macro(tables: Ints, present: Bools) -> Floats:
    """Of each table, rows what was said and columns what was meant: the three means."""
    hits = np.diagonal(tables, axis1=1, axis2=2).astype(np.float64)
    judged, meant = tables.sum(axis=2), tables.sum(axis=1)
    shares = [hits / np.maximum(of, 1) for of in (judged, meant)]
    shares.append(2 * hits / np.maximum(judged + meant, 1))
    return np.array([share[:, present].mean(axis=1) for share in shares])


def _least(table: Ints) -> list[float]:
    """The least variance of each mean: that of independent trials, with two more in each class, one
    of them a hit. The few cases of a rare class may all have come out alike."""
    hits, judged, meant = np.diagonal(table), table.sum(axis=1), table.sum(axis=0)
    variances: list[float] = []
    for of in (judged, meant, (judged + meant) / 2):
        present = (judged + meant) > 0
        rate, trials = (hits[present] + 1) / (of[present] + 2), of[present] + 2
        variances.append(float((rate * (1 - rate) / trials).sum()) / int(present.sum()) ** 2)
    return variances
