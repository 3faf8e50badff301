"""Shares and their intervals, against published values, definitions and simulation."""

from __future__ import annotations

import random
from math import sqrt
from statistics import NormalDist

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evenhand.stats.proportion import Proportion, clustered, exchanged, wilson

CLUSTERS = st.lists(
    st.integers(0, 12).flatmap(lambda t: st.tuples(st.integers(0, t), st.just(t))), max_size=12
)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [  # Newcombe, Statistics in Medicine 17 (1998), table I, score method without correction
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_intervals(successes, n, low, high):
    found = wilson(successes, n)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    assert found.value == successes / n and found.n == n


@given(st.integers(1, 500), st.data(), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
def test_the_bounds_are_where_the_score_test_just_rejects(n, data, level):
    successes = data.draw(st.integers(0, n))
    found = wilson(successes, n, level)
    z = NormalDist().inv_cdf((1 + level) / 2)
    for bound in (found.low, found.high):
        distance = abs(successes / n - bound)
        assert distance == pytest.approx(z * sqrt(bound * (1 - bound) / n), abs=1e-9)


@given(st.integers(1, 300), st.data())
def test_an_interval_holds_its_value_and_mirrors_itself(n, data):
    successes = data.draw(st.floats(0, n))
    found, mirrored = wilson(successes, n), wilson(n - successes, n)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert mirrored.low == pytest.approx(1 - found.high, abs=1e-9)


@given(st.integers(1, 200), st.data())
def test_more_trials_or_a_lower_level_narrow_the_interval(n, data):
    successes = data.draw(st.integers(0, n))
    wide, narrow = wilson(successes, n), wilson(3 * successes, 3 * n)
    assert narrow.high - narrow.low < wide.high - wide.low
    assert wilson(successes, n, 0.5).high - wilson(successes, n, 0.5).low < wide.high - wide.low


def test_the_ends_are_exact():
    assert wilson(0, 7).low == 0 and wilson(7, 7).high == 1
    assert wilson(255.99999999999997, 256).high >= 255.99999999999997 / 256
    assert clustered([(0, 3), (0, 4)]).low == 0 and clustered([(3, 3), (4, 4)]).high == 1


def test_without_a_trial_nothing_is_known():
    nothing = Proportion(None, 0.0, 1.0, 0)
    assert wilson(0, 0) == clustered([]) == clustered([(0, 0), (0, 0)]) == nothing


@pytest.mark.parametrize(
    ("successes", "n", "level"),
    [
        (-1, 5, 0.9),
        (6, 5, 0.9),
        (1, -1, 0.9),
        (float("nan"), 5, 0.9),
        (1, float("inf"), 0.9),
        (1, 5, 0.0),
        (1, 5, 1.0),
        (1, 5, 95),
    ],
)
def test_what_is_no_share_is_refused(successes, n, level):
    with pytest.raises(ValueError, match="trials at level"):
        wilson(successes, n, level)


def test_a_cluster_that_is_no_share_is_refused():
    with pytest.raises(ValueError, match="3 hits in 2 trials"):
        clustered([(1, 2), (3, 2)])


@given(st.lists(st.integers(0, 1), min_size=2))
def test_clusters_of_one_trial_are_plain_trials(hits):
    """Up to the small-sample factor, which counts one trial less."""
    found = clustered((hit, 1) for hit in hits)
    n = len(hits)
    assert found.value == sum(hits) / n and found.n == n
    plain = wilson(sum(hits) / n * (n - 1), n - 1) if 0 < sum(hits) < n else wilson(sum(hits), n)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


@given(CLUSTERS, st.randoms(use_true_random=False))
def test_order_and_empty_clusters_change_nothing(clusters, rng):
    found = clustered(clusters)
    again = [*clusters, (0, 0)]
    rng.shuffle(again)
    moved = clustered(again)
    assert (moved.value, moved.n) == (found.value, found.n)
    assert (moved.low, moved.high) == pytest.approx((found.low, found.high))


@given(CLUSTERS)
def test_clusters_never_give_more_than_their_trials(clusters):
    found = clustered(clusters)
    assume(found.value is not None)
    plain = wilson(sum(h for h, _ in clusters), found.n)
    assert found.value == plain.value
    assert found.low <= plain.low + 1e-12 and plain.high <= found.high + 1e-12
    assert 0 <= found.low <= found.value <= found.high <= 1


@given(CLUSTERS)
def test_hits_and_misses_mirror_each_other(clusters):
    found = clustered(clusters)
    turned = clustered((t - h, t) for h, t in clusters)
    assert (turned.low, turned.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-9)


@pytest.mark.parametrize(
    ("clusters", "independent"),
    [
        ([(10, 10), (0, 10), (10, 10), (0, 10)], 3),  # four coins, one of them lost to the factor
        ([(5, 10), (5, 10), (5, 10)], 30),  # no difference between clusters at all
        ([(1, 3), (2, 6)], 9),  # the same, with rounding
        ([(10, 10), (10, 10), (10, 10)], 3),  # all alike: each cluster counts once
        ([(0, 10), (0, 5)], 2),
        ([(9, 10)], 1),  # one cluster cannot show how clusters vary
        ([(2, 4), (0, 2), (3, 4)], 25 / 3),  # 0.25 / (2 / 100 * 3 / 2)
    ],
)
def test_clusters_are_worth_so_many_independent_trials(clusters, independent):
    hits, trials = (sum(part) for part in zip(*clusters, strict=True))
    found, plain = clustered(clusters), wilson(hits / trials * independent, independent)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
    assert found.n == trials


def coverage(
    rate: float, clusters: int, likeness: float, *, runs: int = 600
) -> tuple[float, float]:
    """How often the clustered and the plain interval hold the true rate; beta-binomial clusters."""
    rng = random.Random(f"{rate} {clusters} {likeness}")
    strength = 1 / likeness - 1
    held = plain_held = 0
    for _ in range(runs):
        drawn = []
        for _ in range(clusters):
            own = rng.betavariate(rate * strength, (1 - rate) * strength)
            trials = rng.randint(2, 10)
            drawn.append((sum(rng.random() < own for _ in range(trials)), trials))
        found = clustered(drawn)
        plain = wilson(sum(h for h, _ in drawn), found.n)
        held += found.low <= rate <= found.high
        plain_held += plain.low <= rate <= plain.high
    return held / runs, plain_held / runs


@pytest.mark.parametrize(
    ("rate", "clusters", "least"),
    [
        (0.5, 60, 0.93),
        (0.8, 60, 0.93),
        (0.93, 60, 0.91),
        # Few clusters, or a rate near the end: known to be too narrow, and by no more than this.
        (0.5, 20, 0.92),
        (0.8, 20, 0.9),
        (0.93, 20, 0.87),
        (0.5, 5, 0.86),
    ],
)
def test_the_interval_holds_the_truth_about_as_often_as_it_says(rate, clusters, least):
    held, _ = coverage(rate, clusters, 0.3)
    assert least <= held <= 0.985


def test_an_interval_that_ignores_clusters_does_not():
    held, plain_held = coverage(0.5, 40, 0.5)
    assert held > 0.92 and plain_held < 0.8


def test_trials_in_both_orders_vary_less_than_independent_ones() -> None:
    # 100 topics of two orders: consistent but for eight, where the first slot won both times.
    topics = [(2.0, 2.0)] * 8 + [(1.0, 2.0)] * 92
    share = exchanged(topics)
    assert (share.value, share.n) == (0.54, 200)
    assert 0.5 < share.low < 0.54 < share.high < 0.58
    assert clustered(topics).low < 0.5


@given(st.lists(st.tuples(st.integers(0, 4), st.just(4)), max_size=12))
def test_the_share_of_both_orders_lies_in_its_interval(topics: list[tuple[int, int]]) -> None:
    share = exchanged(topics)
    assert share.value == clustered(topics).value
    assert 0 <= share.low <= (0.5 if share.value is None else share.value) <= share.high <= 1
