"""Judges by name. Each is one module, imported only when a suite asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from evenhand.errors import UsageError, quoted
from evenhand.exchange import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """What a suite says about one judge, and where it runs."""

    name: str
    base_url: str | None
    temperature: float | None
    max_tokens: int
    seed: int
    attempt_seconds: float
    folder: Path
    environment: Mapping[str, str]
    notify: Callable[[str], None]
    probabilities: bool = False


def open_judge(options: JudgeOptions) -> Judge:
    """The judge a name stands for; raises UsageError for one that is unknown or not installed."""
    provider, model = split_name(options.name)
    if options.probabilities and provider in WITHOUT_PROBABILITIES:
        raise UsageError(
            f"{provider} gives no log-probabilities",
            where=f"[[judges]] {options.name}",
            advice="Remove `probabilities = true` for this judge, or choose another provider.",
        )
    return PROVIDERS[provider](options, model)


def split_name(name: str) -> tuple[str, str]:
    """`provider/model`, `provider:model` or a provider alone, as provider and model."""
    provider, slash, model = name.partition("/")
    if slash and provider in PROVIDERS:
        return provider, model
    provider, colon, model = name.partition(":")
    if provider in PROVIDERS and (colon or provider == "embedded"):
        return provider, model
    close = get_close_matches(provider.partition("/")[0], PROVIDERS, n=1)
    raise UsageError(
        f"no judge is called {quoted(name)}",
        advice=f"Did you mean {close[0]}/...?" if close else f"Known: {', '.join(PROVIDERS)}.",
    )


def _chat(service: str) -> Callable[[JudgeOptions, str], Judge]:
    """The judges of a service that speaks OpenAI's protocol."""

    def opened(options: JudgeOptions, model: str) -> Judge:
        from evenhand.judges import services
        from evenhand.judges.openai import OpenAIJudge

        chosen = getattr(services, service)
        return OpenAIJudge(service=chosen, extra={}, **_remote(options, model))

    return opened


def _anthropic(options: JudgeOptions, model: str) -> Judge:
    from evenhand.judges.anthropic import AnthropicJudge

    return AnthropicJudge(**_remote(options, model))


def _google(options: JudgeOptions, model: str) -> Judge:
    from evenhand.judges.google import GoogleJudge

    return GoogleJudge(**_remote(options, model))


def _remote(options: JudgeOptions, model: str) -> dict[str, Any]:
    return {
        "name": options.name,
        "model": model,
        "base_url": options.base_url,
        "temperature": options.temperature,
        "max_tokens": options.max_tokens,
        "seed": options.seed,
        "environment": options.environment,
        "attempt_seconds": options.attempt_seconds,
        "probabilities": options.probabilities,
    }


def _embedded(options: JudgeOptions, model: str) -> Judge:
    from evenhand.judges.embedded.judge import open_embedded

    name = options.name
    if model.endswith(".gguf"):
        name = f"embedded/{options.folder / model}"
    return open_embedded(
        name,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        seed=options.seed,
        notify=options.notify,
    )


def _replay(options: JudgeOptions, model: str) -> Judge:
    from evenhand.judges.replay import ReplayJudge

    return ReplayJudge(options.name, options.folder / model)


def _python(options: JudgeOptions, model: str) -> Judge:
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


WITHOUT_PROBABILITIES = frozenset({"anthropic", "python", "replay"})
PROVIDERS: dict[str, Callable[[JudgeOptions, str], Judge]] = {
    "embedded": _embedded,
    "openai": _chat("OPENAI"),
    "anthropic": _anthropic,
    "google": _google,
    "openrouter": _chat("OPENROUTER"),
    "ollama": _chat("OLLAMA"),
    "azure": _chat("AZURE"),
    "replay": _replay,
    "python": _python,
}
