"""The figures that a gate's conditions are about: an estimate, its interval, and what is missing.

The interval of a figure that is computed here holds whatever the values on their scale may be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from evenhand.stats.comparison.contrast import Shared
from evenhand.stats.decision.bounded import Sample, interval, sample, units_needed
from evenhand.stats.estimate import LARGEST
from evenhand.stats.power import More, in_words, more_questions
from evenhand.stats.tables import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """An estimate with its interval, and the least and most that missing judgments could make of
    it (None where nothing is missing or it is not known)."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    level: float = 0.95
    sample: Sample | None = None
    """What the interval was computed from, where it was computed here."""
    bounds: tuple[float, float] | None = None
    counted: str = "units"
    """What `n` is the number of."""
    unfit: str = ""
    """Why it cannot decide, whatever it is."""
    left: bool = False
    """Whether the run leaves units on purpose, which only `--to-the-end` judges."""


NOTHING = Figure(value=None, low=None, high=None, n=0, clusters=0)


def difference(shared: Shared, level: float) -> Figure:
    """The mean difference of what a variant and the baseline share."""
    low, high = shared.ends
    with np.errstate(over="ignore", invalid="ignore"):  # of such values there is no figure
        gaps = shared.ours - shared.theirs
    figure = mean_figure(gaps, shared.cluster, (low - high, high - low), level)
    return replace(figure, bounds=shared.bounds)


def mean_figure(values: Floats, cluster: Ints, ends: tuple[float, float], level: float) -> Figure:
    """The mean of values that hang together within clusters, with an interval that holds whatever
    the values on the scale may be."""
    clusters = np.unique(cluster).size
    bounded = sample(values, cluster, ends)
    if bounded is None:
        value = float(values.mean()) if values.size and np.abs(values).max() <= LARGEST else None
        return Figure(
            value=value, low=None, high=None, n=values.size, clusters=clusters, level=level
        )
    low, high = interval(bounded, level)
    return Figure(
        value=bounded.mean,
        low=low,
        high=high,
        n=values.size,
        clusters=clusters,
        level=level,
        sample=bounded,
    )


def rate(figure: Figure) -> Figure:
    """A difference of two shares that make up 1 as the first of them."""

    def half(value: float | None) -> float | None:
        return None if value is None else (1 + value) / 2

    return replace(
        figure,
        value=half(figure.value),
        low=half(figure.low),
        high=half(figure.high),
        sample=figure.sample and figure.sample.as_rate,
        bounds=figure.bounds and ((1 + figure.bounds[0]) / 2, (1 + figure.bounds[1]) / 2),
    )


def widened(figure: Figure, units: int, pending: int, ends: tuple[float, float]) -> Figure:
    """The figure where so many judgments beside those of its units are still to come."""
    if not pending or figure.value is None:
        return figure
    least, most = figure.bounds or (figure.value, figure.value)
    whole = units + pending
    low, high = ends
    bounds = (least * units + low * pending) / whole, (most * units + high * pending) / whole
    return replace(figure, bounds=bounds)


def more_units(figure: Figure, threshold: float) -> More | None:
    """Return how many more units would decide if the figure is what it seems, in words."""
    assert figure.value is not None and figure.low is not None and figure.high is not None
    if figure.sample is not None:
        more = units_needed(figure.sample, threshold, figure.level)
        return in_words() if more is None else in_words(more)
    reach = NormalDist().inv_cdf((1 + figure.level) / 2)
    error = (figure.high - figure.low) / (2 * reach)
    return more_questions(figure.value - threshold, error, figure.clusters, 1 - figure.level)
