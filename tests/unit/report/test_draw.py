"""Pictures: the same bytes each time, colours of the page, and nothing that a name brings."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from evenhand.report.html.columns import columns
from evenhand.report.html.draw import bars, dots, dots_apart, heat, line, stack
from evenhand.report.html.labels import LABEL_LINE, columns_of, labels, wrapped
from evenhand.report.html.shapes import TOTAL, WIDE, svg

HOSTILE = '</text><script>x()</script>" onload="x()'
POINTS: list[dict[str, Any]] = [
    {"name": name, "series": series, "value": 0.4, "low": 0.2, "high": 0.6}
    for name in ("correct", HOSTILE, "中文")
    for series in ("v1", "v2 & <more>")
]
GROUPED = [one | {"group": "g", "name": "3"} for one in POINTS]
CHARTS = {
    "dots": lambda: dots(POINTS, "mean", 0.5, percent=True),
    "bars": lambda: bars(POINTS, "share", percent=True),
    "columns": lambda: columns(GROUPED, "score", "share"),
    "stack": lambda: stack([one | {"order": 0} for one in POINTS], "n", ["v1", "v2 & <more>"]),
    "heat": lambda: heat(
        [{"name": "a", "other": HOSTILE, "rate": 0.7, "text": "70 %", "strength": 0.3}],
        ["a", HOSTILE],
        "row",
        "column",
    ),
    "line": lambda: line([one | {"x": i} for i, one in enumerate(POINTS)], "length", "mean", False),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_picture_is_plain_and_always_the_same(name: str) -> None:
    made = svg(CHARTS[name](), f"title {HOSTILE}", "en")
    assert made == svg(CHARTS[name](), f"title {HOSTILE}", "en")
    root = ElementTree.fromstring(made)
    tags = {one.tag for one in root.iter()}
    assert tags <= {"svg", "line", "rect", "text", "tspan", "circle"}
    attributes = {key for one in root.iter() for key in one.attrib}
    assert not [key for key in attributes if key.startswith("on") or key in ("style", "href", "id")]
    assert root.get("role") == "img" and root.get("aria-label") == f"title {HOSTILE}"
    paints = {one.get(key) for one in root.iter() for key in ("fill", "stroke")} - {None}
    assert paints and all(re.fullmatch(r"var\(--[a-z]+\)", paint or "") for paint in paints)


@pytest.mark.parametrize(
    "character", ["\x00", "\x07", "\x1b", "\x9b", "\u202e", "\ufffe", "\ud800"]
)
def test_a_name_that_cannot_be_drawn_is_drawn_with_escapes(character: str) -> None:
    name, escape = f"a{character}b", f"a\\u{ord(character):04x}b"
    pair: dict[str, Any] = {"name": name, "other": "c", "rate": 0.7, "text": name, "strength": 0.3}
    points = [POINTS[0] | {"name": name, "series": name}]
    for chart in (
        heat([pair | {"name": labels([name])[0]}], labels([name, "c"]), name, "column"),
        heat([pair], [name, "c"], name, "column"),
        dots(points, name),
        bars(points, name),
        columns([POINTS[0] | {"group": name, "name": "3"}], name, "share"),
        stack([points[0] | {"order": 0}], name, [name]),
        line([points[0] | {"x": 1}], name, "mean", False),
    ):
        root = ElementTree.fromstring(svg(chart, name, "en"))
        assert root.get("aria-label") == escape
        assert escape in list(root.itertext())


def test_names_that_look_alike_once_they_are_escaped_stay_different() -> None:
    assert len(set(labels(["a\x07b", "a\\u0007b"]))) == 2


def test_numbers_on_axes_are_written_in_the_way_of_the_language() -> None:
    texts = {
        language: ElementTree.fromstring(svg(dots(POINTS, "mean"), "t", language)).itertext()
        for language in ("en", "ru")
    }
    assert "0.4" in list(texts["en"]) and "0,4" in list(texts["ru"])


def test_an_interval_that_is_open_on_one_side_ends_at_the_value() -> None:
    one: dict[str, Any] = {"name": "a", "series": "", "value": 13.0, "low": 8.0, "high": None}
    root = ElementTree.fromstring(svg(dots([one], "rating", 0.0), "t", "en"))
    texts = list(root.itertext())
    assert "10" in texts and not [text for text in texts if "e+" in text]
    (interval,) = [one for one in root.iter("line") if one.get("stroke") == "var(--first)"]
    (dot,) = root.iter("circle")
    assert float(interval.get("x1", "0")) < float(interval.get("x2", "0"))
    assert interval.get("x2") == dot.get("cx")


def test_names_too_long_for_a_picture_stay_different() -> None:
    names = ["x" * 80 + str(i) for i in range(3)]
    made = labels([*names, "short", "two\nlines"])
    assert len(set(made)) == 5 and all(len(one) <= 44 for one in made)
    assert made[-2:] == ["short", "two lines"]


def test_names_break_where_their_parts_end_and_never_exceed_three_lines() -> None:
    assert wrapped("Llama-3.3-70B-Instruct-Turbo") == "Llama-3.3-70B-\nInstruct-Turbo"
    assert wrapped("C2 · Completeness") == "C2 ·\nCompleteness"
    assert wrapped("helpfulness_and_creativity") == "helpfulness_and_\ncreativity"
    assert wrapped("the reply was not in the form asked for") == (
        "the reply was\nnot in the form\nasked for"
    )
    for name in ("x" * 90, "名前がとても長い日本語のモデル第二版そしてもっと", "a b " * 30):
        lines = wrapped(labels([name])[0]).split("\n")
        assert len(lines) <= 3 and all(columns_of(line) <= LABEL_LINE for line in lines)


def test_figures_on_another_scale_stand_under_the_others() -> None:
    points = [POINTS[0], POINTS[1], POINTS[0] | {"name": "overall, of one", "overall": True}]
    root = ElementTree.fromstring(svg(dots_apart(points, "mean"), "t", "en"))
    axes = [
        (stroke.get("x1"), stroke.get("x2"))
        for stroke in root.iter("line")
        if stroke.get("stroke") == "var(--soft)" and stroke.get("y1") == stroke.get("y2")
    ]
    assert len(axes) == 2 and len(set(axes)) == 1, "the axes begin and end at one place"


def test_lines_of_a_name_stand_around_its_place() -> None:
    point: dict[str, Any] = {"name": "one two three four five", "series": "", "value": 1.0}
    root = ElementTree.fromstring(svg(bars([point], "n"), "t", "en"))
    (name,) = [text for text in root.iter("text") if len(text)]
    drops = [float(line.get("dy", "0")) for line in name]
    (bar,) = root.iter("rect")
    middle = float(bar.get("y", "0")) + float(bar.get("height", "0")) / 2
    assert float(name.get("y", "0")) + sum(drops) / 2 == pytest.approx(middle, abs=6)


def test_no_line_goes_through_a_point_without_an_interval() -> None:
    bounds: list[tuple[float | None, float | None]] = [(None, None), (0.4, 0.7)]
    points: list[dict[str, Any]] = [
        {"name": str(x), "series": "", "x": x, "value": 0.5, "low": low, "high": high}
        for x, (low, high) in zip((10, 20), bounds, strict=True)
    ]
    for chart in (line(points, "length", "mean", False), dots(points, "mean")):
        lines = ElementTree.fromstring(svg(chart, "t", "en")).iter("line")
        assert sum(one.get("stroke") == "var(--first)" for one in lines) == 1


LONG_SERIES = (
    "gpt-4.1-mini-2025-04-14-with-tools-and-a-name-that-does-not-end-soon-v1",
    "gpt-4.1-mini-2025-04-14-with-tools-and-a-name-that-does-not-end-soon-v2",
    "Модель с таким длинным русским названием, что ни в одну строку оно не войдёт",
    "一行にはとても収まらないほど長い名前を持っている日本語のモデルの第二版",
)


def test_a_legend_of_long_names_leaves_the_picture_as_wide_as_the_others() -> None:
    points = [
        POINTS[0] | {"name": "departs from the instructions", "series": n} for n in LONG_SERIES
    ]
    for picture in (
        bars(points, "share", percent=True),
        dots(points, "mean"),
        columns([point | {"group": "g", "name": "3"} for point in points], "score", "share"),
        dots_apart([*points, POINTS[0] | {"overall": True}], "mean"),
    ):
        root = ElementTree.fromstring(svg(picture, "t", "en"))
        assert root.get("class") is None and float(root.get("width", "0")) <= TOTAL * WIDE
        assert [name for name, _ in picture.legend] == list(LONG_SERIES), "whole, and all of them"
        assert len({colour for _, colour in picture.legend}) == len(LONG_SERIES)


def test_a_series_has_the_colour_that_the_legend_says() -> None:
    points = [POINTS[0] | {"series": name, "value": 0.1 * n} for n, name in enumerate("abc", 1)]
    picture = bars(points, "share", percent=True)
    paints = [
        box.get("fill") for box in ElementTree.fromstring(svg(picture, "t", "en")).iter("rect")
    ]
    assert paints == [f"var(--{colour})" for _, colour in picture.legend]


def test_one_series_needs_no_legend() -> None:
    assert bars([POINTS[0]], "share").legend == dots([POINTS[0]], "mean").legend == ()


def test_long_names_of_a_field_are_numbered() -> None:
    long_name = "a-model-with-a-name-that-is-long"
    pair = {"name": long_name, "other": "b", "rate": 0.7, "text": "70 %", "strength": 0.3}
    texts = list(
        ElementTree.fromstring(svg(heat([pair], [long_name, "b"], "", ""), "t", "en")).itertext()
    )
    assert "2" in texts and any(text.startswith("1 · a-model") for text in texts)


def test_lengths_are_whole_numbers() -> None:
    values = [{"x": x, "value": 0.5, "low": None, "high": None} for x in (19, 20, 23)]
    texts = list(
        ElementTree.fromstring(svg(line(values, "length", "mean", False), "t", "en")).itertext()
    )
    assert "20" in texts and not [text for text in texts if text.startswith("19.")]


@pytest.mark.parametrize("most", [1, 2, 3, 7, 40, 1234])
def test_numbers_of_things_are_whole_on_the_axis_and_each_stands_once(most: int) -> None:
    one: dict[str, Any] = {"name": "a", "series": "", "value": most}
    parts = [one | {"series": name, "order": i} for i, name in enumerate(("won", "lost"))]
    for chart, top in ((bars([one], "n"), most), (stack(parts, "n", ["won", "lost"]), 2 * most)):
        root = ElementTree.fromstring(svg(chart, "t", "en"))
        numbers = [int(text) for text in root.itertext() if text.isdigit()]
        assert numbers == sorted(set(numbers)) and numbers[0] == 0, numbers
        assert 2 <= len(numbers) <= 7 and numbers[-1] <= top


def test_an_axis_of_lengths_does_not_begin_below_nothing() -> None:
    values = [{"x": x, "value": 0.5, "low": None, "high": None} for x in (3, 500, 2000)]
    root = ElementTree.fromstring(svg(line(values, "length", "mean", False), "t", "en"))
    assert not [text for text in root.itertext() if text.startswith("\u2212")]
