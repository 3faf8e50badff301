"""A leaderboard of more candidates than anybody reads."""

from __future__ import annotations

import pytest

from evenhand.report.terminal.answer import BOTTOM, TOP, board_table
from evenhand.stats.leaderboard import Board, BoardOptions, BoardRow


def board(candidates: int) -> Board:
    none = dict.fromkeys(("win_rate", "low", "high", "se", "average_win_rate"))
    counts = ("n", "votes", "pairs", "wins", "losses", "ties", "uncertain", "failed")
    zero = dict.fromkeys(counts, 0)
    rows = [
        BoardRow(candidate=f"m{place}", dropped=0, points=0.0, **none, **zero)  # type: ignore[arg-type]
        for place in range(candidates)
    ]
    return Board(rows=rows, n=0, votes=0, topics=0, failed=0, dropped=0)


@pytest.mark.parametrize("candidates", [1, TOP + BOTTOM, TOP + BOTTOM + 1])
def test_a_board_that_can_be_read_is_shown_whole(candidates: int) -> None:
    assert board_table(board(candidates), BoardOptions()).row_count == candidates


def test_of_a_long_board_both_ends_are_shown_and_the_rest_is_counted() -> None:
    long = board(1000)
    assert board_table(long, BoardOptions()).row_count == TOP + BOTTOM + 1
    assert len(long.json()["rows"]) == 1000
