"""Marks of charts on a common scale: points with intervals, and bars, as SVG without any text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, floor, log10

from evenhand.report.html.page import Words

COLOURS = ("first", "second", "third", "fourth", "fifth", "sixth")
LABEL_LENGTH = 44
STRIP = 22
"""The height of the marks of one series, in pixels."""
WIDTH = 1000
INTERVALS = 5
"""An axis has at most so many parts between its numbers."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its interval, under a label, of a series."""

    label: str
    series: str
    value: float
    low: float | None = None
    high: float | None = None
    n: float | None = None
    colour: str = ""
    is_overall: bool = False


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A label, the marks beside it, and their values in words."""

    label: str
    svg: str
    values: Sequence[str]


@dataclass(frozen=True, slots=True)
class Panel:
    """Rows on one scale; the ticks stand at equal distances from its low end to its high end."""

    rows: Sequence[ChartRow]
    ticks: Sequence[str]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
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


def make_scale(values: Sequence[float], least_step: float = 0.0) -> Scale:
    """Return the shortest axis with round ends that holds these values."""
    low, high = min(values), max(values)
    if low == high:
        low, high = (low - 0.5, high + 0.5) if low else (0.0, 1.0)
    power = floor(log10((high - low) / INTERVALS))
    for step in (Decimal(n).scaleb(power + more) for more in range(9) for n in (1, 2, 5)):
        size = float(step)
        first, last = floor(low / size + 1e-9), ceil(high / size - 1e-9)
        if last - first <= INTERVALS and size >= least_step:
            return Scale(first * size, last * size, step)
    raise AssertionError("a long enough step always fits")


@dataclass(frozen=True, slots=True)
class Unit:
    """The formats of a chart's values: beside their marks, on the axis, as an interval."""

    value: Callable[[float], str]
    tick: Callable[[float, int], str]
    interval: Callable[[float | None, float | None], str]
    least_step: float = 0.0


def number_unit(say: Words) -> Unit:
    return Unit(say.number, say.number, say.interval)


def signed_unit(say: Words) -> Unit:
    return Unit(say.signed, say.number, say.interval)


def percent_unit(say: Words) -> Unit:
    return Unit(say.percent, lambda value, _: say.percent(value), say.percents, 0.01)


def count_unit(say: Words) -> Unit:
    return Unit(lambda value: say.integer(round(value)), say.number, say.interval, 1.0)


def draw_points(
    points: Sequence[Point],
    unit: Unit,
    *,
    reference: float | None = None,
    ends: Sequence[float] = (),
) -> Panel:
    """Draw dots with their intervals, a strip per series, around a line of reference."""
    known = [end for p in points for end in (p.value, p.low, p.high) if end is not None]
    extra = [*ends, *([] if reference is None else [reference])]
    scale = make_scale([*known, *extra], unit.least_step)
    colours = series_colours(points)

    def marks(point: Point, y: float) -> str:
        colour = point.colour or colours[point.series]
        low, high = (point.value if end is None else end for end in (point.low, point.high))
        line = f'<path class="interval" d="M{scale(low)} {y}H{scale(high)}"/>' if high > low else ""
        return (
            f'<g class="of-{colour}">{line}<path class="dot" d="M{scale(point.value)} {y}h0"/></g>'
        )

    return _panel(points, marks, unit, scale, reference)


def draw_bars(points: Sequence[Point], unit: Unit, title: str = "") -> Panel:
    """Draw bars from nothing, a strip per series."""
    scale = make_scale([0.0, *(point.value for point in points)], unit.least_step)
    colours = series_colours(points)

    def marks(point: Point, y: float) -> str:
        colour = point.colour or colours[point.series]
        return _bar(colour, 0.0, scale(point.value), y)

    return _panel(points, marks, unit, scale, title=title)


def series_colours(points: Sequence[Point]) -> dict[str, str]:
    """Return a colour for each series, as many as there are colours."""
    return dict(zip(dict.fromkeys(point.series for point in points), COLOURS, strict=False))


def _bar(colour: str, start: float, end: float, y: float) -> str:
    return f'<path class="bar of-{colour}" d="M{start} {y}H{end}"/>' if end > start else ""


def _panel(
    points: Sequence[Point],
    marks: Callable[[Point, float], str],
    unit: Unit,
    scale: Scale,
    reference: float | None = None,
    title: str = "",
) -> Panel:
    rows = []
    for label in dict.fromkeys(point.label for point in points):
        own = [point for point in points if point.label == label]
        drawn = "".join(marks(p, STRIP * (n + 0.5)) for n, p in enumerate(own))
        svg = _svg(drawn, len(own), scale, reference)
        rows.append(ChartRow(label, svg, [unit.value(point.value) for point in own]))
    return Panel(rows, scale.ticks(unit.tick), title)


def _svg(marks: str, strips: int, scale: Scale, reference: float | None = None) -> str:
    """Return the strips of a row over the lines of the grid. The width stretches, lines and dots
    keep their size."""
    height, parts = STRIP * strips, scale.parts
    grid = "".join(f"M{round(WIDTH * n / parts, 1)} 0V{height}" for n in range(parts + 1))
    line = "" if reference is None else f'<path class="zero" d="M{scale(reference)} 0V{height}"/>'
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" height="{height}" preserveAspectRatio="none"'
        f' aria-hidden="true"><path class="grid" d="{grid}"/>{line}{marks}</svg>'
    )
