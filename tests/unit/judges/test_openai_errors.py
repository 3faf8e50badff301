"""What each kind of failure of a provider amounts to, against a real server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenhand import limits
from evenhand.errors import CallError, CallLost, CallRejected, ProviderRefused
from tests.provider import (
    EMPTY,
    HTML,
    WRONG_CHARSET,
    Behaviour,
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
from tests.unit.judges.conftest import MakeJudge, question


async def outcome(judge: MakeJudge, *script: Behaviour, **settings: Any) -> Exception:
    """What the last call of a script raises; those before it are answered."""
    async with Provider(list(script)) as provider:
        asked = judge(provider.url, **settings)
        for _ in script[:-1]:
            await asked.answer(question())
        with pytest.raises((CallError, ProviderRefused)) as raised:
            await asked.answer(question())
    return raised.value


def within_200(**error: Any) -> Behaviour:
    return sending(json.dumps({"error": error}).encode())


# Lost: worth another attempt


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_overload_is_lost(judge: MakeJudge, status: int) -> None:
    error = await outcome(judge, failing(status, "Try later."))
    assert isinstance(error, CallLost)
    assert error.reason == "transport"
    assert "Try later." in str(error)
    assert error.billed is (status in (408, 504))


@pytest.mark.parametrize(
    ("behaviour", "seconds"),
    [
        (busy("7"), 7.0),
        (busy("0.5"), 0.5),
        (busy(retry_after_ms="250"), 0.25),
        (busy("Sun, 15 Nov 2026 20:00:09 GMT", Date="Sun, 15 Nov 2026 20:00:00 GMT"), 9.0),
        (busy("-5"), None),
        (busy(), None),
        (failing(503, headers={"Retry-After": "3"}), 3.0),
    ],
)
async def test_the_pause_asked_for_is_told(
    judge: MakeJudge, behaviour: Behaviour, seconds: float | None
) -> None:
    error = await outcome(judge, behaviour)
    assert isinstance(error, CallLost)
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    ("behaviour", "word"),
    [
        (HTML, "no JSON"),
        (EMPTY, "empty"),
        (WRONG_CHARSET, "no UTF-8"),
        (sending(completion("well").decode().encode("utf-16")), "no UTF-8"),
        (sending(completion("well")[:-9]), "no JSON"),
        (sending(b"[" * 100_000), "no JSON"),
        (sending(b"{}"), "without choices"),
        (sending(b"[]"), "without choices"),
        (sending(b"null"), "without choices"),
        (sending(b'{"choices": []}'), "without choices"),
        (sending(b'{"choices": {}}'), "without choices"),
        (sending(b'{"choices": [{"message": null}]}'), "without choices"),
        (saying("half", finish="error"), "without choices"),
        (within_200(message="upstream went away"), "upstream went away"),
        (sending(b'{"error": "out of memory"}'), "out of memory"),
        (sending(b"{}", status=204), "empty"),
        (sending(b"well", headers={"Content-Encoding": "gzip"}), "not gzip"),
        (sending(b"well", headers={"Content-Encoding": "rot13"}), "rot13"),
        (flooding(), str(limits.BODY_BYTES)),
        (resetting(), "broke"),
        (resetting(b""), "broke"),
    ],
)
async def test_nonsense_and_broken_answers_are_lost_and_may_be_billed(
    judge: MakeJudge, behaviour: Behaviour, word: str
) -> None:
    error = await outcome(judge, behaviour)
    assert isinstance(error, CallLost)
    assert (error.reason, error.billed) == ("transport", True)
    assert word in str(error)


async def test_no_answer_in_time_is_a_timeout_and_may_be_billed(judge: MakeJudge) -> None:
    error = await outcome(judge, never(), attempt_seconds=0.1)
    assert isinstance(error, CallLost)
    assert (error.reason, error.billed) == ("timeout", True)


async def test_a_refused_connection_is_lost_and_not_billed(judge: MakeJudge) -> None:
    async with Provider() as provider:
        pass
    with pytest.raises(CallLost) as lost:
        await judge(provider.url).answer(question())
    assert (lost.value.reason, lost.value.billed) == ("transport", False)


async def test_an_error_inside_a_200_counts_as_the_status_it_carries(judge: MakeJudge) -> None:
    assert isinstance(await outcome(judge, within_200(code=401, message="no")), ProviderRefused)
    assert isinstance(await outcome(judge, within_200(code="502", message="no")), CallLost)
    quota = within_200(code=429, message="no", type="insufficient_quota")
    assert isinstance(await outcome(judge, quota), ProviderRefused)


async def test_a_judge_goes_on_after_a_lost_call(judge: MakeJudge) -> None:
    async with Provider([flooding(20), resetting(), failing(500), valid()]) as provider:
        asked = judge(provider.url)
        for _ in range(3):
            with pytest.raises(CallLost):
                await asked.answer(question())
        await asked.answer(question())


# Refused: trying again will not help


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (failing(401, "Incorrect API key."), ["key is not accepted", "OPENAI_API_KEY"]),
        (failing(403, "Country not supported."), ["Country not supported", "OPENAI_API_KEY"]),
        (failing(402, "Insufficient Balance"), ["pay", "OPENAI_API_KEY"]),
        (failing(404, "The model does not exist."), ["no such model", "test-model", "base_url"]),
        (failing(405, "Method Not Allowed"), ["base_url"]),
        (failing(400, "Odd request."), ["refuses the request", "Odd request."]),
        (out_of_quota(), ["quota", "OPENAI_API_KEY", "run again"]),
        (failing(429, "no", code="billing_hard_limit_reached"), ["quota"]),
        (failing(400, "Your credit balance is too low."), ["quota", "OPENAI_API_KEY"]),
        (failing(429, "You exceeded your current quota."), ["quota"]),
        (failing(429, "Insufficient balance, please recharge."), ["quota"]),
        (redirecting("http://elsewhere.test/v1"), ["redirects", "elsewhere.test", "base_url"]),
        (redirecting("/v1/other", 302), ["redirects", "base_url"]),
    ],
)
async def test_what_will_not_change_ends_the_run_with_advice(
    judge: MakeJudge, behaviour: Behaviour, words: list[str]
) -> None:
    error = await outcome(judge, behaviour)
    assert isinstance(error, ProviderRefused)
    for word in words:
        assert word in str(error)


async def test_without_a_key_the_advice_is_to_set_one(judge: MakeJudge) -> None:
    error = await outcome(judge, failing(401, "Who are you?"), environment={})
    assert "Set OPENAI_API_KEY" in str(error)


async def test_a_redirect_is_not_followed(judge: MakeJudge) -> None:
    async with Provider() as other:
        error = await outcome(judge, redirecting(f"{other.url}/chat/completions"))
    assert isinstance(error, ProviderRefused)
    assert other.calls == []


async def test_a_full_minute_of_gemini_is_no_used_up_quota(judge: MakeJudge) -> None:
    said = "You exceeded your current quota, please check your plan and billing details."
    body = [{"error": {"code": 429, "message": said, "status": "RESOURCE_EXHAUSTED"}}]
    error = await outcome(judge, sending(json.dumps(body).encode(), status=429))
    assert isinstance(error, CallLost)


async def test_an_advertisement_in_a_rate_limit_is_no_used_up_quota(judge: MakeJudge) -> None:
    said = "Rate limit reached. Add a payment method at https://openai.test/account/billing."
    assert isinstance(await outcome(judge, failing(429, said)), CallLost)


# Rejected: this question only


@pytest.mark.parametrize(
    "behaviour",
    [
        overflowing(),
        failing(413, "Payload Too Large"),
        sending(b"<html>413 Request Entity Too Large</html>", status=413),
        failing(400, "the request exceeds the available context size. try increasing it"),
        failing(400, "prompt is too long: 200001 tokens > 200000 maximum"),
        failing(400, "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
        failing(400, "Range of input length should be [1, 30720]"),
        failing(422, "Input validation error: `inputs` tokens must be reduced"),
        failing(400, "'max_tokens' is too large: 9. This model's maximum context length is 4."),
        failing(500, "input exceeds the context window"),
        failing(429, "Request too large: Limit 1, Requested 2. The tokens must be reduced."),
    ],
)
async def test_a_question_that_does_not_fit_is_an_overflow(
    judge: MakeJudge, behaviour: Behaviour
) -> None:
    error = await outcome(judge, behaviour)
    assert isinstance(error, CallRejected)
    assert error.reason == "context_overflow"


@pytest.mark.parametrize(
    "behaviour",
    [
        failing(400, "Blocked.", code="content_filter"),
        failing(400, "The prompt triggered Azure's content management policy."),
        failing(403, "Your input was flagged."),
        failing(400, "Input data may contain inappropriate content.", code="DataInspectionFailed"),
        failing(400, "系统检测到输入内容可能包含不安全或敏感内容", code="1301"),
    ],
)
async def test_a_filtered_question_is_told_as_such(judge: MakeJudge, behaviour: Behaviour) -> None:
    error = await outcome(judge, behaviour)
    assert isinstance(error, CallRejected)
    assert error.reason == "filtered"


async def test_an_odd_refusal_after_a_success_concerns_one_question(judge: MakeJudge) -> None:
    error = await outcome(judge, valid(), failing(400, "Cannot read byte 7."))
    assert isinstance(error, CallRejected)
    assert error.reason == "transport"


async def test_a_long_error_page_is_quoted_in_part(judge: MakeJudge) -> None:
    error = await outcome(judge, sending(b"<p>\x00" * 9999, status=502))
    assert len(str(error)) < 600
    assert "\x00" not in str(error)
