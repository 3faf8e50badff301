"""The table of a first screen: who is ranked how."""

from __future__ import annotations

import pytest

from evenhand.report.html.ranking import rank_variants
from evenhand.words import words
from tests.unit.report.reports import compared, difference, plain_mean


def test_variants_have_no_places_that_nothing_decided():
    means = [
        plain_mean("overall", name, mean=value, low=0.1, high=0.9)
        for name, value in (("v1", 0.5), ("v2", 0.4))
    ]
    undecided = "not enough evidence"
    figures = {"baseline_mean": 0.5, "mean": 0.4, "difference": -0.1}
    rows = [difference("overall", undecided, **figures)]
    tags = [difference("critical fail", undecided, mean=0.5, baseline_mean=0.25)]
    comparison = compared(rows, means=tuple(means), tags=tuple(tags))
    ranking = rank_variants(comparison, words("en"))
    assert ranking.head[0] == "variant" and "place" not in ranking.head
    assert [row[0] for row in ranking.rows] == ["v1", "v2"]
    assert ranking.rows[0][-1] == words("en").percent(0.25) and ranking.head[-1] == "critical fail"


def test_two_variants_are_ranked_by_what_both_have():
    means = [
        plain_mean("overall", name, 25, mean=value, low=0.1, high=0.9)
        for name, value in (("v1", 0.41), ("v2", 0.56))
    ]
    figures = {"n": 24, "mean": 0.562, "baseline_mean": 0.385, "difference": 0.177}
    row = difference("overall", "better", **figures)
    ranking = rank_variants(compared([row], means=tuple(means)), words("en"))
    before, after = (cells[1].split()[0] for cells in (ranking.rows[1], ranking.rows[0]))
    gap = ranking.rows[0][2].split()[0]
    assert float(after) - float(before) == pytest.approx(float(gap))


@pytest.mark.parametrize("value", [-0.0001, -0.0, 0.0001])
def test_nothing_has_no_minus(value):
    assert words("en").number(value, 3) == "0.000"
    assert words("en").signed(value) == "+0.00"
