"""The whole board: few votes, ties alone, sets apart, names that are not there, and its JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import UsageError
from evenhand.stats.leaderboard import BoardOptions, leaderboard
from evenhand.words import words
from tests.unit.stats.ballots import ballots


def many(votes=120, seed=1, names="abcd", **more):
    """Candidates in the order of their names, the first the strongest."""
    rng, rows = np.random.default_rng(seed), []
    for topic in range(votes):
        one, other = sorted(rng.choice(len(names), 2, replace=False).tolist())
        gap = 0.7 * (other - one)
        won = rng.random() < 1 / (1 + np.exp(-gap))
        rows.append(
            (topic, names[one], names[other], "=" if rng.random() < 0.2 else "<>"[int(won)])
        )
    return ballots(rows, **more)


def rows_of(votes, options=None, **asked):
    made = leaderboard(votes, options, **asked)
    json.dumps(made.json(), allow_nan=False)
    return {row.candidate: row for row in made.board.rows}, made.board.notes


def test_the_board_is_in_order_of_ratings():
    found, notes = rows_of(many())
    assert list(found) == ["a", "b", "c", "d"] and not notes
    ratings = [row.rating for row in found.values()]
    assert ratings == sorted(ratings, reverse=True) and sum(ratings) == pytest.approx(0, abs=1e-9)
    for number, row in enumerate(found.values()):
        assert row.n == row.wins + row.losses + row.ties
        assert row.win_rate == pytest.approx((row.wins + row.ties / 2) / row.n)
        assert row.rating_low < row.rating < row.rating_high
        assert row.rank == number + 1 and row.rank_low <= row.rank <= row.rank_high


def test_no_vote_at_all():
    made = leaderboard(ballots([]))
    assert made.json()["rows"] == [] and made.json()["n"] == 0
    assert made.board.notes == ["No vote has a verdict: there is nothing to rate."]


def test_failures_alone():
    found, notes = rows_of(ballots([(1, "a", "b", ""), (2, "a", "b", "")]))
    assert found["a"].n == 0 and found["a"].failed == 2 and found["a"].win_rate is None
    assert found["a"].rating is None and found["a"].rank is None and len(notes) == 1


def test_one_vote():
    found, notes = rows_of(ballots([(1, "a", "b", ">")]))
    row = found["a"]
    assert (row.win_rate, row.low, row.high) == (1.0, 0.0, 1.0)
    assert row.rating_low is None
    assert 0 < row.rating < 2 and (row.rank_low, row.rank_high) == (1, 2)
    assert any("one topic" in note for note in notes)


@pytest.mark.parametrize("outcome", ["<", ">", "=", "?"])
@pytest.mark.parametrize("topics", [1, 2, 8])
def test_every_win_rate_has_an_interval(outcome, topics):
    rows = [(k % topics, "a", "b", outcome) for k in range(2 * topics)] + [(0, "a", "c", "")]
    marks = {"C1": [outcome] * len(rows)}
    made = leaderboard(ballots(rows, marks=marks), BoardOptions())
    json.dumps(made.json(), allow_nan=False)
    boards = [made.board, *made.criteria.values()]
    for row in (row for board in boards for row in board.rows if row.n):
        assert 0 <= row.low <= row.win_rate <= row.high <= 1 and row.low < row.high


def test_two_votes():
    found, _ = rows_of(ballots([(1, "a", "b", ">"), (2, "a", "b", "<")]))
    assert found["a"].rating == pytest.approx(0, abs=1e-9)
    assert found["a"].rating_low < -2 and found["a"].rating_high > 2
    assert found["a"].low < 0.05 and found["a"].high > 0.95


@pytest.mark.parametrize("ties", ["davidson", "half"])
@pytest.mark.parametrize("said", ["=", "?"])
def test_all_ties(ties, said):
    votes = ballots([(k, "a", "b", said) for k in range(20)])
    found, _ = rows_of(votes, BoardOptions(ties=ties))
    row = found["a"]
    assert (row.win_rate, row.rating) == (0.5, pytest.approx(0))
    assert row.rating_low < 0 < row.rating_high
    assert row.low < 0.5 < row.high and (row.rank, row.rank_high) == (1, 2)


def test_sets_that_never_met_are_ranked_apart():
    rows = [(k, "a", "b", "<>"[k % 3 > 0]) for k in range(20)]
    rows += [(k, "x", "y", "><"[k % 4 > 0]) for k in range(20)] + [(99, "q", "r", "")]
    found, notes = rows_of(ballots(rows))
    assert list(found) == ["a", "b", "y", "x", "q", "r"]
    assert [row.rank for row in found.values()] == [1, 2, 1, 2, None, None]
    assert found["a"].rating + found["b"].rating == pytest.approx(0, abs=1e-9)
    assert found["x"].rating + found["y"].rating == pytest.approx(0, abs=1e-9)
    assert {found["a"].set, found["x"].set} == {1, 2} and found["q"].set is None
    assert any("2 sets that never met" in note for note in notes)


def test_one_that_never_lost_has_a_rating_with_two_ends():
    rows = [(k, "a", "b", "<>"[k % 2]) for k in range(20)] + [
        (k, "top", "a", ">") for k in range(9)
    ]
    found, _ = rows_of(ballots(rows))
    top = found["top"]
    assert 0.5 < top.rating < 4 and 0 < top.rating_low < top.rating < top.rating_high < 10


def test_a_candidate_against_itself_is_left_out():
    votes = ballots([*((k, "a", "b", "<>"[k % 2]) for k in range(8)), (9, "a", "a", ">")])
    found, _ = rows_of(votes)
    assert found["a"].n == 8 and found["a"].wins == 4


def test_uncertain_counts_half_and_apart_from_ties():
    rows = [(1, "a", "b", ">"), (2, "a", "b", "?"), (3, "a", "b", "="), (4, "a", "b", "<")]
    found, _ = rows_of(ballots(rows))
    row = found["a"]
    assert (row.wins, row.losses, row.ties, row.uncertain) == (1, 1, 1, 1)
    assert row.win_rate == 0.5 and row.points == 2.0


def test_dropped_conflicts_are_told_from_failures():
    rows = [*((k, "a", "b", "<>"[k % 2]) for k in range(8)), (8, "a", "b", ""), (9, "a", "b", "")]
    made = leaderboard(ballots(rows, rule="drop", conflicts=[8]))
    row = made.board.rows[0]
    assert (row.n, row.failed, row.dropped) == (8, 1, 1)
    assert (made.board.failed, made.board.dropped, made.conflicts) == (1, 1, 1)


def test_scales_and_anchors_move_ratings_alone():
    votes = many()
    plain, _ = rows_of(votes)
    elo, _ = rows_of(votes, BoardOptions(scale="elo"))
    anchored, _ = rows_of(votes, BoardOptions(scale="elo", anchor="c"))
    for name, row in plain.items():
        assert elo[name].rating == pytest.approx(1000 + 400 / np.log(10) * row.rating)
        assert elo[name].rank_low == row.rank_low
        moved = anchored[name].rating - elo[name].rating
        assert moved == pytest.approx(1000 - elo["c"].rating)
    assert anchored["c"].rating == 1000 == anchored["c"].rating_low == anchored["c"].rating_high


def test_a_judge_a_field_and_a_criterion():
    rows = [(k, "a", "b", "<>"[k % 4 > 0]) for k in range(24)]
    votes = ballots(
        rows,
        judges=["one", "two"] * 12,
        marks={"C1": "<" * 18 + ">" * 6, "C2": "=" * 24},
        fields={"area": ["code"] * 8 + ["prose"] * 16},
    )
    found, _ = rows_of(votes, judge="two")
    assert found["a"].n == 12
    found, _ = rows_of(votes, criterion="C1")
    assert (found["a"].wins, found["a"].losses) == (6, 18) and found["b"].rank == 1
    made = leaderboard(votes, by="area").json()
    levels = made["by"]["levels"]
    assert made["by"]["field"] == "area" and list(levels) == ["code", "prose"]
    assert [levels[one]["n"] for one in levels] == [8, 16]
    assert made["criteria"]["C1"]["rows"][0]["candidate"] == "b"
    assert made["criteria"]["C2"]["rows"][0]["win_rate"] == 0.5


def test_an_anchor_that_a_level_lacks_anchors_the_rest():
    rows = [(k, "a", "b", "<>"[k % 3 > 0]) for k in range(12)]
    rows += [(k, "b", "c", "<>"[k % 3 > 0]) for k in range(12, 24)]
    votes = ballots(rows, fields={"area": ["x"] * 12 + ["y"] * 12})
    levels = leaderboard(votes, BoardOptions(anchor="a"), by="area").levels
    assert levels["x"].board.rows[0].rating == 0 and levels["y"].board.rows[0].rating > 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"judge": "tow"}, 'no judge is called "tow"\n  Did you mean "two"?'),
        ({"criterion": "C9"}, 'no criterion is called "C9"\n  There are: "C1"'),
        ({"by": "aera"}, 'field "aera"\n  Did you mean "area"?'),
        (
            {"options": BoardOptions(anchor="zz")},
            'no candidate is called "zz"\n  There are: "alpha", "beta"',
        ),
        ({"options": BoardOptions(level=1.0)}, "level 1.0"),
    ],
)
def test_names_that_are_not_there(asked, said):
    votes = ballots(
        [(1, "alpha", "beta", ">"), (2, "alpha", "beta", "<")],
        judges=["one", "two"],
        marks={"C1": "><"},
        fields={"area": ["x", "y"]},
    )
    with pytest.raises(UsageError) as told:
        leaderboard(votes, **asked)
    assert said in str(told.value)


def in_both_orders(rows):
    """Votes whose passes are (outcome as the vote has it, outcome of the turned pass)."""
    votes = [(k, a, b, said if said == back else "?") for k, (a, b, said, back) in enumerate(rows)]
    passes = [(k, side == 1, row[2 + side]) for k, row in enumerate(rows) for side in (0, 1)]
    return ballots(votes, passes=passes)


def test_orders_are_compared():
    votes = in_both_orders([("a", "b", *one) for one in (">>", "><", ">=", "==", "<<", "><")])
    made = leaderboard(votes).json()
    assert made["first_rounds"] == 6 and made["contradictions"] == 3
    assert made["consistency"] == 0.5 == made["contradiction_rate"]
    assert made["consistency_low"] < 0.5 < made["consistency_high"]
    # Plain passes > > > = < >: four for what was shown first. Turned > < = = < <: three, all b.
    assert made["first_slot_rate"] == pytest.approx((4 + 3) / (5 + 4))


def test_one_order_says_nothing_about_position():
    rows = [(k, "a", "b", "<>"[k % 3 > 0]) for k in range(12)]
    votes = ballots(rows, passes=[(k, False, row[3]) for k, row in enumerate(rows)])
    made = leaderboard(votes).json()
    assert made["consistency"] is None is made["first_slot_rate"] is made["contradiction_rate"]


def test_length_is_controlled_where_it_is_known():
    rng, rows, lengths = np.random.default_rng(1), [], []
    for topic in range(200):
        longer = rng.normal(300, 200)
        won = rng.random() < 1 / (1 + np.exp(-longer / 150))
        rows.append((topic, "long", "short", "<>"[int(won)]))
        lengths.append((1000 + longer, 1000.0))
    options = BoardOptions(length_controlled=True)
    found, _ = rows_of(ballots(rows, lengths=lengths), options)
    assert found["long"].length_controlled < found["long"].win_rate - 0.15
    both = found["long"].length_controlled + found["short"].length_controlled
    assert both == pytest.approx(1, abs=0.01)
    found, notes = rows_of(ballots(rows), options)
    assert found["long"].length_controlled is None
    (note,) = notes
    assert note.startswith('No length-controlled win rate for "long", "short": fewer than 10 votes')
    assert "rest on the pairs whose lengths are known" in note


def test_only_who_has_too_few_known_lengths_is_named_as_without_a_rate():
    rows = [(k, "a", "b", "<>"[k % 3 > 0]) for k in range(40)]
    rows += [(k, "a", "rare", ">") for k in range(5)]
    lengths = [(100.0 + 7 * (k % 5), 90.0 + 11 * (k % 4)) for k in range(45)]
    found, notes = rows_of(ballots(rows, lengths=lengths), BoardOptions(length_controlled=True))
    assert found["a"].length_controlled is not None is found["rare"].length_controlled
    (note,) = (note for note in notes if "No length-controlled" in note)
    assert 'for "rare": fewer' in note and "«rare»" in words("ru").note(note)
    assert any("no figures of AlpacaEval" in note for note in notes)


def test_the_matrix_holds_who_beat_whom():
    rows = [(1, "a", "b", ">"), (2, "b", "a", "="), (3, "c", "b", "<"), (4, "b", "c", "<")]
    made = leaderboard(ballots(rows)).json()["matrix"]
    at = {name: place for place, name in enumerate(made["candidates"])}
    assert made["win_rate"][at["a"]][at["b"]] == 0.75 and made["n"][at["b"]][at["a"]] == 2
    assert made["win_rate"][at["c"]][at["b"]] == 0.5
    assert made["win_rate"][at["a"]][at["c"]] is None is made["win_rate"][at["a"]][at["a"]]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4), st.sampled_from("abcd"), st.sampled_from("abcd"),
            st.sampled_from([">", "<", "=", "?", "", 0.1, 0.8]),
        ),
        max_size=15,
    ),
    st.sampled_from(["davidson", "half"]),
)  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_any_votes_make_a_board_without_a_number_that_is_none(rows, ties):
    options = BoardOptions(ties=ties, length_controlled=True)
    made = leaderboard(ballots(rows), options).json()
    json.dumps(made, allow_nan=False)
    for row in made["rows"]:
        assert (row["rating"] is None) == (row["n"] == 0)
        assert row["rating"] is None or abs(row["rating"]) < 30
