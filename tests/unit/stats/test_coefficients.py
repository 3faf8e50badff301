"""Coefficients of agreement against scikit-learn, krippendorff and scipy."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import metrics

from evenhand.stats import coefficients
from evenhand.stats.coefficients import alpha, kappa, kendall, pearson, spearman

CORRELATIONS = (pearson, spearman, kendall)


def quadratic(a, b, question):
    return kappa(a, b, question, quadratic=True)


def alpha_of_two(a, b, question, interval=False):
    item = np.tile(np.arange(a.size), 2)
    return alpha(item, np.append(a, b), np.tile(question, 2), interval=interval)


def error_of(name):
    return lambda a, b, question: coefficients.errors(a, b, question, 4.0, 0.95)[name]


def krippendorffs(scale):
    return lambda a, b: krippendorff.alpha([a, b], level_of_measurement=scale)


FIGURES = {
    "agreement": (
        lambda a, b, question: coefficients.share((a == b) * 1.0, question, 0.95),
        metrics.accuracy_score,
    ),
    "kappa": (kappa, metrics.cohen_kappa_score),
    "quadratic": (
        quadratic,
        lambda a, b: metrics.cohen_kappa_score(a, b, weights="quadratic", labels=[1, 2, 3, 4, 5]),
    ),
    "nominal alpha": (alpha_of_two, krippendorffs("nominal")),
    "interval alpha": (lambda *sides: alpha_of_two(*sides, True), krippendorffs("interval")),
    "pearson": (pearson, lambda a, b: scipy.stats.pearsonr(a, b)[0]),
    "spearman": (spearman, lambda a, b: scipy.stats.spearmanr(a, b)[0]),
    "kendall": (kendall, lambda a, b: scipy.stats.kendalltau(a, b)[0]),
    "bias": (
        lambda *sides: coefficients.bias(*sides, 4.0, 0.95),
        lambda a, b: scipy.stats.describe(a - b).mean,
    ),
    "mae": (error_of("mae"), metrics.mean_absolute_error),
    "rmse": (error_of("rmse"), metrics.root_mean_squared_error),
}
RATINGS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3, max_size=30).filter(
    lambda pairs: all(len(set(side)) > 1 for side in zip(*pairs, strict=True))
)


@pytest.mark.parametrize("name", FIGURES)
@given(RATINGS)
def test_figures_of_two_raters_are_those_of_other_programs(name, pairs):
    a, b = np.array(pairs, dtype=float).T
    ours, theirs = FIGURES[name]
    assert ours(a, b, np.arange(a.size)).value == pytest.approx(theirs(a, b), abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 6), st.floats(0, 6, width=16)), min_size=3, max_size=40))
def test_correlations_of_fine_values_are_those_of_scipy(pairs):
    a, b = np.array(pairs, dtype=float).T
    # Values that a float can hardly tell apart have no correlation to speak of.
    assume(np.ptp(a) and np.ptp(b) > 1e-3)
    for name in ("pearson", "spearman", "kendall"):
        ours, theirs = FIGURES[name]
        assert ours(a, b, np.arange(a.size)).value == pytest.approx(theirs(a, b), abs=1e-7)


def alpha_of(matrix, scale):
    """Alpha of a row per rater and a column per unit; nan is no rating."""
    matrix = np.array(matrix, dtype=float)
    rater, item = np.nonzero(~np.isnan(matrix))
    units = np.arange(matrix.shape[1])
    return alpha(item, matrix[rater, item], units, interval=scale == "interval").value


matrices = st.integers(2, 4).flatmap(
    lambda raters: st.lists(
        st.tuples(*[st.just(np.nan) | st.integers(1, 4)] * raters), min_size=2, max_size=12
    ).map(lambda columns: np.array(columns, dtype=float).T)
)


@given(matrices, st.sampled_from(["nominal", "interval"]), st.randoms(use_true_random=False))
def test_alpha_of_many_raters_is_krippendorffs_in_any_order(matrix, scale, rng):
    pairable = matrix[:, (~np.isnan(matrix)).sum(axis=0) > 1]
    assume(np.unique(pairable[~np.isnan(pairable)]).size > 1)
    theirs = krippendorff.alpha(matrix, level_of_measurement=scale)
    assert alpha_of(matrix, scale) == pytest.approx(theirs, abs=1e-9)
    rows, columns = (rng.sample(range(size), size) for size in matrix.shape)
    assert alpha_of(matrix[rows][:, columns], scale) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    ("figure", "size"),
    [
        (kappa, 400),
        (quadratic, 400),
        (alpha_of_two, 400),
        (FIGURES["interval alpha"][0], 400),
        *((each, 300) for each in CORRELATIONS),
    ],
)
def test_the_reach_of_an_interval_is_that_of_leaving_out_each_unit(figure, size):
    rng = np.random.default_rng(4)
    if figure in CORRELATIONS:
        a = rng.exponential(size=size)
        b = np.round(a + rng.normal(size=size))
    else:
        truth, *guesses = rng.integers(1, 6, (3, size)) * 1.0
        a, b = (np.where(rng.random(size) < 0.7, truth, guess) for guess in guesses)
    units = np.arange(size)
    whole = figure(a, b, units)
    parts = [figure(a[units != k], b[units != k], units[1:]).value for k in units]
    error = np.std(parts) * np.sqrt(size - 1)
    assert (whole.high - whole.low) / 2 / 1.966 == pytest.approx(error, rel=0.1)


def test_repeating_every_observation_in_its_cluster_changes_no_interval():
    rng = np.random.default_rng(6)
    a, guess = rng.integers(0, 3, (2, 60)) * 1.0
    b, units = np.where(rng.random(60) < 0.6, a, guess), np.arange(60)
    once, twice, naive = (
        kappa(np.resize(a, clusters.size), np.resize(b, clusters.size), clusters)
        for clusters in (units, np.tile(units, 2), np.arange(120))
    )
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))
    assert naive.high - naive.low < 0.75 * (once.high - once.low)


@pytest.mark.parametrize("figure", [kappa, quadratic, alpha_of_two, *CORRELATIONS])
@pytest.mark.parametrize("size", [0, 1, 5])
def test_one_category_is_undefined_and_says_so(figure, size):
    found = figure(np.ones(size), np.ones(size), np.arange(size))
    assert (found.value, found.low, found.high) == (None, None, None) and found.why


@pytest.mark.parametrize("figure", [kappa, *CORRELATIONS])
def test_a_side_that_never_varies_shows_nothing(figure):
    varied, same = np.arange(20.0) % 2, np.ones(20)
    for sides in ((varied, same), (same, varied)):
        assert figure(*sides, np.arange(20)).value is None


def test_perfect_agreement_has_a_lower_bound_that_rises_with_the_units():
    sides = [np.arange(size) % 2 * 1.0 for size in (4, 20, 100)]
    found = [kappa(side, side, np.arange(side.size)) for side in sides]
    assert {(one.value, one.high) for one in found} == {(1.0, 1.0)}
    lows = [one.low for one in found]
    assert lows == sorted(lows) and lows[0] < 0.2 and lows[-1] > 0.9
    # Of forty answers one is bad, and the judge found it: chance may have.
    one_bad = np.eye(1, 40)[0]
    assert kappa(one_bad, one_bad, np.arange(40)).low < 0
