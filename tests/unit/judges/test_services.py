"""The services that speak chat completions: where each is, and what is its own, on loopback."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenhand.errors import CallError, CallLost, CallRejected, ProviderRefused, UsageError
from evenhand.exchange import Usage
from evenhand.judges import PROVIDERS
from evenhand.judges.providers import ollama_url
from tests.dialects import Endpoint, encoded
from tests.provider import Behaviour, completion, failing, saying
from tests.unit.judges.conftest import KEY, SCHEMA, OpenJudge, answered, question

CHAT = ("openai", "openrouter", "ollama", "azure")
PATHS = {"azure": "/openai/v1", "ollama": "/v1", "openai": "/v1", "openrouter": "/api/v1"}
KEYS = {name: f"{name.upper()}_API_KEY" for name in CHAT} | {"azure": "AZURE_OPENAI_API_KEY"}


def base(endpoint: Endpoint, name: str) -> str:
    return endpoint.url + PATHS[name]


async def raised(opened: OpenJudge, name: str, behaviour: Behaviour) -> Exception:
    async with Endpoint(behaviour) as endpoint:
        judge = opened(f"{name}/m", base(endpoint, name), environment={KEYS[name]: KEY})
        with pytest.raises((CallError, ProviderRefused)) as error:
            await answered(judge)
    assert KEY not in str(error.value)
    return error.value


# All of them


@pytest.mark.parametrize("name", CHAT)
async def test_the_request(opened: OpenJudge, name: str) -> None:
    async with Endpoint(saying("well")) as endpoint:
        judge = opened(f"{name}/some/m:1b", base(endpoint, name), environment={KEYS[name]: KEY})
        reply = await answered(judge)
    call = endpoint.calls[0]
    assert endpoint.path() == f"{PATHS[name]}/chat/completions"
    header = "api-key" if name == "azure" else "Authorization"
    sent = {h: call.headers[h] for h in ("api-key", "Authorization") if h in call.headers}
    assert sent == {header: KEY if name == "azure" else f"Bearer {KEY}"}
    assert call.body == {
        "model": "some/m:1b",
        "messages": [
            {"role": "system", "content": "You judge."},
            {"role": "user", "content": "Judge this."},
        ],
        "max_tokens": 256,
        "temperature": 0.0,
        "seed": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
        },
    }
    assert judge.identity["provider"] == name
    assert reply.usage == Usage(input_tokens=900, output_tokens=200, cached_tokens=128)
    assert reply.sampling == {"temperature": 0.0, "seed": 7}


@pytest.mark.parametrize("name", CHAT)
async def test_what_was_not_sent_is_not_recorded(opened: OpenJudge, name: str) -> None:
    said = "Unsupported value: 'temperature' does not support 0.7 with this model."
    script = [failing(400, said, param="temperature"), saying("well")]
    async with Endpoint(script) as endpoint:
        judge = opened(f"{name}/m", base(endpoint, name))
        reply = await answered(judge, question(round=2, repeat=1))
    assert endpoint.calls[0].body["temperature"] == 0.7
    assert reply.sampling == {"seed": 1008}
    assert endpoint.calls[1].body["seed"] == 1008


@pytest.mark.parametrize(
    ("name", "given", "environment", "address"),
    [
        ("openrouter", None, {}, "https://openrouter.ai/api/v1"),
        ("openrouter", None, {"OPENROUTER_BASE_URL": "http://g.test/v1"}, "http://g.test/v1"),
        ("ollama", None, {}, "http://127.0.0.1:11434/v1"),
        ("ollama", None, {"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434/v1"),
        ("ollama", None, {"OLLAMA_HOST": "box.test:9999"}, "http://box.test:9999/v1"),
        ("ollama", None, {"OLLAMA_HOST": "https://box.test/o/"}, "https://box.test/o/v1"),
        (
            "ollama",
            None,
            {"OLLAMA_BASE_URL": "http://b.test", "OLLAMA_HOST": "x"},
            "http://b.test/v1",
        ),
        ("ollama", "http://b.test:1/v1", {"OLLAMA_HOST": "x"}, "http://b.test:1/v1"),
        ("azure", None, {"AZURE_OPENAI_ENDPOINT": "https://r.test/"}, "https://r.test/openai/v1"),
        ("azure", "https://r.test/openai/v1/", {}, "https://r.test/openai/v1"),
        ("azure", "https://gate.test/a/", {}, "https://gate.test/a/openai/v1"),
        ("openai", "http://host.test", {}, "http://host.test"),
    ],
)
async def test_the_address(
    opened: OpenJudge, name: str, given: str | None, environment: dict[str, str], address: str
) -> None:
    judge = opened(f"{name}/m", given, environment=environment)
    assert judge.identity["base_url"] == address


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("box", "http://box:11434"),
        ("0.0.0.0:1234", "http://127.0.0.1:1234"),
        ("http://0.0.0.0:1/o", "http://127.0.0.1:1/o"),
        ("http://0.0.0.0.test", "http://0.0.0.0.test"),
        ("https://box", "https://box"),
    ],
)
def test_an_ollama_host_may_lack_scheme_and_port(text: str, url: str) -> None:
    assert ollama_url(text) == url


@pytest.mark.parametrize("name", [*CHAT, "anthropic", "google"])
async def test_an_address_with_a_password_is_refused_and_not_shown(
    opened: OpenJudge, name: str
) -> None:
    with pytest.raises(UsageError, match="carries a user name") as error:
        opened(f"{name}/m", "https://user:hunter22@host.test")
    assert "hunter22" not in str(error.value)


def test_every_provider_of_the_specification_is_there() -> None:
    remote = {"openai", "anthropic", "google", "openrouter", "ollama", "azure"}
    assert set(PROVIDERS) >= remote | {"embedded", "replay", "python"}


# Azure


def test_azure_without_an_address_is_refused_at_opening(opened: OpenJudge) -> None:
    with pytest.raises(UsageError, match="AZURE_OPENAI_ENDPOINT"):
        opened("azure/m")


async def test_a_filter_of_azure_concerns_one_question(opened: OpenJudge) -> None:
    error = {
        "message": "The response was filtered due to the prompt triggering a policy.",
        "code": "content_filter",
        "param": "prompt",
        "innererror": {"code": "ResponsibleAIPolicyViolation"},
    }
    rejected = await raised(opened, "azure", encoded({"error": error}, 400))
    assert isinstance(rejected, CallRejected)
    assert rejected.reason == "filtered"


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (
            encoded({"error": {"code": "401", "message": "Access denied"}}, 401),
            "AZURE_OPENAI_API_KEY",
        ),
        (encoded({"error": {"code": "DeploymentNotFound", "message": "no"}}, 404), "no such model"),
    ],
)
async def test_what_azure_refuses_for_good(
    opened: OpenJudge, behaviour: Behaviour, words: str
) -> None:
    error = await raised(opened, "azure", behaviour)
    assert isinstance(error, ProviderRefused)
    assert words in str(error)


# OpenRouter


async def test_the_host_behind_openrouter_is_recorded_with_the_model(opened: OpenJudge) -> None:
    body = json.loads(completion("well", reasoning="hm")) | {"provider": "DeepInfra"}
    async with Endpoint(encoded(body)) as endpoint:
        reply = await answered(opened("openrouter/m", base(endpoint, "openrouter")))
    assert (reply.text, reply.model) == ("well", "test-model via DeepInfra")


def in_choice(**error: Any) -> Behaviour:
    body = json.loads(completion("half", finish="error"))
    body["choices"][0]["error"] = error
    return encoded(body)


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        (in_choice(code=502, message="Upstream is down"), CallLost, "HTTP 502"),
        (in_choice(code=401, message="Bad key upstream"), ProviderRefused, "Bad key upstream"),
        (encoded({"error": {"code": 429, "message": "Slow down"}}), CallLost, "Slow down"),
        (encoded({"error": {"code": 402, "message": "No credits"}}, 402), ProviderRefused, "pay"),
        (
            encoded(
                {"error": {"code": 403, "message": "m requires moderation: input flagged"}}, 403
            ),
            CallRejected,
            "filter",
        ),
        (
            encoded(
                {
                    "error": {
                        "code": 400,
                        "message": "Provider returned error",
                        "metadata": {
                            "raw": '{"message": "maximum context length is 10 tokens"}',
                            "provider_name": "Azure",
                            "flagged_input": "the judged text",
                        },
                    }
                },
                400,
            ),
            CallRejected,
            "does not fit",
        ),
    ],
)
async def test_errors_of_openrouter(
    opened: OpenJudge, behaviour: Behaviour, kind: type[Exception], words: str
) -> None:
    error = await raised(opened, "openrouter", behaviour)
    assert isinstance(error, kind)
    assert words in str(error)
    assert "the judged text" not in str(error)


async def test_what_the_host_behind_openrouter_refuses_is_adapted_to(opened: OpenJudge) -> None:
    error = {
        "message": "Provider returned error",
        "code": 400,
        "metadata": {"raw": "response_format json_schema is not supported", "provider_name": "X"},
    }
    async with Endpoint([encoded({"error": error}, 400), saying("well")]) as endpoint:
        await answered(opened("openrouter/m", base(endpoint, "openrouter")))
    formats = [call.body["response_format"]["type"] for call in endpoint.calls]
    assert formats == ["json_schema", "json_object"]


async def test_an_error_nested_without_end_is_read_to_a_depth(opened: OpenJudge) -> None:
    error: dict[str, Any] = {"message": "deep words"}
    for _ in range(40):
        error = {"message": "words", "details": [error]}
    lost = await raised(opened, "openrouter", encoded({"error": error}, 500))
    assert isinstance(lost, CallLost)
    assert str(lost).count("words") == 4


# Ollama


async def test_ollama_needs_no_key_and_names_a_missing_model(opened: OpenJudge) -> None:
    error = {"message": 'model "m" not found, try pulling it first', "type": "not_found_error"}
    async with Endpoint([saying("well"), encoded({"error": error}, 404)]) as endpoint:
        judge = opened("ollama/m", environment={"OLLAMA_HOST": endpoint.url})
        await answered(judge)
        with pytest.raises(ProviderRefused, match="try pulling it first"):
            await answered(judge)
    assert endpoint.path() == "/v1/chat/completions"
    assert "Authorization" not in endpoint.calls[0].headers
