"""The coefficients that fit votes, and those that fit scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal, Protocol

import numpy as np

from evenhand.stats.agreement import pairing
from evenhand.stats.agreement.alpha import alpha, gwet
from evenhand.stats.agreement.classification import macro
from evenhand.stats.agreement.closer import Figure
from evenhand.stats.agreement.coefficient import (
    NOTHING,
    Coefficient,
    average,
    positive,
    share,
    undefined,
)
from evenhand.stats.agreement.correlation import kendall, pearson, spearman
from evenhand.stats.agreement.kappa import kappa
from evenhand.stats.agreement.pairing import TIE, Column, Pairs
from evenhand.stats.agreement.table import Confusion
from evenhand.stats.tables import Floats, Ints

Ties = Literal["keep", "drop"]
Figures = dict[str, Coefficient]
CATEGORIES = 20
"""Different scores up to which each counts as a category."""
NO_CATEGORIES = f"more than {CATEGORIES} different scores are no categories"
OF_TWO = "it is of two judges; see those of each two"


class Kind(Protocol):
    """How ratings of one kind, votes or scores, are brought together and compared."""

    @property
    def level(self) -> float:
        """Of the intervals."""
        ...

    def per_unit(self, column: Column, *, each: bool = False) -> Column:
        """One rating per unit, or one per unit and judge."""
        ...

    def pairs(self, pairs: Pairs) -> Pairs:
        """Those that count."""
        ...

    def column(self, column: Column) -> Column:
        """Those that count where judges are compared among themselves."""
        ...

    def compared(self, pairs: Pairs, cluster: Ints, labelled: bool) -> Figures:
        """Of one side against another, which may be labels."""
        ...

    def is_fragile(self, pairs: Pairs, figures: Figures) -> bool:
        """Whether one unit more, rated as far apart as any two ratings here, would take a figure of
        one side against another out of its interval."""
        ...

    def panel(self, column: Column, cluster: Ints) -> Figures:
        """Of any number of judges among themselves, one rating each a unit."""
        ...

    def distances(
        self, sides: Sequence[Pairs], ends: tuple[float, float] | None
    ) -> dict[Figure, float]:
        """By which figures judges are held against each other, and the most that each can be."""
        ...

    def confusion(self, pairs: Pairs) -> Confusion | None:
        """How often what met what."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteKind:
    """Votes: 0 the first candidate by name is better, 1 the second, 2 a tie."""

    ties: Ties = "keep"
    split: int = TIE
    level: float = 0.95
    labels: tuple[str, ...] = ("first", "second", "tie")

    def per_unit(self, column: Column, *, each: bool = False) -> Column:
        return pairing.majority(column, self.split, each=each)

    def pairs(self, pairs: Pairs) -> Pairs:
        if self.ties == "keep":
            return pairs
        return pairs.where((pairs.a != TIE) & (pairs.b != TIE))

    def column(self, column: Column) -> Column:
        return column if self.ties == "keep" else column.where(column.value != TIE)

    def compared(self, pairs: Pairs, cluster: Ints, labelled: bool) -> Figures:
        among, level = cluster[pairs.unit], self.level
        item, value = _stacked(pairs)
        figures = {
            "agreement": share((pairs.a == pairs.b).astype(np.float64), among, level),
            "kappa": kappa(pairs.a, pairs.b, cluster=among, level=level),
            "alpha": alpha(item, value, scale="nominal", cluster=among, level=level),
            "ac1": gwet(item, value, cluster=among, level=level),
        }
        if labelled:
            judged, meant = (votes.astype(np.int64) for votes in (pairs.a, pairs.b))
            figures |= macro(judged, meant, len(self.labels), among, level)
        return figures

    def is_fragile(self, pairs: Pairs, figures: Figures) -> bool:
        return False

    def panel(self, column: Column, cluster: Ints) -> Figures:
        pairs = self.pairs(pairing.among(column))
        rest = self.pairs(pairing.others(column, self.split))
        item, value, level = column.unit, column.value, self.level
        return {
            "agreement": _alike(pairs, cluster, level),
            "with_others": _alike(rest, cluster, level),
            "kappa": undefined(OF_TWO, 0),
            "alpha": alpha(item, value, scale="nominal", cluster=cluster, level=level),
            "ac1": gwet(item, value, cluster=cluster, level=level),
        }

    def distances(
        self, sides: Sequence[Pairs], ends: tuple[float, float] | None
    ) -> dict[Figure, float]:
        return {"agreement": 1.0}

    def confusion(self, pairs: Pairs) -> Confusion | None:
        return _confusion(pairs, np.arange(float(len(self.labels))), self.labels)


def _alike(pairs: Pairs, cluster: Ints, level: float) -> Coefficient:
    return share((pairs.a == pairs.b).astype(np.float64), cluster[pairs.unit], level)


def _stacked(pairs: Pairs) -> tuple[Ints, Floats]:
    """Every pair as an item with two ratings."""
    return np.tile(np.arange(pairs.a.size), 2), np.concatenate([pairs.a, pairs.b])


