"""What a picture is made of, and the SVG that a page may hold of it.

Paints are names of the page's colours, so that a picture is at home in light and dark. Every text
is made visible and stands where XML escapes it: names in a picture are hostile, as all judged text
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never
from xml.etree import ElementTree

from evenhand.report.html.labels import FONT
from evenhand.text import visible

TOTAL = 360
"""The width of a picture with its labels: all are alike, so that they fill their cards and letters
are of one size in every picture. A phone is not much narrower, so letters stay readable there."""
WIDE = 1.2
"""A picture that needs so much more is scrolled; one that needs less is drawn a little smaller."""
LINE = 17
"""The height of a line of text."""
_MIDDLE = 0.36
"""How far below the middle of a line its letters stand, in the size of the font."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """From one place to another."""

    x1: float
    y1: float
    x2: float
    y2: float
    paint: str
    width: float = 1.0
    is_dashed: bool = False
    is_round: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A bar, or a cell of a field with an edge; `strength` is how much of its paint is seen."""

    x: float
    y: float
    width: float
    height: float
    paint: str
    strength: float = 1.0
    edge: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A point with a size."""

    x: float
    y: float
    radius: float
    paint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text whose lines stand around its place; a number is written in the way of the language."""

    x: float
    y: float
    text: str
    paint: str = "ink"
    anchor: str = "middle"
    angle: int = 0
    is_number: bool = False


Shape = Stroke | Box | Dot | Text


@dataclass(frozen=True, slots=True)
class Picture:
    """Shapes on a sheet, and their legend: names of series with the names of their colours. The
    page writes the legend above, where a name of any length has its lines."""

    shapes: Sequence[Shape]
    width: float
    height: float
    legend: tuple[tuple[str, str], ...] = ()


def svg(picture: Picture, title: str, language: str) -> str:
    """A picture as SVG that may stand in a page."""
    # Drawn on one width, so that letters are of one size in every picture; what does not fit is
    # scrolled.
    width, height = max(picture.width, TOTAL), picture.height
    about = {"width": f"{width:.0f}", "height": f"{height:.0f}"}
    about |= {"viewBox": f"0 0 {width:.0f} {height:.0f}"}
    about |= {"role": "img", "aria-label": visible(title)}
    about |= {"class": "wide"} if width > WIDE * TOTAL else {}
    root = ElementTree.Element("svg", about | {"font-size": f"{FONT}px"})
    for shape in picture.shapes:
        _add(root, shape, language)
    return ElementTree.tostring(root, encoding="unicode")


def _add(root: ElementTree.Element, shape: Shape, language: str) -> None:
    match shape:
        case Stroke():
            ElementTree.SubElement(root, "line", _stroke(shape))
        case Box():
            ElementTree.SubElement(root, "rect", _box(shape))
        case Dot(x=x, y=y, radius=radius, paint=paint):
            place = {"cx": _pixels(x), "cy": _pixels(y), "r": _pixels(radius)}
            ElementTree.SubElement(root, "circle", place | {"fill": _paint(paint)})
        case Text():
            _write(root, shape, language)
        case _:
            assert_never(shape)


def _stroke(stroke: Stroke) -> dict[str, str]:
    ends = {"x1": stroke.x1, "y1": stroke.y1, "x2": stroke.x2, "y2": stroke.y2}
    attributes = {name: _pixels(value) for name, value in ends.items()}
    attributes["stroke"] = _paint(stroke.paint)
    attributes |= {"stroke-width": _pixels(stroke.width)} if stroke.width != 1 else {}
    attributes |= {"stroke-dasharray": "4,3"} if stroke.is_dashed else {}
    return attributes | ({"stroke-linecap": "round"} if stroke.is_round else {})


def _box(box: Box) -> dict[str, str]:
    sides = {"x": box.x, "y": box.y, "width": box.width, "height": box.height}
    attributes = {name: _pixels(value) for name, value in sides.items()}
    attributes["fill"] = _paint(box.paint)
    attributes |= {"fill-opacity": f"{box.strength:.2f}"} if box.strength < 1 else {}
    return attributes | ({"stroke": _paint(box.edge)} if box.edge else {})


def _write(root: ElementTree.Element, text: Text, language: str) -> None:
    words = text.text.replace(".", ",") if text.is_number and language == "ru" else text.text
    lines = [visible(line) for line in words.split("\n")]
    x, first = _pixels(text.x), text.y - LINE * (len(lines) - 1) / 2 + _MIDDLE * FONT
    attributes = {"x": x, "y": _pixels(first), "fill": _paint(text.paint)}
    attributes |= {"text-anchor": text.anchor} if text.anchor != "start" else {}
    if text.angle:
        attributes["transform"] = f"rotate({text.angle} {x} {_pixels(text.y)})"
    element = ElementTree.SubElement(root, "text", attributes)
    if len(lines) == 1:
        element.text = lines[0]
        return
    for place, line in enumerate(lines):
        place_of_line = {"x": x, "dy": str(LINE)} if place else {}
        ElementTree.SubElement(element, "tspan", place_of_line).text = line


def _paint(name: str) -> str:
    return f"var(--{name})"


def _pixels(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
