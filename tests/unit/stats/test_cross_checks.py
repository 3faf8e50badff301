"""Figures against other people's programs: scipy, scikit-learn, evalica and krippendorff, each on
drawn data of its own. Every case is one figure."""

from __future__ import annotations

import evalica
import krippendorff
import numpy as np
import pytest
import scipy.stats
from sklearn import metrics

from evenhand.stats import coefficients
from evenhand.stats.compare import effect
from evenhand.stats.estimate import difference, holm, mean, share
from evenhand.stats.rating import rate, vote_matches
from tests.unit.stats.ballots import ballots, ints

SEEDS = range(3)


def ratings(seed, size=60):
    """Scores from 1 to 5 of two raters who often agree."""
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 6, size)
    b = np.where(rng.random(size) < 0.6, a, rng.integers(1, 6, size))
    return a.astype(float), b.astype(float), np.arange(size)


def of_two(name):
    """Our figure of two raters."""

    def figure(a, b, question):
        item, both = np.tile(question, 2), np.append(a, b)
        found = {
            "agreement": lambda: coefficients.share((a == b) * 1.0, question, 0.95),
            "kappa": lambda: coefficients.kappa(a, b, question),
            "quadratic kappa": lambda: coefficients.kappa(a, b, question, quadratic=True),
            "nominal alpha": lambda: coefficients.alpha(item, both, question),
            "interval alpha": lambda: coefficients.alpha(item, both, question, interval=True),
            "pearson": lambda: coefficients.pearson(a, b, question),
            "spearman": lambda: coefficients.spearman(a, b, question),
            "kendall": lambda: coefficients.kendall(a, b, question),
            "bias": lambda: coefficients.bias(a, b, question, 4.0, 0.95),
            "mae": lambda: coefficients.errors(a, b, question, 4.0, 0.95)["mae"],
            "rmse": lambda: coefficients.errors(a, b, question, 4.0, 0.95)["rmse"],
        }
        return found[name]().value

    return figure


THEIRS = {
    "agreement": metrics.accuracy_score,
    "kappa": metrics.cohen_kappa_score,
    "quadratic kappa": lambda a, b: metrics.cohen_kappa_score(a, b, weights="quadratic"),
    "nominal alpha": lambda a, b: krippendorff.alpha([a, b], level_of_measurement="nominal"),
    "interval alpha": lambda a, b: krippendorff.alpha([a, b], level_of_measurement="interval"),
    "pearson": lambda a, b: scipy.stats.pearsonr(a, b)[0],
    "spearman": lambda a, b: scipy.stats.spearmanr(a, b)[0],
    "kendall": lambda a, b: scipy.stats.kendalltau(a, b)[0],
    "bias": lambda a, b: scipy.stats.describe(a - b).mean,
    "mae": metrics.mean_absolute_error,
    "rmse": metrics.root_mean_squared_error,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", THEIRS)
def test_agreement_of_two_raters(name, seed):
    a, b, question = ratings(seed)
    assert of_two(name)(a, b, question) == pytest.approx(THEIRS[name](a, b), abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_standard_errors_are_those_of_scipy(seed):
    a, b, question = ratings(seed)
    assert mean(a, question, (1.0, 5.0)).error == pytest.approx(scipy.stats.sem(a))
    assert difference(a - b, question, 4.0).error == pytest.approx(scipy.stats.sem(a - b))
    hits = (a == b) * 1.0
    assert share(hits, np.ones(hits.size)).error == pytest.approx(scipy.stats.sem(hits))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_effect_is_the_statistic_of_student_over_the_root_of_n(seed):
    a, b, _ = ratings(seed)
    t = scipy.stats.ttest_rel(a, b).statistic
    assert effect(a - b) == pytest.approx(t / np.sqrt(a.size))


@pytest.mark.parametrize("seed", SEEDS)
def test_large_samples_have_the_interval_and_p_of_student(seed):
    """The half question that is added, and the scale, matter little among a thousand."""
    rng = np.random.default_rng(seed)
    gaps = rng.integers(-2, 3, 1000) / 4 + 0.02
    found = difference(gaps, np.arange(1000), 1.0)
    student = scipy.stats.ttest_1samp(gaps, 0.0)
    low, high = student.confidence_interval()
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.001)
    assert found.p == pytest.approx(student.pvalue, abs=0.005)


@pytest.mark.parametrize("hits", [30, 150, 285])
def test_large_shares_have_the_interval_of_wilson(hits):
    """The half question that is added, and Student's quantile, matter little among 300."""
    trials = np.ones(300)
    found = share((np.arange(300) < hits) * 1.0, trials)
    wilson = scipy.stats.binomtest(hits, 300).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((wilson.low, wilson.high), abs=0.003)


@pytest.mark.parametrize("seed", SEEDS)
def test_ratings_are_those_of_evalica(seed):
    rng = np.random.default_rng(seed)
    rows = [
        (topic, *rng.permutation(list("abcd"))[:2].tolist(), rng.choice([">", "<", "="]))
        for topic in range(200)
    ]
    votes = ballots(rows)
    (found,) = rate(vote_matches(votes, votes.main), "half", added=0.0)
    said = {">": evalica.Winner.X, "<": evalica.Winner.Y, "=": evalica.Winner.Draw}
    left, right, marks = zip(*(row[1:] for row in rows), strict=True)
    winners = [said[mark] for mark in marks]
    scores = evalica.bradley_terry(left, right, winners, tolerance=1e-12, limit=10_000).scores
    logs = np.log(scores.sort_index().to_numpy())
    assert found.members.tolist() == ints(range(4)).tolist()
    assert found.values == pytest.approx(logs - logs.mean(), abs=1e-6)


def test_holm_is_the_least_level_that_rejects():
    """By its definition: sorted, each against alpha over what is left."""
    rng = np.random.default_rng(1)
    values = rng.random(12).tolist()
    adjusted = holm(values)
    for alpha in np.linspace(0.001, 0.99, 200):
        order, rejected = np.argsort(values), set()
        for rank, place in enumerate(order):
            if values[place] > alpha / (12 - rank):
                break
            rejected.add(int(place))
        assert rejected == {place for place, p in enumerate(adjusted) if p <= alpha}
