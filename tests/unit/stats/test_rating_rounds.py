"""Resamples of topics, against loops over the votes, and the ranks that follow from them."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.stats.ranking import bootstrap
from evenhand.stats.ranking.bootstrap import quantiles, rate, widening
from evenhand.stats.ranking.duels import sample_of
from evenhand.stats.ranking.places import ranks
from tests.unit.stats.ballots import drawn, duels, everybody, textbook_bradley_terry

LONG = bool(os.environ.get("EVENHAND_LONG"))


def clustered(seed, size, votes, topics):
    rng = np.random.default_rng(seed)
    return duels(size, drawn(rng, size, votes), rng.integers(topics, size=votes).tolist())


def counted(found, pairs, weights):
    """Wins of the first, wins of the second and ties of each pair, vote by vote."""
    counts = np.zeros((3, len(pairs)))
    rows = zip(found.first, found.second, found.won, found.tie, found.topic, strict=True)
    for first, second, won, tie, topic in rows:
        turned = (first, second) not in pairs
        pair = pairs.index((second, first) if turned else (first, second))
        weight = weights.get(int(topic), 0)
        if tie:
            counts[2, pair] += weight
        else:
            counts[int(turned), pair] += weight * won
            counts[1 - int(turned), pair] += weight * (1 - won)
    return counts


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 12))
@settings(max_examples=40)
def test_counts_are_those_of_a_loop_over_the_votes(seed, votes, topics):
    found = clustered(seed, 4, votes, topics)
    sample = sample_of(found, "davidson")
    pairs = list(zip(sample.first.tolist(), sample.second.tolist(), strict=True))
    every = dict.fromkeys(found.topic.tolist(), 1)
    assert sample.counts == pytest.approx(counted(found, pairs, every))
    assert sample.topics.sum() == len(every)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_a_draw_of_kinds_is_a_draw_of_topics(seed):
    """Some topics of each kind stand for as many real ones, whichever they are."""
    found = clustered(seed, 4, 30, 20)
    sample, rng = sample_of(found, "davidson"), np.random.default_rng(seed)
    pairs = list(zip(sample.first.tolist(), sample.second.tolist(), strict=True))
    columns = {}
    for topic in set(found.topic.tolist()):
        alone = counted(found, pairs, {topic: 1}).ravel()
        kinds = np.asarray(sample.kinds.todense())
        columns[topic] = next(k for k in range(kinds.shape[1]) if (kinds[:, k] == alone).all())
    times = {topic: int(rng.integers(4)) for topic in columns}
    drawn_kinds = np.zeros(sample.kinds.shape[1])
    for topic, kind in columns.items():
        drawn_kinds[kind] += times[topic]
    assert (sample.kinds @ drawn_kinds).reshape(3, -1) == pytest.approx(
        counted(found, pairs, times)
    )


@pytest.mark.parametrize("topics", [400, 25])
def test_the_spread_is_that_of_resampling_topics_one_by_one(topics):
    rng, rounds = np.random.default_rng(1), 300
    rows = drawn(np.random.default_rng(2), 4, 400, tie=0.3)
    topic = (np.arange(400) % topics).tolist()
    members = [[k for k in range(400) if topic[k] == one] for one in range(topics)]
    slow = np.zeros((rounds, 4))
    for number in range(rounds):
        chosen = rng.integers(topics, size=topics)
        picked = [rows[k] for one in chosen for k in members[one]]
        slow[number] = textbook_bradley_terry(4, picked)
    fast = rate(sample_of(duels(4, rows, topic), "half"), 1000, np.random.default_rng(3))
    assert fast.rounds[:4].std(axis=1) == pytest.approx(slow.std(axis=0), rel=0.15)
    assert fast.rounds[:4].mean(axis=1) == pytest.approx(slow.mean(axis=0), abs=0.03)


def test_the_same_seed_gives_the_same_rounds_whatever_the_threads(monkeypatch):
    sample = sample_of(clustered(5, 6, 300, 60), "davidson")
    once = rate(sample, 200, np.random.default_rng(9))
    monkeypatch.setattr(bootstrap, "THREADS", 1)
    again, other = (rate(sample, 200, np.random.default_rng(seed)) for seed in (9, 10))
    assert once.rounds.tobytes() == again.rounds.tobytes()
    assert once.rounds.tobytes() != other.rounds.tobytes()


def test_every_topic_of_its_own_kind_or_many_of_one_are_drawn_alike():
    """The two ways to draw agree in mean and spread."""
    rng, topics = np.random.default_rng(1), np.array([5.0, 3, 2])
    few = bootstrap._draw(np.repeat(topics, 1) * 10, 4000, rng)
    one_by_one = bootstrap._draw(topics * 1.0, 4000, rng)
    assert few.sum(axis=0).tolist() == [100.0] * 4000
    assert one_by_one.sum(axis=0).tolist() == [10.0] * 4000
    assert few.mean(axis=1) == pytest.approx([50, 30, 20], abs=0.5)
    assert one_by_one.mean(axis=1) == pytest.approx([5, 3, 2], abs=0.1)
    assert one_by_one.var(axis=1) == pytest.approx([2.5, 2.1, 1.6], rel=0.1)


def test_one_that_never_lost_is_rated_with_a_prior_and_does_not_look_certain():
    rows = [(0, 1, 1.0)] * 12 + [(1, 2, 1.0), (1, 2, 0.0)] * 6
    found = rate(sample_of(duels(3, rows), "davidson"), 500, np.random.default_rng(1))
    assert found.unsound.all() and found.above.tolist() == [True, False, False]
    assert np.isfinite(found.rounds).all() and 1 < found.ratings[0] - found.ratings[1] < 5
    assert (found.rounds[0] - found.rounds[1]).std() > 0.3


def test_a_resample_without_a_link_is_steadied_and_counted():
    rows = [*drawn(np.random.default_rng(4), 3, 60), (2, 3, 1.0), (2, 3, 0.0)]
    found = rate(sample_of(duels(4, rows), "davidson"), 400, np.random.default_rng(1))
    assert not found.unsound.any() and found.shaky > 100
    assert np.isfinite(found.rounds).all() and np.abs(found.rounds[:4]).max() < 20


def test_too_few_topics_are_not_drawn_from():
    found = rate(sample_of(clustered(1, 3, 40, 5), "davidson"), 100, np.random.default_rng(1))
    assert found.topics == 5 and found.rounds.shape == (5, 0)
    assert (ranks(found, 0.95)[1] == 1).all() and (ranks(found, 0.95)[2] == 3).all()


def slow_ranks(found, one, level):
    """The best and the worst place of one candidate, by a loop over the others."""
    others = [k for k in range(len(found.ratings)) if k != one]
    gaps = {k: found.ratings[one] - found.ratings[k] for k in others}
    errors = {k: (found.rounds[one] - found.rounds[k]).std(ddof=1) for k in others}
    largest = [
        max(abs(found.rounds[one, r] - found.rounds[k, r] - gaps[k]) / errors[k] for k in others)
        for r in range(found.rounds.shape[1])
    ]
    bound = quantiles(np.array([largest]), [level])[0][0] * widening(found.topics, level)
    better = sum(gaps[k] < -bound * errors[k] for k in others)
    worse = sum(gaps[k] > bound * errors[k] for k in others)
    return 1 + better, len(others) + 1 - worse


def test_places_are_those_of_a_loop():
    found = rate(sample_of(clustered(8, 5, 400, 80), "davidson"), 200, np.random.default_rng(1))
    rank, best, worst = ranks(found, 0.95)
    assert sorted(rank.tolist()) == [1, 2, 3, 4, 5]
    for one in range(5):
        assert (best[one], worst[one]) == slow_ranks(found, one, 0.95)
        assert best[one] <= rank[one] <= worst[one]


def test_equals_are_not_put_in_order():
    """Where all are equal, a place is claimed no more often than the level allows."""
    claimed = 0
    for seed in range(200 if LONG else 40):
        rng = np.random.default_rng(seed)
        pairs = [rng.choice(4, 2, replace=False).tolist() for _ in range(200)]
        rows = [(a, b, float(rng.integers(2))) for a, b in pairs]
        found = rate(sample_of(duels(4, rows), "davidson"), 200, rng)
        _, best, worst = ranks(found, 0.95)
        claimed += int(((best > 1) | (worst < 4)).sum())
    assert claimed / (4 * (200 if LONG else 40)) < 0.09


@pytest.mark.parametrize(("seed", "topics"), [(4, 20), (29, 6)])
def test_a_board_that_is_done_at_once_is_not_led_on_by_rounding(seed, topics):
    rng = np.random.default_rng(seed)
    found = rate(sample_of(everybody(rng, topics, 45.0), "davidson"), 200, rng)
    assert np.isfinite(found.rounds).all() and np.abs(found.rounds[:4]).max() < 20


def test_intervals_reach_further_with_few_topics():
    assert widening(10**6, 0.95) == pytest.approx(1, abs=1e-5)
    assert widening(6, 0.95) == pytest.approx(2.5706 * (6 / 5) ** 0.5 / 1.95996, rel=1e-4)


def test_so_many_further_rounds_lie_beyond_a_quantile_as_it_says():
    """Of 199 rounds the fifth: a further one lies below it 5 times in 200."""
    ends = quantiles(np.arange(1.0, 200)[None], [0.025, 0.975])
    assert ends.ravel() == pytest.approx([5, 195])
    assert quantiles(np.arange(3.0)[None], [0.025]).ravel() == pytest.approx([0])
