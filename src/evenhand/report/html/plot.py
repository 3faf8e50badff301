"""Where things stand on the sheet of a picture: names in rows, the plot beside them, its axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.report.html.axis import Scale, Tick
from evenhand.report.html.labels import (
    FONT,
    LABEL,
    LEGEND_LABEL,
    labels,
    text_width,
    widest,
    wrapped,
)
from evenhand.report.html.shapes import LINE, TOTAL, Shape, Stroke, Text

PALETTE = ("first", "second", "third", "fourth", "fifth", "sixth")
STEP = 26
"""The least height of a row."""
EDGE, RIGHT = 4.0, 18.0
"""What is free around a picture: on the right half of the last number of an axis."""
GAP = 8.0
"""Between a name and what it names."""
UNDER_AXIS = 46.0
"""The height of an axis with its numbers and its title."""
_TICK = 5.0
_BESIDE = 0.1
"""The share of a row that is free above its bars or dots, and below."""
BAND = 1 - 2 * _BESIDE

Values = list[dict[str, Any]]
"""What is drawn: dicts with `name` (the row), `series` (told apart by colour; "" for none),
`value`, `low` and `high` where there is an interval, and `colour` where there is one series."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Where the marks of a picture stand on its sheet."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height


@dataclass(frozen=True, slots=True)
class Rows:
    """Names under each other on the left of a plot, each with the height of its lines."""

    names: Sequence[str]
    height: float

    def place(self, plot: Plot, name: str, share: float = 0.5) -> float:
        """Where the row of a name is, so far from its top."""
        return plot.top + self.height * (self.names.index(name) + share)

    def plot(self, top: float = EDGE, left: float | None = None) -> Plot:
        """The plot that names leave of the width."""
        left = room(self.names) if left is None else left
        width = TOTAL - RIGHT - left
        return Plot(left=left, top=top, width=width, height=self.height * len(self.names))

    def shapes(self, plot: Plot) -> Iterator[Shape]:
        for name in self.names:
            yield Text(x=plot.left - GAP, y=self.place(plot, name), text=name, anchor="end")


def rows_of(names: Sequence[str], series: int = 1) -> Rows:
    lines = max((name.count("\n") + 1 for name in names), default=1)
    return Rows(names, max(STEP, LINE * lines + 6, 13 * series))


def room(names: Sequence[str]) -> float:
    return EDGE + widest(names) + GAP


def renamed(values: Values, key: str, most: int = LABEL) -> tuple[Values, list[str]]:
    """Values with short labels under a key, and these in order."""
    names = list(dict.fromkeys(value[key] for value in values))
    short = dict(zip(names, labels(names, most), strict=True))
    return [value | {key: short[value[key]]} for value in values], list(short.values())


def on_axis(values: Values) -> tuple[Values, list[str]]:
    """Values with names in lines, as an axis has them, and these in order."""
    values, names = renamed(values, "name")
    lines = {name: wrapped(name) for name in names}
    return [value | {"name": lines[value["name"]]} for value in values], list(lines.values())


def painted(values: Values) -> tuple[Values, list[str]]:
    """Values with their colour, and the series that are told apart by it."""
    values, names = renamed(values, "series", LEGEND_LABEL)
    if len(names) < 2:
        return [value | {"colour": value.get("colour") or PALETTE[0]} for value in values], names
    paints = dict(zip(names, PALETTE, strict=False))
    return [value | {"colour": paints[value["series"]]} for value in values], names


def legend_of(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The colour of each series, where there is more than one."""
    return tuple(zip(names, PALETTE, strict=False)) if len(names) > 1 else ()


def place_in_row(series: Sequence[str], name: str) -> float:
    """Where in its row a series stands, from 0 to 1."""
    return _BESIDE + BAND * (series.index(name) + 0.5) / len(series)


# Axes


def axis_across(plot: Plot, scale: Scale, marks: Sequence[Tick], title: str) -> Iterator[Shape]:
    """An axis of numbers below a plot, with lines through it."""
    for mark in marks:
        x = scale(mark.value)
        yield Stroke(x1=x, y1=plot.top, x2=x, y2=plot.bottom, paint="line")
        yield Stroke(x1=x, y1=plot.bottom, x2=x, y2=plot.bottom + _TICK, paint="soft")
        yield Text(x=x, y=plot.bottom + 15, text=mark.text, is_number=True)
    yield from base_line(plot, title)


def base_line(plot: Plot, title: str, below: float = 34.0) -> Iterator[Shape]:
    """The line that a plot stands on, and what stands along it."""
    yield Stroke(x1=plot.left, y1=plot.bottom, x2=plot.right, y2=plot.bottom, paint="soft")
    x = _inside((plot.left + plot.right) / 2, text_width(title), TOTAL)
    yield Text(x=x, y=plot.bottom + below, text=title, paint="soft")


def _inside(middle: float, length: float, total: float) -> float:
    """The middle of a text that stands as near to a place as its sheet allows."""
    return max(EDGE + length / 2, min(middle, total - EDGE - length / 2))


def axis_up(plot: Plot, scale: Scale, marks: Sequence[Tick], title: str) -> Iterator[Shape]:
    """An axis of numbers on the left of a plot, with lines through it."""
    yield from grid(plot, scale, marks)
    for mark in marks:
        y = scale(mark.value)
        yield Stroke(x1=plot.left - _TICK, y1=y, x2=plot.left, y2=y, paint="soft")
        yield Text(x=plot.left - GAP, y=y, text=mark.text, anchor="end", is_number=True)
    yield Stroke(x1=plot.left, y1=plot.top, x2=plot.left, y2=plot.bottom, paint="soft")
    yield upright(plot, title)


def grid(plot: Plot, scale: Scale, marks: Sequence[Tick]) -> Iterator[Shape]:
    """Lines through a plot."""
    for mark in marks:
        y = scale(mark.value)
        yield Stroke(x1=plot.left, y1=y, x2=plot.right, y2=y, paint="line")


def upright(plot: Plot, title: str) -> Shape:
    """A title along the left edge."""
    middle = (plot.top + plot.bottom) / 2
    return Text(x=EDGE + FONT / 2, y=middle, text=title, paint="soft", angle=-90)


def number_room(marks: Sequence[Tick]) -> float:
    """What numbers and a title take on the left of a plot."""
    return EDGE + LINE + widest([mark.text for mark in marks]) + GAP
