"""Altair charts of a few forms, and their SVG made fit for a page.

Colours in a chart are stand-ins that become variables of the page's style, so that a picture is at
home in light and dark. What the renderer gives is taken apart, and only known elements and
attributes are put together again: names in a chart are hostile, as all judged text is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any
from unicodedata import east_asian_width
from xml.etree import ElementTree

from evenhand.unseen import visible

TOTAL = 360
"""The width of a picture with its labels: all are alike, so that they fill their cards and letters
are of one size in every picture. A phone is not much narrower, so letters stay readable there."""
WIDE = 1.2
"""A picture that needs so much more is scrolled; one that needs less is drawn a little smaller."""
STEP, LINE = 26, 17
FONT, LAID_OUT_FOR = 12.5, 15
"""The size of letters, and the size that room is left for: the renderer measures with a narrow
font, and a reader's may be a fifth wider."""
LABEL, LABEL_LINE, LABEL_LINES = 40, 16, 3
"""Columns of a name in a picture, of which one line has so many; the table beside it has all."""
LEGEND_LABEL = 160
"""Columns of a name in a legend: the page writes it, in as many lines as it takes."""
SLANTED = 14
"""Names of so many columns stand slanted above a field; longer ones are numbered."""
BAR = 20
"""The most that a bar is thick."""
_COLUMN = 8.1
"""The width of a column of text, as laid out."""
CELL = 36
"""The least width of a field that holds a share in percent."""
PALETTE = ("first", "second", "third", "fourth", "fifth", "sixth")
_NAMES = ("ink", "soft", "line", *PALETTE, "good", "bad", "warn")
COLOUR = {name: f"#0a0b{place:02x}" for place, name in enumerate(_NAMES)}
_VARIABLES = {standin: f"var(--{name})" for name, standin in COLOUR.items()}

_STEPS = [n * 10**power for power in range(16) for n in (1, 2, 5)]

Values = list[dict[str, Any]]
"""What is drawn: dicts with `name` (the row), `series` (the colour; "" for none), `value`, and
`low` and `high` where there is an interval."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart, and its legend: names of series with the names of their colours. The page writes the
    legend above the chart, where a name of any length has its lines."""

    chart: Any
    legend: tuple[tuple[str, str], ...] = ()


def labels(names: Sequence[str], most: int = LABEL) -> list[str]:
    """Names short enough for a picture, and still different from each other."""
    short_names: list[str] = []
    for name in names:
        flat = " ".join(visible(name).split())
        short = flat if _columns(flat) <= most else f"{_head(flat, most - 1)}…"
        number = 2
        while short in short_names:
            short = f"{_head(flat, most - 4)}… {number}"
            number += 1
        short_names.append(short)
    return short_names


