"""Marks on a common axis: rows of dots with intervals, or of bars, as SVG without a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, floor, log10
from typing import NamedTuple

STRIP = 22
"""The height of the marks of one series, in pixels."""
WIDTH = 1000
INTERVALS = 5
"""An axis has at most so many parts between its numbers."""


Where = tuple[tuple[str, str], ...]
"""The units that something is about: facets of units, each with a value that they have; empty where
it is about none."""


class ShownValue(NamedTuple):
    """A value in words, and the units that it is about."""

    text: str
    where: Where = ()


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its interval, under a label, of a series; the points of a group share a
    scale."""

    label: str
    series: str
    value: float
    low: float | None = None
    high: float | None = None
    n: float | None = None
    colour: str = ""
    group: str = ""
    where: Where = ()


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A label, the marks beside it, and their values in words."""

    label: str
    svg: str
    values: Sequence[ShownValue]


@dataclass(frozen=True, slots=True)
class Unit:
    """The formats of a chart's values: beside their marks, on the axis, as an interval."""

    value: Callable[[float], str]
    tick: Callable[[float, int], str]
    interval: Callable[[float | None, float | None], str]
    least_step: float = 0.0


def draw(
    points: Sequence[Point],
    unit: Unit,
    colours: Mapping[str, str],
    *,
    reference: float | None = None,
    ends: Sequence[float] = (),
    bars: bool = False,
) -> tuple[list[ChartRow], list[str]]:
    """Return a row per label, with a strip of marks per series, and the numbers of the axis: dots
    with their intervals around a line of reference, or bars from 0."""
    known = [end for p in points for end in (p.value, p.low, p.high) if end is not None]
    known += [*ends, *([] if reference is None else [reference]), *([0.0] if bars else [])]
    scale = make_scale(known, unit.least_step)
    rows = []
    for label in dict.fromkeys(point.label for point in points):
        own = [point for point in points if point.label == label]
        marks = ""
        for number, point in enumerate(own):
            colour, y = point.colour or colours[point.series], STRIP * (number + 0.5)
            marks += (_bar if bars else _dot)(point, colour, scale, y)
        svg = _svg(marks, len(own), scale, reference)
        values = [ShownValue(unit.value(point.value), point.where) for point in own]
        rows.append(ChartRow(label, svg, values))
    return rows, scale.ticks(unit.tick)


def _bar(point: Point, colour: str, scale: AxisScale, y: float) -> str:
    end, line = scale(point.value), ""
    if point.low is not None and point.high is not None and point.high > point.low:
        line = f'<path class="whisker" d="M{scale(point.low)} {y}H{scale(point.high)}"/>'
    return (f'<path class="bar of-{colour}" d="M0.0 {y}H{end}"/>' if end > 0 else "") + line


def _dot(point: Point, colour: str, scale: AxisScale, y: float) -> str:
    low, high = (point.value if end is None else end for end in (point.low, point.high))
    line = f'<path class="interval" d="M{scale(low)} {y}H{scale(high)}"/>' if high > low else ""
    return f'<g class="of-{colour}">{line}<path class="dot" d="M{scale(point.value)} {y}h0"/></g>'


def _svg(marks: str, strips: int, scale: AxisScale, reference: float | None) -> str:
    """Return the strips of a row over the lines of the grid. The width stretches, lines and dots
    keep their size."""
    height, parts = STRIP * strips, scale.parts
    grid = "".join(f"M{round(WIDTH * n / parts, 1)} 0V{height}" for n in range(parts + 1))
    line = "" if reference is None else f'<path class="zero" d="M{scale(reference)} 0V{height}"/>'
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" height="{height}" preserveAspectRatio="none"'
        f' aria-hidden="true"><path class="grid" d="{grid}"/>{line}{marks}</svg>'
    )


@dataclass(frozen=True, slots=True)
class AxisScale:
    """An axis from one round number to another, in equal steps."""

    low: float
    high: float
    step: Decimal

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(WIDTH * min(1.0, max(0.0, share)), 1)

    def ticks(self, text: Callable[[float, int], str]) -> list[str]:
        """Return the round numbers from the low end to the high end; `text` writes one with so
        many digits."""
        digits = max(0, -int(self.step.normalize().as_tuple().exponent))
        return [text(self.low + n * float(self.step), digits) for n in range(self.parts + 1)]

    @property
    def parts(self) -> int:
        """Return the number of steps."""
        return round((self.high - self.low) / float(self.step))


def make_scale(values: Sequence[float], least_step: float = 0.0) -> AxisScale:
    """Return the shortest axis with round ends that holds these values."""
    low, high = min(values), max(values)
    if low == high:
        low, high = (low - 0.5, high + 0.5) if low else (0.0, 1.0)
    power = floor(log10((high - low) / INTERVALS))
    for step in (Decimal(n).scaleb(power + more) for more in range(9) for n in (1, 2, 5)):
        size = float(step)
        first, last = floor(low / size + 1e-9), ceil(high / size - 1e-9)
        if last - first <= INTERVALS and size >= least_step:
            return AxisScale(first * size, last * size, step)
    raise AssertionError("a long enough step always fits")
