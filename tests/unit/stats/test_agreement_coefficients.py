"""Coefficients of agreement against double loops, textbooks and other libraries."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

from evenhand.stats.agreement.alpha import alpha, gwet, gwet_ac, krippendorff_alpha
from evenhand.stats.agreement.classification import macro
from evenhand.stats.agreement.correlation import concordance, kendall, pearson, spearman
from evenhand.stats.agreement.kappa import cohen_kappa, kappa

CODINGS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
"""Krippendorff's own example: four observers, twelve units."""

WEIGHTS = (None, "linear", "quadratic")
SCALES = ("nominal", "ordinal", "interval")


def kappa_by_definition(a, b, weights):
    """Every rating of one against every rating of the other."""
    far = {
        None: lambda x, y: float(x != y),
        "linear": lambda x, y: abs(x - y),
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
        if scale == "interval":
            return (c - k) ** 2
        between = [g for g in levels if min(c, k) <= g <= max(c, k)]
        return (sum(totals[g] for g in between) - (totals[c] + totals[k]) / 2) ** 2

    n = sum(totals.values())
    observed = sum(coincidences[c, k] * far(c, k) for c in levels for k in levels) / n
    expected = sum(totals[c] * totals[k] * far(c, k) for c in levels for k in levels)
    return 1 - observed / (expected / n / (n - 1))


def gwet_by_definition(matrix, weights):
    units = [[v for v in column if v is not None] for column in zip(*matrix, strict=True)]
    units = [values for values in units if values]
    levels = sorted({v for values in units for v in values})
    span = levels[-1] - levels[0]

    def near(c, k):
        if weights is None:
            return float(c == k)
        return 1 - (abs(c - k) / span) ** (1 if weights == "linear" else 2)

    pairs = [list(permutations(values, 2)) for values in units if len(values) > 1]
    observed = np.mean([np.mean([near(c, k) for c, k in of]) for of in pairs])
    shares = [np.mean([values.count(k) / len(values) for values in units]) for k in levels]
    total = sum(near(c, k) for c in levels for k in levels)
    chance = total / len(levels) / (len(levels) - 1) * sum(p * (1 - p) for p in shares)
    return (observed - chance) / (1 - chance)


ratings = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=30).filter(
    lambda pairs: len({v for pair in pairs for v in pair}) > 1
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
    whole, turned = kappa(a, b, weights=weights), kappa(b, a, weights=weights)
    scaled = kappa(10 - 3 * a, 10 - 3 * b, weights=weights)
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


@pytest.mark.parametrize(
    ("scale", "value"), [("nominal", 0.743421), ("ordinal", 0.815388), ("interval", 0.849107)]
)
def test_alpha_of_the_textbook(scale, value):
    assert krippendorff_alpha(CODINGS, scale) == pytest.approx(value, abs=5e-7)


def test_gwet_of_the_textbook():
    assert gwet_ac(CODINGS) == pytest.approx(0.77544, abs=5e-6)


@pytest.mark.parametrize("scale", SCALES)
@given(matrices)
def test_alpha_is_that_of_the_definition(scale, matrix):
    values = pairable(matrix)
    assume(len(set(values)) > 1)
    assert krippendorff_alpha(matrix, scale) == pytest.approx(alpha_by_definition(matrix, scale))


@pytest.mark.parametrize("weights", WEIGHTS)
@given(matrices)
def test_gwet_is_that_of_the_definition(weights, matrix):
    assume(len({v for row in matrix for v in row if v is not None}) > 1 and pairable(matrix))
    assert gwet_ac(matrix, weights) == pytest.approx(gwet_by_definition(matrix, weights))


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


@given(numbers)
def test_concordance_is_that_of_a_double_loop(pairs):
    a, b = (np.array(one, dtype=float) for one in zip(*pairs, strict=True))
    naive = (np.sign(a[:, None] - a) * np.sign(b[:, None] - b)).sum(axis=1)
    assert concordance(a, b).tolist() == naive.tolist()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_macro_figures_are_those_of_scikit_learn(pairs):
    said, meant = (np.array(one) for one in zip(*pairs, strict=True))
    ours = macro(said, meant, 3, np.arange(said.size))
    theirs = precision_recall_fscore_support(meant, said, average="macro", zero_division=0)
    values = [one.value for one in ours.values()]
    assert values == pytest.approx([float(one) for one in theirs[:3]])


def left_out(figure, size):
    """The standard error by leaving out each observation in turn."""
    parts = np.array([figure(np.arange(size) != k) for k in range(size)])
    return np.sqrt((size - 1) / size * ((parts - parts.mean()) ** 2).sum())


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["kappa", "alpha", "gwet"])
def test_the_reach_of_an_interval_is_that_of_leaving_out_each_unit(kind, scale):
    rng = np.random.default_rng(4)
    truth = rng.integers(1, 6, 400)
    a, b = (np.where(rng.random(400) < 0.7, truth, rng.integers(1, 6, 400)) for _ in "ab")
    a, b = a.astype(float), b.astype(float)
    weights = {"nominal": None, "ordinal": "linear", "interval": "quadratic"}[scale]

    def figure(kept):
        x, y = a[kept], b[kept]
        item, value = np.tile(np.arange(x.size), 2), np.concatenate([x, y])
        if kind == "kappa":
            return kappa(x, y, weights=weights)
        return (
            alpha(item, value, scale=scale)
            if kind == "alpha"
            else gwet(item, value, weights=weights)
        )

    whole = figure(np.ones(400, dtype=bool))
    error = left_out(lambda kept: figure(kept).value, 400)
    assert (whole.high - whole.low) / 2 / 1.966 == pytest.approx(error, rel=0.06)


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
    once = kappa(a, b, cluster=np.arange(60))
    twice = kappa(np.tile(a, 2), np.tile(b, 2), cluster=np.tile(np.arange(60), 2))
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))
    naive = kappa(np.tile(a, 2), np.tile(b, 2))
    assert naive.high - naive.low < 0.75 * (once.high - once.low)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_one_category_is_undefined_and_says_so(size):
    same = np.ones(size)
    found = [
        kappa(same, same),
        kappa(same, same, weights="quadratic"),
        alpha(np.tile(np.arange(size), 2), np.tile(same, 2), scale="nominal"),
        gwet(np.tile(np.arange(size), 2), np.tile(same, 2)),
        pearson(same, same, np.arange(size)),
        kendall(same, same, np.arange(size)),
    ]
    for one in found:
        assert (one.value, one.low, one.high) == (None, None, None)
        assert one.why
    assert cohen_kappa(same, same) is None


def test_perfect_agreement_has_a_lower_bound_that_rises_with_the_units():
    lows = []
    for size in (4, 20, 100):
        a = np.arange(size) % 2 * 1.0
        found = kappa(a, a)
        assert (found.value, found.high) == (1.0, 1.0)
        lows.append(found.low)
    assert lows == sorted(lows)
    assert lows[0] < 0.2 and lows[-1] > 0.9


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match="equally long"):
        cohen_kappa([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="a row a rater"):
        krippendorff_alpha([1, 2, 3])
