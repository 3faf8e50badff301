"""The figures of judged pairs: by hand, and against plain counts and definitions."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.observation import Voted
from evenhand.stats.pairwise import Front, pareto, schwartz, summarise_pairs, topic_fronts
from evenhand.stats.votes import majority, voted_marks, voted_winner
from tests.cases import cases
from tests.unit.stats.tables import ballots

SIGNS = {"A": ">", "B": "<", "tie": "=", "uncertain": "?", None: ""}
MARKS = {"A": "A+", "B": "B+", "tie": "tie", "uncertain": "tie"}


def fronts_of(*winners, ahead=()):
    """The fronts of one topic, from the places of two candidates and the winner; pairs `ahead` are
    not judged yet."""
    pairs = [*winners, *((*pair, None) for pair in ahead)]
    rows = [("t", f"c{i}", f"c{j}", SIGNS[winner]) for i, j, winner in pairs]
    marks = {"C1": [row[3] for row in rows], "C2": ["=" if row[3] else "" for row in rows]}
    table = ballots(rows, marks=marks)
    return topic_fronts(table.where(np.arange(len(rows)) < len(winners)))


@cases
def test_a_majority_is_more_than_half(votes, expected):
    assert majority(votes, "uncertain") == expected
    if votes:
        assert (
            voted_winner([(str(judge), Voted(one)) for judge, one in enumerate(votes)]) == expected
        )


def test_each_criterion_has_its_own_majority():
    marks = [{"C1": "A+", "C2": "B+"}, {"C1": "A+", "C2": "A+"}, {"C1": "tie", "C2": "tie"}]
    votes = [(str(judge), Voted("A", marks=given)) for judge, given in enumerate(marks)]
    assert voted_marks(votes, ["C1", "C2"]) == ["A+", "tie"]


def test_pairs_of_one_topic_are_one_cluster():
    passes = [(pair, turned, ">") for pair in range(10) for turned in (False, True)]
    one, ten = (
        summarise_pairs(ballots([(topic, "a", "b", ">") for topic in topics], passes=passes))
        for topics in ("t" * 10, range(10))
    )
    shares = [each.votes.orders.consistency for each in (one, ten)]
    assert [share.n for share in shares] == [10, 10] and shares[0].low < shares[1].low


ALL = ((1, 2), (1, 3), (2, 3))


def test_a_front_says_whether_all_pairs_of_its_topic_were_judged():
    won = [(i, j, "A") for i, j in ALL]
    assert [fronts_of(*won)["t"].complete, fronts_of(*won[:2], ahead=ALL[2:])["t"].complete] == [
        True,
        False,
    ]


@pytest.mark.parametrize("size", [2, 3])
def test_a_topic_on_which_every_judgment_failed_has_no_front(size):
    pairs = ALL[: 2 * size - 3]
    assert fronts_of(*((i, j, None) for i, j in pairs)) == {}
    rows = [("t", f"c{i}", f"c{j}", sign) for i, j in pairs for sign in ("", "")]
    rows[1] = (*rows[1][:3], ">")
    judges = ["a", "b"] * len(pairs)
    assert list(topic_fronts(ballots(rows, judges=judges, per_pair=2))) == ["t"]


def test_uncertain_and_missing_pairs_are_no_beat():
    found = fronts_of((1, 2, "uncertain"), (1, 3, "A"), (2, 3, None))["t"]
    assert (found.candidates, found.front) == (["c1", "c2", "c3"], ["c1", "c2"])
    assert found.pareto == ["c1", "c2"]


def test_a_circle_is_kept_whole_and_a_candidate_nobody_judged_yet_is_not_named():
    circle = fronts_of((1, 2, "A"), (1, 3, "B"), (2, 3, "A"))["t"]
    assert (circle.front, circle.pareto) == (["c1", "c2", "c3"], [])
    ahead = [pair for pair in combinations(range(1, 5), 2) if pair != (1, 2)]
    found = fronts_of((1, 2, "A"), ahead=ahead)["t"]
    assert (found.candidates, found.front, found.complete) == (["c1", "c2"], ["c1"], False)


def test_of_two_candidates_the_winner_stays_or_both():
    fronts = [fronts_of((1, 2, won))["t"].front for won in ("A", "B", "tie", "uncertain")]
    assert fronts == [["c1"], ["c2"], ["c1", "c2"], ["c1", "c2"]]
    # Several pairs of two on one topic have no front together; a candidate beside itself has none.
    assert fronts_of((1, 2, "A"), (1, 2, "B")) == fronts_of((1, 1, "A")) == {}


def test_marks_of_a_dropped_verdict_are_dropped_with_it():
    marks = {"C1": [">", "<"]}
    rows = [("t", "c1", "c2", ""), ("t", "c1", "c2", "=")]
    table = ballots(rows, judges="jk", marks=marks, per_pair=2, rule="drop", conflicts=[0])
    assert topic_fronts(table)["t"].pareto == ["c2"]


class Said(NamedTuple):
    """A judgment: its winner, and the (round, order, winner) of its passes."""

    winner: str | None
    settled: str
    passes: list[tuple[int, str, str]]


winners = st.sampled_from(["A", "B", "tie"])


@st.composite
def judgments(draw):
    """Rounds until one agrees, at most three, as a protocol makes them; or a failure that broke off
    in the midst of a round."""
    passes = []
    for number in (1, 2, 3):
        said = draw(winners), draw(winners)
        orders = draw(st.permutations(["12", "21"]))
        passes += [(number, order, won) for order, won in zip(orders, said, strict=True)]
        if draw(st.integers(0, 7)) == 7:
            return Said(None, "", passes[:-1])
        if said[0] == said[1]:
            return Said(said[0], "stable" if number == 1 else "resolved", passes)
    return Said("uncertain", "uncertain", passes)


def most(votes, otherwise="uncertain"):
    return next((vote for vote in votes if 2 * votes.count(vote) > len(votes)), otherwise)


def panel_of(votes, otherwise="uncertain"):
    """The verdict of one panel, from (judge, winner); one vote a judge, however often asked."""
    judges = dict.fromkeys(judge for judge, _ in votes)
    return most([most([w for k, w in votes if k == j], otherwise) for j in judges], otherwise)


def share_of(trials):
    return (sum(trials) / len(trials) if trials else None), len(trials)


def assert_votes_counted(found, every):
    """The figures are those of plain loops over what was said."""
    assert found.outcomes == Counter(said.winner for said in every if said.winner)
    assert found.settled == Counter(said.settled for said in every if said.winner)
    assert found.passes == sum(len(said.passes) for said in every)
    assert found.extra_calls == sum(one[0] > 1 for said in every for one in said.passes)
    # The judge is judged by first rounds whose two passes can both be read.
    firsts = [[one for one in said.passes if one[0] == 1] for said in every]
    firsts = [both for both in firsts if len(both) == 2]
    agreeing = [a[2] == b[2] for a, b in firsts]
    slots = [
        (won == "A") == (order == "12") for both in firsts for _, order, won in both if won != "tie"
    ]
    orders = found.orders
    assert (orders.first_rounds, orders.contradictions) == (len(firsts), agreeing.count(False))
    for figure, trials in ((orders.consistency, agreeing), (orders.first_slot, slots)):
        assert (figure.value, figure.n) == share_of(trials)
        assert not trials or 0 <= figure.low <= figure.high <= 1


@given(st.lists(st.tuples(*[st.tuples(st.sampled_from("ab"), judgments())] * 3), max_size=6))
@example([])
def test_every_count_matches_a_plain_one_for_all_judges_and_for_each(panels):
    said = [(f"r{place}", *vote) for place, votes in enumerate(panels) for vote in votes]
    table = ballots(
        [(topic, "c1", "c2", SIGNS[one.winner]) for topic, _, one in said],
        judges=[judge for _, judge, _ in said],
        per_pair=3,
        passes=[
            (row, order == "21", SIGNS[won], number)
            for row, (_, _, one) in enumerate(said)
            for number, order, won in one.passes
        ],
    )
    found = summarise_pairs(table)
    assert_votes_counted(found.votes, [one for *_, one in said])
    judges = {judge for _, judge, _ in said}
    assert found.judges.keys() == (judges if len(judges) > 1 else set())
    for name, votes in found.judges.items():
        assert_votes_counted(votes, [one for _, judge, one in said if judge == name])
        assert votes.outcomes.items() <= found.json()["judges"][name]["outcomes"].items()
    verdicts = [[(judge, one.winner) for judge, one in votes if one.winner] for votes in panels]
    panel = [panel_of(votes) for votes in verdicts if votes]
    assert found.panel == Counter(panel)
    if panel:
        first, second = found.standings["c1"], found.standings["c2"]
        assert first.wins == second.losses == panel.count("A")
        assert first.losses == second.wins == panel.count("B")
        assert (first.ties, first.uncertain) == (panel.count("tie"), panel.count("uncertain"))


# The two sets of candidates that a topic keeps, against their definitions taken literally


def schwartz_by_definition(size, beats):
    """Every subset is looked at: unbeaten from outside, and no smaller one within it is."""
    subsets = [set(s) for n in range(1, size + 1) for s in combinations(range(size), n)]
    unbeaten = [s for s in subsets if not any(w not in s and lo in s for w, lo in beats)]
    minimal = [s for s in unbeaten if not any(smaller < s for smaller in unbeaten)]
    return tuple(sorted(set().union(*minimal)))


def pareto_by_definition(size, marks):
    """Every ordered pair is looked at, each mark turned to the side that is asked about."""

    def dominates(one, other):
        seen = marks.get((min(one, other), max(one, other)), ())
        better, worse = ("A+", "B+") if one < other else ("B+", "A+")
        return worse not in seen and better in seen

    return tuple(c for c in range(size) if not any(dominates(o, c) for o in range(size) if o != c))


@st.composite
def tournaments(draw):
    """Each pair is won by one side, or is no beat: a tie, uncertain, or missing."""
    size, beats = draw(st.integers(0, 7)), set()
    for one, other in combinations(range(size), 2):
        beats |= draw(st.sampled_from([{(one, other)}, {(other, one)}, set()]))
    return size, beats


@given(tournaments(), st.randoms(use_true_random=False))
@example((0, set()), None)
@example((1, {(0, 0)}), None)
@example((3, {(0, 1), (1, 2), (2, 0)}), None)
@example((4, {(0, 1), (1, 0), (2, 3)}), None)
@example((6, {(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)}), None)
def test_the_front_is_that_of_the_definition(tournament, rng):
    size, beats = tournament
    front = schwartz(size, beats)
    assert front == schwartz_by_definition(size, beats)
    if rng:
        renamed = rng.sample(range(size), size)
        moved = [(renamed[winner], renamed[loser]) for winner, loser in beats]
        found = schwartz(size, rng.sample(moved, len(moved)))
        assert found == tuple(sorted(renamed[one] for one in front))


def test_fronts_of_two_hundred_candidates():
    circle = [(one, (one + 1) % 200) for one in range(200)]
    assert schwartz(200, circle) == tuple(range(200))
    beats = list(combinations(range(200), 2))
    assert schwartz(200, beats) == (0,)
    assert pareto(200, dict.fromkeys(beats, ("A+", "tie"))) == (0,)


@st.composite
def markings(draw):
    size = draw(st.integers(0, 6))
    kinds = st.none() | st.lists(st.sampled_from(["A+", "B+", "tie", "tie"]), max_size=4)
    drawn = {pair: draw(kinds) for pair in combinations(range(size), 2)}
    return size, {pair: marks for pair, marks in drawn.items() if marks is not None}


@given(markings())
@example((3, {(0, 1): ("A+",), (1, 2): ("A+",), (0, 2): ("B+",)}))
@example((2, {(0, 1): ("A+", "B+", "A+")}))
def test_the_pareto_set_is_that_of_the_definition(marking):
    assert pareto(*marking) == pareto_by_definition(*marking)


@given(st.data(), st.integers(2, 4))
def test_the_fronts_of_a_table_are_those_of_single_judgments(data, size):
    """Of three judgments a pair; one without a winner has no marks."""
    pairs = list(combinations(range(size), 2))
    said = st.tuples(st.sampled_from("jk"), st.sampled_from(list(SIGNS)), winners)
    votes = {pair: data.draw(st.tuples(said, said, said)) for pair in pairs}
    turned = {pair for pair in pairs if data.draw(st.booleans())}
    rows, judges, marks = [], [], []
    for pair in pairs:
        given = votes[pair]
        names = [f"c{place}" for place in (pair[::-1] if pair in turned else pair)]
        rows += [("t", *names, SIGNS[winner]) for _, winner, _ in given]
        marks += [SIGNS[mark] if winner else "" for _, winner, mark in given]
        judges += [judge for judge, _, _ in given]
    found = topic_fronts(ballots(rows, judges=judges, marks={"C1": marks}, per_pair=3))
    beats, settled = [], {}
    for pair, given in votes.items():
        told = [(judge, winner, mark) for judge, winner, mark in given if winner]
        if not told:
            continue
        winner = panel_of([(judge, won) for judge, won, _ in told])
        mark = MARKS[panel_of([(judge, mark) for judge, _, mark in told], "tie")]
        shown = pair[::-1] if pair in turned else pair
        beats += [shown] * (winner == "A") + [shown[::-1]] * (winner == "B")
        turns = {"A+": "B+", "B+": "A+", "tie": "tie"} if pair in turned else {}
        settled[pair] = [turns.get(mark, mark)]
    expected = Front(
        candidates=[f"c{place}" for place in range(size)],
        front=[f"c{place}" for place in schwartz_by_definition(size, beats)],
        pareto=[f"c{place}" for place in pareto_by_definition(size, settled)],
        complete=len(settled) == len(pairs),
    )
    assert found == ({"t": expected} if settled else {})
