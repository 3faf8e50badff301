"""Charts: marks on round scales, and of much a part, with the number that is left out."""

from __future__ import annotations

import pytest

from evenhand.report.html.charts import (
    SHOWN,
    figures,
    fill_rows,
    number_unit,
    percent_unit,
    series_colours,
)
from evenhand.report.html.marks import Point, draw, make_scale
from evenhand.report.model import Bar, PassRate
from evenhand.stats.estimate import Estimate
from evenhand.words import LANGUAGES, words
from tests.cases import cases
from tests.unit.report.reports import make_report, plain_mean

EN = words("en")


def drawn(**more):
    groups = figures(make_report(**more), EN)
    return {one.name: one for group in groups.values() for one in fill_rows(group)}


def mean(variant, dimension):
    return plain_mean(dimension, variant, 3, mean=0.5, low=0.4, high=0.6)


def ticks_of(points, language, unit):
    return draw(points, unit(words(language)), series_colours(points, {}))[1]


def test_of_many_variants_six_are_drawn_with_all_their_tags():
    bars = [Bar("", f"v{v}", tag, 1, 4) for tag in "ABC" for v in range(8)]
    made = drawn(tags=bars)["tags"]
    assert "and 6 more in the table" in made.about and len(made.rows) == 24
    assert [name for name, _ in made.legend] == [f"v{v}" for v in range(6)]
    assert [row.label[0] for row in made.panels[0].rows] == list("ABC")


def test_what_a_picture_of_means_leaves_out_is_counted():
    made = drawn(means=[mean(f"v{i}", "true") for i in range(30)])["means"]
    assert f"and {30 - SHOWN} more in the table" in made.about and len(made.rows) == 30
    plain = drawn(means=[mean(f"v{i}", name) for i in range(8) for name in ("a", "b")])["means"]
    assert "and 4 more in the table" in plain.about and len(plain.legend) == 6


@cases
def test_a_scale_has_round_ends_that_hold_all_values(values, low, high, parts):
    scale = make_scale(values)
    assert (scale.low, scale.high) == pytest.approx((low, high))
    assert scale.parts == parts
    assert scale.low <= min(values) and max(values) <= scale.high


def test_numbers_on_axes_are_written_in_the_way_of_the_language():
    points = [Point("a", "", -0.25), Point("b", "", 0.25)]
    ticks = {name: ticks_of(points, name, number_unit) for name in LANGUAGES}
    assert ticks["en"][0] == "−0.4" and ticks["ru"][0] == "−0,4"
    assert ticks_of(points, "zh", percent_unit)[-1] == "40%"


def test_an_interval_that_is_open_on_one_side_ends_at_the_value():
    points = [Point("a", "", 0.5, None, 1.0), Point("b", "", 0.0)]
    rows, _ = draw(points, number_unit(EN), series_colours(points, {}))
    assert 'class="interval" d="M500.0 11.0H1000.0"' in rows[0].svg
    assert "interval" not in rows[1].svg


def test_a_series_has_the_colour_that_the_legend_says_and_one_needs_none():
    means = [mean(variant, name) for name in "ab" for variant in ("v1", "v2")]
    made = drawn(means=means)["means"]
    assert [colour for _, colour in made.legend] == ["first", "second"]
    row = made.panels[0].rows[0]
    assert row.svg.index("of-first") < row.svg.index("of-second") and len(row.values) == 2
    assert drawn(means=[mean("v1", f"d{i}") for i in range(13)])["means"].legend == ()
    bars = [Bar("", variant, "A", 1, 4) for variant in ("v3", "v2", "v1")]
    both = drawn(means=means, tags=bars)
    assert dict(both["means"].legend).items() < dict(both["tags"].legend).items()


def test_what_the_first_screen_shows_is_not_drawn_again():
    one_variant = [mean("v1", name) for name in "ab"]
    one_dimension = [mean(variant, "a") for variant in ("v1", "v2")]
    assert not drawn(means=one_variant) and not drawn(means=one_dimension)
    rates = [PassRate(f"v{i}", 3, 4, Estimate(0.75, 0.5, 0.9, 4, 4, None)) for i in range(3)]
    assert not drawn(passes=rates[:2]) and len(drawn(passes=rates)["passes"].rows) == 3


@pytest.mark.parametrize("sizes", [(9, 1, 1), (1, 9, 1), (1, 1, 9), (1, 1, 1)])
def test_charts_fill_rows_of_two(sizes):
    """A large chart takes both columns, and so does one that would be alone."""
    many = [mean(variant, f"d{i}") for i in range(2 + sizes[0]) for variant in ("v1", "v2")]
    bars = [Bar("d", v, str(i), 1, 4) for i in range(2 + sizes[1]) for v in ("v1", "v2")]
    tags = [Bar("", v, str(i), 1, 4) for i in range(2 + sizes[2]) for v in ("v1", "v2")]
    made = list(drawn(means=many, scores=bars, tags=tags).values())
    columns = [2 if figure.is_wide else 1 for figure in made]
    assert sum(columns) % 2 == 0 and len(made) == 3
    filled = 0
    for width in columns:
        assert width == 1 or filled % 2 == 0, "no hole before a wide chart"
        filled += width


@pytest.mark.parametrize("name", ["<b>x</b>", "a\u202eb", "\"'&"])
def test_no_text_of_a_user_is_drawn(name):
    made = drawn(means=[mean(name, f"{name}{i}") for i in range(13)])["means"]
    for row in made.panels[0].rows:
        assert name not in row.svg and "\u202e" not in row.label
