"""The rate of a run, from the times of its calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from evenhand.results.pages import RATE_CALLS, calls_a_minute

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


def ago(seconds):
    return (NOW - timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


@pytest.mark.parametrize(
    ("ages", "started", "rate"),
    [
        ([], 5, 0.0),
        ([0.2] * 3, 5, 180.0),  # a second at least
        ([3 * i / 15 for i in range(16)], 4, 320.0),  # 16 calls in 3 s
        ([float(i) for i in range(1, 31)], 31, 60.0),
        ([float(i) for i in range(1, 301)], 301, 60.0),  # of the last minute only
        ([50.0, 60.0], 61, 2.0),
        ([70.0, 80.0], 90, 0.0),
        ([1.0, 2.0, 30.0, 40.0, 50.0], 3, 60.0),  # the older ones are of an earlier start
        ([i / 1000 for i in range(10_000, 10_000 + RATE_CALLS)], 500, 10_000.0),
    ],
)
def test_the_rate_is_that_of_the_time_the_calls_cover(ages, started, rate):
    found = calls_a_minute([ago(age) for age in ages], ago(started), NOW)
    assert found == pytest.approx(rate, rel=0.01)
