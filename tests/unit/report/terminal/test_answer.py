"""A leaderboard of more candidates than anybody reads."""

from __future__ import annotations

import pytest

from evenhand.report.terminal.answer import BOTTOM, TOP, board_table
from evenhand.stats.leaderboard import BoardOptions
from evenhand.words import words
from tests.unit.report.reports import board, standing


def board_of(candidates):
    return board([standing(f"m{place}", 0.5, None, None) for place in range(candidates)])


def rows_of(board):
    return board_table(board, BoardOptions(), words("en")).row_count


@pytest.mark.parametrize("candidates", [1, TOP + BOTTOM, TOP + BOTTOM + 1])
def test_a_board_that_can_be_read_is_shown_whole(candidates):
    assert rows_of(board_of(candidates)) == candidates


def test_of_a_long_board_both_ends_are_shown_and_the_rest_is_counted():
    long = board_of(1000)
    assert rows_of(long) == TOP + BOTTOM + 1
    assert len(long.json()["rows"]) == 1000
