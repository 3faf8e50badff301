"""The providers: addresses, keys by several names, and what is a service's own."""

import json

import pytest

from evenhand.errors import UsageError
from evenhand.judges import PROVIDERS
from evenhand.judges.providers import ollama_url
from tests.cases import cases
from tests.dialects import candidate, encoded
from tests.provider import completion
from tests.sentences import refused
from tests.unit.judges.questions import KEY, KEYS, ask, opened, reply_of

OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com/v1"


@cases
def test_the_address_is_the_suites_the_environments_or_the_providers_own(
    name, given, environment, address
):
    identity = opened(f"{name}/m", given, environment=environment).identity
    assert (identity["provider"], identity["base_url"]) == (name, address)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("box", "http://box:11434"),
        ("http://0.0.0.0:1/o", "http://127.0.0.1:1/o"),
        ("http://0.0.0.0.test", "http://0.0.0.0.test"),
    ],
)
def test_an_ollama_host_may_lack_scheme_and_port(text, url):
    assert ollama_url(text) == url


@pytest.mark.parametrize("name", KEYS)
def test_an_address_with_a_password_is_refused_and_not_shown(name):
    with refused(UsageError, "judges.url_password") as error:
        opened(f"{name}/m", "https://user:hunter22@host.test")
    assert "hunter22" not in str(error.value)


def test_azure_without_an_address_is_refused_at_opening():
    with refused(UsageError, "judges.no_address", "AZURE_OPENAI_ENDPOINT"):
        opened("azure/m")


def test_every_provider_of_the_specification_is_there():
    assert set(PROVIDERS) >= {*KEYS, "embedded", "replay", "python"}


@pytest.mark.parametrize(
    "setting", [{"params": {"a": 1}}, {"stream": True}, {"proxy": "http://p:1"}]
)
def test_judges_that_send_nothing_take_no_setting_of_http(setting):
    with refused(UsageError, "judges.no_http"):
        opened("python/json:dumps", **setting)


@pytest.mark.parametrize(
    ("environment", "key"),
    [
        ({"GEMINI_API_KEY": KEY, "GOOGLE_API_KEY": "other-key"}, KEY),
        ({"GEMINI_API_KEY": " ", "GOOGLE_API_KEY": KEY}, KEY),
        ({}, None),
    ],
)
async def test_the_key_of_gemini_has_two_names(environment, key):
    _, endpoint = await ask("google", candidate("well"), environment=environment)
    assert endpoint.calls[0].headers.get("x-goog-api-key") == key


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("google/tunedModels/mine", "tunedModels/mine"),
        ("google/gemini-1", "models/gemini-1"),
        ("google:models/gemini-1", "models/gemini-1"),
    ],
)
async def test_a_model_of_gemini_may_be_named_by_its_resource(name, path):
    _, endpoint = await ask(name, candidate("well"))
    assert endpoint.path() == f"/v1beta/{path}:generateContent"


async def test_the_host_behind_openrouter_is_recorded_with_the_model():
    body = json.loads(completion("well")) | {"provider": "DeepInfra"}
    assert (await reply_of("openrouter", encoded(body))).model == "test-model via DeepInfra"
