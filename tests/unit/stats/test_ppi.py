"""Means corrected by labels: against the published form, and whether intervals hold the truth."""

from __future__ import annotations

import os

import numpy as np
import pytest

from evenhand.stats.ppi import corrected_mean

LONG = bool(os.environ.get("EVENHAND_LONG"))
BINARY, SCALE = (0.0, 1.0), (1.0, 5.0)


def drawn(rng, questions, labelled, *, binary, knows, clustered):
    """A judge that knows so much of the labels, on questions with one or several units."""
    sizes = rng.integers(1, 4, questions) if clustered else np.ones(questions, dtype=int)
    cluster = np.repeat(np.arange(questions), sizes)
    shared = rng.normal(size=questions)[cluster] if clustered else 0
    true = shared + rng.normal(size=cluster.size)
    seen = knows * true + np.sqrt(1 - knows**2) * rng.normal(size=cluster.size)
    if binary:
        judged, labels = (seen > 0.2).astype(float), (true > 0.5).astype(float)
        labels[rng.random(labels.size) < 0.1] = 0.5
    else:
        judged, labels = (np.clip(np.round(one), 1, 5) for one in (seen + 3.6, true + 3))
    hidden = rng.permutation(cluster.size)[labelled:]
    known = labels.copy()
    known[hidden] = np.nan
    return judged, known, cluster, labels


SCENARIOS = {
    "win rate, good judge": {"binary": True, "knows": 0.8, "clustered": False},
    "win rate, judge knows nothing": {"binary": True, "knows": 0.0, "clustered": False},
    "win rate, topics": {"binary": True, "knows": 0.8, "clustered": True},
    "scores, good judge": {"binary": False, "knows": 0.8, "clustered": False},
    "scores, very good judge, questions": {"binary": False, "knows": 0.97, "clustered": True},
}


@pytest.mark.parametrize(
    ("labelled", "questions", "least"), [(20, 200, 0.92), (100, 400, 0.935), (1000, 3000, 0.935)]
)
@pytest.mark.parametrize("name", SCENARIOS)
def test_intervals_hold_the_truth(name, labelled, questions, least):
    scenario, rng = SCENARIOS[name], np.random.default_rng(labelled)
    rounds = 4000 if LONG else 300 if labelled < 1000 else 100
    ends = BINARY if scenario["binary"] else SCALE
    truth = drawn(np.random.default_rng(1), 400_000, 1, **scenario)[3].mean()
    hits = 0
    for _ in range(rounds):
        judged, known, cluster, _ = drawn(rng, questions, labelled, **scenario)
        found = corrected_mean(judged, known, cluster, ends=ends).corrected
        hits += found.low <= truth <= found.high
    # Two and a half standard errors of a share of so many rounds.
    slack = 2.5 * np.sqrt(least * (1 - least) / rounds)
    assert hits / rounds >= least - slack


@pytest.mark.parametrize(("labelled", "units"), [(20, 300), (40, 300), (100, 1000)])
@pytest.mark.parametrize(("rate", "failed"), [(0.85, 0.0), (0.85, 0.05), (0.95, 0.0), (0.95, 0.05)])
def test_pass_rates_hold_where_the_judge_passes_bad_answers(rate, failed, labelled, units):
    """A judge that misses 40 % of the bad answers, and fails some of the good ones."""
    rng, hits, rounds = np.random.default_rng(labelled), 0, 4000 if LONG else 300
    widths = np.zeros(2)
    for _ in range(rounds):
        good = rng.random(units) < rate
        judged = np.where(good, rng.random(units) >= failed, rng.random(units) < 0.4)
        known = np.where(rng.permutation(units) < labelled, good, np.nan)
        found = corrected_mean(judged.astype(float), known, np.arange(units), ends=BINARY)
        hits += found.corrected.low <= rate <= found.corrected.high
        widths += [part.high - part.low for part in (found.corrected, found.labels)]
    print(
        f"{rate}, {failed}, {labelled} of {units}: {hits / rounds:.1%}, {widths[0] / widths[1]:.2f}"
    )
    assert hits / rounds >= 0.93 - 2.5 * np.sqrt(0.93 * 0.07 / rounds)
    assert widths[0] < widths[1]


