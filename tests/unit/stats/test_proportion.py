"""Shares of trials in clusters: definitions, and how often their intervals hold the truth."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.pairwise import Proportion, proportion

CLUSTERS = st.lists(
    st.integers(0, 12).flatmap(lambda t: st.tuples(st.integers(0, t), st.just(t))), max_size=12
)


def test_without_a_trial_nothing_is_known():
    assert proportion([]) == proportion([(0, 0), (0, 0)]) == Proportion(None, 0.0, 1.0, 0)


def test_the_ends_are_exact():
    assert proportion([(0, 3), (0, 4)]).low == 0 and proportion([(3, 3), (4, 4)]).high == 1


def test_one_cluster_leaves_everything_open():
    assert proportion([(9, 10)]) == Proportion(0.9, 0.0, 1.0, 10)


@given(CLUSTERS, st.randoms(use_true_random=False))
def test_order_and_empty_clusters_change_nothing(clusters, rng):
    found = proportion(clusters)
    again = [*clusters, (0, 0)]
    rng.shuffle(again)
    moved = proportion(again)
    assert (moved.n, moved.low, moved.high) == pytest.approx((found.n, found.low, found.high))
    assert moved.value == pytest.approx(found.value)


@given(CLUSTERS)
def test_hits_and_misses_mirror_each_other(clusters):
    found = proportion(clusters)
    turned = proportion((t - h, t) for h, t in clusters)
    assert 0 <= found.low <= (0.5 if found.value is None else found.value) <= found.high <= 1
    assert (turned.low, turned.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-9)


@pytest.mark.parametrize(
    ("rate", "clusters", "least"),
    [
        (0.5, 60, 0.93),
        (0.8, 60, 0.93),
        (0.93, 60, 0.91),
        # Few clusters of unequal size, and a rate near the end, hold a little less often.
        (0.5, 20, 0.92),
        (0.8, 20, 0.91),
        (0.93, 20, 0.88),
    ],
)
def test_the_interval_holds_the_truth_about_as_often_as_it_says(rate, clusters, least):
    """Clusters of 2 to 10 trials that are alike: beta-binomial."""
    rng, held, runs, strength = random.Random(f"{rate} {clusters}"), 0, 400, 1 / 0.3 - 1
    for _ in range(runs):
        drawn = []
        for _ in range(clusters):
            own = rng.betavariate(rate * strength, (1 - rate) * strength)
            trials = rng.randint(2, 10)
            drawn.append((sum(rng.random() < own for _ in range(trials)), trials))
        found = proportion(drawn)
        held += found.low <= rate <= found.high
    assert held / runs >= least - 0.02
