"""Pictures of a few forms: dots with intervals, bars, stacks, a field of shares, dots along a
number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from evenhand.report.html.axis import Scale, from_zero, padded, ticks, ticks_up
from evenhand.report.html.labels import columns_of, widest, wrapped
from evenhand.report.html.plot import (
    BAND,
    EDGE,
    GAP,
    RIGHT,
    UNDER_AXIS,
    Plot,
    Rows,
    Values,
    axis_across,
    axis_up,
    legend_of,
    number_room,
    on_axis,
    painted,
    place_in_row,
    room,
    rows_of,
    upright,
)
from evenhand.report.html.shapes import LINE, TOTAL, Box, Dot, Picture, Shape, Stroke, Text

BAR = 20
"""The most that a bar is thick."""
CELL = 36
"""The least width of a field's cell, which holds a share in percent."""
SLANTED = 14
"""Names of so many columns stand slanted above a field; longer ones are numbered."""


def dots(
    values: Values,
    title: str,
    middle: float | None = None,
    *,
    percent: bool = False,
    domain: tuple[float, float] | None = None,
) -> Picture:
    """A dot and its interval a row; a line down the middle where that means something."""
    return _dots(values, title, middle, percent=percent, domain=domain)


def dots_apart(values: Values, title: str, middle: float | None = None) -> Picture:
    """The same with overall figures below the others: they have a scale of their own."""
    rest = [value for value in values if not value.get("overall")]
    overall = [value for value in values if value.get("overall")]
    if not rest or not overall:
        return _dots(values, title, middle)
    left = max(room(on_axis(part)[1]) for part in (rest, overall))
    above = _dots(rest, title, middle, left=left)
    below = _dots(overall, title, middle, left=left, top=above.height + GAP)
    shapes = [*above.shapes, *below.shapes]
    return Picture(shapes, TOTAL, below.height, above.legend or below.legend)


def _dots(
    values: Values,
    title: str,
    middle: float | None,
    *,
    percent: bool = False,
    domain: tuple[float, float] | None = None,
    top: float = EDGE,
    left: float | None = None,
) -> Picture:
    values, names = on_axis([_reaching(value) for value in values])
    values, series = painted(values)
    rows = rows_of(names, len(series))
    plot = rows.plot(top, left)
    drawn = [value[end] for value in values for end in ("value", "low", "high")]
    drawn += [middle]
    numbers = [number for number in drawn if number is not None]
    scale = padded(numbers, plot.left, plot.right, 12.0)
    if domain:
        scale = Scale(*domain, plot.left, plot.right)
    shapes = [*axis_across(plot, scale, ticks(scale, percent=percent), title), *rows.shapes(plot)]
    if middle is not None:
        x = scale(middle)
        shapes.append(Stroke(x1=x, y1=plot.top, x2=x, y2=plot.bottom, paint="soft", is_dashed=True))
    for value in values:
        y = rows.place(plot, value["name"], place_in_row(series, value["series"]))
        shapes += _dot(scale, value, y)
    return Picture(shapes, TOTAL, plot.bottom + UNDER_AXIS, legend_of(series))


def _dot(scale: Scale, value: dict[str, Any], y: float) -> Iterator[Shape]:
    if value["low"] is not None:
        low, high = scale(value["low"]), scale(value["high"])
        yield Stroke(x1=low, y1=y, x2=high, y2=y, paint=value["colour"], width=2, is_round=True)
    yield Dot(x=scale(value["value"]), y=y, radius=4.2, paint=value["colour"])


def _reaching(dot: dict[str, Any]) -> dict[str, Any]:
    """A value whose interval is open on one side: what is drawn of it ends at the value."""
    low, high, value = dot["low"], dot["high"], dot["value"]
    if low is None and high is None:
        return dot
    return dot | {"low": value if low is None else low, "high": value if high is None else high}


def bars(values: Values, title: str, *, percent: bool = False, colour: str = "") -> Picture:
    """A bar a row and series."""
    values, names = on_axis([value | ({"colour": colour} if colour else {}) for value in values])
    values, series = painted(values)
    rows = rows_of(names, len(series))
    plot = rows.plot()
    most = max(value["value"] for value in values)
    scale = from_zero(most, plot.left, plot.right, is_whole=not percent)
    marks = ticks(scale, percent=percent, is_whole=not percent)
    shapes = [*axis_across(plot, scale, marks, title), *rows.shapes(plot)]
    thick = BAND * rows.height / len(series)
    thick = min(BAR, thick) if len(series) < 2 else thick
    for value in values:
        y = rows.place(plot, value["name"], place_in_row(series, value["series"])) - thick / 2
        width = scale(value["value"]) - plot.left
        shapes.append(Box(x=plot.left, y=y, width=width, height=thick, paint=value["colour"]))
    return Picture(shapes, TOTAL, plot.bottom + UNDER_AXIS, legend_of(series))


