"""Columns side by side by series, in one small picture per group, all on one scale."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.report.html.axis import Scale, from_zero, ticks_up
from evenhand.report.html.labels import widest
from evenhand.report.html.plot import (
    BAND,
    EDGE,
    RIGHT,
    Plot,
    Values,
    axis_up,
    base_line,
    grid,
    legend_of,
    number_room,
    painted,
    place_in_row,
    renamed,
)
from evenhand.report.html.shapes import TOTAL, Box, Picture, Shape, Text

_HEIGHT, _HEIGHT_OF_ONE = 90.0, 150.0
_BETWEEN = 20.0
_HEAD = 24.0
"""The height of a group's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Plots of one size, one or two beside each other."""

    number: int
    beside: int
    left: float

    @property
    def head(self) -> float:
        return _HEAD if self.number > 1 else 2 * EDGE

    @property
    def width(self) -> float:
        return (TOTAL - RIGHT - self.left - _BETWEEN * (self.beside - 1)) / self.beside

    def plot(self, place: int) -> Plot:
        row, column = divmod(place, self.beside)
        height = _HEIGHT if self.number > 1 else _HEIGHT_OF_ONE
        return Plot(
            left=self.left + column * (self.width + _BETWEEN),
            top=self.head + row * (height + self.head + EDGE),
            width=self.width,
            height=height,
        )

    def is_first(self, place: int) -> bool:
        return place % self.beside == 0

    def is_lowest(self, place: int) -> bool:
        return place + self.beside >= self.number


@dataclass(frozen=True, slots=True, kw_only=True)
class _Levels:
    """What columns stand for, below them; slanted where it has no room."""

    names: Sequence[str]
    is_slanted: bool

    @property
    def height(self) -> float:
        return 22.0 + (0.65 * widest(self.names) - 8 if self.is_slanted else 0.0)

    def middle(self, plot: Plot, name: str) -> float:
        return plot.left + plot.width * (self.names.index(name) + 0.5) / len(self.names)

    def shapes(self, plot: Plot) -> Iterator[Shape]:
        for name in self.names:
            x = self.middle(plot, name)
            if self.is_slanted:
                yield Text(x=x, y=plot.bottom + 10, text=name, anchor="end", angle=-40)
            else:
                yield Text(x=x, y=plot.bottom + 13, text=name)


def columns(values: Values, across: str, up: str) -> Picture:
    """Shares of levels by series, of every group."""
    values, groups = renamed(values, "group")
    values, series = painted(values)
    most = max(value["value"] for value in values)
    marks = ticks_up(from_zero(most, 0.0, 1.0), percent=True, most=5)
    beside = 2 if len(groups) > 1 and widest(groups) <= TOTAL / 2 - 40 else 1
    sheet = _Grid(number=len(groups), beside=beside, left=number_room(marks))
    names = list(dict.fromkeys(value["name"] for value in sorted(values, key=_leading_number)))
    is_slanted = widest(names) + 4 > sheet.width / len(names)
    levels = _Levels(names=names, is_slanted=is_slanted)
    shapes: list[Shape] = []
    for place, group in enumerate(groups):
        plot = sheet.plot(place)
        scale = from_zero(most, plot.bottom, plot.top)
        shapes += (
            axis_up(plot, scale, marks, up) if sheet.is_first(place) else grid(plot, scale, marks)
        )
        shapes += _boxes(plot, scale, [v for v in values if v["group"] == group], levels, series)
        title = across if sheet.is_lowest(place) else ""
        shapes += base_line(plot, title, levels.height + 8)
        shapes += levels.shapes(plot) if title else ()
        if len(groups) > 1:
            shapes.append(Text(x=(plot.left + plot.right) / 2, y=plot.top - 12, text=group))
    bottom = sheet.plot(len(groups) - 1).bottom
    return Picture(shapes, TOTAL, bottom + levels.height + 20, legend_of(series))


def _boxes(
    plot: Plot, scale: Scale, values: Values, levels: _Levels, series: Sequence[str]
) -> Iterator[Shape]:
    step = plot.width / len(levels.names)
    width = BAND * step / len(series)
    for value in values:
        middle = levels.middle(plot, value["name"])
        x = middle + step * (place_in_row(series, value["series"]) - 0.5) - width / 2
        y = scale(value["value"])
        yield Box(x=x, y=y, width=width, height=plot.bottom - y, paint=value["colour"])


def _leading_number(value: dict[str, Any]) -> float:
    return float(re.match(r"-?[\d.]+", value["name"])[0])  # type: ignore[index]
