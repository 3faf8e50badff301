"""Error responses: what each amounts to, in every provider's words, against a real server."""

import email.utils
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import limits
from evenhand.errors import CallLost, ProviderRefused
from evenhand.judges.error_response import LONGEST_PAUSE, retry_after
from tests.dialects import anthropic_error, candidate, encoded, google_error, message
from tests.provider import (
    EMPTY,
    HTML,
    WRONG_CHARSET,
    Provider,
    busy,
    completion,
    failing,
    flooding,
    never,
    out_of_quota,
    overflowing,
    redirecting,
    resetting,
    saying,
    sending,
    valid,
)
from tests.unit.judges.questions import ask, endpoint_of, gist, outcome, reply_of

INVALID = "invalid_request_error"
QUOTA = "You exceeded your current quota, please check your plan and billing details."
TOO_LONG = "The input token count (9) exceeds the maximum number of tokens allowed (8)."
BAD_KEY = [{"@type": "google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
UPSTREAM = {"raw": '{"message": "maximum context length is 10 tokens"}', "provider_name": "Azure"}
DEEP = {"message": "deep words"}
for _ in range(40):
    DEEP = {"message": "words", "details": [DEEP]}


def full(said=QUOTA, quota="GenerateRequestsPerMinutePerProject", delay="9s"):
    """A limit of Gemini's, with the pause that it asks for."""
    failure = {"@type": "google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}
    retry = {"@type": "google.rpc.RetryInfo", "retryDelay": delay}
    return google_error(429, "RESOURCE_EXHAUSTED", said, [failure, retry])


def within_200(**error):
    return encoded({"error": error})


def in_choice(**error):
    body = json.loads(completion("half", finish="error"))
    body["choices"][0]["error"] = error
    return encoded(body)


@pytest.mark.parametrize(
    ("name", "ends", "behaviour", "word"),
    [
        *(("openai", "billed", failing(status, "Later."), "Later.") for status in (408, 504)),
        *(("openai", "lost", failing(status), "") for status in (409, 429, 500, 502, 503, 529)),
        ("openai", "billed", HTML, "no JSON"),
        ("openai", "billed", EMPTY, "empty"),
        ("openai", "billed", WRONG_CHARSET, "no UTF-8"),
        ("openai", "billed", sending(completion("well").decode().encode("utf-16")), "no UTF-8"),
        ("openai", "billed", sending(completion("well")[:-9]), "no JSON"),
        ("openai", "billed", sending(b"[" * 100_000), "no JSON"),
        ("openai", "billed", sending(b"null"), "without choices"),
        ("openai", "billed", sending(b"[]"), "without choices"),
        ("openai", "billed", sending(b'{"choices": []}'), "without choices"),
        ("openai", "billed", sending(b'{"choices": {}}'), "without choices"),
        ("openai", "billed", sending(b'{"choices": [{"message": null}]}'), "without choices"),
        ("openai", "billed", saying("half", finish="error"), "without choices"),
        ("openai", "billed", sending(b"{}", status=204), "empty"),
        ("openai", "billed", sending(b"well", headers={"Content-Encoding": "gzip"}), "not gzip"),
        ("openai", "billed", sending(b"well", headers={"Content-Encoding": "rot13"}), "rot13"),
        ("openai", "billed", flooding(), str(limits.BODY_BYTES)),
        ("openai", "billed", resetting(), "broke"),
        ("openai", "billed", resetting(b""), "broke"),
        ("openai", "billed", within_200(message="upstream went away"), "upstream went away"),
        ("openai", "billed", sending(b'{"error": "out of memory"}'), "out of memory"),
        ("openai", "lost", within_200(code="502", message="no"), "502"),
        ("openai", "lost", within_200(code=429, message="Slow down"), "429"),
        ("openai", "refused", within_200(code=401, message="no"), "401"),
        ("openai", "refused", within_200(code=429, type="insufficient_quota"), "quota"),
        ("openrouter", "lost", in_choice(code=502, message="Upstream is down"), "502"),
        ("openrouter", "refused", in_choice(code=401, message="Bad key upstream"), "upstream"),
        ("anthropic", "lost", anthropic_error(529, "overloaded_error", "Overloaded"), ""),
        ("anthropic", "billed", anthropic_error(504, "timeout_error", "Timed out"), ""),
        ("anthropic", "billed", encoded({"type": "error", "error": {"message": "odd"}}), "odd"),
        ("anthropic", "billed", encoded({"content": None}), "without content"),
        ("anthropic", "billed", encoded({"content": [{"type": "text"}]}), "without content"),
        ("anthropic", "billed", encoded([]), "without content"),
        ("google", "lost", google_error(503, "UNAVAILABLE", "Overloaded."), ""),
        ("google", "billed", google_error(504, "DEADLINE_EXCEEDED", "No."), ""),
        ("google", "lost", within_200(code=503, message="odd"), "odd"),
        ("google", "lost", full(), ""),
        ("google", "billed", encoded([]), "without candidates"),
        ("google", "billed", encoded({"candidates": []}), "without candidates"),
        ("google", "billed", encoded({"candidates": [], "promptFeedback": {}}), "without"),
        ("google", "billed", encoded({"candidates": [{"content": {"parts": [3]}}]}), "without"),
        # An advertisement, and a full minute at Gemini, are no used-up quota.
        ("openai", "lost", failing(429, "Rate limit reached. See openai.test/account/billing"), ""),
        (
            "openai",
            "lost",
            encoded([{"error": {"message": QUOTA + " RESOURCE_EXHAUSTED"}}], 429),
            "",
        ),
        # The end of the run
        ("openai", "refused", failing(401, "Incorrect API key."), "OPENAI_API_KEY"),
        ("openai", "refused", failing(403, "Country not supported."), "OPENAI_API_KEY"),
        ("openai", "refused", failing(402, "Insufficient Balance"), "OPENAI_API_KEY"),
        ("openai", "refused", failing(404, "The model does not exist."), "base_url"),
        ("openai", "refused", failing(405, "Method Not Allowed"), "base_url"),
        ("openai", "refused", failing(400, "Odd request."), "Odd request."),
        ("openai", "refused", out_of_quota(), "OPENAI_API_KEY"),
        ("openai", "refused", failing(429, "no", code="billing_hard_limit_reached"), "quota"),
        ("openai", "refused", failing(400, "Your credit balance is too low."), "quota"),
        ("openai", "refused", failing(429, "Insufficient balance, please recharge."), "quota"),
        ("openai", "refused", redirecting("http://elsewhere.test/v1"), "elsewhere.test"),
        ("openai", "refused", redirecting("/v1/other", 302), "base_url"),
        ("openrouter", "refused", encoded({"error": {"code": 402}}, 402), "OPENROUTER_API_KEY"),
        ("ollama", "refused", failing(404, 'model "m" not found, try pulling it'), "pulling"),
        ("azure", "refused", encoded({"error": {"code": "401"}}, 401), "AZURE_OPENAI_API_KEY"),
        ("azure", "refused", failing(404, "no", code="DeploymentNotFound"), "base_url"),
        ("anthropic", "refused", anthropic_error(401, "x", "bad x-api-key"), "ANTHROPIC_API_KEY"),
        ("anthropic", "refused", anthropic_error(404, "x", "model: m"), "no such model"),
        ("anthropic", "refused", anthropic_error(402, "billing_error", "pay first"), "pay"),
        (
            "anthropic",
            "refused",
            anthropic_error(400, INVALID, "You have reached your specified API usage limits"),
            "quota",
        ),
        ("anthropic", "refused", anthropic_error(400, INVALID, "max_tokens: 9 > 8"), "9 > 8"),
        ("google", "refused", google_error(400, INVALID, "Not valid.", BAD_KEY), "GEMINI_API_KEY"),
        ("google", "refused", google_error(403, "PERMISSION_DENIED", "No."), "GEMINI_API_KEY"),
        ("google", "refused", google_error(400, INVALID, "Location not supported."), "Location"),
        ("google", "refused", full(quota="GenerateRequestsPerDay-FreeTier"), "quota"),
        # One question alone
        *(
            ("openai", "context_overflow", behaviour, "")
            for behaviour in (
                overflowing(),
                sending(b"<html>413 Request Entity Too Large</html>", status=413),
                failing(400, "the request exceeds the available context size. try increasing it"),
                failing(400, "prompt is too long: 200001 tokens > 200000 maximum"),
                failing(400, TOO_LONG),
                failing(400, "Range of input length should be [1, 30720]"),
                failing(422, "Input validation error: `inputs` tokens must be reduced"),
                failing(400, "'max_tokens' is too large: 9. The maximum context length is 4."),
                failing(500, "input exceeds the context window"),
                failing(429, "Request too large: Limit 1. The tokens must be reduced."),
                failing(400, "Provider returned error", metadata=UPSTREAM),
            )
        ),
        (
            "anthropic",
            "context_overflow",
            anthropic_error(400, INVALID, "input length and `max_tokens` exceed context limit: 1"),
            "",
        ),
        *(
            ("openai", "filtered", behaviour, "")
            for behaviour in (
                failing(400, "Blocked.", code="content_filter"),
                failing(400, "The prompt triggered Azure's content management policy."),
                failing(403, "m requires moderation: input flagged"),
                failing(400, "It may contain inappropriate content.", code="DataInspectionFailed"),
                failing(400, "系统检测到输入内容可能包含不安全或敏感内容", code="1301"),
                failing(400, "No.", innererror={"code": "x"}, type="ResponsibleAIPolicyViolation"),
            )
        ),
    ],
)
async def test_an_answer_that_is_no_reply_ends_a_call_a_question_or_the_run(
    name, ends, behaviour, word
):
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


async def test_no_answer_in_time_is_a_timeout_and_may_be_billed():
    error = await reply_of("openai", never(), attempt_seconds=0.1)
    assert (gist(error), error.reason) == ("billed", "timeout")


async def test_a_judge_goes_on_after_a_lost_call():
    async with endpoint_of("openai", flooding(20), resetting(), failing(500), valid()) as (
        judge,
        _,
    ):
        ends = [gist(await outcome(judge)) for _ in range(3)]
        assert (ends, (await outcome(judge)).finish) == (["billed", "billed", "lost"], "stop")


async def test_without_a_key_the_advice_is_to_set_one():
    error = await reply_of("openai", failing(401, "Who are you?"), environment={})
    assert error.key == "judges.key_wanted" and "OPENAI_API_KEY" in error.advice


async def test_a_redirect_is_not_followed():
    async with Provider() as other:
        error = await reply_of("openai", redirecting(f"{other.url}/chat/completions"))
    assert (gist(error), other.calls) == ("refused", [])


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (" 20 ", 20.0),
        ("0", 0.0),
        ("1.5", 1.5),
        *((text, None) for text in ("-1", "nan", "inf", "1763236800", "soon", "", "٣")),
        ("Sun, 15 Nov 2026 20:01:00 GMT", 60.0),
        ("Sunday, 15-Nov-26 20:01:00 GMT", 60.0),
        ("Sun, 15 Nov 2026 19:00:00 GMT", 0.0),
        ("Sun, 15 Nov 9999 19:00:00 GMT", None),
        ("Sun, 99 Nov 2026 19:00:00 GMT", None),
    ],
)
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


@pytest.mark.parametrize(
    ("status", "said", "is_final"),
    [
        (429, "false", True),
        (503, "False", True),
        (429, "true", False),
        (429, "perhaps", False),
        (400, "true", False),
        (400, "false", None),
        (401, "true", None),
    ],
)
async def test_whether_to_try_again_is_as_the_provider_says(status, said, is_final):
    headers = {"x-should-retry": said}
    error = await reply_of("openai", failing(status, "Not now.", headers=headers))
    assert isinstance(error, ProviderRefused if is_final is None else CallLost)
    assert getattr(error, "is_final", None) is is_final
