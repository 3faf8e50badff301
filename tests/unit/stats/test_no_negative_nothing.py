"""Nothing is neither above nor below nothing: no figure reads -0.00, and thirds that cancel out are
no difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from evenhand.report.terminal.answer import leaderboard_lines
from evenhand.report.terminal.comparison import comparison_lines
from evenhand.stats.comparison import Comparison
from evenhand.stats.leaderboard import BoardOptions, leaderboard
from evenhand.words import words
from tests.unit.stats.ballots import ballots
from tests.unit.stats.score_tables import compare_votes


def thirds(topics: int) -> Any:
    """Three judges, of whom one is for `new` on every other topic and two on the others."""
    signs = [sign for topic in range(topics) for sign in ("><<", ">><")[topic % 2]]
    rows = [(place // 3, "new", "old", sign) for place, sign in enumerate(signs)]
    return ballots(rows, judges=["j", "k", "l"] * topics, marks={"C3": signs}, per_pair=3)


def text_of(lines: Any) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        for line in lines:
            console.print(line)
    return captured.get().replace("\u00a0", " ")


@pytest.mark.parametrize("topics", [2, 6, 20])
def test_thirds_that_cancel_out_are_no_difference(topics: int) -> None:
    comparison = compare_votes(thirds(topics), "old")
    for row in comparison.rows:
        assert (row.difference, row.effect, row.bounds) == (0, 0, (0, 0))
        assert row.more_questions == "more than is practical"
    text = text_of(comparison_lines(comparison))
    assert "C3 0.00" in text and "-0.00" not in text


def with_effect(comparison: Comparison, effect: float) -> Comparison:
    rows = tuple(
        replace(row, effect=effect, difference=effect / 2, bounds=(effect / 9, 0.4))
        for row in comparison.rows
    )
    return replace(comparison, rows=rows)


def test_an_effect_that_rounds_to_nothing_has_no_sign() -> None:
    rows = [(topic, "new", "old", "><"[topic % 2]) for topic in range(9)]
    comparison = compare_votes(ballots([*rows, (9, "new", "old", "")]), "old")
    text = text_of(comparison_lines(with_effect(comparison, -0.0004)))
    assert "Effect: overall 0.00" in text and "+0.000 to +0.400" in text
    assert "-0.0 " not in text and "-0.00" not in text


def test_a_rating_that_rounds_to_nothing_has_no_minus() -> None:
    made = leaderboard(thirds(6), BoardOptions())
    for row in made.board.rows:
        row.rating = -0.0004
    assert "-0.00" not in text_of(leaderboard_lines(made))


@pytest.mark.parametrize("value", [-0.0, -0.004, -1e-17, 0.004])
def test_a_page_writes_nothing_without_a_minus(value: float) -> None:
    say = words("en")
    assert (say.number(value), say.signed(value)) == ("0.00", "+0.00")