def _confusion(pairs: Pairs, levels: Floats, labels: Sequence[str]) -> Confusion | None:
    if pairs.a.size == 0:
        return None
    i, j = np.searchsorted(levels, pairs.a), np.searchsorted(levels, pairs.b)
    counts = np.bincount(i * levels.size + j, minlength=levels.size**2)
    rows = counts.reshape(levels.size, levels.size)
    used = [int(k) for k in np.flatnonzero(rows.sum(axis=0) + rows.sum(axis=1))]
    return Confusion(
        labels=tuple(labels[k] for k in used),
        counts=tuple(tuple(int(rows[i, j]) for j in used) for i in used),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreKind:
    """Scores on a scale."""

    level: float = 0.95

    def per_unit(self, column: Column, *, each: bool = False) -> Column:
        return pairing.mean(column, each=each)

    def pairs(self, pairs: Pairs) -> Pairs:
        return pairs

    def column(self, column: Column) -> Column:
        return column

    def compared(self, pairs: Pairs, cluster: Ints, labelled: bool) -> Figures:
        among, (a, b) = cluster[pairs.unit], pairs[1:]
        if a.size == 0:
            return dict.fromkeys(SCORE_FIGURES, undefined(NOTHING))
        item, value = _stacked(pairs)
        level = self.level
        figures = self._categories(item, value, pairs, cluster)
        figures["kappa_quadratic"] = kappa(a, b, weights="quadratic", cluster=among, level=level)
        figures["alpha"] = alpha(item, value, scale="interval", cluster=among, level=level)
        figures["alpha_ordinal"] = alpha(item, value, scale="ordinal", cluster=among, level=level)
        figures["pearson"] = pearson(a, b, among, level)
        figures["spearman"] = spearman(a, b, among, level)
        figures["kendall"] = kendall(a, b, among, level)
        figures |= _errors(a - b, among, level)
        figures["bias"] = average(a - b, among, level)
        return {name: figures[name] for name in SCORE_FIGURES}

    def is_fragile(self, pairs: Pairs, figures: Figures) -> bool:
        figure = figures["kappa_quadratic"]
        if figure.low is None or figure.high is None or np.ptp(pairs.a) * np.ptp(pairs.b) == 0:
            return False
        ratings = np.concatenate((pairs.a, pairs.b))
        ends = (float(ratings.min()), float(ratings.max()))
        swayed = [
            kappa(np.append(pairs.a, a), np.append(pairs.b, b), weights="quadratic").value
            for a, b in (ends, ends[::-1])
        ]
        return any(value is None or not figure.low <= value <= figure.high for value in swayed)

    def _categories(self, item: Ints, value: Floats, pairs: Pairs, cluster: Ints) -> Figures:
        among, level = cluster[pairs.unit], self.level
        if np.unique(value).size > CATEGORIES:
            names = ("agreement", "kappa", "kappa_linear", "alpha_nominal", "ac2")
            return dict.fromkeys(names, undefined(NO_CATEGORIES, pairs.a.size))
        return {
            "agreement": _alike(pairs, cluster, level),
            "kappa": kappa(pairs.a, pairs.b, cluster=among, level=level),
            "kappa_linear": kappa(pairs.a, pairs.b, weights="linear", cluster=among, level=level),
            "alpha_nominal": alpha(item, value, scale="nominal", cluster=among, level=level),
            "ac2": gwet(item, value, weights="quadratic", cluster=among, level=level),
        }

    def panel(self, column: Column, cluster: Ints) -> Figures:
        pairs, (item, _, value) = pairing.among(column), column
        level, among = self.level, cluster[pairs.unit]
        many = np.unique(value).size > CATEGORIES
        agreement, weighted = undefined(NO_CATEGORIES, pairs.a.size), undefined(NO_CATEGORIES)
        nominal = weighted
        if not many:
            nominal = alpha(item, value, scale="nominal", cluster=cluster, level=level)
            agreement = _alike(pairs, cluster, level)
            weighted = gwet(item, value, weights="quadratic", cluster=cluster, level=level)
        return {
            "agreement": agreement,
            "kappa": undefined(OF_TWO, 0),
            "alpha": alpha(item, value, scale="interval", cluster=cluster, level=level),
            "alpha_ordinal": alpha(item, value, scale="ordinal", cluster=cluster, level=level),
            "alpha_nominal": nominal,
            "ac2": weighted,
            **_errors(pairs.a - pairs.b, among, level),
        }

    def distances(
        self, sides: Sequence[Pairs], ends: tuple[float, float] | None
    ) -> dict[Figure, float]:
        values = np.concatenate([np.concatenate([side.a, side.b]) for side in sides])
        if not values.size:
            return {}
        low, high = (float(values.min()), float(values.max())) if ends is None else ends
        figures: dict[Figure, float] = {"mae": max(high - low, float(np.ptp(values)))}
        if np.unique(values).size <= CATEGORIES:
            figures = {"agreement": 1.0, **figures}
        return figures

    def confusion(self, pairs: Pairs) -> Confusion | None:
        levels = np.unique(np.concatenate([pairs.a, pairs.b]))
        if levels.size > CATEGORIES:
            return None
        return _confusion(pairs, levels, [f"{level:g}" for level in levels])


SCORE_FIGURES = (
    "agreement",
    "kappa",
    "kappa_linear",
    "kappa_quadratic",
    "alpha",
    "alpha_ordinal",
    "alpha_nominal",
    "ac2",
    "pearson",
    "spearman",
    "kendall",
    "mse",
    "rmse",
    "mae",
    "bias",
)


def _errors(apart: Floats, among: Ints, level: float) -> Figures:
    """The mean square of differences, its root, and the mean size."""
    square = positive(apart**2, among, level)
    low, high = _root(square.low), _root(square.high)
    root = Coefficient(_root(square.value), low, high, square.n, square.why)
    return {"mse": square, "rmse": root, "mae": positive(np.abs(apart), among, level)}


def _root(value: float | None) -> float | None:
    return None if value is None else sqrt(value)


def whys(figures: Mapping[str, Coefficient]) -> dict[str, list[str]]:
    """Which figures, or intervals, are missing, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for name, figure in figures.items():
        if figure.why and figure.why != OF_TWO:
            by_reason.setdefault(figure.why, []).append(name)
    return by_reason
