"""Two candidates have one win rate: compared with each other or ranked, it is the same figure with
the same interval, counts the same pairs, and is decided by the same test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.report.html.answer import board_answers, comparison_answers
from evenhand.report.terminal.answer import english
from evenhand.stats.leaderboard import leaderboard
from tests.unit.stats.ballots import ballots
from tests.unit.stats.score_tables import compare_votes


def met(wins: int, losses: int, ties: int = 0) -> Any:
    """`new` against `old`, a topic each."""
    signs = ">" * wins + "<" * losses + "=" * ties
    return ballots([(topic, "new", "old", sign) for topic, sign in enumerate(signs)])


def panel(topics: int, *, failed: int = 0) -> Any:
    """Three judges on each pair of a topic, of whom the third often parts; the first of so many
    pairs lack a verdict of the first judge."""
    signs = [[">", ">", "<>"[topic % 3 > 0]] for topic in range(topics)]
    signs[-1] = ["<", "<", "="]
    for row in signs[:failed]:
        row[0] = ""
    rows = [(topic, "new", "old", sign) for topic, row in enumerate(signs) for sign in row]
    return ballots(rows, judges=["j", "k", "l"] * topics, per_pair=3)


def thirds_that_cancel(topics: int) -> Any:
    """Two pairs on each topic before three judges; each candidate wins one by two to one."""
    signs = [">", ">", "<", "<", "<", ">"] * topics
    rows = [(place // 6, "new", "old", sign) for place, sign in enumerate(signs)]
    return ballots(rows, judges=["j", "k", "l"] * (2 * topics), per_pair=3)


SEVERAL = {
    "15 to 5": met(15, 5),
    "6 to 0": met(6, 0),
    "8 to 1": met(8, 1),
    "7 to 1": met(7, 1),
    "13 to 4": met(13, 4),
    "38 to 22": met(38, 22),
    "10 to 2 with 3 ties": met(10, 2, 3),
    "behind": met(4, 13, 2),
    "one topic": met(1, 0),
    "ties alone": met(0, 0, 8),
    "a panel": panel(9),
    "a panel with failures": panel(12, failed=4),
    "thirds that cancel": thirds_that_cancel(20),
}


@pytest.mark.parametrize("votes", SEVERAL.values(), ids=SEVERAL)
def test_a_board_of_two_says_what_their_comparison_says(votes: Any) -> None:
    row = compare_votes(votes, "old").rows[-1]
    board = leaderboard(votes).board
    rows = {entry.candidate: entry for entry in board.rows}
    new, old = rows["new"], rows["old"]
    assert (new.n, old.n, board.n) == (row.n, row.n, row.n)
    figures = [new.win_rate, new.low, new.high, old.win_rate, old.low, old.high]
    assert figures == pytest.approx(
        [
            *(row.mean, row.mean_low, row.mean_high),
            *(row.baseline_mean, row.baseline_low, row.baseline_high),
        ]
    )
    places = {"better": ((1, 1), (2, 2)), "worse": ((2, 2), (1, 1))}
    wanted = places.get(row.outcome, ((1, 2), (1, 2)))
    assert tuple((entry.rank_low, entry.rank_high) for entry in (new, old)) == wanted
    assert board.rows[0].rank == 1
    cells = board.matrix["win_rate"][board.rows.index(new)]
    assert [cell for cell in cells if cell is not None] == pytest.approx([row.mean])


@pytest.mark.parametrize("votes", SEVERAL.values(), ids=SEVERAL)
def test_an_interval_of_two_leaves_out_one_half_where_they_are_told_apart(votes: Any) -> None:
    (new,) = [row for row in leaderboard(votes).board.rows if row.candidate == "new"]
    assert new.low is not None and new.high is not None
    assert (not new.low <= 0.5 <= new.high) == (new.rank_low == new.rank_high)


def test_thirds_that_cancel_have_no_p() -> None:
    row = compare_votes(thirds_that_cancel(20), "old").rows[-1]
    assert (row.difference, row.p, row.outcome) == (0, 1, "not enough evidence")


def test_sentences_of_a_comparison_and_of_a_board_agree() -> None:
    votes, say = met(15, 5), english()
    board = leaderboard(votes).board
    (compared, *_) = comparison_answers(compare_votes(votes, "old"), "topic", say)
    (ranked,) = board_answers(board, say)
    figures = "it wins 75 % [51, 89] of 20 pairs of answers"
    compared_text, ranked_text = (each.text.replace("\u00a0", " ") for each in (compared, ranked))
    assert compared_text.startswith(f"new is better than old: {figures};")
    assert ranked_text.startswith(f"new leads: {figures}.")


def test_a_panel_counts_pairs_and_names_its_votes() -> None:
    board = leaderboard(panel(9)).board
    assert [(row.n, row.pairs, row.votes) for row in board.rows] == [(9, 9, 27)] * 2
    assert (board.n, board.votes) == (9, 27)
    (sentence,) = board_answers(board, english())
    assert "9 pairs of answers" in sentence.text and "27" not in sentence.text


def test_a_pair_weighs_the_same_however_many_judges_have_a_verdict_on_it() -> None:
    rows = [(0, "a", "b", ">"), (0, "a", "b", ">"), (0, "a", "b", ">"), (1, "a", "b", "<")]
    rows += [(1, "a", "b", ""), (1, "a", "b", "")]
    votes = ballots(rows, judges=["j", "k", "l"] * 2, per_pair=3)
    board = leaderboard(votes).board
    assert [(row.win_rate, row.n, row.votes, row.points) for row in board.rows] == [
        (0.5, 2, 4, 1.0),
        (0.5, 2, 4, 1.0),
    ]


def test_who_met_the_baseline_alone_has_the_interval_of_that_comparison() -> None:
    rows = [(t, "x", "base", "<>"[t % 4 > 0]) for t in range(12)]
    rows += [(t, "base", "y", "<=>"[t % 3]) for t in range(12)]
    votes = ballots(rows, marks={"C1": [str(row[3]) for row in rows]})
    made, compared = leaderboard(votes), compare_votes(votes, "base")
    for name in ("x", "y"):
        for board, dimension in ((made.board, "overall"), (made.criteria["C1"], "C1")):
            (ranked,) = [entry for entry in board.rows if entry.candidate == name]
            row = compared.row(name, dimension)
            assert row is not None
            assert (ranked.win_rate, ranked.low, ranked.high) == pytest.approx(
                (row.mean, row.mean_low, row.mean_high)
            )


@pytest.mark.parametrize("topics", [6, 9, 12, 16, 17, 20, 60])
def test_intervals_of_two_hold_the_truth_and_go_along_with_the_test(topics: int) -> None:
    """Exactly: every number of wins there can be, with its chance."""
    found = [compare_votes(met(wins, topics - wins), "old").rows[0] for wins in range(topics + 1)]
    for row in found:
        assert row.low is not None and row.high is not None and row.p is not None
        assert (row.p <= 0.05) == (not row.low <= 0 <= row.high)
    for chance in np.linspace(0.5, 0.97, 48):
        held = [
            (row.mean_low or 0) - 1e-12 <= chance <= (row.mean_high or 0) + 1e-12 for row in found
        ]
        least = 0.9 if topics < 60 else 0.93
        assert binom.pmf(np.arange(topics + 1), topics, chance)[held].sum() > least
