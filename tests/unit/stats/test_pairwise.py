"""The figures of judged pairs: by hand, and against plain counts and definitions."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.observation import PassVote, Voted
from evenhand.stats.pairwise import (
    Judged,
    Proportion,
    majority,
    pair_figures,
    panel_marks,
    panel_winner,
    pareto,
    proportion,
    schwartz,
)
from tests.cases import cases

MARK = {"A": "A+", "B": "B+", "tie": "tie"}


def made(order, winner, number=1, **more):
    """One pass of a round."""
    return PassVote(number, order, winner, {"C1": MARK[winner], "C2": "tie"}, **more)


def judgment(winner, *passes, marks=None):
    rounds = max((one.round for one in passes), default=0)
    how = "uncertain" if winner == "uncertain" else "stable" if rounds < 2 else "resolved"
    return Voted(winner, how, marks or {"C1": MARK.get(winner, "tie"), "C2": "tie"}, passes=passes)


def vote(winner):
    """A stable judgment; one whose orders contradict each other; a failure."""
    if winner == "uncertain":
        return judgment(winner, made("12", "A"), made("21", "B"))
    return judgment(winner, made("12", winner), made("21", winner)) if winner else Voted(None)


def judged(*judgments, row="p", places=(1, 2), of=2):
    names = (f"c{places[0]}", f"c{places[1]}")
    return Judged(row, of, names, [(str(judge), one) for judge, one in enumerate(judgments)])


def topic(*winners, of):
    """Judged pairs of one topic: (place, place, winner)."""
    return [judged(vote(won), row="t", places=(i, j), of=of) for i, j, won in winners]


@cases
def test_a_majority_is_more_than_half(votes, expected):
    assert majority(votes, "uncertain") == expected
    if votes:
        assert panel_winner(judged(*map(vote, votes))) == expected


def test_each_criterion_has_its_own_majority():
    marks = [{"C1": "A+", "C2": "B+"}, {"C1": "A+", "C2": "A+"}, {"C1": "tie", "C2": "tie"}]
    assert panel_marks(judged(*(judgment("A", marks=m) for m in marks)), ["C1", "C2"]) == [
        "A+",
        "tie",
    ]


def test_pairs_of_one_topic_are_one_cluster():
    pairs = topic(*((i, j, "A") for i, j in combinations(range(1, 6), 2)), of=5)
    apart = [pair._replace(row=str(i)) for i, pair in enumerate(pairs)]
    one, ten = (pair_figures(each).consistency for each in (pairs, apart))
    assert one.n == ten.n == 10 and one.low < ten.low


ALL = ((1, 2), (1, 3), (2, 3))


def test_a_front_says_whether_all_pairs_of_its_topic_were_judged():
    pairs = topic(*((i, j, "A") for i, j in ALL), of=3)
    assert [pair_figures(each).fronts["t"].complete for each in (pairs, pairs[:2])] == [True, False]


@pytest.mark.parametrize("size", [2, 3])
def test_a_topic_on_which_every_judgment_failed_has_no_front(size):
    pairs = topic(*((i, j, None) for i, j in ALL[: 2 * size - 3]), of=size)
    assert pair_figures(pairs).fronts == {}
    judged_too = pairs[0]._replace(judgments=[*pairs[0].judgments, ("b", vote("A"))])
    assert list(pair_figures([judged_too, *pairs[1:]]).fronts) == ["t"]


def test_uncertain_and_missing_pairs_are_no_beat():
    found = pair_figures(topic((1, 2, "uncertain"), (1, 3, "A"), (2, 3, None), of=3)).fronts["t"]
    assert (found.candidates, found.front) == (["c1", "c2", "c3"], ["c1", "c2"])
    assert found.pareto == ["c1", "c2"]


def test_a_circle_is_kept_whole_and_a_candidate_nobody_judged_yet_is_not_named():
    circle = pair_figures(topic((1, 2, "A"), (1, 3, "B"), (2, 3, "A"), of=3)).fronts["t"]
    assert (circle.front, circle.pareto) == (["c1", "c2", "c3"], [])
    found = pair_figures(topic((1, 2, "A"), of=4)).fronts["t"]
    assert (found.candidates, found.front) == (["c1", "c2"], ["c1"])


def test_of_two_candidates_the_winner_stays_or_both():
    fronts = [
        pair_figures([judged(vote(winner))]).fronts["p"].front
        for winner in ("A", "B", "tie", "uncertain")
    ]
    assert fronts == [["c1"], ["c2"], ["c1", "c2"], ["c1", "c2"]]
    # Several pairs of two on one topic have no front together.
    assert pair_figures([judged(vote("A")), judged(vote("B"))]).fronts == {}


winners = st.sampled_from(["A", "B", "tie"])


@st.composite
def judgments(draw):
    """Rounds until one agrees, at most three, as a protocol makes them, and before some passes a
    reply that names no winner; or a failure that broke off in the midst of a round."""
    passes = []
    for number in (1, 2, 3):
        said = draw(winners), draw(winners)
        for order, won in zip(draw(st.permutations(["12", "21"])), said, strict=True):
            passes += [PassVote(number, order, None)] * draw(st.integers(0, 1))
            passes += [made(order, won, number, contradicts_itself=draw(st.booleans()))]
        if draw(st.integers(0, 7)) == 7:
            return Voted(None, passes=tuple(passes[:-1]))
        if said[0] == said[1]:
            return judgment(said[0], *passes)
    return judgment("uncertain", *passes)


def most(votes):
    return next((vote for vote in votes if 2 * votes.count(vote) > len(votes)), "uncertain")


def share_of(trials):
    return (sum(trials) / len(trials) if trials else None), len(trials)


def assert_counted(found, panels):
    """The figures are those of plain loops over what each panel said, (judge, vote)."""
    every = [vote for panel in panels for _, vote in panel]
    assert found.outcomes == Counter(vote.winner for vote in every if vote.winner)
    assert found.settled == Counter(vote.settled for vote in every if vote.winner)
    read = [[one for one in vote.passes if one.winner] for vote in every]
    assert found.passes == sum(map(len, read))
    assert found.extra_calls == sum(one.round > 1 for vote in every for one in vote.passes)
    assert found.self_contradictions == sum(one.contradicts_itself for p in read for one in p)
    # The judge is judged by first rounds whose two passes can both be read.
    firsts = [[one for one in passes if one.round == 1] for passes in read]
    firsts = [both for both in firsts if len(both) == 2]
    agreeing = [a.winner == b.winner for a, b in firsts]
    slots = [
        (one.winner == "A") == (one.order == "12")
        for both in firsts
        for one in both
        if one.winner != "tie"
    ]
    verdicts = [[(judge, vote.winner) for judge, vote in p if vote.winner] for p in panels]
    alike = [a == b for p in verdicts for (j, a), (k, b) in combinations(p, 2) if j != k]
    assert found.first_rounds == len(firsts)
    assert (found.contradictions["C1"], found.contradictions["C2"]) == (agreeing.count(False), 0)
    for figure, trials in (
        (found.consistency, agreeing),
        (found.first_slot, slots),
        (found.agreement, alike),
    ):
        assert (figure.value, figure.n) == share_of(trials)
        assert 0 <= figure.low <= figure.high <= 1
    # One vote a judge, however often it was asked.
    panel = [
        most([most([w for k, w in p if k == judge]) for judge in {judge for judge, _ in p}])
        for p in verdicts
        if p
    ]
    assert found.panel == Counter(panel)
    if panel:
        first, second = found.standings["c1"], found.standings["c2"]
        assert first.wins == second.losses == panel.count("A")
        assert first.losses == second.wins == panel.count("B")
        assert (first.ties, first.uncertain) == (panel.count("tie"), panel.count("uncertain"))


@given(st.lists(st.lists(st.tuples(st.sampled_from("ab"), judgments()), max_size=3), max_size=9))
@example([])
def test_every_count_matches_a_plain_one_for_all_judges_and_for_each(panels):
    found = pair_figures(Judged(f"r{i}", 2, ("c1", "c2"), p) for i, p in enumerate(panels))
    assert_counted(found, panels)
    judges = {judge for panel in panels for judge, _ in panel}
    assert found.judges.keys() == (judges if len(judges) > 1 else set())
    for judge, figures in found.judges.items():
        assert_counted(figures, [[one for one in panel if one[0] == judge] for panel in panels])
        assert figures.outcomes.items() <= found.json()["judges"][judge]["outcomes"].items()


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


# Shares of trials in clusters

CLUSTERS = st.lists(
    st.integers(0, 12).flatmap(lambda t: st.tuples(st.integers(0, t), st.just(t))), max_size=12
)


def test_shares_of_nothing_and_of_one_cluster_are_open_and_their_ends_exact():
    nothing = Proportion(None, 0.0, 1.0, 0)
    assert proportion([]) == proportion([(0, 0), (0, 0)]) == nothing
    assert proportion([(9, 10)]) == Proportion(0.9, 0.0, 1.0, 10)
    assert proportion([(0, 3), (0, 4)]).low == 0 and proportion([(3, 3), (4, 4)]).high == 1


@given(CLUSTERS, st.randoms(use_true_random=False))
def test_shares_depend_on_no_order_and_mirror_each_other(clusters, rng):
    found, turned = proportion(clusters), proportion((t - h, t) for h, t in clusters)
    moved = proportion(rng.sample([*clusters, (0, 0)], len(clusters) + 1))
    assert moved.n == found.n
    ends = pytest.approx((found.value, found.low, found.high))
    assert (moved.value, moved.low, moved.high) == ends
    assert 0 <= found.low <= (0.5 if found.value is None else found.value) <= found.high <= 1
    assert (turned.low, turned.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-9)