def _columns(text: str) -> int:
    """How wide a text is: two columns a character of Chinese or Japanese, one any other."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _head(text: str, most: int) -> str:
    """As much of a text as so many columns hold."""
    while _columns(text) > most:
        text = text[:-1]
    return text


def wrapped(name: str) -> str:
    """A name in lines that are short enough for an axis, broken where words or parts of a name
    end."""
    lines: list[str] = []
    while _columns(name) > LABEL_LINE and len(lines) < LABEL_LINES - 1:
        end = _line_end(name)
        lines.append(name[:end].rstrip())
        name = name[end:].lstrip()
    if _columns(name) > LABEL_LINE:
        name = f"{_head(name.removesuffix('…'), LABEL_LINE - 1)}…"
    return "\n".join([*lines, name])


def _line_end(name: str) -> int:
    """Where the first line of a name ends: at a space or after what parts a name, unless it would
    be short and the word after it longer than a line; else anywhere."""
    whole = len(_head(name, LABEL_LINE))
    if name[whole : whole + 1] == " ":
        return whole
    space = name[:whole].rfind(" ")
    part = 1 + max(name[:whole].rfind(sign) for sign in "-_/.:·")
    end = max(space, part)
    has_line = end > 0 and _columns(re.split(r"[ _/.:·-]", name[end:].lstrip())[0]) <= LABEL_LINE
    return end if end > whole // 3 or has_line else whole


def _widest(names: Sequence[str]) -> int:
    return max((_columns(line) for name in names for line in name.split("\n")), default=0)


def _step(names: Sequence[str], series: int = 1) -> dict[str, Any]:
    """The height of a row: for the lines of its name, and for its series."""
    lines = max((name.count("\n") + 1 for name in names), default=1)
    return {"step": max(STEP, LINE * lines + 6, 13 * series), "for": "position"}


def _plot(names: Sequence[str]) -> float:
    """What names on the left leave of the width."""
    return TOTAL - 62 - _COLUMN * _widest(names)


def _renamed(values: Values, key: str, most: int = LABEL) -> tuple[Values, list[str]]:
    """Values with short labels under a key, and these in order."""
    names = list(dict.fromkeys(value[key] for value in values))
    short = dict(zip(names, labels(names, most), strict=True))
    return [value | {key: short[value[key]]} for value in values], list(short.values())


def _on_axis(values: Values) -> tuple[Values, list[str]]:
    """Values with names in lines, as an axis has them, and these in order."""
    values, names = _renamed(values, "name")
    lines = {name: wrapped(name) for name in names}
    return [value | {"name": lines[value["name"]]} for value in values], list(lines.values())


def _chart(values: Values) -> Any:
    import altair as alt

    return alt.Chart(alt.InlineData(values=values))


def _axis(**more: Any) -> Any:
    import altair as alt

    return alt.Axis(labelLimit=0, titleFontWeight="normal", labelFlush=False, **more)


def _names_axis(**more: Any) -> Any:
    """An axis of names, each in as many lines as it has."""
    expression = "split(datum.label, '\\n')"
    return _axis(ticks=False, domain=False, labelPadding=6, labelExpr=expression, **more)


def _whole(most: float) -> Any:
    """An axis of numbers of things: whole numbers, about five of them."""
    step = next(s for s in _STEPS if s * 5 >= most)
    return _axis(format="d", values=list(range(0, ceil(most) + 1, step)))


def _series(values: Values) -> tuple[Values, Any, list[str]]:
    """How series are told apart: by colour, where there is more than one."""
    import altair as alt

    values, names = _renamed(values, "series", LEGEND_LABEL)
    if len(names) < 2:
        plain = COLOUR["first"]
        colour = alt.Color("colour:N", scale=None) if _coloured(values) else alt.value(plain)
        return values, colour, names
    return values, _by_series(_legend(names)), names


def _legend(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The colour of each series, where there is more than one."""
    return tuple(zip(names, PALETTE, strict=False)) if len(names) > 1 else ()


def _by_series(legend: tuple[tuple[str, str], ...]) -> Any:
    """The colours of a legend, on marks."""
    import altair as alt

    paint = [COLOUR[colour] for _, colour in legend]
    scale = alt.Scale(domain=[name for name, _ in legend], range=paint)
    return alt.Color("series:N", scale=scale, legend=None)


def _coloured(values: Values) -> bool:
    return all(value.get("colour") for value in values)


def dots(
    values: Values,
    title: str,
    middle: float | None = None,
    *,
    percent: bool = False,
    domain: tuple[float, float] | None = None,
) -> Picture:
    """A dot and its interval a row; a line down the middle where that means something."""
    import altair as alt

    values, names = _on_axis([_reaching(value) for value in values])
    values, colour, series = _series(values)
    scale = alt.Scale(domain=list(domain)) if domain else alt.Scale(zero=False, padding=12)
    x: dict[str, Any] = {"title": title, "scale": scale}
    x["axis"] = _axis(format="%" if percent else "~r", tickCount=5, labelOverlap=True)
    y = alt.Y("name:N", sort=names, title=None, axis=_names_axis())
    base = _chart(values).encode(y=y, color=colour)
    if len(series) > 1:
        base = base.encode(yOffset=alt.YOffset("series:N", sort=series))
    intervals = [value for value in values if value["low"] is not None or value["high"] is not None]
    lines = base.mark_rule(strokeWidth=2, strokeCap="round").encode(
        x=alt.X("low:Q", **x), x2="high:Q"
    )
    parts: list[Any] = [
        base.mark_point(filled=True, size=70, opacity=1).encode(x=alt.X("value:Q", **x))
    ]
    parts = [lines, *parts] if intervals else parts
    if middle is not None:
        rule = _chart([{"middle": middle}])
        middle_line = rule.mark_rule(strokeDash=[4, 3], color=COLOUR["soft"]).encode(x="middle:Q")
        parts.insert(0, middle_line)
    size = {"width": _plot(names), "height": _step(names, len(series))}
    return Picture(alt.layer(*parts).properties(**size), _legend(series))


