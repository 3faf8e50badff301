"""Elo ratings, vote by vote."""

from __future__ import annotations

from evenhand.stats.ranking.duels import Duels

START, FACTOR, BASE, SCALE = 1000.0, 4.0, 10.0, 400.0


def elo(duels: Duels) -> list[float]:
    """The ratings after the last vote: they depend on the order in which the votes come."""
    ratings = [START] * duels.size
    rows = zip(duels.first.tolist(), duels.second.tolist(), duels.won.tolist(), strict=True)
    for first, second, won in rows:
        expected = 1 / (1 + BASE ** ((ratings[second] - ratings[first]) / SCALE))
        change = FACTOR * (won - expected)
        ratings[first] += change
        ratings[second] -= change
    return ratings
