"""What answers took, variant by variant."""

from __future__ import annotations

import math
import random

import pytest

from evenhand.stats.expense import compare_expenses


def test_changes_are_ratios_of_means_on_shared_questions():
    taken = {
        "v1": {"a": [1.0, 3.0], "b": [2.0], "c": [100.0]},
        "v2": {"a": [2.5], "b": [3.5, 2.5], "d": [7.0]},
        "v3": {"d": [1.0]},
    }
    base, second, third = compare_expenses("cost_usd", taken, "v1")
    assert (base.variant, base.n, base.mean, base.change) == ("v1", 4, 26.5, None)
    # On a and b: (2.5 + 3) / (2 + 2).
    assert (second.n, second.questions, second.change) == (4, 2, pytest.approx(5.5 / 4 - 1))
    assert second.low < second.change < second.high
    assert (third.questions, third.change, third.low) == (0, None, None)


def test_a_sum_that_is_all_of_one_question_has_no_interval():
    taken = {"v1": {"a": [0.001], "b": [0.0]}, "v2": {"a": [0.001], "b": [0.002]}}
    _, found = compare_expenses("latency_s", taken, "v1")
    assert (found.change, found.low, found.high) == (pytest.approx(2), None, None)


def test_the_interval_holds_the_true_change_about_as_often_as_it_says(long):
    chance, rounds, held = random.Random(2), 2000 if long else 300, 0
    for _ in range(rounds):
        sizes = {n: math.exp(chance.gauss(0, 0.5)) for n in range(25)}
        taken = {
            name: {
                str(n): [size * more * math.exp(chance.gauss(0, 0.4))] for n, size in sizes.items()
            }
            for name, more in (("v1", 1.0), ("v2", 1.2))
        }
        _, found = compare_expenses("latency_s", taken, "v1")
        held += found.low <= 0.2 <= found.high
    assert held / rounds >= 0.92
