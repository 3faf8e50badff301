"""How often the intervals of ratings hold the truth, on boards that are drawn."""

from __future__ import annotations

import os

import numpy as np
import pytest

from evenhand.stats.ranking.bootstrap import rate
from evenhand.stats.ranking.bradley_terry import Model
from evenhand.stats.ranking.duels import sample_of
from tests.unit.stats.ballots import EVEN_TASTE, MEETINGS, STRENGTHS, chances, duels, everybody

LONG = bool(os.environ.get("EVENHAND_LONG"))
ROUNDS = 200
"""Of each board: intervals go by how many rounds there are, so that few do."""
LEANINGS = (-0.2, 0.0, 0.2)
TASTES = ((0.5, -0.5, 0.0, 0.0), (0.0, 0.5, -0.5, 0.0), (-0.5, 0.0, 0.5, 0.0))
BOARDS = {
    "some ties": (0.5,),
    "95 % ties": (45.0,),
    "judges with leanings": (0.5, LEANINGS),
    "judges with tastes": (0.5, LEANINGS, TASTES),
}
LEAST = {20: 0.92, 60: 0.935, 300: 0.935}
TIED = {20: 0.78, 60: 0.9, 300: 0.935}
"""On few topics too few votes of those with 95 % ties are decided, and the board says so."""


def panel_ratings(tie, leanings=(0.0,), tastes=(EVEN_TASTE,)):
    """The ratings of a panel as a whole: what its votes come to on topics without end."""
    sample = sample_of(duels(4, [(a, b, 1.0) for a, b in MEETINGS.tolist()]), "davidson")
    counts = np.zeros((3, len(sample.first)))
    for number, leaning in enumerate(leanings):
        strengths = STRENGTHS + np.array(tastes[number % len(tastes)])
        ends = sample.first, sample.second
        there = chances(*ends, strengths, tie, leaning)
        back = chances(*ends[::-1], strengths, tie, leaning)
        counts += there + back[[1, 0, 2]]
    return Model(sample).fit(100 * counts[:, :, None]).values[:4, 0]


def test_the_ratings_of_one_judge_are_the_strengths():
    assert panel_ratings(0.5) == pytest.approx(STRENGTHS, abs=1e-6)


def test_leanings_to_the_first_draw_the_ratings_of_a_panel_together_a_little():
    """By a two hundredth, which is an eighth of the error of 300 topics."""
    assert panel_ratings(0.5, LEANINGS) == pytest.approx(0.9954 * STRENGTHS, abs=2e-3)


@pytest.mark.parametrize("topics", LEAST if LONG else [20])
@pytest.mark.parametrize("name", BOARDS)
def test_rating_intervals_hold_at_the_ends_of_a_board(name, topics):
    boards, least = 1500 if LONG else 40, (TIED if name == "95 % ties" else LEAST)[topics]
    truth, hits = panel_ratings(*BOARDS[name]), np.zeros(4)
    for seed in range(boards):
        rng = np.random.default_rng(seed)
        found = rate(sample_of(everybody(rng, topics, *BOARDS[name]), "davidson"), ROUNDS, rng)
        low, high = found.interval(0.95)
        hits += (low[:4] <= truth) & (truth <= high[:4])
    print(f"{name}, {topics} topics: {(100 * hits / boards).round(1).tolist()}")
    assert (hits / boards).min() >= least - 3 * (least * (1 - least) / boards) ** 0.5