def _reaching(dot: dict[str, Any]) -> dict[str, Any]:
    """A value whose interval is open on one side: what is drawn of it ends at the value."""
    low, high, value = dot["low"], dot["high"], dot["value"]
    if low is None and high is None:
        return dot
    return dot | {"low": value if low is None else low, "high": value if high is None else high}


def apart(values: Values, draw: Callable[[Values], Picture]) -> Picture:
    """Overall figures below the others: they have a scale of their own."""
    import altair as alt

    rest = [value for value in values if not value.get("overall")]
    overall = [value for value in values if value.get("overall")]
    if not rest or not overall:
        return draw(rest or overall)
    above, below = draw(rest), draw(overall)
    # Both stand under each other; their rows are as high as their own names and series need.
    width = min(above.chart.width, below.chart.width)
    charts = [picture.chart.properties(width=width) for picture in (above, below)]
    chart = alt.vconcat(*charts, spacing=50, bounds="flush").resolve_scale(yOffset="independent")
    return Picture(chart, above.legend or below.legend)


def bars(values: Values, title: str, *, percent: bool = False, colour: str = "") -> Picture:
    """A bar a row, with what it says at its end."""
    import altair as alt

    values, names = _on_axis(values)
    values, series_colour, series = _series(values)
    y = alt.Y("name:N", sort=names, title=None, axis=_names_axis())
    style = _axis(format="%", tickCount=5)
    if not percent:
        style = _whole(max(value["value"] for value in values))
    x = alt.X("value:Q", title=title, axis=style)
    paint = alt.value(colour) if colour and len(series) < 2 else series_colour
    base = _chart(values).encode(x=x, y=y, color=paint)
    if len(series) > 1:
        bars_of_series = base.encode(yOffset=alt.YOffset("series:N", sort=series)).mark_bar()
        size = {"width": _plot(names), "height": _step(names, len(series))}
        return Picture(bars_of_series.properties(**size), _legend(series))
    return Picture(base.mark_bar(size=BAR).properties(width=_plot(names), height=_step(names)))


def columns(values: Values, across: str, up: str) -> Picture:
    """Columns side by side by series, one small picture a group."""
    import altair as alt

    values, groups = _renamed(values, "group")
    values, colour, series = _series(values)
    levels = list(dict.fromkeys(value["name"] for value in sorted(values, key=_numbered)))
    angle = 0 if max(map(len, levels)) < 4 else -40
    x = alt.X("name:N", sort=levels, title=across, axis=_axis(labelAngle=angle))
    y = alt.Y("value:Q", title=up, axis=_axis(format="%", tickCount=4))
    base = _chart(values).mark_bar().encode(x=x, y=y, color=colour)
    if len(series) > 1:
        base = base.encode(xOffset=alt.XOffset("series:N", sort=series))
    if len(groups) == 1:
        return Picture(base.properties(width=TOTAL - 74, height=150), _legend(series))
    header = alt.Header(
        title=None, labelFontSize=LAID_OUT_FOR, labelColor=COLOUR["ink"], labelLimit=0
    )
    facet = alt.Facet("group:N", sort=groups, header=header)
    beside = 1 if _widest(groups) * _COLUMN > TOTAL / 2 - 40 else 2
    width = TOTAL - 74 if beside == 1 else TOTAL / 2 - 58
    chart = base.properties(width=width, height=90).facet(facet, columns=beside)
    return Picture(chart, _legend(series))


