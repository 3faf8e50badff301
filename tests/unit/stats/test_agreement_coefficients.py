"""Coefficients of agreement against double loops, textbooks and other libraries."""

from __future__ import annotations

from itertools import permutations

import krippendorff
import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from evenhand.stats.coefficients import alpha, kappa, kendall, pearson, spearman

CODINGS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
"""Krippendorff's own example: four observers, twelve units."""

WEIGHTS = (None, "quadratic")
SCALES = ("nominal", "interval")


def cohen_kappa(a, b, weights=None):
    a, b = (np.array(one, dtype=float) for one in (a, b))
    return kappa(a, b, np.arange(a.size), quadratic=weights == "quadratic").value


def krippendorff_alpha(matrix, scale):
    """Alpha of a row per rater and a column per unit."""
    cells = [(unit, value) for row in matrix for unit, value in enumerate(row) if value is not None]
    item, value = np.array([c[0] for c in cells], int), np.array([c[1] for c in cells], float)
    units = np.arange(len(matrix[0]))
    return alpha(item, value, units, interval=scale == "interval").value


def kappa_by_definition(a, b, weights):
    """Every rating of one against every rating of the other."""
    far = {
        None: lambda x, y: float(x != y),
        "quadratic": lambda x, y: (x - y) ** 2,
    }[weights]
    observed = sum(far(x, y) for x, y in zip(a, b, strict=True)) / len(a)
    expected = sum(far(x, y) for x in a for y in b) / len(a) ** 2
    return 1 - observed / expected


def alpha_by_definition(matrix, scale):
    """The coincidence matrix, filled pair by pair."""
    units = [[v for v in column if v is not None] for column in zip(*matrix, strict=True)]
    units = [values for values in units if len(values) > 1]
    levels = sorted({v for values in units for v in values})
    coincidences = {(c, k): 0.0 for c in levels for k in levels}
    for values in units:
        for c, k in permutations(range(len(values)), 2):
            coincidences[values[c], values[k]] += 1 / (len(values) - 1)
    totals = {c: sum(coincidences[c, k] for k in levels) for c in levels}

    def far(c, k):
        if scale == "nominal":
            return float(c != k)
        return (c - k) ** 2

    n = sum(totals.values())
    observed = sum(coincidences[c, k] * far(c, k) for c in levels for k in levels) / n
    expected = sum(totals[c] * totals[k] * far(c, k) for c in levels for k in levels)
    return 1 - observed / (expected / n / (n - 1))


ratings = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=30).filter(
    lambda pairs: all(len(set(side)) > 1 for side in zip(*pairs, strict=True))
)

matrices = st.integers(2, 4).flatmap(
    lambda raters: st.lists(
        st.tuples(*[st.none() | st.integers(1, 4)] * raters), min_size=2, max_size=12
    ).map(lambda columns: [list(row) for row in zip(*columns, strict=True)])
)


def pairable(matrix):
    """The values of units that have at least two."""
    columns = [[v for v in column if v is not None] for column in zip(*matrix, strict=True)]
    return [v for values in columns if len(values) > 1 for v in values]


@pytest.mark.parametrize("weights", WEIGHTS)
@given(ratings)
def test_kappa_is_that_of_the_definition(weights, pairs):
    a, b = zip(*pairs, strict=True)
    assert cohen_kappa(a, b, weights) == pytest.approx(kappa_by_definition(a, b, weights))


@pytest.mark.parametrize("weights", WEIGHTS)
@given(ratings)
def test_kappa_is_that_of_scikit_learn(weights, pairs):
    a, b = zip(*pairs, strict=True)
    theirs = cohen_kappa_score(a, b, weights=weights, labels=[1, 2, 3, 4, 5])
    assert cohen_kappa(a, b, weights) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS)
