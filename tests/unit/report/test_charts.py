"""Charts: marks on round scales, and of much a part, with the number that is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evenhand.kinds import KINDS
from evenhand.report.html.build import Bar, Mean, Report
from evenhand.report.html.charts import SHOWN, Figure, figures
from evenhand.report.html.marks import (
    Point,
    count_unit,
    draw_bars,
    draw_points,
    make_scale,
    number_unit,
    percent_unit,
)
from evenhand.report.html.page import LANGUAGES, words
from tests.unit.report.test_answer import COVERAGE, METHOD

EN = words("en")


def drawn(**more: Any) -> dict[str, Figure]:
    given: dict[str, Any] = {"run": "r", "name": "n", "kind": KINDS["rubric"], "language": "en"}
    given |= {"created": "", "started": "", "coverage": COVERAGE, "method": METHOD} | more
    return {one.name: one for one in figures(Report(**given), words("en"))}


def mean(variant: str, dimension: str) -> Mean:
    return Mean(dimension=dimension, variant=variant, n=3, value=0.5, low=0.4, high=0.6)


def test_of_many_variants_six_are_drawn_with_all_their_tags() -> None:
    bars = [Bar("", f"v{v}", tag, 1, 4) for tag in "ABC" for v in range(8)]
    made = drawn(tags=bars)["tags"]
    assert "and 6 more in the table" in made.about and len(made.rows) == 24
    assert [name for name, _ in made.legend] == [f"v{v}" for v in range(6)]
    assert [row.label[0] for row in made.panels[0].rows] == list("ABC")


def test_what_a_picture_of_means_leaves_out_is_counted() -> None:
    means = [mean(f"v{i}", name) for i in range(30) for name in ("true", "overall")]
    made = drawn(means=means)["means"]
    assert f"and {60 - SHOWN} more in the table" in made.about and len(made.rows) == 60
    plain = drawn(means=[mean(f"v{i}", name) for i in range(8) for name in ("a", "b")])["means"]
    assert "and 4 more in the table" in plain.about and len(plain.legend) == 6


def test_what_a_picture_of_contradictions_leaves_out_is_counted() -> None:
    method = replace(METHOD, rule="uncertain")
    found = {f"C{i}": 40 - i for i in range(SHOWN + 3)}
    made = drawn(kind=KINDS["pairwise"], method=method, contradictions=found)["contradictions"]
    assert "and 3 more in the table" in made.about


@pytest.mark.parametrize(
    ("values", "low", "high", "parts"),
    [
        ((0.0, 1.0), 0.0, 1.0, 5),
        ((-0.31, 0.12), -0.4, 0.2, 3),
        ((1.2, 4.9), 1.0, 5.0, 4),
        ((7.0, 7.0), 6.5, 7.5, 2),
        ((0.0, 1234.0), 0.0, 1500.0, 3),
    ],
)
def test_a_scale_has_round_ends_that_hold_all_values(
    values: tuple[float, float], low: float, high: float, parts: int
) -> None:
    scale = make_scale(values)
    assert (scale.low, scale.high) == pytest.approx((low, high))
    assert scale.parts == parts
    assert scale.low <= min(values) and max(values) <= scale.high


@pytest.mark.parametrize("most", [1, 2, 3, 7, 40, 1001])
def test_numbers_of_things_are_whole_on_the_axis_and_each_stands_once(most: int) -> None:
    ticks = draw_bars([Point("a", "", most)], count_unit(words("en"))).ticks
    assert len(set(ticks)) == len(ticks) and all("." not in tick for tick in ticks)


def test_numbers_on_axes_are_written_in_the_way_of_the_language() -> None:
    points = [Point("a", "", -0.25), Point("b", "", 0.25)]
    ticks = {name: draw_points(points, number_unit(words(name))).ticks for name in LANGUAGES}
    assert ticks["en"][0] == "−0.4" and ticks["ru"][0] == "−0,4"
    assert draw_points(points, percent_unit(words("zh"))).ticks[-1] == "40%"


def test_an_interval_that_is_open_on_one_side_ends_at_the_value() -> None:
    panel = draw_points([Point("a", "", 0.5, None, 1.0), Point("b", "", 0.0)], number_unit(EN))
    assert 'class="interval" d="M500.0 11.0H1000.0"' in panel.rows[0].svg
    assert "interval" not in panel.rows[1].svg


def test_a_series_has_the_colour_that_the_legend_says_and_one_needs_none() -> None:
    means = [mean(variant, "a") for variant in ("v1", "v2")]
    made = drawn(means=means)["means"]
    assert [colour for _, colour in made.legend] == ["first", "second"]
    (row,) = made.panels[0].rows
    assert row.svg.index("of-first") < row.svg.index("of-second") and len(row.values) == 2
    assert drawn(means=means[:1])["means"].legend == ()


@pytest.mark.parametrize("name", ["<b>x</b>", "a\u202eb", "\"'&"])
def test_no_text_of_a_user_is_drawn(name: str) -> None:
    made = drawn(means=[mean(name, name)])["means"]
    for row in made.panels[0].rows:
        assert name not in row.svg and "\u202e" not in row.label
