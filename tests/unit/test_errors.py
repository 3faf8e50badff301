"""What is advised instead of a wrong name: something near, or nothing, never the opposite."""

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
        # Nothing is near, two are equally near, or the nearest turns the meaning.
        ("budget", LIMITS, None),
        ("v3", ("v1", "v2"), None),
        ("must_contain", ("must_not_match", "max_chars"), None),
        ("min_failure_rate", LIMITS, None),
        ("min_chars", ("max_chars",), None),
        ("first_length", ("second_length",), None),
        ("anything", (), None),
        ("", ("a",), None),
    ],
)
def test_the_nearest_name(name: str, known: tuple[str, ...], meant: str | None) -> None:
    assert nearest(name, known) == meant


def test_a_misspelt_negation_is_no_reason_to_advise_the_opposite() -> None:
    assert nearest("must_nto_match", ("must_match", "must_not_match")) != "must_match"
