"""Keys of the providers beside OpenAI: each goes to its own host, in one header, and comes back
from nowhere."""

from __future__ import annotations

import base64
import json
import traceback
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from evenhand.errors import AskAgain, CallError, ProviderRefused
from evenhand.exchange import Judge, Message, Question
from evenhand.judges import JudgeOptions, open_judge
from tests.dialects import Endpoint, echoing
from tests.provider import Behaviour, Call, completion, redirecting, resetting, saying

KEY = "sk-proj-Zq8/w+3NfakeKEYfake0123456789"
FORMS = (KEY, base64.b64encode(KEY.encode()).decode().rstrip("=")[:-1], KEY.encode().hex())
KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "x-api-key"),
    "google": ("GEMINI_API_KEY", "x-goog-api-key"),
    "openrouter": ("OPENROUTER_API_KEY", "Authorization"),
    "ollama": ("OLLAMA_API_KEY", "Authorization"),
    "azure": ("AZURE_OPENAI_API_KEY", "api-key"),
}
HEADERS = [header for _, header in KEYS.values()]
ASKED = Question(messages=(Message("user", "Judge this."),))


@pytest.fixture(params=KEYS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def judge_at(provider: str, url: str, **environment: str) -> Judge:
    options = JudgeOptions(
        name=f"{provider}/m",
        base_url=url,
        temperature=0,
        max_tokens=9,
        seed=7,
        attempt_seconds=10,
        folder=Path(),
        environment={KEYS[provider][0]: KEY, **environment},
        notify=print,
    )
    return open_judge(options)


def spotless(text: str) -> None:
    for form in FORMS:
        assert form not in text, form


def shown(error: BaseException) -> str:
    """All that a log would show of an error, with the local variables of Evenhand's frames."""
    texts = ["".join(traceback.format_exception(error))]
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if "evenhand" in frame.f_globals["__name__"]:
            texts += [repr(value) for value in frame.f_locals.values()]
    assert len(texts) > 1
    return "\n".join(texts)


async def repeating(call: Call) -> web.StreamResponse:
    """A reply of any protocol that quotes the key, in its text and as its model's name."""
    key = next(call.headers[name] for name in HEADERS if name in call.headers)
    said = f"Your key is {key}, or {key.encode().hex()}"
    body: dict[str, Any] = json.loads(completion(said))
    part = {"type": "text", "text": said}
    body |= {"content": [part], "candidates": [{"content": {"parts": [part]}}]}
    return web.json_response(body | {"model": key, "modelVersion": key, "provider": key})


async def test_a_reply_that_quotes_the_key_is_masked(provider: str) -> None:
    async with Endpoint(repeating) as endpoint:
        judge = judge_at(provider, endpoint.url)
        reply = await judge.answer(ASKED)
        await judge.close()
    assert endpoint.calls[0].headers[KEYS[provider][1]].endswith(KEY)
    spotless(repr(reply))
    assert "Your key is" in reply.text


@pytest.mark.parametrize("status", [200, 307, 400, 401, 403, 404, 429, 500, 529])
async def test_an_error_that_quotes_the_key_is_masked(provider: str, status: int) -> None:
    async with Endpoint(echoing(*HEADERS, status=status)) as endpoint:
        judge = judge_at(provider, endpoint.url)
        with pytest.raises((CallError, ProviderRefused, AskAgain)) as raised:
            await judge.answer(ASKED)
        await judge.close()
    spotless(shown(raised.value))


@pytest.mark.parametrize("behaviour", [resetting(KEY.encode()), saying(KEY)])
async def test_nonsense_that_quotes_the_key_is_masked(provider: str, behaviour: Behaviour) -> None:
    async with Endpoint(behaviour) as endpoint:
        judge = judge_at(provider, endpoint.url)
        try:
            spotless(repr(await judge.answer(ASKED)))
        except (CallError, ProviderRefused) as error:
            spotless(shown(error))
        await judge.close()


async def test_the_key_stands_in_its_header_and_nowhere_else(provider: str) -> None:
    async with Endpoint(repeating) as endpoint:
        judge = judge_at(provider, endpoint.url)
        await judge.answer(ASKED)
        await judge.close()
    call = endpoint.calls[0]
    holding = [name for name, value in call.headers.items() if KEY in value]
    assert [name.lower() for name in holding] == [KEYS[provider][1].lower()]
    spotless(endpoint.path() + call.raw.decode())
    spotless(json.dumps(judge.identity) + repr(judge.identity) + repr(vars(judge)))


async def test_no_key_of_another_provider_is_sent(provider: str) -> None:
    others = {name: "another-" + name.lower() for name, _ in KEYS.values()}
    async with Endpoint(repeating) as endpoint:
        judge = judge_at(provider, endpoint.url, **{**others, KEYS[provider][0]: KEY})
        await judge.answer(ASKED)
        await judge.close()
    assert "another-" not in str(dict(endpoint.calls[0].headers))


async def test_a_redirect_takes_no_key_along(provider: str) -> None:
    async with Endpoint(repeating) as other, Endpoint(redirecting(other.url)) as endpoint:
        judge = judge_at(provider, endpoint.url)
        with pytest.raises(ProviderRefused, match="redirects"):
            await judge.answer(ASKED)
        await judge.close()
    assert other.calls == []
