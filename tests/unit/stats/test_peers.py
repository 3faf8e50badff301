"""Judges that are candidates: weights that follow from themselves, and how far they hold."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from evenhand.stats.ranking import peers
from evenhand.stats.ranking.peers import peer_rank
from tests.unit.stats.ballots import ballots

LONG = bool(os.environ.get("EVENHAND_LONG"))
NAMES = ("a", "b", "c")
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))
STRENGTHS = np.array([1.0, 0.0, -0.7])
LEAST = {20: 0.92, 60: 0.935, 300: 0.935}
LAWS = ({}, {"own": 2.0}, {"alike": 2.0}, {"tie": 0.95})


@cache
def empty(topics):
    """Three that judge each other on each topic, with what they say left open."""
    pairs = [(topic, *pair, 0.5) for topic in range(topics) for pair in PAIRS for _ in NAMES]
    return ballots(pairs, judges=NAMES * (topics * len(PAIRS)))


def judged(seed, topics, *, own=0.5, alike=0.8, tie=0.2):
    """Each judge leans to its own answers by `own`, and topics suit candidates by `alike`."""
    rng, votes = np.random.default_rng(seed), empty(topics)
    suits = STRENGTHS + alike * rng.normal(size=(topics, 3))
    gap = suits[votes.topic, votes.second] - suits[votes.topic, votes.first]
    gap += own * (1.0 * (votes.second == votes.judge) - (votes.first == votes.judge))
    won = rng.random(gap.size) < 1 / (1 + np.exp(-gap))
    return replace(votes, preference=np.where(rng.random(gap.size) < tie, 0.5, won))


def slow_rank(votes):
    """Weights and win rates by a loop over the votes, until nothing moves."""
    weights = dict.fromkeys(NAMES, 1 / 3)
    for _ in range(500):
        rates = {}
        for name in NAMES:
            by_judge = {}
            for place in range(len(votes.first)):
                judge, won = votes.judges[votes.judge[place]], votes.preference[place]
                for side, share in ((votes.first, 1 - won), (votes.second, won)):
                    if votes.candidates[side[place]] == name:
                        by_judge.setdefault(judge, []).append(share)
            total = sum(weights[judge] for judge in by_judge)
            rates[name] = sum(weights[j] * np.mean(v) for j, v in by_judge.items()) / total
        following = {name: rates[name] / sum(rates.values()) for name in NAMES}
        if max(abs(following[name] - weights[name]) for name in NAMES) < 1e-12:
            break
        weights = following
    return rates, weights


def values(shares):
    return {name: share.value for name, share in shares.items()}


def test_weights_and_rates_are_those_of_a_loop_over_the_votes():
    votes = judged(1, 6)
    found, (rates, weights) = peer_rank(votes), slow_rank(votes)
    assert values(found.win_rates) == pytest.approx(rates)
    assert values(found.weights) == pytest.approx(weights)
    assert sum(values(found.weights).values()) == pytest.approx(1)


def test_the_error_is_that_of_leaving_out_topics_one_by_one():
    votes, topics = judged(2, 8), 8
    found = peer_rank(votes)
    rests = [peer_rank(votes.where(votes.topic != topic)) for topic in range(topics)]
    for of in ("win_rates", "weights"):
        for name in NAMES:
            share = getattr(found, of)[name]
            each = np.array([getattr(rest, of)[name].value for rest in rests])
            variance = (topics - 1) / topics * ((each - share.value) ** 2).sum()
            assert share.error == pytest.approx(variance**0.5)
            assert 0 <= share.low < share.value < share.high <= 1


def test_many_topics_are_left_out_in_parts(monkeypatch):
    votes = judged(3, 120)
    fine = peer_rank(votes)
    monkeypatch.setattr(peers, "PARTS", 30)
    coarse = peer_rank(votes)
    for name in NAMES:
        assert coarse.weights[name].value == pytest.approx(fine.weights[name].value)
        assert coarse.weights[name].error == pytest.approx(fine.weights[name].error, rel=0.5)


def test_one_topic_leaves_what_one_observation_does():
    found = peer_rank(judged(4, 1))
    assert all(share.error is None for share in found.win_rates.values())
    assert all(share.high - share.low > 0.9 for share in found.weights.values())


def test_one_that_won_all_is_not_certain():
    rows = [(topic, "a", "b", ">") for topic in range(20)] * 2
    found = peer_rank(ballots(rows, judges=["a"] * 20 + ["b"] * 20))
    assert values(found.weights) == pytest.approx({"a": 1.0, "b": 0.0}, abs=1e-9)
    assert 0.5 < found.win_rates["a"].low < 0.95 and found.win_rates["a"].high > 0.999
    assert 0.05 < found.weights["b"].high < 0.5


@pytest.mark.parametrize("topics", LEAST if LONG else [20])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_intervals_hold_what_many_topics_come_to(law, topics):
    rounds, least = 1500 if LONG else 60, LEAST[topics]
    limit, hits = peer_rank(judged(0, 20_000 if LONG else 2000, **law)), np.zeros(6)
    truth = [*values(limit.win_rates).values(), *values(limit.weights).values()]
    for seed in range(1, rounds + 1):
        found = peer_rank(judged([seed, topics], topics, **law))
        shares = [*found.win_rates.values(), *found.weights.values()]
        hits += [
            share.low <= value <= share.high for share, value in zip(shares, truth, strict=True)
        ]
    print(f"{law}, {topics} topics: {(100 * hits / rounds).round(1).tolist()}")
    assert (hits / rounds).min() >= least - 3 * (least * (1 - least) / rounds) ** 0.5


def test_a_peer_alone_has_all_weight_and_two_share_it():
    votes = [(topic, "a", "b", topic % 3 / 2) for topic in range(20)]
    (share,) = peer_rank(ballots(votes, judges=["a"] * 20)).weights.values()
    assert (share.value, share.low, share.high) == (1, 1, 1)
    lost = [(topic, "a", "b", 0.0) for topic in range(20)]
    (share,) = peer_rank(ballots(lost, judges=["b"] * 20)).weights.values()
    assert (share.value, share.low, share.high) == (1, 1, 1)
    both = peer_rank(ballots(votes * 2, judges=["a"] * 20 + ["b"] * 20)).weights
    assert both["a"].value + both["b"].value == pytest.approx(1)
    assert both["a"].low + both["b"].high == pytest.approx(1)
    assert both["a"].high + both["b"].low == pytest.approx(1)