@given(ratings)
def test_kappa_does_not_depend_on_the_side_or_the_unit_of_the_scale(weights, pairs):
    a, b = (np.array(one, dtype=float) for one in zip(*pairs, strict=True))
    every, quadratic = np.arange(a.size), weights == "quadratic"
    whole, turned = (kappa(*s, every, quadratic=quadratic) for s in ((a, b), (b, a)))
    scaled = kappa(10 - 3 * a, 10 - 3 * b, every, quadratic=quadratic)
    for other in (turned, scaled):
        assert other.value == pytest.approx(whole.value)
        assert (other.low is None) is (whole.low is None)
        if whole.low is not None:
            assert (other.low, other.high) == pytest.approx((whole.low, whole.high))


@given(ratings, st.permutations([1, 2, 3, 4, 5]))
def test_unweighted_kappa_does_not_depend_on_names(pairs, names):
    a, b = zip(*pairs, strict=True)
    renamed = cohen_kappa([names[x - 1] for x in a], [names[x - 1] for x in b])
    assert renamed == pytest.approx(cohen_kappa(a, b))


@pytest.mark.parametrize(
    ("table", "value"),
    [
        # Cohen's own form: two raters, yes and no, 50 applications.
        ([[20, 5], [10, 15]], 0.4),
        ([[45, 15], [25, 15]], 0.1304),
        ([[25, 35], [5, 35]], 0.2593),
    ],
)
def test_kappa_of_textbook_tables(table, value):
    pairs = [(i, j) for i in (0, 1) for j in (0, 1) for _ in range(table[i][j])]
    a, b = zip(*pairs, strict=True)
    assert cohen_kappa(a, b) == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize(("scale", "value"), [("nominal", 0.743421), ("interval", 0.849107)])
def test_alpha_of_the_textbook(scale, value):
    assert krippendorff_alpha(CODINGS, scale) == pytest.approx(value, abs=5e-7)


@pytest.mark.parametrize("scale", SCALES)
@given(matrices)
def test_alpha_is_that_of_the_definition(scale, matrix):
    values = pairable(matrix)
    assume(len(set(values)) > 1)
    assert krippendorff_alpha(matrix, scale) == pytest.approx(alpha_by_definition(matrix, scale))


@pytest.mark.parametrize("scale", SCALES)
@given(matrices)
def test_alpha_is_that_of_the_krippendorff_package(scale, matrix):
    assume(len(set(pairable(matrix))) > 1)
    theirs = krippendorff.alpha(np.array(matrix, dtype=float), level_of_measurement=scale)
    assert krippendorff_alpha(matrix, scale) == pytest.approx(theirs, abs=1e-9)


@given(matrices, st.randoms(use_true_random=False))
def test_alpha_does_not_depend_on_the_order_of_raters_and_units(matrix, rng):
    assume(len(set(pairable(matrix))) > 1)
    rows = rng.sample(matrix, len(matrix))
    columns = rng.sample(range(len(matrix[0])), len(matrix[0]))
    moved = [[row[k] for k in columns] for row in rows]
    for scale in SCALES:
        assert krippendorff_alpha(moved, scale) == pytest.approx(krippendorff_alpha(matrix, scale))


numbers = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6) | st.floats(0, 6, width=16)),
    min_size=3,
    max_size=40,
).filter(lambda pairs: all(len(set(one)) > 1 for one in zip(*pairs, strict=True)))


@given(numbers)
def test_correlations_are_those_of_scipy(pairs):
    a, b = (np.array(one, dtype=float) for one in zip(*pairs, strict=True))
    # Values that a float can hardly tell apart have no correlation to speak of.
    assume(np.ptp(b) > 1e-3)
    among = np.arange(a.size)
    for ours, theirs in (
        (pearson, scipy.stats.pearsonr),
        (spearman, scipy.stats.spearmanr),
        (kendall, scipy.stats.kendalltau),
    ):
        assert ours(a, b, among).value == pytest.approx(theirs(a, b)[0], abs=1e-7)