def stack(values: Values, title: str, order: Sequence[str]) -> Picture:
    """A bar a row, in parts: won, even, undecided, lost."""
    values, names = on_axis(values)
    legend = tuple(zip(order, ("first", "soft", "sixth", "second"), strict=False))
    paints, sums = dict(legend), Counter[str]()
    for value in values:
        sums[value["name"]] += value["value"]
    rows = rows_of(names)
    plot = rows.plot()
    scale = from_zero(max(sums.values()), plot.left, plot.right, is_whole=True)
    shapes = [*axis_across(plot, scale, ticks(scale, is_whole=True), title), *rows.shapes(plot)]
    ends = dict.fromkeys(names, plot.left)
    for value in sorted(values, key=lambda part: float(part["order"])):
        x, y = ends[value["name"]], rows.place(plot, value["name"]) - BAR / 2
        width = scale(value["value"]) - plot.left
        ends[value["name"]] += width
        shapes.append(Box(x=x, y=y, width=width, height=BAR, paint=paints[value["series"]]))
    return Picture(shapes, TOTAL, plot.bottom + UNDER_AXIS, legend)


def heat(values: Values, order: Sequence[str], down: str, across: str) -> Picture:
    """A field of shares: the stronger the colour, the further from one half."""
    # Long names would leave no room for the field: they are numbered, and the columns have numbers.
    is_numbered = max(map(columns_of, order)) > SLANTED
    heads = [str(place) for place in range(1, len(order) + 1)] if is_numbered else list(order)
    names = [
        wrapped(f"{head} · {name}") if is_numbered else name
        for head, name in zip(heads, order, strict=True)
    ]
    rows = Rows(names, max(30, rows_of(names).height))
    left = room(names) + LINE
    cell = max(CELL, (TOTAL - RIGHT - left) / len(order))
    over = LINE if is_numbered else 0.65 * widest(heads) + GAP
    height = rows.height * len(order)
    plot = Plot(left=left, top=EDGE + LINE + over + GAP, width=cell * len(order), height=height)
    shapes: list[Shape] = [upright(plot, down), *rows.shapes(plot)]
    middle = (plot.left + min(plot.right, TOTAL)) / 2
    shapes.append(Text(x=middle, y=EDGE + LINE / 2, text=across, paint="soft"))
    shapes += _heads(plot, heads, cell, is_slanted=not is_numbered)
    places = {name: place for place, name in enumerate(order)}
    for value in values:
        row, column = places[value["name"]], places[value["other"]]
        x, y = plot.left + cell * column, plot.top + rows.height * row
        shapes += _cell(value, Plot(left=x, top=y, width=cell, height=rows.height))
    beyond = 0.0 if is_numbered else max(0.0, 0.77 * widest(heads[-1:]) - cell / 2)
    return Picture(shapes, plot.right + max(GAP, beyond), plot.bottom + EDGE)


def _heads(plot: Plot, heads: Sequence[str], cell: float, *, is_slanted: bool) -> Iterator[Shape]:
    """Names above the columns of a field."""
    for place, head in enumerate(heads):
        x = plot.left + cell * (place + 0.5)
        if is_slanted:
            yield Text(x=x, y=plot.top - GAP, text=head, anchor="start", angle=-40)
        else:
            yield Text(x=x, y=plot.top - GAP - 2, text=head)


def _cell(value: dict[str, Any], place: Plot) -> Iterator[Shape]:
    yield Box(
        x=place.left,
        y=place.top,
        width=place.width,
        height=place.height,
        paint="first" if value["rate"] >= 0.5 else "second",
        strength=value["strength"],
        edge="line",
    )
    x, y = (place.left + place.right) / 2, (place.top + place.bottom) / 2
    yield Text(x=x, y=y, text=value["text"])


def line(values: Values, across: str, up: str, percent: bool) -> Picture:
    """Dots with intervals along a number."""
    share = Scale(0.0, 1.0, 0.0, 1.0)
    left = number_room(ticks_up(share, percent=percent))
    plot = Plot(left=left, top=2 * EDGE, width=TOTAL - RIGHT - left, height=170)
    scale = padded([value["x"] for value in values], plot.left, plot.right, 10.0)
    if scale.low < 0 <= min(value["x"] for value in values):
        # A length is never below nothing; a difference of lengths may be.
        scale = Scale(0.0, scale.high, plot.left, plot.right)
    height = Scale(0.0, 1.0, plot.bottom, plot.top)
    shapes = [*axis_across(plot, scale, ticks(scale, is_whole=True), across)]
    shapes += axis_up(plot, height, ticks_up(height, percent=percent), up)
    for value in values:
        x = scale(value["x"])
        if value["low"] is not None and value["high"] is not None:
            low, high = height(value["low"]), height(value["high"])
            shapes.append(Stroke(x1=x, y1=low, x2=x, y2=high, paint="first", width=2))
        shapes.append(Dot(x=x, y=height(value["value"]), radius=3.9, paint="first"))
    return Picture(shapes, TOTAL, plot.bottom + UNDER_AXIS)
