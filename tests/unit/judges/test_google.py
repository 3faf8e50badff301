"""What a Gemini judge sends, and how it reads what comes back, against a real server."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.errors import CallError, CallLost, CallRejected, ProviderRefused
from evenhand.exchange import Usage
from tests.dialects import Endpoint, candidate, encoded, google_error
from tests.provider import EMPTY, HTML, Behaviour, redirecting
from tests.unit.judges.conftest import KEY, SCHEMA, OpenJudge, answered, question

NAME = "google/gemini-test"
ENV = {"GEMINI_API_KEY": KEY}
INVALID = "INVALID_ARGUMENT"
EXHAUSTED = "RESOURCE_EXHAUSTED"
QUOTA = "You exceeded your current quota, please check your plan and billing details."


async def outcome(opened: OpenJudge, *script: Behaviour) -> Exception:
    """What the last call of a script raises; those before it are answered."""
    async with Endpoint(list(script)) as endpoint:
        judge = opened(NAME, endpoint.url, environment=ENV)
        for _ in script[:-1]:
            await answered(judge)
        with pytest.raises((CallError, ProviderRefused)) as raised:
            await answered(judge)
    assert KEY not in str(raised.value)
    return raised.value


def config(endpoint: Endpoint, number: int = -1) -> dict[str, Any]:
    found: dict[str, Any] = endpoint.calls[number].body["generationConfig"]
    return found


async def test_the_request_has_contents_settings_and_the_key_in_a_header(
    opened: OpenJudge,
) -> None:
    async with Endpoint(candidate("{}")) as endpoint:
        judge = opened(NAME, endpoint.url, environment=ENV)
        reply = await answered(judge, question("Оцени 评分").again("no", "Again."))
    call = endpoint.calls[0]
    assert endpoint.path() == "/v1beta/models/gemini-test:generateContent"
    assert call.headers["x-goog-api-key"] == KEY
    assert "Authorization" not in call.headers
    assert call.body == {
        "systemInstruction": {"parts": [{"text": "You judge."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Оцени 评分"}]},
            {"role": "model", "parts": [{"text": "no"}]},
            {"role": "user", "parts": [{"text": "Again."}]},
        ],
        "generationConfig": {
            "maxOutputTokens": 256,
            "temperature": 0.0,
            "seed": 7,
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
        },
    }
    assert reply.sampling == {"temperature": 0.0, "seed": 7}


async def test_what_is_not_set_is_not_sent(opened: OpenJudge) -> None:
    async with Endpoint(candidate("well")) as endpoint:
        reply = await answered(
            opened(NAME, endpoint.url, temperature=None, seed=None), question(schema=None)
        )
    assert config(endpoint) == {"maxOutputTokens": 256}
    assert reply.sampling == {}


@pytest.mark.parametrize(
    ("environment", "key"),
    [
        ({"GEMINI_API_KEY": KEY, "GOOGLE_API_KEY": "other-key"}, KEY),
        ({"GOOGLE_API_KEY": KEY}, KEY),
        ({"GEMINI_API_KEY": " ", "GOOGLE_API_KEY": KEY}, KEY),
        ({}, None),
    ],
)
async def test_the_key_has_two_names(
    opened: OpenJudge, environment: dict[str, str], key: str | None
) -> None:
    async with Endpoint(candidate("well")) as endpoint:
        await answered(opened(NAME, endpoint.url, environment=environment))
    assert endpoint.calls[0].headers.get("x-goog-api-key") == key


@pytest.mark.parametrize(
    ("given", "environment", "base"),
    [
        (None, {}, "https://generativelanguage.googleapis.com/v1beta"),
        (None, {"GEMINI_BASE_URL": "https://gate.test/g/"}, "https://gate.test/g/v1beta"),
        (None, {"GOOGLE_BASE_URL": "https://gate.test"}, "https://gate.test/v1beta"),
        ("https://gate.test/v1", {"GEMINI_BASE_URL": "x"}, "https://gate.test/v1"),
    ],
)
async def test_the_address(
    opened: OpenJudge, given: str | None, environment: dict[str, str], base: str
) -> None:
    assert opened(NAME, given, environment=environment).identity["base_url"] == base


async def test_a_model_may_be_named_by_its_resource(opened: OpenJudge) -> None:
    async with Endpoint(candidate("well")) as endpoint:
        await answered(opened("google/tunedModels/mine", endpoint.url))
        await answered(opened("google:models/gemini-test", endpoint.url))
    assert endpoint.path(0) == "/v1beta/tunedModels/mine:generateContent"
    assert endpoint.path(1) == "/v1beta/models/gemini-test:generateContent"


async def test_the_reply_is_its_text_without_thoughts_and_they_count(opened: OpenJudge) -> None:
    thought = {"text": "hm", "thought": True}
    async with Endpoint(candidate(thought, "we", "ll")) as endpoint:
        reply = await answered(opened(NAME, endpoint.url))
    assert (reply.text, reply.finish, reply.model) == ("well", "stop", "gemini-test-001")
    assert reply.usage == Usage(input_tokens=900, output_tokens=200, cached_tokens=128)


@pytest.mark.parametrize(
    ("finish", "told"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "filtered"),
        ("RECITATION", "filtered"),
        ("PROHIBITED_CONTENT", "filtered"),
        ("SPII", "filtered"),
        ("BLOCKLIST", "filtered"),
        ("OTHER", "stop"),
        (None, "stop"),
    ],
)
async def test_the_finish_is_told(opened: OpenJudge, finish: str | None, told: str) -> None:
    async with Endpoint(candidate("we", finish=finish)) as endpoint:
        assert (await answered(opened(NAME, endpoint.url))).finish == told


@pytest.mark.parametrize("content", [None, {}, {"role": "model"}, {"parts": []}])
async def test_a_candidate_without_text_is_an_empty_reply(opened: OpenJudge, content: Any) -> None:
    async with Endpoint(candidate(content=content, finish="MAX_TOKENS")) as endpoint:
        reply = await answered(opened(NAME, endpoint.url))
    assert (reply.text, reply.finish) == ("", "length")


async def test_a_blocked_prompt_is_a_filtered_reply_that_was_counted(opened: OpenJudge) -> None:
    blocked = {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9},
        "modelVersion": "gemini-test-001",
    }
    async with Endpoint(encoded(blocked)) as endpoint:
        reply = await answered(opened(NAME, endpoint.url))
    assert (reply.text, reply.finish, reply.model) == ("", "filtered", "gemini-test-001")
    assert reply.usage == Usage(input_tokens=9, output_tokens=0)


@pytest.mark.parametrize(
    ("usage", "known"),
    [
        (None, Usage()),
        ([], Usage()),
        ({"promptTokenCount": "9"}, Usage(implausible="input str, output 0 + 0")),
        (
            {"promptTokenCount": 9, "candidatesTokenCount": -1},
            Usage(implausible="input 9, output -1 + 0"),
        ),
        (
            {"promptTokenCount": 9, "thoughtsTokenCount": 4},
            Usage(input_tokens=9, output_tokens=4),
        ),
    ],
)
async def test_odd_usage_is_unknown(opened: OpenJudge, usage: Any, known: Usage) -> None:
    body = {"candidates": [{"content": {"parts": [{"text": "well"}]}}], "usageMetadata": usage}
    async with Endpoint(encoded(body)) as endpoint:
        assert (await answered(opened(NAME, endpoint.url))).usage == known


@pytest.mark.parametrize(
    "said",
    [
        "Invalid JSON payload received. Unknown name \"responseJsonSchema\" at 'generation_config'",
        "A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth.",
        "The specified schema produces a constraint that has too many states for serving.",
        "JSON mode is not enabled for models/gemma-test",
    ],
)
async def test_a_refused_schema_leads_to_json_then_to_plain_text(
    opened: OpenJudge, said: str
) -> None:
    refusal = google_error(400, INVALID, said)
    async with Endpoint([refusal, refusal, candidate("well")]) as endpoint:
        await answered(opened(NAME, endpoint.url))
    sent = [config(endpoint, n) for n in range(3)]
    assert ["responseJsonSchema" in one for one in sent] == [True, False, False]
    assert ["responseMimeType" in one for one in sent] == [True, True, False]


async def test_a_refused_seed_is_left_out(opened: OpenJudge) -> None:
    said = "Invalid JSON payload received. Unknown name \"seed\" at 'generation_config'"
    script = [google_error(400, INVALID, said), candidate("well")]
    async with Endpoint(script) as endpoint:
        reply = await answered(opened(NAME, endpoint.url))
    assert "seed" not in config(endpoint)
    assert reply.sampling == {"temperature": 0.0}


def retrying(delay: str, quota: str = "GenerateRequestsPerMinutePerProject") -> list[Any]:
    return [
        {"@type": "google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]},
        {"@type": "google.rpc.RetryInfo", "retryDelay": delay},
    ]


@pytest.mark.parametrize(
    ("behaviour", "pause"),
    [
        (google_error(429, EXHAUSTED, QUOTA, retrying("34.5s")), 34.5),
        (google_error(429, EXHAUSTED, QUOTA, retrying("soon")), None),
        (google_error(429, EXHAUSTED, QUOTA), None),
        (google_error(503, "UNAVAILABLE", "The model is overloaded."), None),
        (google_error(500, "INTERNAL", "An internal error has occurred."), None),
        (google_error(504, "DEADLINE_EXCEEDED", "The service could not finish."), None),
        (encoded({"error": {"code": 503, "message": "odd"}}), None),
        (encoded({}), None),
        (encoded({"candidates": []}), None),
        (encoded({"candidates": [], "promptFeedback": {}}), None),
        (encoded({"candidates": [{"content": {"parts": [3]}}]}), None),
        (encoded([]), None),
        (HTML, None),
        (EMPTY, None),
    ],
)
async def test_what_is_worth_another_attempt(
    opened: OpenJudge, behaviour: Behaviour, pause: float | None
) -> None:
    error = await outcome(opened, behaviour)
    assert isinstance(error, CallLost)
    assert (error.reason, error.retry_after) == ("transport", pause)


BAD_KEY = [{"@type": "google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (google_error(400, INVALID, "API key not valid.", BAD_KEY), "GEMINI_API_KEY"),
        (google_error(403, "PERMISSION_DENIED", "Forbidden."), "GEMINI_API_KEY"),
        (google_error(401, "UNAUTHENTICATED", "Who are you?"), "GEMINI_API_KEY"),
        (google_error(404, "NOT_FOUND", "models/gemini-test is not found"), "no such model"),
        (google_error(400, "FAILED_PRECONDITION", "Location not supported."), "Location"),
        (
            google_error(429, EXHAUSTED, QUOTA, retrying("9s", "GenerateRequestsPerDay-FreeTier")),
            "the quota is used up",
        ),
        (redirecting("http://elsewhere.test/"), "redirects"),
    ],
)
async def test_what_ends_the_run(opened: OpenJudge, behaviour: Behaviour, words: str) -> None:
    error = await outcome(opened, behaviour)
    assert isinstance(error, ProviderRefused)
    assert words in str(error)


async def test_a_key_that_expires_ends_the_run_even_after_an_answer(opened: OpenJudge) -> None:
    expired = google_error(400, INVALID, "API key expired. Please renew the API key.")
    assert isinstance(await outcome(opened, candidate("well"), expired), ProviderRefused)


async def test_what_does_not_fit_is_an_overflow(opened: OpenJudge) -> None:
    said = "The input token count (9) exceeds the maximum number of tokens allowed (8)."
    error = await outcome(opened, candidate("well"), google_error(400, INVALID, said))
    assert isinstance(error, CallRejected)
    assert error.reason == "context_overflow"


async def test_the_official_host_is_not_asked_without_a_key(opened: OpenJudge) -> None:
    with pytest.raises(ProviderRefused, match="Set GEMINI_API_KEY"):
        await answered(opened(NAME))