def left_out(figure, size):
    """The standard error by leaving out each observation in turn."""
    parts = np.array([figure(np.arange(size) != k) for k in range(size)])
    return np.sqrt((size - 1) / size * ((parts - parts.mean()) ** 2).sum())


@pytest.mark.parametrize("kind", ["kappa", "alpha"])
@pytest.mark.parametrize("scale", SCALES)
def test_the_reach_of_an_interval_is_that_of_leaving_out_each_unit(kind, scale):
    rng = np.random.default_rng(4)
    truth = rng.integers(1, 6, 400)
    a, b = (np.where(rng.random(400) < 0.7, truth, rng.integers(1, 6, 400)) for _ in "ab")
    a, b = a.astype(float), b.astype(float)

    def figure(kept):
        x, y, units = a[kept], b[kept], np.arange(kept.sum())
        if kind == "kappa":
            return kappa(x, y, units, quadratic=scale == "interval")
        return alpha(np.tile(units, 2), np.append(x, y), units, interval=scale == "interval")

    whole = figure(np.ones(400, dtype=bool))
    error = left_out(lambda kept: figure(kept).value, 400)
    assert (whole.high - whole.low) / 2 / 1.966 == pytest.approx(error, rel=0.1)


@pytest.mark.parametrize("figure", [pearson, spearman, kendall])
def test_the_reach_of_a_correlation_is_that_of_leaving_out_each_unit(figure):
    rng = np.random.default_rng(5)
    a = rng.exponential(size=300)
    b = np.round(a + rng.normal(size=300))
    whole = figure(a, b, np.arange(300))
    error = left_out(lambda kept: figure(a[kept], b[kept], np.arange(299)).value, 300)
    assert (whole.high - whole.low) / 2 / 1.968 == pytest.approx(error, rel=0.06)


def test_repeating_every_observation_in_its_cluster_changes_no_interval():
    rng = np.random.default_rng(6)
    a = rng.integers(0, 3, 60).astype(float)
    b = np.where(rng.random(60) < 0.6, a, rng.integers(0, 3, 60))
    once = kappa(a, b, np.arange(60))
    twice = kappa(np.tile(a, 2), np.tile(b, 2), np.tile(np.arange(60), 2))
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))
    naive = kappa(np.tile(a, 2), np.tile(b, 2), np.arange(120))
    assert naive.high - naive.low < 0.75 * (once.high - once.low)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_one_category_is_undefined_and_says_so(size):
    same, units = np.ones(size), np.arange(size)
    found = [
        kappa(same, same, units),
        kappa(same, same, units, quadratic=True),
        alpha(np.tile(units, 2), np.tile(same, 2), units),
        *(figure(same, same, units) for figure in (pearson, spearman, kendall)),
    ]
    for one in found:
        assert (one.value, one.low, one.high) == (None, None, None)
        assert one.why


@pytest.mark.parametrize("figure", [kappa, pearson, spearman, kendall])
def test_a_side_that_never_varies_shows_nothing(figure):
    varied, same = np.arange(20.0) % 2, np.ones(20)
    for sides in ((varied, same), (same, varied)):
        assert figure(*sides, np.arange(20)).value is None


def test_perfect_agreement_has_a_lower_bound_that_rises_with_the_units():
    lows = []
    for size in (4, 20, 100):
        a = np.arange(size) % 2 * 1.0
        found = kappa(a, a, np.arange(size))
        assert (found.value, found.high) == (1.0, 1.0)
        lows.append(found.low)
    assert lows == sorted(lows)
    assert lows[0] < 0.2 and lows[-1] > 0.9


def test_what_one_question_alone_shows_is_not_certain():
    """Of forty answers one is bad, and the judge found it: chance may have."""
    a = np.zeros(40)
    a[0] = 1
    found = kappa(a, a, np.arange(40))
    assert found.value == 1.0 and found.low < 0
