"""The sign-flip test against all sign patterns gone through one by one, and under the null."""

from __future__ import annotations

import os
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.fft import next_fast_len

from evenhand.stats.comparison import paired
from evenhand.stats.comparison.paired import fast_length, sign_flip, sign_flip_bound
from evenhand.stats.test import holm

SUMS = st.lists(st.integers(-6, 6).map(lambda n: Fraction(n, 6)), min_size=1, max_size=9)


def naive(sums: list[Fraction]) -> float:
    """Every pattern of signs, in exact fractions."""
    seen = abs(sum(sums))
    patterns = list(product((1, -1), repeat=len(sums)))
    hits = sum(
        abs(sum(sign * one for sign, one in zip(signs, sums, strict=True))) >= seen
        for signs in patterns
    )
    return hits / len(patterns)


def naive_counts(steps: list[int]) -> dict[int, int]:
    """How many patterns give each total, one sum after the other."""
    counts = {0: 1}
    for step in steps:
        grown: dict[int, int] = {}
        for total, count in counts.items():
            for moved in (total + step, total - step):
                grown[moved] = grown.get(moved, 0) + count
        counts = grown
    return counts


@given(st.integers(1, 10**8))
def test_transforms_are_of_the_length_that_scipy_chooses(least: int) -> None:
    assert fast_length(least) == next_fast_len(least, real=True)


@given(SUMS)
def test_every_pattern_of_signs_counts_once(sums: list[Fraction]) -> None:
    found = sign_flip(np.array([float(one) for one in sums]))
    assert found.exact and found.p == pytest.approx(naive(sums), abs=1e-12)


@given(st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=10))
def test_sums_that_fit_no_lattice_are_gone_through(sums: list[float]) -> None:
    found = sign_flip(np.array(sums))
    seen, spare = abs(sum(sums)), 1e-7 * sum(map(abs, sums))
    totals = [
        abs(sum(sign * one for sign, one in zip(signs, sums, strict=True)))
        for signs in product((1, -1), repeat=len(sums))
    ]
    assert found.p is not None
    least, most = (np.mean([t >= seen + way * spare for t in totals]) for way in (1, -1))
    assert least - 1e-12 <= found.p <= most + 1e-12


@given(st.lists(st.integers(1, 12), min_size=30, max_size=80), st.data())
def test_many_sums_on_a_lattice_are_exact(steps: list[int], data: st.DataObject) -> None:
    signs = data.draw(st.lists(st.sampled_from([1, -1]), min_size=80, max_size=80))
    signed = [sign * step for sign, step in zip(signs, steps, strict=False)]
    counts = naive_counts(steps)
    hits = sum(count for total, count in counts.items() if abs(total) >= abs(sum(signed)))
    truth = hits / 2 ** len(steps)
    found = sign_flip(np.array(signed) / 24)
    assert found.exact and found.p == pytest.approx(max(truth, paired.RESOLUTION), abs=1e-12)


def test_sampling_agrees_with_the_exact_way_and_is_repeatable() -> None:
    draw = np.random.default_rng(3)
    sums = np.round(draw.normal(0.2, 1, 60), 2)
    exact = sign_flip(sums)
    assert exact.exact and exact.p is not None
    jittered = sums + draw.normal(0, 1e-4, 60)
    sampled = sign_flip(jittered, seed=5)
    assert not sampled.exact and sampled.p is not None
    assert sampled.p == pytest.approx(exact.p, abs=4 * np.sqrt(exact.p / paired.ROUNDS))
    assert sign_flip(jittered, seed=5) == sampled
    assert sign_flip(jittered, seed=6) != sampled
    assert round(sampled.p * (paired.ROUNDS + 1)) == pytest.approx(sampled.p * 10_000)


def test_sampled_patterns_are_bounded_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = np.random.default_rng(0).normal(0.1, 1, 300)
    whole = sign_flip(sums)
    # Blocks of rounds that do not divide the number of rounds.
    monkeypatch.setattr(paired, "BLOCK", 300 * 1000)
    assert sign_flip(sums).p == pytest.approx(whole.p, abs=0.03)


