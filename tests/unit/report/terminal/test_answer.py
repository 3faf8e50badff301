"""A leaderboard of more candidates than anybody reads."""

from __future__ import annotations

import pytest

from evenhand.report.terminal.answer import BOTTOM, TOP, board_table
from evenhand.stats.leaderboard import Board, BoardOptions
from tests.unit.report.reports import board, standing


def board_of(candidates: int) -> Board:
    return board([standing(f"m{place}", 0.5, None, None) for place in range(candidates)])


@pytest.mark.parametrize("candidates", [1, TOP + BOTTOM, TOP + BOTTOM + 1])
def test_a_board_that_can_be_read_is_shown_whole(candidates: int) -> None:
    assert board_table(board_of(candidates), BoardOptions()).row_count == candidates


def test_of_a_long_board_both_ends_are_shown_and_the_rest_is_counted() -> None:
    long = board_of(1000)
    assert board_table(long, BoardOptions()).row_count == TOP + BOTTOM + 1
    assert len(long.json()["rows"]) == 1000
