"""Means corrected by labels: against the published form, and where there is little."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.ppi import corrected_mean
from tests.unit.stats.coverage import labelled

UNIT, SCALE = (0.0, 1.0), (1.0, 5.0)


def corrected(judged, labels, ends=SCALE):
    """Units of a question each; those beyond the labels have none."""
    known = np.full(len(judged), np.nan)
    known[: len(labels)] = labels
    return corrected_mean(np.array(judged, dtype=float), known, np.arange(len(judged)), ends=ends)


@pytest.mark.parametrize("seed", range(3))
def test_the_figure_is_that_of_the_published_form(seed):
    """PPI++ of a mean (Angelopoulos, Duchi, Zrnic 2023), units independent of each other."""
    drawn = labelled(np.random.default_rng(seed), 300, 80, binary=False, knows=0.7)
    judged, known, cluster, _ = drawn
    has = ~np.isnan(known)
    y, f, g = known[has], judged[has], judged[~has]
    cov = ((y - y.mean()) * (f - f.mean())).mean()
    weight = cov / f.size / (f.var() / f.size + g.var() / g.size)
    found = corrected_mean(judged, known, cluster, ends=SCALE)
    assert found.weight == pytest.approx(weight)
    assert found.corrected.value == pytest.approx(weight * g.mean() + (y - weight * f).mean())
    variance = weight**2 * g.var() / g.size + (y - weight * f).var() / f.size
    # Wider by the half question that is added, and by Student's quantile.
    reach = (found.corrected.high - found.corrected.low) / 2
    assert reach == pytest.approx(1.96 * np.sqrt(variance), rel=0.12)


def test_a_biased_judge_is_corrected_and_the_interval_is_narrower_than_that_of_labels():
    drawn = labelled(np.random.default_rng(3), 4000, 200, binary=False, knows=0.97)
    found, truth = corrected_mean(*drawn[:3], ends=SCALE), drawn[3].mean()
    assert not found.naive.low <= truth <= found.naive.high
    assert found.corrected.low <= truth <= found.corrected.high
    width = found.corrected.high - found.corrected.low
    assert width < 0.7 * (found.labels.high - found.labels.low)


def test_a_judge_that_knows_nothing_gets_hardly_any_weight():
    drawn = labelled(np.random.default_rng(4), 4000, 1000, binary=True, knows=0.0)
    found = corrected_mean(*drawn[:3], ends=UNIT)
    assert found.weight < 0.1
    assert found.corrected.value == pytest.approx(found.labels.value, abs=0.01)


def test_labels_on_all_units_are_the_answer():
    found = corrected([1, 2, 3, 4], [2, 2, 4, 5])
    assert found.corrected == found.labels
    assert (found.corrected.value, found.weight) == (3.25, None)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_labels_correct_nothing_and_say_so(count):
    found = corrected(range(10), [3.0] * count, (0.0, 9.0))
    assert (found.naive.value, found.corrected.value, found.corrected.low) == (4.5, None, None)
    assert found.corrected.why == "too few labelled questions"


def test_equal_labels_and_a_constant_judge_leave_an_interval_of_some_width():
    found = corrected([1.0] * 30, [1.0] * 10, UNIT)
    assert found.corrected.value == 1.0 and found.corrected.low < 0.8 and found.shift is None


def test_labelled_units_that_the_judge_rates_otherwise_are_told():
    judged = [4.0, 5.0] * 25 + [1.0, 2.0] * 100
    assert corrected(judged, judged[:50]).shift > 10
