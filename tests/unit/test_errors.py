"""A wrong name is answered with a near one, or with none."""

from __future__ import annotations

import pytest

from evenhand.errors import nearest

LIMITS = ("concurrency", "max_failure_rate", "requests_per_minute", "tokens_per_minute")


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("concurency", LIMITS, "concurrency"),
        ("requests_per_min", LIMITS, "requests_per_minute"),
        ("Concurrency", LIMITS, "concurrency"),
        ("GPT-4O", ("gpt-4o", "gpt-4o-mini"), "gpt-4o"),
        ("must_match_", ("must_match", "must_not_match"), "must_match"),
        ("must_not_mach", ("must_match", "must_not_match"), "must_not_match"),
        ("budget", LIMITS, None),
        ("v3", ("v1", "v2"), None),
        ("anything", (), None),
        ("", ("a",), None),
    ],
)
def test_the_nearest_name(name, known, meant):
    assert nearest(name, known) == meant