def _numbered(value: dict[str, Any]) -> float:
    return float(re.match(r"-?[\d.]+", value["name"])[0])  # type: ignore[index]


def stack(values: Values, title: str, order: Sequence[str]) -> Picture:
    """A bar a row, in parts: won, even, undecided, lost."""
    import altair as alt

    values, names = _on_axis(values)
    sums = Counter[str]()
    for value in values:
        sums[value["name"]] += value["value"]
    legend = tuple(zip(order, ("first", "soft", "sixth", "second"), strict=False))
    chart = (
        _chart(values)
        .mark_bar(size=BAR)
        .encode(
            x=alt.X("value:Q", title=title, axis=_whole(max(sums.values()))),
            y=alt.Y("name:N", sort=names, title=None, axis=_names_axis()),
            color=_by_series(legend),
            order="order:Q",
        )
        .properties(width=_plot(names), height=_step(names))
    )
    return Picture(chart, legend)


def heat(values: Values, order: Sequence[str], down: str, across: str) -> Picture:
    """A field of shares: the stronger the colour, the further from one half."""
    import altair as alt

    # Long names would leave no room for the field: they are numbered, and the columns have numbers.
    is_numbered = _widest(order) > SLANTED
    numbers = {name: str(place) for place, name in enumerate(order, 1)}
    rows = {n: wrapped(f"{numbers[n]} · {n}") if is_numbered else n for n in order}
    heads = numbers if is_numbered else {name: name for name in order}
    values = [
        value
        | {"name": rows.get(value["name"], value["name"])}
        | {"other": heads.get(value["other"], value["other"])}
        for value in values
    ]
    y = alt.Y("name:N", sort=list(rows.values()), title=down, axis=_names_axis())
    axis = _axis(ticks=False, domain=False, orient="top", labelAngle=0 if is_numbered else -40)
    x = alt.X("other:N", sort=list(heads.values()), title=across, axis=axis)
    base = _chart(values).encode(x=x, y=y)
    won = alt.condition(
        "datum.rate >= 0.5", alt.value(COLOUR["first"]), alt.value(COLOUR["second"])
    )
    fade = alt.FillOpacity("strength:Q", scale=None, legend=None)
    field = base.mark_rect(stroke=COLOUR["line"]).encode(color=won, fillOpacity=fade)
    text = base.mark_text(color=COLOUR["ink"]).encode(text="text:N")
    lines = list(rows.values())
    room = (TOTAL - 60 - _COLUMN * _widest(lines)) / max(1, len(order))
    height = max(30, LINE * max(line.count("\n") + 1 for line in lines) + 6)
    size = {"width": {"step": max(CELL, room)}, "height": {"step": height}}
    return Picture((field + text).properties(**size))


def line(values: Values, across: str, up: str, percent: bool) -> Picture:
    """Dots with intervals along a number."""
    import altair as alt

    # A length is never below nothing; a difference of lengths may be.
    scale = alt.Scale(zero=False, padding=10)
    if min(value["x"] for value in values) >= 0:
        scale = alt.Scale(zero=False, domainMin=_below(values))
    x = alt.X("x:Q", title=across, scale=scale, axis=_axis(tickCount=6, tickMinStep=1, format="d"))
    style = _axis(format="%" if percent else "~r", tickCount=5)
    y: dict[str, Any] = {"title": up, "scale": alt.Scale(domain=[0, 1]), "axis": style}
    base = _chart(values).encode(x=x)
    first = COLOUR["first"]
    parts = [
        base.mark_rule(color=first, strokeWidth=2).encode(y=alt.Y("low:Q", **y), y2="high:Q"),
        base.mark_point(filled=True, size=60, color=first, opacity=1).encode(
            y=alt.Y("value:Q", **y)
        ),
    ]
    return Picture(alt.layer(*parts).properties(width=TOTAL - 84, height=170))


def _below(values: Values) -> float:
    """A little below the least, and never below 0."""
    xs = [float(value["x"]) for value in values]
    return max(0.0, min(xs) - 0.05 * (max(xs) - min(xs)))


