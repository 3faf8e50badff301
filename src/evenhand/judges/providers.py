"""The providers there are. A new one is a module that speaks to it, and a record here."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from evenhand.batch import BatchEndpoint
from evenhand.exchange import Judge
from evenhand.judges.ollama import ollama_url
from evenhand.judges.provider import Batching, JudgeOptions, Provider, Service

if TYPE_CHECKING:
    from evenhand.judges.batch.client import BatchClient


def _chat(provider: Provider, options: JudgeOptions, model: str) -> Judge:
    from evenhand.judges.openai import OpenAIJudge

    return OpenAIJudge(provider, options, model)


def _anthropic(provider: Provider, options: JudgeOptions, model: str) -> Judge:
    from evenhand.judges.anthropic import AnthropicJudge

    return AnthropicJudge(provider, options, model)


def _google(provider: Provider, options: JudgeOptions, model: str) -> Judge:
    from evenhand.judges.google import GoogleJudge

    return GoogleJudge(provider, options, model)


def _embedded(provider: Provider, options: JudgeOptions, model: str) -> Judge:
    from evenhand.judges.embedded.judge import open_embedded

    name = f"embedded/{options.folder / model}" if provider.is_file(model) else options.name
    return open_embedded(
        name,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        seed=options.seed,
        notify=options.notify,
    )


def _replay(provider: Provider, options: JudgeOptions, model: str) -> Judge:
    from evenhand.judges.replay import ReplayJudge

    return ReplayJudge(options.name, options.folder / model)


def _python(provider: Provider, options: JudgeOptions, model: str) -> Judge:
    from evenhand.judges.python import PythonJudge

    return PythonJudge(
        options.name,
        model,
        folder=options.folder,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        seed=options.seed,
        attempt_seconds=options.attempt_seconds,
    )


def _openai_batches(client: BatchClient) -> BatchEndpoint:
    from evenhand.judges.batch.openai import OpenAIBatches

    return OpenAIBatches(client)


def _azure_batches(client: BatchClient) -> BatchEndpoint:
    from evenhand.judges.batch.openai import azure_batches

    return azure_batches(client)


def _anthropic_batches(client: BatchClient) -> BatchEndpoint:
    from evenhand.judges.batch.anthropic import AnthropicBatches

    return AnthropicBatches(client)


def _google_batches(client: BatchClient) -> BatchEndpoint:
    from evenhand.judges.batch.google import GoogleBatches

    return GoogleBatches(client)


def _openrouter_batches(client: BatchClient) -> BatchEndpoint:
    from evenhand.judges.batch.openrouter import OpenRouterBatches

    return OpenRouterBatches(client)


_RECORDS = (
    Provider(
        name="embedded",
        opener=_embedded,
        is_billed=False,
        needs_model=False,
        file_ending=".gguf",
        package="xllamacpp",
        extra="embedded",
    ),
    Provider(
        name="openai",
        opener=_chat,
        is_chat=True,
        url="https://api.openai.com/v1",
        url_names=("OPENAI_BASE_URL",),
        key_names=("OPENAI_API_KEY",),
        batching=Batching(opener=_openai_batches),
        first_model="gpt-4.1-mini",
        model_starts=("gpt-", "chatgpt-", "o1", "o3", "o4"),
    ),
    Provider(
        name="anthropic",
        opener=_anthropic,
        url="https://api.anthropic.com/v1",
        url_names=("ANTHROPIC_BASE_URL",),
        key_names=("ANTHROPIC_API_KEY",),
        batching=Batching(opener=_anthropic_batches),
        first_model="claude-haiku-4-5",
        model_starts=("claude",),
        service=Service(
            key_header="x-api-key",
            key_prefix="",
            headers={"anthropic-version": "2023-06-01"},
            path="/v1",
        ),
        storing=Decimal("1.25"),
        has_probabilities=False,
    ),
    Provider(
        name="google",
        opener=_google,
        url="https://generativelanguage.googleapis.com/v1beta",
        url_names=("GEMINI_BASE_URL", "GOOGLE_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
        key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        batching=Batching(opener=_google_batches),
        first_model="gemini-2.5-flash",
        model_starts=("gemini", "gemma"),
        service=Service(
            key_header="x-goog-api-key",
            key_prefix="",
            path="/v1beta",
            surplus=r"(?:(?<=/v1)|(?<=/v1beta))/models$",
        ),
    ),
    Provider(
        name="openrouter",
        opener=_chat,
        is_chat=True,
        url="https://openrouter.ai/api/v1",
        url_names=("OPENROUTER_BASE_URL",),
        key_names=("OPENROUTER_API_KEY",),
        batching=Batching(opener=_openrouter_batches),
        first_model="openai/gpt-4.1-mini",
    ),
    Provider(
        name="ollama",
        opener=_chat,
        is_chat=True,
        url="http://127.0.0.1:11434/v1",
        url_names=("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        key_names=("OLLAMA_API_KEY",),
        service=Service(needs_key=False, path="/v1", spell=ollama_url),
        is_billed=False,
    ),
    Provider(
        name="azure",
        opener=_chat,
        is_chat=True,
        url_names=("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_BASE_URL"),
        key_names=("AZURE_OPENAI_API_KEY",),
        batching=Batching(opener=_azure_batches),
        service=Service(
            key_header="api-key",
            key_prefix="",
            path="/openai/v1",
            surplus=r"/openai(?:/deployments(?:/[^/]*)?)?$",
            version_names=("AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"),
        ),
    ),
    Provider(
        name="replay",
        opener=_replay,
        is_billed=False,
        has_probabilities=False,
        file_ending="",
    ),
    Provider(
        name="python",
        opener=_python,
        is_billed=False,
        has_probabilities=False,
        runs_code=True,
    ),
)
PROVIDERS: Final = {provider.name: provider for provider in _RECORDS}
