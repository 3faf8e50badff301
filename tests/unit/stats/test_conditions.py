"""The conditions of a gate: what an interval, a count and what is missing let one say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.conditions import (
    Figure,
    JudgmentCounts,
    at_least,
    count_at_most,
    mean_figure,
    no_worse_than,
    share_at_most,
    subject,
)
from tests.cases import cases
from tests.sentences import is_told

OPEN = "not enough evidence"


def figure(value, reach, **rest):
    given = {"n": 50, "clusters": 50, "error": reach / 2, **rest}
    return Figure(value=value, low=value - reach, high=value + reach, **given)


def held(value, reach, limit=0.8, **rest):
    """The condition that a mean is at least the limit."""
    return at_least("min_mean", figure(value, reach, **rest), limit, subject())


def naive(low, high, limit, bounds):
    """The outcome of a figure that must not be below a limit."""
    if low >= limit:
        return OPEN if bounds and bounds[0] < limit else "better"
    if high < limit:
        return OPEN if bounds and bounds[1] >= limit else "worse"
    return OPEN


eighths = st.integers(-30, 30).map(lambda n: n / 8)


@given(eighths, st.integers(0, 16), eighths, st.none() | st.tuples(eighths, eighths))
def test_the_interval_decides_and_what_is_missing_opens(value, reach, limit, ends):
    bounds, reach = (min(value, *ends), max(value, *ends)) if ends else None, reach / 8
    expected = naive(value - reach, value + reach, limit, bounds)
    assert held(value, reach, limit, bounds=bounds).outcome == expected
    if limit <= 0:
        found = figure(value, reach, bounds=bounds)
        assert no_worse_than(found, -limit, "v2", "v1", "overall").outcome == expected


@pytest.mark.parametrize(("value", "n"), [(0.9, 1), (None, 0)])
def test_a_point_estimate_alone_or_nothing_decides_nothing(value, n):
    bare = Figure(value=value, low=None, high=None, n=n, clusters=n)
    found = at_least("min_mean", bare, 0.1, subject())
    assert (found.outcome, found.value) == (OPEN, value)
    assert is_told(found.reason, "gate.no_interval" if n else "gate.nothing_judged")


def test_reasons_hold_figures_and_how_many_more_would_help():
    met = no_worse_than(figure(0.01, 0.03), 0.05, "v2", "v1", "overall")
    claim = {"who": '"v2"', "baseline": "v1", "margin": "0.05"}
    assert is_told(met.reason, "gate.no_worse_than_better", **claim)
    assert is_told(met.reason, "gate.difference", value=0.01, low=-0.02, high=0.04)
    assert is_told(met.reason, "gate.of_units", n=50)
    missed = no_worse_than(figure(-0.2, 0.03, n=1, clusters=1), 0.05, "v2", "v1", "clear")
    assert is_told(missed.reason, "gate.no_worse_than_worse", **claim | {"who": '"v2" (clear)'})
    assert is_told(missed.reason, "gate.of_units", n=1)
    more = [held(value, 0.1).more for value in (0.85, 0.801, 0.8)]
    assert more == ["several hundred", *["more than is practical"] * 2]
    assert is_told(held(0.85, 0.1).reason, "needed.several hundred")
    turned = held(0.9, 0.05, bounds=(0.7, 0.95))
    assert is_told(turned.reason, "gate.turned", low=0.7, high=0.95)
    assert turned.more is None


@cases
def test_a_count_is_exact_but_for_what_is_missing(found, missing, most, outcome):
    said = count_at_most("max_critical_fails", found, missing, most, variant="v2")
    assert (said.outcome, said.value, said.high) == (outcome, found, found + missing)


@given(*[st.integers(0, 20)] * 3, st.integers(0, 10))
def test_the_share_of_failures_is_open_only_while_it_can_still_change(
    verdicts, failed, pending, tenth
):
    counts = JudgmentCounts(verdicts, failed, pending)
    said = share_at_most("max_failure_rate", counts, tenth / 10)
    planned = verdicts + failed + pending
    ends = {10 * (failed + more) <= tenth * planned for more in range(pending + 1)}
    expected = OPEN if not planned or len(ends) == 2 else "better" if ends == {True} else "worse"
    assert said.outcome == expected


@pytest.mark.parametrize("seed", range(3))
def test_questions_of_1_to_19_units_pass_where_they_are_harmless(seed):
    """Each question weighs alike, and one that was never seen is like any other; when it counted as
    much as the largest, nothing harmless passed."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 20, 60)
    cluster = np.repeat(np.arange(60), sizes)
    gaps = draw.normal(0.0, 0.15, 60)[cluster] + draw.normal(0.0, 0.1, cluster.size)
    found = mean_figure(np.clip(gaps, -1, 1), cluster, (-1.0, 1.0), 0.95)
    assert no_worse_than(found, 0.15, "v2", "v1", "overall").outcome == "better"
    means = [gaps[cluster == one].mean() for one in range(60)]
    assert (found.value, found.n, found.clusters) == (pytest.approx(np.mean(means)), len(gaps), 60)