_CONFIG: dict[str, Any] = {
    "aria": False,  # labels for every mark, in which titles would be read as code
    "background": None,
    "padding": {"left": 4, "top": 4, "right": 18, "bottom": 4},
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": COLOUR["ink"],
        "titleColor": COLOUR["soft"],
        "gridColor": COLOUR["line"],
        "domainColor": COLOUR["soft"],
        "tickColor": COLOUR["soft"],
        "labelFontSize": LAID_OUT_FOR,
        "titleFontSize": LAID_OUT_FOR,
    },
    "text": {"fontSize": LAID_OUT_FOR},
}
_RUSSIAN = {"decimal": ",", "thousands": "\u00a0", "grouping": [3], "currency": ["", ""]}
_TAGS = {"g", "path", "line", "rect", "text", "tspan", "circle"}
_ATTRIBUTES = {
    *("d", "transform", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "width", "height"),
    *("fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity"),
    *("fill-opacity", "stroke-opacity", "text-anchor", "font-size", "font-weight", "r"),
}
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_SAFE_PAINT = re.compile(r"none|transparent|#[0-9a-f]{3,8}|[a-z]+|rgba?\([\d.,% ]+\)")


def svg(picture: Picture, title: str, language: str) -> str:
    """A picture's chart as SVG that may stand in a page."""
    import vl_convert

    # A character that XML does not allow ends the renderer, and the whole process with it.
    spec = _visible_texts(picture.chart.to_dict()) | {"config": _CONFIG}
    locale = _RUSSIAN if language == "ru" else None
    drawing = vl_convert.vegalite_to_svg(spec, format_locale=locale)
    root = ElementTree.fromstring(drawing)  # noqa: S314 - made by our own renderer
    # Drawn on one width, so that letters are of one size in every picture; what does not fit is
    # scrolled.
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    about = {"role": "img", "aria-label": visible(title)}
    about |= {"class": "wide"} if width > WIDE * TOTAL else {}
    width = max(width, TOTAL)
    size = {"width": f"{width:.0f}", "height": f"{height:.0f}"}
    size["viewBox"] = f"0 0 {width:.0f} {height:.0f}"
    clean = ElementTree.Element("svg", size | about)
    for child in root:
        _copy(child, clean)
    return ElementTree.tostring(clean, encoding="unicode", short_empty_elements=True)


def _visible_texts(value: Any) -> Any:
    """A chart's description with every text in it made visible."""
    if isinstance(value, dict):
        return {visible(key): _visible_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible_texts(item) for item in value]
    return visible(value) if isinstance(value, str) else value


def _copy(element: ElementTree.Element, into: ElementTree.Element) -> None:
    """An element with what is known of it, and its children; nothing that is not drawn."""
    tag = element.tag.rpartition("}")[2]
    if tag not in _TAGS or element.get("display") == "none" or _is_void(element, tag):
        return
    attributes = {
        name: _value(name, element.attrib[name]) for name in element.attrib if name in _ATTRIBUTES
    }
    if attributes.get("opacity") == "1":
        del attributes["opacity"]
    drops = [float(line.get("dy", 0)) for line in element]
    if tag == "text" and any(drops):
        # Lines of a name stand around its place, not all of them below it.
        attributes["y"] = f"{-sum(drops) / 2:.2f}"
    copy = ElementTree.SubElement(into, tag, attributes)
    copy.text = element.text if tag in ("text", "tspan") else None
    for child in element:
        _copy(child, copy)


def _is_void(element: ElementTree.Element, tag: str) -> bool:
    """A shape without ink, of which the renderer leaves many."""
    painted = {"fill", "stroke"} & element.attrib.keys()
    return tag in ("path", "rect") and not painted


def _value(name: str, value: str) -> str:
    if name == "font-size":
        return f"{FONT}px"
    if name in ("fill", "stroke"):
        variable = _VARIABLES.get(value)
        return variable or (value if _SAFE_PAINT.fullmatch(value) else "none")
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", value)
