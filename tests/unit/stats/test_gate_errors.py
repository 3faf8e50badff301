"""How often a gate is wrong where the truth lies just at its threshold, by simulation: at most 3 %,
whatever the law of the scores."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from evenhand.stats.gate import Gate
from evenhand.stats.observations import Floats
from tests.unit.stats.laws import EQUAL, WORSE
from tests.unit.stats.score_tables import scores_of
from tests.unit.stats.test_gate import gate, gate_pairs, votes

LONG = bool(os.environ.get("EVENHAND_LONG"))
MOST = 0.03


def most_of(rounds: int) -> float:
    """The greatest share in so many rounds that a chance of 3 % explains."""
    return MOST + 3 * float(np.sqrt(MOST * (1 - MOST) / rounds))


def gate_of(differences: Floats, **asked: Any) -> Gate:
    """The gate of two variants whose scores, from 0 to 1, differ by just so much."""
    rows = [
        {"prompt_variant": variant, "question_id": f"q{place}", "scores": {"d": score}}
        for place, gap in enumerate(differences.tolist())
        for variant, score in (("v1", 0.5 - gap / 2), ("v2", 0.5 + gap / 2))
    ]
    table = scores_of(rows, scale=(0.0, 1.0))
    return gate(table, by=("prompt_variant",), baseline="v1", **asked)


@pytest.mark.parametrize(
    ("name", "questions"), [("5 % breakdowns, fine", 20), ("2 % breakdowns, fine", 60)]
)
def test_rare_breakdowns_do_not_pass(name: str, questions: int) -> None:
    law, rounds = WORSE[name], 1000 if LONG else 60
    drawn = law.sample(np.random.default_rng(questions), (rounds, questions))
    passed = [gate_of(gaps, no_worse_than=-law.mean).outcome == "better" for gaps in drawn]
    assert np.mean(passed) <= most_of(rounds)


def test_equal_means_are_not_called_better() -> None:
    rounds = 1000 if LONG else 60
    drawn = EQUAL["5 % breakdowns, fine"].sample(np.random.default_rng(5), (rounds, 20))
    passed = [gate_of(gaps, better=True).outcome == "better" for gaps in drawn]
    assert np.mean(passed) <= most_of(rounds)


def test_a_mean_that_breakdowns_pull_down_is_not_met() -> None:
    rounds, mean = 1000 if LONG else 60, 0.9 - 0.05 * 0.85
    draw = np.random.default_rng(3)
    drawn = draw.normal(0.9, 0.03, (rounds, 20)) - 0.85 * (draw.random((rounds, 20)) < 0.05)
    tables = [
        scores_of(
            [
                {"question_id": f"q{place}", "scores": {"d": score}}
                for place, score in enumerate(row)
            ],
            scale=(0.0, 1.0),
            id_fields=("question_id",),
        )
        for row in np.clip(drawn, 0, 1).tolist()
    ]
    passed = [gate(table, min_mean=mean).outcome == "better" for table in tables]
    assert np.mean(passed) <= most_of(rounds)


@pytest.mark.parametrize("baseline", [{}, {"baseline": "old"}])
def test_a_win_rate_near_the_ceiling_is_seldom_met(baseline: dict[str, str]) -> None:
    rounds = 2000 if LONG else 60
    drawn = np.random.default_rng(6).random((rounds, 60)) < 0.95
    asked: dict[str, Any] = {"min_win_rate": 0.95, "candidate": "new", **baseline}
    passed = [gate_pairs(votes(row.tolist()), **asked).outcome == "better" for row in drawn * 1.0]
    assert np.mean(passed) <= most_of(rounds)
