"""The tables of a first screen: who is ranked how, and who met whom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evenhand.kinds import KINDS
from evenhand.report.html.build import Mean, Meeting, Report
from evenhand.report.html.page import words
from evenhand.report.html.ranks import met_pairs, ranked_variants
from evenhand.report.terminal.figures import number_text
from tests.unit.report.test_answer import COVERAGE, METHOD, difference, standing


def test_who_met_whom_is_listed_once_the_winner_first() -> None:
    standings = [standing(name, rate, 1, 3) for name, rate in (("a", 0.7), ("b", 0.5), ("c", 0.3))]
    meetings = [
        Meeting(candidate=candidate, other=other, n=4, rate=rate)
        for candidate, other, rate in (
            ("c", "b", 0.5),
            ("b", "c", 0.5),
            ("b", "a", 0.75),
            ("a", "b", 0.25),
            ("a", "c", 1.0),
            ("c", "a", 0.0),
        )
    ]
    facts: dict[str, Any] = {
        "run": "r",
        "name": "n",
        "language": "en",
        "created": "",
        "started": "",
    }
    report = Report(
        kind=KINDS["pairwise"],
        coverage=COVERAGE,
        method=METHOD,
        standings=standings,
        meetings=meetings,
        **facts,
    )
    assert [(met.candidate, met.other) for met in met_pairs(report)] == [
        ("a", "c"),
        ("b", "a"),
        ("b", "c"),
    ]


def test_variants_have_no_places_that_nothing_decided() -> None:
    means = [
        Mean(dimension="overall", variant=name, n=9, value=value, low=0.1, high=0.9)
        for name, value in (("v1", 0.5), ("v2", 0.4))
    ]
    undecided: Any = "not enough evidence"
    rows = [replace(difference("overall", undecided), baseline_mean=0.5, mean=0.4, value=-0.1)]
    ranking = ranked_variants(means, rows, {"v1": 0.25}, words("en"))
    assert ranking is not None and ranking.head[0] == "variant" and "place" not in ranking.head
    assert [row[0] for row in ranking.rows] == ["v1", "v2"]
    assert (
        ranking.rows[0][-1].replace("\u00a0", " ") == "25 %" and ranking.head[-1] == "critical fail"
    )


def test_two_variants_are_ranked_by_what_both_have() -> None:
    means = [
        Mean(dimension="overall", variant=name, n=25, value=value, low=0.1, high=0.9)
        for name, value in (("v1", 0.41), ("v2", 0.56))
    ]
    row = replace(
        difference("overall", "better"),
        variant="v2",
        baseline="v1",
        n=24,
        mean=0.562,
        baseline_mean=0.385,
        value=0.177,
    )
    ranking = ranked_variants(means, [row], {}, words("en"))
    assert ranking is not None
    before, after = (cells[1].split()[0] for cells in (ranking.rows[1], ranking.rows[0]))
    gap = ranking.rows[0][2].split()[0]
    assert float(after) - float(before) == pytest.approx(float(gap))


@pytest.mark.parametrize("value", [-0.0001, -0.0, 0.0001])
def test_nothing_has_no_minus(value: float) -> None:
    assert number_text(value, 3) == words("en").number(value, 3) == "0.000"
    assert words("en").signed(value) == "+0.00"
