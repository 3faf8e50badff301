"""How far judges waver: components of variance, and the units on which they waver most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.stability import repeats
from tests.unit.stats.score_tables import scores_of
from tests.unit.stats.test_compare import sample


def naive_components(cells: dict[Any, list[float]]) -> tuple[float, float]:
    """One-way components of variance of one judge, by the textbook's sums of squares."""
    every = [value for cell in cells.values() for value in cell]
    grand, number, groups = sum(every) / len(every), len(every), len(cells)
    inner = sum((v - sum(c) / len(c)) ** 2 for c in cells.values() for v in c)
    outer = sum(len(c) * (sum(c) / len(c) - grand) ** 2 for c in cells.values())
    within = inner / (number - groups)
    size = (number - sum(len(c) ** 2 for c in cells.values()) / number) / (groups - 1)
    return within, max(0.0, (outer / (groups - 1) - within) / size)


@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=2, max_size=12))
def test_components_of_variance_are_the_textbook_ones(cells: list[list[int]]) -> None:
    rows = [
        sample(q, "v1", value, repeat=r)
        for q, cell in enumerate(cells)
        for r, value in enumerate(cell)
    ]
    found = repeats(scores_of(rows, planned=4))
    if max(map(len, cells)) < 2:
        assert found is None
        return
    assert found is not None
    within, between = naive_components({q: list(map(float, c)) for q, c in enumerate(cells)})
    true = found.components[0]
    assert (true.within, true.between) == pytest.approx((within, between), abs=1e-12)
    if within + between > 1e-9:
        assert true.share == pytest.approx(within / (within + between))


def test_components_recover_what_was_put_in() -> None:
    draw = np.random.default_rng(4)
    truth = draw.normal(3, 0.8, 600)
    rows = [
        sample(q, "v1", float(truth[q] + lean + draw.normal(0, 0.4)), judge=j, repeat=r)
        for q in range(600)
        for j, lean in (("j", 0.0), ("k", 1.0))
        for r in range(3)
    ]
    found = repeats(scores_of(rows, planned=6))
    assert found is not None and found.most == 3
    true = found.components[0]
    # How far judges lean apart is no variance between units.
    assert true.within == pytest.approx(0.16, rel=0.1)
    assert true.between == pytest.approx(0.64, rel=0.12)
