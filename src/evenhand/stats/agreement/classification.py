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
    said: Ints, label: Ints, classes: int, cluster: Ints, level: float = 0.95
) -> dict[str, Coefficient]:
    """Macro precision, recall and F1 over the classes that occur; a share of nothing is 0."""
    if said.size == 0:
        return dict.fromkeys(MACRO, undefined(NOTHING))
    place = np.unique(cluster, return_inverse=True)[1]
    count, cells = int(place.max()) + 1, classes * classes
    tables = np.bincount(place * cells + said * classes + label, minlength=count * cells)
    tables = tables.reshape(count, classes, classes)
    whole = tables.sum(axis=0)
    present = (whole.sum(axis=0) + whole.sum(axis=1)) > 0
    values = _macro(whole[None], present)[:, 0]
    # Each cluster is left out in turn.
    parts = _macro(whole - tables, present)
    found: dict[str, Coefficient] = {}
    for name, value, part, least in zip(MACRO, values, parts, _least(whole), strict=True):
        if count < 2:
            found[name] = Coefficient(float(value), None, None, said.size, ONE_CLUSTER)
            continue
        rests = part - part.mean()
        variance = max(float(rests @ rests) * (count - 1) / count, least)
        bounds = wilson(float(value), variance, count, level)
        found[name] = Coefficient(float(value), *bounds, said.size)
    return found


def _macro(tables: Ints, present: Bools) -> Floats:
    """Of each table, rows what was said and columns what was meant: the three means."""
    hits = np.diagonal(tables, axis1=1, axis2=2).astype(np.float64)
    said, meant = tables.sum(axis=2), tables.sum(axis=1)
    shares = [hits / np.maximum(of, 1) for of in (said, meant)]
    shares.append(2 * hits / np.maximum(said + meant, 1))
    return np.array([one[:, present].mean(axis=1) for one in shares])


def _least(table: Ints) -> list[float]:
    """The least variance of each mean: that of independent trials, with two more in each class, one
    of them a hit. The few cases of a rare class may all have come out alike."""
    hits, said, meant = np.diagonal(table), table.sum(axis=1), table.sum(axis=0)
    found: list[float] = []
    for of in (said, meant, (said + meant) / 2):
        kept = (said + meant) > 0
        rate, trials = (hits[kept] + 1) / (of[kept] + 2), of[kept] + 2
        found.append(float((rate * (1 - rate) / trials).sum()) / int(kept.sum()) ** 2)
    return found