@pytest.mark.parametrize("seed", range(5))
def test_the_figure_is_that_of_the_published_form(seed):
    """PPI++ of a mean (Angelopoulos, Duchi, Zrnic 2023), units independent of each other."""
    rng = np.random.default_rng(seed)
    judged, known, cluster, _ = drawn(rng, 300, 80, binary=False, knows=0.7, clustered=False)
    has = ~np.isnan(known)
    y, f, g = known[has], judged[has], judged[~has]
    n, m = f.size, g.size
    cov = ((y - y.mean()) * (f - f.mean())).mean()
    weight = cov / n / (f.var() / n + g.var() / m)
    found = corrected_mean(judged, known, cluster, ends=SCALE)
    assert found.weight == pytest.approx(weight)
    assert found.corrected.value == pytest.approx(weight * g.mean() + (y - weight * f).mean())
    variance = weight**2 * g.var() / m + (y - weight * f).var() / n
    # Wider by the half question that is added, and by Student's quantile.
    reach = (found.corrected.high - found.corrected.low) / 2
    assert reach == pytest.approx(1.96 * np.sqrt(variance), rel=0.12)


def test_a_biased_judge_is_corrected_and_the_interval_is_narrower_than_that_of_labels():
    rng = np.random.default_rng(3)
    scenario = {"binary": False, "knows": 0.97, "clustered": False}
    judged, known, cluster, labels = drawn(rng, 4000, 200, **scenario)
    found = corrected_mean(judged, known, cluster, ends=SCALE)
    assert not found.naive.low <= labels.mean() <= found.naive.high
    assert found.corrected.low <= labels.mean() <= found.corrected.high
    width = found.corrected.high - found.corrected.low
    assert width < 0.7 * (found.labels.high - found.labels.low)


def test_a_judge_that_knows_nothing_gets_hardly_any_weight():
    rng = np.random.default_rng(4)
    scenario = {"binary": True, "knows": 0.0, "clustered": False}
    judged, known, cluster, _ = drawn(rng, 4000, 1000, **scenario)
    found = corrected_mean(judged, known, cluster, ends=BINARY)
    assert found.weight < 0.1
    assert found.corrected.value == pytest.approx(found.labels.value, abs=0.01)


def test_labels_on_all_units_are_the_answer():
    judged, labels = np.array([1.0, 2, 3, 4]), np.array([2.0, 2, 4, 5])
    found = corrected_mean(judged, labels, np.arange(4), ends=SCALE)
    assert found.corrected == found.labels
    assert (found.corrected.value, found.weight) == (3.25, None)


@pytest.mark.parametrize("labelled", [0, 1, 2])
def test_too_few_labels_correct_nothing_and_say_so(labelled):
    labels = np.full(10, np.nan)
    labels[:labelled] = 3.0
    found = corrected_mean(np.arange(10.0), labels, np.arange(10), ends=(0.0, 9.0))
    assert found.naive.value == 4.5
    assert (found.corrected.value, found.corrected.low) == (None, None)
    assert "fewer than 3" in found.corrected.why


def test_equal_labels_and_a_constant_judge_leave_an_interval_of_some_width():
    labels = np.full(30, np.nan)
    labels[:10] = 1.0
    found = corrected_mean(np.ones(30), labels, np.arange(30), ends=BINARY)
    assert found.corrected.value == 1.0
    assert found.corrected.low < 0.8
    assert found.shift is None


def test_labelled_units_that_the_judge_rates_otherwise_are_told():
    judged = np.concatenate([np.tile([4.0, 5.0], 25), np.tile([1.0, 2.0], 100)])
    labels = np.full(250, np.nan)
    labels[:50] = judged[:50]
    found = corrected_mean(judged, labels, np.arange(250), ends=SCALE)
    assert found.shift > 10
