"""Whether a difference differs between levels, against permutations gone through by hand and
scipy's own."""

from __future__ import annotations

from itertools import permutations, product
from math import sqrt
from statistics import mean

import numpy as np
import pytest
from scipy import stats

from evenhand.stats.comparison.interaction import gap_between, level_test

Rows = list[tuple[int, int, float]]
"""Question, level, difference."""


def level_p(rows: Rows, levels: int, seed: int = 0) -> tuple[float | None, bool, str]:
    cluster, level, gaps = (np.array(column) for column in zip(*rows, strict=True))
    test = level_test(gaps.astype(float), cluster, level, levels, seed)
    return test.p, test.exact, test.design


def apart(rows: Rows) -> float:
    """The sum of squares between levels."""
    middle = mean(gap for *_, gap in rows)
    total = 0.0
    for level in {level for _, level, _ in rows}:
        gaps = [gap for _, at, gap in rows if at == level]
        total += len(gaps) * (mean(gaps) - middle) ** 2
    return total


def within_by_hand(rows: Rows) -> float:
    """All ways to exchange whole levels within each question."""
    questions = sorted({question for question, _, _ in rows})
    choices = []
    for question in questions:
        there = sorted({level for q, level, _ in rows if q == question})
        orders = [dict(zip(there, order, strict=True)) for order in permutations(there)]
        choices.append([(question, order) for order in orders])
    distances = []
    for arrangement in product(*choices):
        renamed = dict(arrangement)
        distances.append(apart([(q, renamed[q][level], gap) for q, level, gap in rows]))
    return mean(distance >= apart(rows) - 1e-9 for distance in distances)


def crossed(levels: int, questions: int, seed: int) -> Rows:
    draw = np.random.default_rng(seed)
    return [
        (question, level, float(draw.integers(-2, 3)) + level * 0.7)
        for question in range(questions)
        for level in range(levels)
        for _ in range(1 + (question + level) % 3)
    ]


@pytest.mark.parametrize(("levels", "questions"), [(2, 8), (3, 5), (4, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_levels_are_exchanged_within_questions(levels: int, questions: int, seed: int) -> None:
    rows = crossed(levels, questions, seed)
    p, exact, design = level_p(rows, levels)
    assert (exact, design) == (True, "within questions")
    assert p == pytest.approx(within_by_hand(rows))


def test_a_question_without_some_level_keeps_to_those_it_has() -> None:
    rows = [row for row in crossed(3, 5, 4) if row[:2] not in {(0, 1), (3, 0), (3, 2)}]
    assert level_p(rows, 3)[0] == pytest.approx(within_by_hand(rows))


@pytest.mark.parametrize("seed", range(3))
def test_where_each_question_has_one_level_questions_are_exchanged(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = [(q, int(q >= 6), float(draw.normal() + (q >= 6))) for q in range(13)]
    p, exact, design = level_p(rows, 2)
    sides = [[gap for _, level, gap in rows if level == at] for at in (0, 1)]

    def squares(a: np.ndarray, b: np.ndarray, axis: int = 0) -> np.ndarray:
        return (a.mean(axis=axis) - b.mean(axis=axis)) ** 2

    oracle = stats.permutation_test(sides, squares, n_resamples=np.inf, alternative="greater")
    assert (exact, design) == (True, "between questions")
    assert p == pytest.approx(oracle.pvalue)


def test_three_levels_of_questions_are_gone_through() -> None:
    gaps = [0.0, 1.0, 1.0, 3.0, 4.0, 2.0]
    rows = [(q, q // 2, gap) for q, gap in enumerate(gaps)]
    distances = [
        apart([(q, level, gap) for (q, _, gap), level in zip(rows, order, strict=True)])
        for order in set(permutations([0, 0, 1, 1, 2, 2]))
    ]
    oracle = mean(distance >= apart(rows) - 1e-9 for distance in distances)
    assert level_p(rows, 3)[0] == pytest.approx(oracle)


def test_a_sample_of_arrangements_comes_close_to_all_of_them() -> None:
    draw = np.random.default_rng(1)
    rows = [(q, level, float(draw.normal() + level / 2)) for q in range(15) for level in (0, 1)]
    p, exact, _ = level_p(rows, 2)
    assert not exact and p == level_p(rows, 2)[0]
    contrasts = np.array([rows[2 * q + 1][2] - rows[2 * q][2] for q in range(15)])
    signs = np.array(list(product((-1, 1), repeat=15)))
    totals = np.abs(signs @ contrasts)
    assert p == pytest.approx((totals >= abs(contrasts.sum()) - 1e-9).mean(), abs=0.01)


def test_many_questions_take_no_longer_than_some() -> None:
    draw = np.random.default_rng(3)
    count = 30_000
    cluster, level = np.repeat(np.arange(count), 2), np.tile([0, 1], count)
    same = level_test(draw.normal(size=2 * count), cluster, level, 2)
    other = level_test(draw.normal(size=2 * count) + 0.1 * level, cluster, level, 2)
    assert same.p is not None and same.p > 0.01
    assert other.p is not None and other.p <= 0.001


def test_it_errs_as_often_as_it_says() -> None:
    """Questions have a difference of their own, which the test must not take for one of levels."""
    hits, rounds = 0, 400
    draw = np.random.default_rng(11)
    for _ in range(rounds):
        own = draw.normal(size=8)
        rows = [(q, level, own[q] + draw.normal()) for q in range(8) for level in (0, 1)]
        p = level_p(rows, 2)[0]
        hits += p is not None and p <= 0.05
    assert hits <= stats.binom.ppf(0.999, rounds, 0.05)


def test_one_level_or_one_question_is_not_tested() -> None:
    assert level_p([(0, 0, 1.0), (1, 0, 2.0)], 2)[0] is None
    assert level_p([(0, 0, 1.0), (0, 1, 2.0)], 2)[0] is None


def test_the_interval_is_that_of_leaving_out_questions() -> None:
    rows = crossed(2, 7, 5)
    cluster, level, gaps = (np.array(column) for column in zip(*rows, strict=True))
    gap = gap_between(gaps.astype(float), cluster, level, 0.9)

    def estimate(some: Rows) -> float:
        sides = [[gap for _, at, gap in some if at == side] for side in (0, 1)]
        return mean(sides[1]) - mean(sides[0])

    rests = [estimate([row for row in rows if row[0] != question]) for question in range(7)]
    error = sqrt(6 / 7 * sum((rest - mean(rests)) ** 2 for rest in rests))
    reach = stats.t.ppf(0.95, 6) * error
    assert gap is not None and gap.low is not None and gap.high is not None
    assert gap.value == pytest.approx(estimate(rows))
    assert (gap.low, gap.high) == pytest.approx((gap.value - reach, gap.value + reach))
    # With one difference per question and level it is the t interval of paired samples.
    single = [(q, level, float(q * level + (q % 3))) for q in range(6) for level in (0, 1)]
    cluster, level, gaps = (np.array(column) for column in zip(*single, strict=True))
    paired = gap_between(gaps, cluster, level, 0.95)
    sides = [[gap for _, at, gap in single if at == side] for side in (1, 0)]
    interval = stats.ttest_rel(*sides).confidence_interval(0.95)
    assert paired is not None
    assert (paired.low, paired.high) == pytest.approx((interval.low, interval.high))
