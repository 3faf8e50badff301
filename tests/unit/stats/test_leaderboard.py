"""The whole board: few votes, ties alone, sets apart, names that are not there, and its JSON; and
that a board of two says what their comparison says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from evenhand.errors import UsageError
from evenhand.observation import Voted
from evenhand.report.html.answer import board_answers
from evenhand.report.terminal.answer import leaderboard_lines
from evenhand.report.terminal.comparison import comparison_lines
from evenhand.stats.leaderboard import BoardOptions, leaderboard
from evenhand.stats.observations import NONE
from evenhand.stats.pairwise import LOST, OPEN, TIED, WON, panel, tally
from evenhand.stats.votes import voted_winner
from evenhand.words import words
from tests.sentences import keys, refused
from tests.unit.stats.tables import SHARES, ballots, compare_votes, votes


def many(count=120, seed=1):
    """Candidates in the order of their names, the first the strongest."""
    rng, rows = np.random.default_rng(seed), []
    for topic in range(count):
        one, other = sorted(rng.choice(4, 2, replace=False).tolist())
        won = rng.random() < 1 / (1 + np.exp(0.7 * (one - other)))
        sign = "=" if rng.random() < 0.2 else "<>"[int(won)]
        rows.append((topic, "abcd"[one], "abcd"[other], sign))
    return rows


def rows_of(rows, options=None, lengths=(), **asked):
    made = leaderboard(ballots(rows, lengths=lengths), options, **asked)
    json.dumps(made.json(), allow_nan=False)
    return {row.candidate: row for row in made.board.rows}, made.board.notes


def test_the_board_is_in_order_of_ratings():
    found, notes = rows_of(many())
    assert list(found) == [*"abcd"] and not notes
    assert sum(row.rating for row in found.values()) == pytest.approx(0, abs=1e-9)
    for number, row in enumerate(found.values(), 1):
        assert row.rating_low < row.rating < row.rating_high
        assert row.rank == number and row.rank_low <= number <= row.rank_high


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            *[st.sampled_from("abcd")] * 2,
            st.sampled_from([*"><=?", "", 0.1, 0.8]),
        ),
        max_size=15,
    ),
    st.sampled_from(["davidson", "half"]),
)
@example([(k % 2, "a", "b", "<") for k in range(4)], "half")
@example([(k, "a", "b", "?") for k in range(16)], "davidson")
def test_rates_points_and_the_matrix_are_those_of_plain_loops(rows, ties):
    """Candidates against themselves are left out, and every rate has an interval."""
    marks = {"C1": [row[3] if isinstance(row[3], str) else "=" for row in rows]}
    asked = BoardOptions(ties=ties, length_controlled=True)
    made = leaderboard(ballots(rows, marks=marks), asked)
    matrix = json.loads(json.dumps(made.json(), allow_nan=False))["matrix"]
    met = {}
    for _, first, second, sign in rows:
        if first != second and sign != "":
            won = SHARES[sign] if isinstance(sign, str) else 1 - sign
            met.setdefault(first, {}).setdefault(second, []).append((won, sign))
            met.setdefault(second, {}).setdefault(first, []).append((1 - won, sign))
    for row in made.board.rows:
        mine = met.get(row.candidate, {})
        values = [won for told in mine.values() for won, _ in told]
        signs = [sign for told in mine.values() for _, sign in told]
        assert (row.n, row.ties, row.uncertain) == (len(values), signs.count("="), signs.count("?"))
        assert (
            row.wins
            == sum(won > 0.5 for won in values)
            == row.n - row.losses - sum(won == 0.5 for won in values)
        )
        assert (row.rating is None) == (row.n == 0)
        if not values:
            continue
        assert abs(row.rating) < 30
        rates = {name: np.mean([won for won, _ in told]) for name, told in mine.items()}
        assert row.win_rate == pytest.approx(np.mean(values))
        assert row.points == pytest.approx(sum(values))
        assert row.average_win_rate == pytest.approx(np.mean(list(rates.values())))
        place = matrix["candidates"].index(row.candidate)
        for other, name in enumerate(matrix["candidates"]):
            assert matrix["win_rate"][place][other] == pytest.approx(rates.get(name))
            assert (matrix["n"][place][other] or 0) == len(mine.get(name, ()))
    for row in (row for board in (made.board, *made.criteria.values()) for row in board.rows):
        assert not row.n or 0 <= row.low <= row.win_rate <= row.high <= 1
        assert not row.n or row.low < row.high


def test_no_vote_and_failures_alone():
    made = leaderboard(ballots([]))
    assert (made.json()["rows"], made.json()["n"]) == ([], 0)
    assert keys(made.board.notes) == ["notes.nothing_to_rate"]
    found, notes = rows_of(votes(["", ""]))
    row = found["a"]
    assert (row.n, row.failed, row.win_rate, row.rating, row.rank) == (0, 2, None, None, None)
    assert keys(notes) == ["notes.nothing_to_rate"]


def test_one_vote_and_two():
    found, notes = rows_of(votes(">"))
    row = found["a"]
    assert (row.win_rate, row.low, row.high, row.rating_low) == (1.0, 0.0, 1.0, None)
    assert 0 < row.rating < 2 and (row.rank_low, row.rank_high) == (1, 2)
    assert keys(notes) == ["notes.one_topic"]
    row = rows_of(votes("><"))[0]["a"]
    assert row.rating == pytest.approx(0, abs=1e-9)
    assert row.rating_low < -2 and row.rating_high > 2 and row.low < 0.05 and row.high > 0.95


@pytest.mark.parametrize(("ties", "said"), [("davidson", "="), ("half", "?")])
def test_all_ties(ties, said):
    row = rows_of(votes(said * 20), BoardOptions(ties=ties))[0]["a"]
    assert (row.win_rate, row.rating) == (0.5, pytest.approx(0))
    assert row.rating_low < 0 < row.rating_high
    assert row.low < 0.5 < row.high and (row.rank, row.rank_high) == (1, 2)


def test_sets_that_never_met_are_ranked_apart():
    rows = votes("<>>" * 7) + votes(">" + "<<<>" * 5, "x", "y") + [(99, "q", "r", "")]
    found, notes = rows_of(rows)
    assert list(found) == [*"abyxqr"]
    assert [row.rank for row in found.values()] == [1, 2, 1, 2, None, None]
    for one, other in ("ab", "xy"):
        assert found[one].rating + found[other].rating == pytest.approx(0, abs=1e-9)
    assert {found["a"].set, found["x"].set, found["q"].set} == {1, 2, None}
    (note,) = notes
    assert (note.key, note.values["n"]) == ("notes.sets", 2)


def test_one_that_never_lost_has_a_rating_with_two_ends():
    top = rows_of(votes("<>" * 10) + votes(">" * 9, "top", "a"))[0]["top"]
    assert 0.5 < top.rating < 4 and 0 < top.rating_low < top.rating < top.rating_high < 10


def test_dropped_conflicts_are_told_from_failures():
    made = leaderboard(ballots(votes([*"<>" * 4, "", ""]), rule="drop", conflicts=[8]))
    row = made.board.rows[0]
    assert (row.n, row.failed, row.dropped) == (8, 1, 1)
    assert (made.board.failed, made.board.dropped, made.conflicts) == (1, 1, 1)


def test_scales_and_anchors_move_ratings_alone():
    plain, elo, anchored = (
        rows_of(many(), options)[0]
        for options in (None, BoardOptions(scale="elo"), BoardOptions(scale="elo", anchor="c"))
    )
    for name, row in plain.items():
        assert elo[name].rating == pytest.approx(1000 + 400 / np.log(10) * row.rating)
        assert elo[name].rank_low == row.rank_low
        moved = anchored[name].rating - elo[name].rating
        assert moved == pytest.approx(1000 - elo["c"].rating)
    fixed = anchored["c"]
    assert fixed.rating == 1000 == fixed.rating_low == fixed.rating_high


def test_a_judge_a_field_and_a_criterion():
    table = ballots(
        votes("<>>>" * 6),
        judges=["one", "two"] * 12,
        marks={"C1": "<" * 18 + ">" * 6, "C2": "=" * 24},
        fields={"area": ["code"] * 8 + ["prose"] * 16},
    )
    assert leaderboard(table, judge="two").board.rows[0].n == 12
    first, second = leaderboard(table, criterion="C1").board.rows
    assert (first.candidate, first.rank, second.wins, second.losses) == ("b", 1, 6, 18)
    made = leaderboard(table, by="area").json()
    counts = {name: level["n"] for name, level in made["by"]["levels"].items()}
    assert (made["by"]["field"], counts) == ("area", {"code": 8, "prose": 16})
    assert made["criteria"]["C1"]["rows"][0]["candidate"] == "b"
    assert made["criteria"]["C2"]["rows"][0]["win_rate"] == 0.5


def test_an_anchor_that_a_level_lacks_anchors_the_rest():
    rows = votes("<>>" * 4) + votes("<>>" * 4, "b", "c", 12)
    table = ballots(rows, fields={"area": ["x"] * 12 + ["y"] * 12})
    levels = leaderboard(table, BoardOptions(anchor="a"), by="area").levels
    assert levels["x"].board.rows[0].rating == 0 < levels["y"].board.rows[0].rating


@pytest.mark.parametrize(
    ("asked", "key", "names"),
    [
        ({"judge": "tow"}, "stats.no_judge", '"two"'),
        ({"criterion": "C9"}, "stats.no_criterion", '"C1"'),
        ({"by": "aera"}, "stats.no_such_field", '"area"'),
        ({"options": BoardOptions(anchor="zz")}, "stats.no_candidate", '"a", "b"'),
        ({"options": BoardOptions(level=1.0)}, "stats.no_share", ""),
    ],
)
def test_names_that_are_not_there(asked, key, names):
    options = {"judges": ["one", "two"], "marks": {"C1": "><"}, "fields": {"area": "xy"}}
    with refused(UsageError, key, names):
        leaderboard(ballots(votes("><"), **options), **asked)


def test_orders_are_compared():
    """Votes with the outcome of each order."""
    both = (">>", "><", ">=", "==", "<<", "><")
    passes = [(k, bool(side), signs[side]) for k, signs in enumerate(both) for side in (0, 1)]
    rows = votes([one if one == other else "?" for one, other in both])
    made = leaderboard(ballots(rows, passes=passes)).json()
    assert (made["first_rounds"], made["contradictions"]) == (6, 3)
    assert made["consistency_low"] < 0.5 < made["consistency_high"]
    assert made["consistency"] == 0.5 == made["contradiction_rate"]
    # Plain passes > > > = < >: four for what was shown first. Turned > < = = < <: three, all b.
    assert made["first_slot_rate"] == pytest.approx((4 + 3) / (5 + 4))
    alone = leaderboard(ballots(rows, passes=passes[::2])).json()
    names = ("consistency", "first_slot_rate", "contradiction_rate")
    assert [alone[name] for name in names] == [None] * 3


def test_length_is_controlled_where_it_is_known():
    rng = np.random.default_rng(1)
    longer = rng.normal(300, 200, 120)
    signs = np.where(rng.random(120) < 1 / (1 + np.exp(-longer / 150)), ">", "<").tolist()
    rows, options = votes(signs, "long", "short"), BoardOptions(length_controlled=True)
    found, _ = rows_of(rows, options, [(1000 + more, 1000.0) for more in longer])
    rates = [found[name].length_controlled for name in ("long", "short")]
    assert rates[0] < found["long"].win_rate - 0.15 and sum(rates) == pytest.approx(1, abs=0.01)
    found, (note,) = rows_of(rows, options)
    assert found["long"].length_controlled is None and note.key == "notes.no_length_control"
    assert note.values["candidates"].names == ["long", "short"]


def test_only_who_has_too_few_known_lengths_is_named_as_without_a_rate():
    rows = votes("<>>" * 13 + "<") + votes(">" * 5, "a", "rare")
    lengths = [(100.0 + 7 * (k % 5), 90.0 + 11 * (k % 4)) for k in range(45)]
    found, notes = rows_of(rows, BoardOptions(length_controlled=True), lengths)
    assert found["a"].length_controlled is not None is found["rare"].length_controlled
    note, _ = notes
    assert keys(notes) == ["notes.no_length_control", "notes.length_not_alpacaeval"]
    assert note.values["candidates"].names == ["rare"] and "«rare»" in words("ru").message(note)


# Win rates and panels


CODES = {"A": WON, "B": LOST, "tie": TIED, "uncertain": OPEN}
SIGNS = {"A": ">", "B": "<", "tie": "=", "uncertain": "?", None: ""}
repeats = st.lists(st.sampled_from([*SIGNS]), min_size=2, max_size=2)


@given(st.lists(st.fixed_dictionaries({"j": repeats, "k": repeats, "l": repeats}), max_size=5))
def test_many_panels_decide_as_one_does(panels):
    rows, judges, expected = [], [], {}
    for pair, said in enumerate(panels):
        names = (f"a{pair}", f"b{pair}")
        given = [(judge, Voted(winner)) for judge, both in said.items() for winner in both]
        rows += [(pair, *names, SIGNS[vote.winner]) for _, vote in given]
        judges += [judge for judge, _ in given]
        if any(vote.winner for _, vote in given):
            expected[names] = CODES[voted_winner(given)]
    table = ballots(rows, judges=judges, per_pair=6)
    results = panel(table, table.main)
    names = table.candidates
    sides = zip(table.subject, table.opponent, results, strict=True)
    found = {(names[a], names[b]): won for a, b, won in sides if won != NONE}
    assert found == expected
    for place, name in enumerate(names):
        codes = [won for pair, won in expected.items() if name in pair]
        sides = (WON, LOST, TIED, OPEN) if name[0] == "a" else (LOST, WON, TIED, OPEN)
        assert tally(table, results)[place].tolist() == [codes.count(code) for code in sides]


def met(wins, losses, ties=0):
    return ballots(votes(">" * wins + "<" * losses + "=" * ties, "new", "old"))


def of_panel(signs, per_pair=3, topic=1):
    rows = [(place // per_pair // topic, "new", "old", sign) for place, sign in enumerate(signs)]
    return ballots(rows, judges="jkl" * (len(signs) // 3), per_pair=per_pair)


PANEL = of_panel((">>>" + ">><" * 2) * 2 + ">>>>><<<=")
SEVERAL = {
    "15 to 5": met(15, 5),
    "6 to 0": met(6, 0),
    "7 to 1": met(7, 1),
    "10 to 2 with 3 ties": met(10, 2, 3),
    "behind": met(4, 13, 2),
    "one topic": met(1, 0),
    "ties alone": met(0, 0, 8),
    "a panel": PANEL,
    "a panel with failures": of_panel(["", *"><", "", *">>", *">>>" * 6, *"<<="]),
    "thirds that cancel": of_panel(">><<<>" * 20, topic=2),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_board_of_two_says_what_their_comparison_says(name):
    row = compare_votes(SEVERAL[name], "old").rows[-1]
    board = leaderboard(SEVERAL[name]).board
    new, old = sorted(board.rows, key=lambda entry: entry.candidate)
    assert (new.n, old.n, board.n) == (row.n, row.n, row.n)
    assert (new.win_rate, new.low, new.high) == pytest.approx(
        (row.mean, row.mean_low, row.mean_high)
    )
    assert (old.win_rate, old.low, old.high) == pytest.approx(
        (row.baseline_mean, row.baseline_low, row.baseline_high)
    )
    ranks = {"better": [1, 1, 2, 2], "worse": [2, 2, 1, 1]}.get(row.outcome, [1, 2, 1, 2])
    assert [new.rank_low, new.rank_high, old.rank_low, old.rank_high] == ranks
    assert (not new.low <= 0.5 <= new.high) == (new.rank_low == new.rank_high)
    cells = board.matrix["win_rate"][board.rows.index(new)]
    assert [cell for cell in cells if cell is not None] == pytest.approx([row.mean])
    if name == "thirds that cancel":
        assert (row.difference, row.p) == (0, 1)


def test_a_panel_counts_pairs_and_names_its_votes():
    board = leaderboard(PANEL).board
    assert [(row.n, row.pairs, row.votes) for row in board.rows] == [(9, 9, 27)] * 2
    (sentence,) = board_answers(board, words("en"))
    assert " 9 " in sentence.text and "27" not in sentence.text
    # A pair weighs as much as any other, however many judges have a verdict on it.
    uneven = leaderboard(of_panel([*">>><", "", ""])).board
    found = [(row.win_rate, row.n, row.votes, row.points) for row in uneven.rows]
    assert found == [(0.5, 2, 4, 1.0)] * 2


def test_who_met_the_baseline_alone_has_the_interval_of_that_comparison():
    rows = votes("<>>>" * 3, "x", "base") + votes("<=>" * 4, "base", "y")
    table = ballots(rows, marks={"C1": [row[3] for row in rows]})
    made, compared = leaderboard(table), compare_votes(table, "base")
    for board, dimension in ((made.board, "overall"), (made.criteria["C1"], "C1")):
        for ranked in board.rows:
            if ranked.candidate != "base":
                row = compared.row(ranked.candidate, dimension)
                figures = pytest.approx((row.mean, row.mean_low, row.mean_high))
                assert (ranked.win_rate, ranked.low, ranked.high) == figures


def test_no_figure_reads_minus_nothing():
    table = ballots(votes([*"><" * 4, ""], "new", "old"))
    comparison, made = compare_votes(table, "old"), leaderboard(table)
    (row,) = comparison.rows
    row = replace(row, effect=-0.0004, difference=-0.0002, bounds=(-0.00004, 0.4))
    comparison = replace(comparison, rows=(row,), is_duel=False)
    for entry in made.board.rows:
        entry.rating = -0.0004
    console = Console(width=200)
    with console.capture() as captured:
        say = words("en", plain=True)
        console.print(*comparison_lines(comparison, (), say, verbose=True))
        console.print(*leaderboard_lines(made, say))
    text = captured.get().replace("\u00a0", " ")
    assert "overall 0.00" in text and "+0.000 to +0.400" in text
    assert "-0.0 " not in text and "-0.00" not in text
