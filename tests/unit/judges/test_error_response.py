"""Error responses: what each amounts to, in every provider's words, against a real server."""

import email.utils
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import limits
from evenhand.errors import CallLost, ProviderRefused
from evenhand.judges.error_response import LONGEST_PAUSE, retry_after
from tests.cases import cases
from tests.dialects import anthropic_error, candidate, encoded, google_error, message
from tests.provider import (
    HTML,
    WRONG_CHARSET,
    Provider,
    busy,
    completion,
    failing,
    flooding,
    redirecting,
    resetting,
    sending,
    valid,
)
from tests.unit.judges.questions import ask, gist, reply_of

INVALID = "invalid_request_error"
QUOTA = "You exceeded your current quota, please check your plan and billing details."
DEEP = {"message": "deep words"}
for _ in range(40):
    DEEP = {"message": "words", "details": [DEEP]}


def full(said=QUOTA, quota="GenerateRequestsPerMinutePerProject", delay="9s"):
    """A limit of Gemini's, with the pause that it asks for."""
    failure = {"@type": "google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}
    retry = {"@type": "google.rpc.RetryInfo", "retryDelay": delay}
    return google_error(429, "RESOURCE_EXHAUSTED", said, [failure, retry])


@cases
async def test_an_answer_that_is_no_reply_ends_a_call_a_question_or_the_run(
    name, ends, word, status, body
):
    await ends_with(name, sending(body.encode(), status=status), ends, word)


@pytest.mark.parametrize(
    ("behaviour", "word"),
    [
        (HTML, "no JSON"),
        (WRONG_CHARSET, "no UTF-8"),
        (sending(completion("well").decode().encode("utf-16")), "no UTF-8"),
        (sending(b"[" * 100_000), "no JSON"),
        (sending(b"well", headers={"Content-Encoding": "gzip"}), "not gzip"),
        (sending(b"well", headers={"Content-Encoding": "rot13"}), "rot13"),
        (flooding(), str(limits.BODY_BYTES)),
        (resetting(), "broke"),
        (resetting(b""), "broke"),
    ],
)
async def test_what_cannot_be_read_may_be_billed(behaviour, word):
    await ends_with("openai", behaviour, "billed", word)


async def ends_with(name, behaviour, ends, word):
    error = await reply_of(name, behaviour)
    assert gist(error) == ends and word in str(error)
    assert getattr(error, "reason", "transport") in ("transport", ends)


@pytest.mark.parametrize(
    ("name", "replying", "refusal", "ends"),
    [
        ("openai", valid(), failing(400, "Cannot read byte 7."), "transport"),
        ("google", candidate("we"), google_error(400, INVALID, "API key expired."), "refused"),
        (
            "anthropic",
            message("we"),
            anthropic_error(400, INVALID, "Output blocked by content filtering policy"),
            "filtered",
        ),
    ],
)
async def test_after_a_reply_an_odd_refusal_concerns_one_question(name, replying, refusal, ends):
    [_, error], _ = await ask(name, replying, refusal, asked=[None, None])
    assert gist(error) == ends


async def test_without_a_key_the_advice_is_to_set_one():
    error = await reply_of("openai", failing(401, "Who are you?"), environment={})
    assert error.key == "judges.key_wanted" and "OPENAI_API_KEY" in error.advice


async def test_a_redirect_is_not_followed():
    async with Provider() as other:
        elsewhere = await reply_of("openai", redirecting(f"{other.url}/chat/completions"))
    assert (gist(elsewhere), other.calls) == ("refused", [])
    await ends_with("openai", redirecting("http://elsewhere.test/v1"), "refused", "elsewhere.test")
    await ends_with("openai", redirecting("/v1/other", 302), "refused", "base_url")


async def test_an_error_is_quoted_in_part_and_without_the_input_it_echoes():
    long = await reply_of("openai", sending(b"<p>\x00" * 9999, status=502))
    assert len(str(long)) < 600 and "\x00" not in str(long)
    echo = {"raw": "no luck", "flagged_input": "the judged text"}
    error = await reply_of("openrouter", failing(400, "error", metadata=echo))
    assert "no luck" in str(error) and "the judged text" not in str(error)
    deep = await reply_of("openrouter", encoded({"error": DEEP}, 500))
    assert str(deep).count("words") == 4


# Pauses

DATE = "Sun, 15 Nov 2026 20:00:00 GMT"


@pytest.mark.parametrize(
    ("name", "behaviour", "pause"),
    [
        ("openai", busy("7"), 7.0),
        ("openai", busy(retry_after_ms="250"), 0.25),
        ("openai", busy(), None),
        ("openai", failing(503, headers={"Retry-After": "3"}), 3.0),
        ("anthropic", anthropic_error(429, "rate_limit_error", "No", retry_after="17"), 17.0),
        ("google", full(delay="34.5s"), 34.5),
        ("google", full(delay="soon"), None),
    ],
)
async def test_the_pause_asked_for_is_told(name, behaviour, pause):
    assert (await reply_of(name, behaviour)).retry_after == pause


@cases
def test_a_pause_is_read(text, seconds):
    assert retry_after({"Retry-After": text, "Date": DATE}) == seconds


def test_milliseconds_come_first_where_they_are_some():
    for text, seconds in (("1500", 1.5), ("x", 2.0)):
        assert retry_after({"retry-after-ms": text, "Retry-After": "2"}) == seconds


def test_a_date_without_the_providers_clock_is_measured_by_ours():
    later = email.utils.formatdate(time.time() + 3600, usegmt=True)
    assert 3000 < retry_after({"Retry-After": later}) <= 3600


@given(text=st.text(), date=st.none() | st.text())
def test_whatever_stands_there_the_pause_is_sane(text, date):
    for name in ("Retry-After", "retry-after-ms"):
        pause = retry_after({name: text} | ({} if date is None else {"Date": date}))
        assert pause is None or 0 <= pause <= LONGEST_PAUSE


@cases
async def test_whether_to_try_again_is_as_the_provider_says(status, said, is_final):
    headers = {"x-should-retry": said}
    error = await reply_of("openai", failing(status, "Not now.", headers=headers))
    assert isinstance(error, ProviderRefused if is_final is None else CallLost)
    assert getattr(error, "is_final", None) is is_final
