"""Retry-After in all its spellings."""

from __future__ import annotations

import email.utils
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import CallLost, ProviderRefused
from evenhand.judges.error_response import LONGEST_PAUSE, retry_after
from tests.dialects import Endpoint
from tests.provider import failing
from tests.unit.judges.conftest import OpenJudge, answered

DATE = "Sun, 15 Nov 2026 20:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "20"}, 20.0),
        ({"Retry-After": " 20 "}, 20.0),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "1e300"}, None),
        ({"Retry-After": "1763236800"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "٣"}, None),
        ({"Retry-After": "Sun, 15 Nov 2026 20:01:00 GMT", "Date": DATE}, 60.0),
        ({"Retry-After": "Sunday, 15-Nov-26 20:01:00 GMT", "Date": DATE}, 60.0),
        ({"Retry-After": "Sun, 15 Nov 2026 19:00:00 GMT", "Date": DATE}, 0.0),
        ({"Retry-After": "Sun, 15 Nov 9999 19:00:00 GMT", "Date": DATE}, None),
        ({"Retry-After": "Sun, 99 Nov 2026 19:00:00 GMT", "Date": DATE}, None),
        ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
        ({"retry-after-ms": "x", "Retry-After": "2"}, 2.0),
    ],
)
def test_a_pause_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_date_without_the_providers_clock_is_measured_by_ours() -> None:
    later = email.utils.formatdate(time.time() + 3600, usegmt=True)
    pause = retry_after({"Retry-After": later})
    assert pause is not None
    assert 3000 < pause <= 3600


@given(text=st.text(), date=st.none() | st.text())
def test_whatever_stands_there_the_pause_is_sane(text: str, date: str | None) -> None:
    names = ("Retry-After", "retry-after-ms")
    for name in names:
        headers = {name: text} if date is None else {name: text, "Date": date}
        pause = retry_after(headers)
        assert pause is None or 0 <= pause <= LONGEST_PAUSE


@pytest.mark.parametrize("name", ["openai/gpt-test", "anthropic/claude-test", "google/gemini-test"])
@pytest.mark.parametrize(
    ("status", "said", "error", "is_final"),
    [
        (429, "false", CallLost, True),
        (503, "False", CallLost, True),
        (429, "true", CallLost, False),
        (429, "perhaps", CallLost, False),
        (400, "true", CallLost, False),
        (400, "false", ProviderRefused, None),
        (401, "true", ProviderRefused, None),
        (404, "true", ProviderRefused, None),
    ],
)
async def test_whether_to_try_again_is_as_the_provider_says(
    opened: OpenJudge, name: str, status: int, said: str, error: type[Exception], is_final: bool
) -> None:
    headers = {"x-should-retry": said}
    async with Endpoint(failing(status, "Not now.", headers=headers)) as endpoint:
        with pytest.raises(error) as raised:
            await answered(opened(name, endpoint.url))
    if isinstance(raised.value, CallLost):
        assert raised.value.is_final is is_final
