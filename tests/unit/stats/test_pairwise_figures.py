"""The figures of judged pairs, by hand and against a plain count of random judgments."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.observation import PassVote, Voted
from evenhand.stats.pairwise import Judged, majority, pair_figures, panel_marks, panel_winner

MARK = {"A": "A+", "B": "B+", "tie": "tie"}


def made(number: int, order: str, winner: str, *, contradicts_itself: bool = False) -> PassVote:
    """One pass."""
    marks = {"C1": MARK[winner], "C2": "tie"}
    return PassVote(number, order, winner, marks, contradicts_itself=contradicts_itself)


def judgment(winner: str, *passes: PassVote, marks: dict[str, str] | None = None) -> Voted:
    rounds = max((one.round for one in passes), default=0)
    how = "uncertain" if winner == "uncertain" else "stable" if rounds < 2 else "resolved"
    return Voted(winner, how, marks or {"C1": MARK.get(winner, "tie"), "C2": "tie"}, passes=passes)


def stable(winner: str) -> Voted:
    return judgment(winner, made(1, "12", winner), made(1, "21", winner))


def judged(
    *judgments: Voted, row: str = "p", places: tuple[int, int] = (1, 2), of: int = 2
) -> Judged:
    names = (f"c{places[0]}", f"c{places[1]}")
    return Judged(row, of, names, [(str(judge), vote) for judge, vote in enumerate(judgments)])


def test_nothing_judged_has_no_figure() -> None:
    found = pair_figures([])
    assert found.consistency.value is found.first_slot.value is found.agreement.value is None
    assert found.json()["outcomes"] == {"A": 0, "B": 0, "tie": 0, "uncertain": 0}


def test_position_figures_are_of_first_rounds_only() -> None:
    resolved = judgment(
        "B",
        made(1, "12", "A"),
        made(1, "21", "B"),
        made(2, "21", "B"),
        made(2, "12", "B"),
    )
    found = pair_figures([judged(resolved), judged(stable("A"))])
    assert (found.first_rounds, found.consistency.value) == (2, 0.5)
    # The first slot of 12 is A, and of 21 it is B: both of the first pair, one of the second.
    assert (found.first_slot.value, found.first_slot.n) == (0.75, 4)
    assert dict(found.contradictions) == {"C1": 1}
    assert (found.passes, found.extra_calls) == (6, 2)


def test_a_tie_prefers_no_slot() -> None:
    found = pair_figures([judged(judgment("uncertain", made(1, "12", "tie"), made(1, "21", "B")))])
    assert (found.first_slot.value, found.first_slot.n, found.consistency.value) == (1.0, 1, 0.0)


def test_re_asks_are_calls_of_their_round_and_no_passes() -> None:
    spoilt = PassVote(2, "12", None)
    one = judgment(
        "A",
        made(1, "12", "A"),
        made(1, "21", "B"),
        spoilt,
        made(2, "12", "A"),
        made(2, "21", "A"),
    )
    found = pair_figures([judged(one)])
    assert (found.passes, found.extra_calls, found.first_rounds) == (4, 3, 1)


def test_a_failure_has_no_vote_and_half_a_round_is_none() -> None:
    failed = Voted(None, passes=(made(1, "12", "A"),))
    found = pair_figures([judged(stable("A"), failed, Voted(None)), judged(failed)])
    assert dict(found.panel) == {"A": 1}
    assert (found.first_rounds, found.passes, found.agreement.n) == (1, 4, 0)
    assert found.standings["c1"].wins == found.standings["c2"].losses == 1


def test_self_contradictions_are_counted_by_pass() -> None:
    one = judgment("A", made(1, "12", "A", contradicts_itself=True), made(1, "21", "A"))
    assert pair_figures([judged(one)]).self_contradictions == 1


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([], "uncertain"),
        (["A"], "A"),
        (["A", "B"], "uncertain"),
        (["A", "A", "B"], "A"),
        (["A", "A", "B", "B"], "uncertain"),
        (["A", "A", "B", "tie"], "uncertain"),
        (["tie", "tie", "A"], "tie"),
        (["uncertain", "uncertain", "A"], "uncertain"),
        (["A", "uncertain", "tie"], "uncertain"),
    ],
)
def test_a_majority_is_more_than_half(votes: list[str], expected: str) -> None:
    assert majority(votes, "uncertain") == expected
    if votes:
        assert panel_winner(judged(*map(stable_or_uncertain, votes))) == expected


def stable_or_uncertain(winner: str) -> Voted:
    return judgment(winner) if winner == "uncertain" else stable(winner)


def test_each_criterion_has_its_own_majority() -> None:
    marks = [{"C1": "A+", "C2": "B+"}, {"C1": "A+", "C2": "A+"}, {"C1": "tie", "C2": "tie"}]
    pair = judged(*(judgment("A", marks=one) for one in marks))
    assert panel_marks(pair, ["C1", "C2"]) == ["A+", "tie"]


def test_repeats_of_one_judge_are_no_agreement_among_judges() -> None:
    pair = Judged("p", 2, ("x", "y"), [("a", stable("A")), ("a", stable("A")), ("b", stable("B"))])
    found = pair_figures([pair])
    assert (found.agreement.value, found.agreement.n) == (0.0, 2)
    # One vote a judge, however often it was asked.
    assert dict(found.panel) == {"uncertain": 1}


def test_judges_are_told_apart_where_there_are_several() -> None:
    pairs = [Judged("p", 2, ("x", "y"), [("a", stable("A")), ("b", turning())])]
    found = pair_figures(pairs)
    told = found.json()
    assert (found.consistency.value, found.consistency.n) == (0.5, 2)
    assert {name: one["consistency"]["value"] for name, one in told["judges"].items()} == {
        "a": 1.0,
        "b": 0.0,
    }
    assert told["judges"]["b"]["outcomes"]["uncertain"] == 1


def turning() -> Voted:
    passes = (made(1, "12", "A"), made(1, "21", "B"))
    return stable("A")._replace(winner="uncertain", passes=passes)


def test_pairs_of_one_topic_are_one_cluster() -> None:
    pairs = [
        Judged("t", 5, (f"c{i}", f"c{j}"), [("a", stable("A"))])
        for i, j in combinations(range(1, 6), 2)
    ]
    one, ten = (
        pair_figures(pairs),
        pair_figures([p._replace(row=str(i)) for i, p in enumerate(pairs)]),
    )
    assert one.consistency.n == ten.consistency.n == 10
    assert one.consistency.low < ten.consistency.low


def test_a_front_says_whether_all_pairs_of_its_topic_were_judged() -> None:
    pairs = [
        Judged("t", 3, (f"c{i}", f"c{j}"), [("a", stable("A"))])
        for i, j in combinations(range(1, 4), 2)
    ]
    assert pair_figures(pairs).fronts["t"].complete
    assert not pair_figures(pairs[:2]).fronts["t"].complete


@pytest.mark.parametrize("size", [2, 3])
def test_a_topic_on_which_every_judgment_failed_has_no_front(size: int) -> None:
    failed = stable("A")._replace(winner=None, passes=())
    pairs = [
        Judged("t", size, (f"c{i}", f"c{j}"), [("a", failed)])
        for i, j in combinations(range(1, size + 1), 2)
    ]
    assert pair_figures(pairs).fronts == {}
    judged_too = pairs[0]._replace(judgments=[("a", failed), ("b", stable("A"))])
    assert list(pair_figures([judged_too, *pairs[1:]]).fronts) == ["t"]


def topic(*winners: tuple[int, int, str], of: int) -> list[Judged]:
    return [
        judged(stable_or_uncertain(won), row="t", places=(i, j), of=of) for i, j, won in winners
    ]


def test_a_circle_is_kept_whole() -> None:
    found = pair_figures(topic((1, 2, "A"), (1, 3, "B"), (2, 3, "A"), of=3)).fronts["t"]
    assert (found.front, found.pareto) == (["c1", "c2", "c3"], [])


def test_uncertain_and_missing_pairs_are_no_beat() -> None:
    rows = topic((1, 2, "uncertain"), (1, 3, "A"), of=3)
    failed = judged(Voted(None), row="t", places=(2, 3), of=3)
    found = pair_figures([*rows, failed]).fronts["t"]
    assert (found.candidates, found.front) == (["c1", "c2", "c3"], ["c1", "c2"])
    assert found.pareto == ["c1", "c2"]


def test_a_candidate_nobody_judged_yet_is_not_named() -> None:
    found = pair_figures(topic((1, 2, "A"), of=4)).fronts["t"]
    assert (found.candidates, found.front) == (["c1", "c2"], ["c1"])


def test_of_two_candidates_the_winner_stays_or_both() -> None:
    open_pair = judgment("uncertain", made(1, "12", "A"), made(1, "21", "B"))
    votes = [stable("A"), stable("B"), stable("tie"), open_pair]
    fronts = [pair_figures([judged(vote)]).fronts["p"].front for vote in votes]
    assert fronts == [["c1"], ["c2"], ["c1", "c2"], ["c1", "c2"]]


def test_several_pairs_of_two_on_one_topic_have_no_front_together() -> None:
    assert pair_figures([judged(stable("A")), judged(stable("B"))]).fronts == {}


winners = st.sampled_from(["A", "B", "tie"])
one_round = st.tuples(st.permutations(["12", "21"]), winners, winners)


@st.composite
def judgments(draw: Any) -> Voted:
    """Rounds until one agrees, at most three, as a protocol makes them."""
    passes, winner = [], "uncertain"
    for number in (1, 2, 3):
        orders, first, second = draw(one_round)
        passes += [made(number, orders[0], first), made(number, orders[1], second)]
        if first == second:
            winner = first
            break
    return judgment(winner, *passes)


@given(panels=st.lists(st.lists(judgments(), min_size=1, max_size=3), max_size=12))
def test_every_count_matches_a_plain_one(panels: list[list[Voted]]) -> None:
    found = pair_figures(judged(*panel, row=f"r{i}") for i, panel in enumerate(panels))
    every = [one for panel in panels for one in panel]
    assert found.outcomes == Counter(one.winner for one in every)
    assert found.settled == Counter(one.settled for one in every)
    firsts = [one.passes[:2] for one in every]
    agreeing = sum(a.winner == b.winner for a, b in firsts)
    assert found.consistency.value == (agreeing / len(every) if every else None)
    slots = [
        "first" if (one.winner == "A") == (one.order == "12") else "second"
        for both in firsts
        for one in both
        if one.winner != "tie"
    ]
    assert found.first_slot.n == len(slots)
    assert found.first_slot.value == (slots.count("first") / len(slots) if slots else None)
    assert found.contradictions["C1"] == len(every) - agreeing
    assert found.contradictions["C2"] == 0
    assert found.extra_calls == sum(len(one.passes) - 2 for one in every)
    both = [(one.winner, other.winner) for panel in panels for one, other in combinations(panel, 2)]
    assert found.agreement.n == len(both)
    assert sum(found.panel.values()) == len(panels)
    won = found.standings.get("c1")
    assert (won.wins if won else 0) == found.panel["A"]
    assert 0 <= found.consistency.low <= found.consistency.high <= 1