def test_very_many_sums_are_sampled_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = np.random.default_rng(2).normal(0.05, 1, 3000)
    monkeypatch.setattr(paired, "MERGED", 3000)
    apart = sign_flip(sums).p
    monkeypatch.setattr(paired, "MERGED", 400)
    grouped = sign_flip(sums).p
    assert apart is not None and grouped == pytest.approx(apart, rel=0.5)


@pytest.mark.parametrize("size", [5, 12, 40, 200])
@pytest.mark.parametrize("kind", ["likert", "binary", "ties", "normal", "skewed clusters"])
def test_under_the_null_small_p_values_are_no_more_frequent_than_they_say(
    size: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng([size, len(kind), 1])
    rounds = 10_000 if os.environ.get("EVENHAND_LONG") == "1" else 600
    monkeypatch.setattr(paired, "ROUNDS", 999)
    found = np.array([sign_flip(null(draw, kind, size), seed=n).p for n in range(rounds)])
    for alpha in (0.01, 0.05, 0.1, 0.3):
        error = np.sqrt(alpha * (1 - alpha) / rounds)
        assert (found <= alpha).mean() <= alpha + 3.5 * error


def null(draw: np.random.Generator, kind: str, size: int) -> np.ndarray:
    """Differences of variants that are alike: both scores come from one distribution."""
    if kind == "normal":
        return draw.normal(0, 1, size)
    if kind == "skewed clusters":
        sizes = draw.geometric(0.3, size)
        common = draw.choice([1, 2, 3, 4, 5], (2, size), p=[0.02, 0.03, 0.05, 0.2, 0.7])
        return (common[0] - common[1]) * sizes.astype(float)
    levels = {"likert": [0.1, 0.2, 0.3, 0.25, 0.15], "binary": [0.2, 0.8], "ties": [0.95, 0.05]}
    chances = levels[kind]
    both = draw.choice(len(chances), (2, size), p=chances)
    return (both[0] - both[1]).astype(float)


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 3)), min_size=2, max_size=10),
    st.sampled_from([0.05, 0.1, 0.4]),
)
def test_the_bound_of_the_test_is_where_it_stops_rejecting(
    rows: list[tuple[int, int]], alpha: float
) -> None:
    sums, sizes = (np.array(one, dtype=float) for one in zip(*rows, strict=True))
    bound, middle = sign_flip_bound(sums, sizes, alpha), sums.sum() / sizes.sum()
    if bound is None:
        assert 2.0 ** (1 - len(rows)) > alpha
        return
    away = -1e-4 if sums.sum() >= 0 else 1e-4
    outside, inside = (sign_flip(sums - (bound + step) * sizes).p for step in (away, -away))
    assert outside is not None and outside <= alpha
    assert inside is not None
    assert inside > alpha or abs(bound - middle) <= 2e-4


def test_there_is_no_bound_of_more_clusters_than_are_gone_through() -> None:
    assert sign_flip_bound(np.ones(paired.ENUMERATED + 1), np.ones(17), 0.05) is None
    assert sign_flip_bound(np.arange(1.0, 17), np.ones(16), 0.05) is not None


def test_nothing_to_test_and_nothing_that_differs() -> None:
    assert sign_flip(np.zeros(0)).p is None
    assert sign_flip(np.zeros(7)).p == 1.0
    assert sign_flip(np.array([3.0])).p == 1.0
    assert sign_flip(np.ones(6)).p == pytest.approx(2 / 64)


def test_a_tiny_p_value_is_never_zero() -> None:
    assert sign_flip(np.ones(5000)).p == paired.RESOLUTION
    assert sign_flip(np.ones(38)).p == pytest.approx(2.0**-37)


@given(st.lists(st.none() | st.floats(0, 1), max_size=8))
def test_holm_steps_down(values: list[float | None]) -> None:
    known = [p for p in values if p is not None]
    for p, adjusted in zip(values, holm(values), strict=True):
        if p is None:
            assert adjusted is None
            continue
        # By definition: the largest of the corrected values of all that are no larger.
        ranked = sorted(known)
        steps = [(len(known) - rank) * q for rank, q in enumerate(ranked) if q <= p]
        assert adjusted == pytest.approx(min(1.0, max(steps)))


def test_a_published_example_of_holm() -> None:
    # Four p values as in Holm's step-down procedure: 0.005, 0.01, 0.03, 0.04.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
