"""Which of two judges is closer to the labels? Paired on the units that both judged and somebody
labelled.

What a unit says of a judge is the share of its ratings that equal a label, or their mean distance
from it. The difference of two judges is a mean over units, with the interval of paired differences;
p is that of a sign-flip test by topic or question: if judges are alike, each topic's sum of
differences could as well have had the other sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from evenhand.stats.agreement.pairing import Pairs
from evenhand.stats.agreement.ratings import OVERALL, WINNER
from evenhand.stats.estimate import difference
from evenhand.stats.outcome import Outcome
from evenhand.stats.tables import Floats, Ints
from evenhand.stats.test import holm

Figure = Literal["agreement", "mae"]
WHOLE = (WINNER, OVERALL)
"""What a judgment comes to, beside its dimensions or criteria."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeContrast:
    """A judge beside another on the same labels, on one dimension and by one figure."""

    dimension: str
    figure: Figure
    judge: str
    other: str
    n: int
    """Units that both judged and somebody labelled."""
    clusters: int
    value: float
    other_value: float
    difference: float
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    outcome: Outcome
    """Better is closer to the labels."""

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """What judges are compared on: the ratings of each, by its place, beside labels."""

    dimension: str
    judges: Mapping[int, Pairs]
    cluster: Ints
    """Of each unit."""
    figures: Mapping[Figure, float]
    """By which figures, and the most that each can be."""


def judge_contrasts(
    rated: Sequence[Rated], names: Sequence[str], level: float
) -> tuple[JudgeContrast, ...]:
    """Every two judges on every dimension. The whole (the winner, the overall score) is a family of
    tests for each figure, and so are all dimensions or criteria together."""
    contrasts = [
        contrast
        for dimension in rated
        for pair in combinations(dimension.judges, 2)
        for contrast in _contrasts(dimension, pair, names, level)
    ]
    decided = list(contrasts)
    families: dict[tuple[bool, Figure], list[int]] = {}
    for at, contrast in enumerate(contrasts):
        families.setdefault((contrast.dimension in WHOLE, contrast.figure), []).append(at)
    for family in families.values():
        for at, p in zip(family, holm([contrasts[at].p for at in family]), strict=True):
            decided[at] = _decided(contrasts[at], p, 1 - level)
    return tuple(decided)


def _contrasts(
    rated: Rated, pair: tuple[int, int], names: Sequence[str], level: float
) -> Iterator[JudgeContrast]:
    for figure, most in rated.figures.items():
        (units, first), (others, second) = (_by_unit(rated.judges[at], figure) for at in pair)
        shared, at, at_other = np.intersect1d(units, others, return_indices=True)
        if not shared.size:
            continue
        gaps, cluster = first[at] - second[at_other], rated.cluster[shared]
        estimate = difference(gaps, cluster, most, level)
        yield JudgeContrast(
            dimension=rated.dimension,
            figure=figure,
            judge=names[pair[0]],
            other=names[pair[1]],
            n=shared.size,
            clusters=estimate.clusters,
            value=float(first[at].mean()),
            other_value=float(second[at_other].mean()),
            difference=float(gaps.mean()),
            low=estimate.low,
            high=estimate.high,
            p=estimate.p,
            p_adjusted=None,
            outcome="not enough evidence",
        )


def _by_unit(pairs: Pairs, figure: Figure) -> tuple[Ints, Floats]:
    """The units, and the mean of the figure on each."""
    apart = np.abs(pairs.a - pairs.b)
    values = (apart == 0).astype(np.float64) if figure == "agreement" else apart
    units, place = np.unique(pairs.unit, return_inverse=True)
    return units, np.bincount(place, values, units.size) / np.maximum(np.bincount(place), 1)


def _decided(contrast: JudgeContrast, p: float | None, alpha: float) -> JudgeContrast:
    outcome: Outcome = "not enough evidence"
    if p is not None and p <= alpha + 1e-12 and contrast.clusters > 1 and contrast.difference:
        is_higher = contrast.difference > 0
        outcome = "better" if is_higher == (contrast.figure == "agreement") else "worse"
    return replace(contrast, p_adjusted=p, outcome=outcome)
