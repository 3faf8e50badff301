"""Judges by name: the one door of this room. Each provider's module is imported only when a suite
asks for one of its judges."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.errors import UsageError, nearest
from evenhand.exchange import Judge
from evenhand.judges.providers import PROVIDERS, JudgeOptions, Provider
from evenhand.words import Sentence, few

__all__ = ["PROVIDERS", "JudgeOptions", "Provider", "first_judge", "open_judge", "split_name"]


def open_judge(options: JudgeOptions) -> Judge:
    """Return the judge of a name; raises UsageError for one that is unknown or not installed."""
    provider, model = split_name(options.name)
    return provider.open(options, model)


def split_name(name: str) -> tuple[Provider, str]:
    """Return the provider and the model in `provider/model`, `provider:model` or a provider alone.
    Raises UsageError."""
    before, slash, model = name.partition("/")
    if slash and before in PROVIDERS:
        return PROVIDERS[before], model
    before, colon, model = name.partition(":")
    provider = PROVIDERS.get(before)
    if provider and (colon or not provider.needs_model):
        return provider, model
    near, providers = _nearest_judge(name), few(list(PROVIDERS), 20)
    key = "judges.no_judge_near" if near else "judges.no_judge"
    raise UsageError(Sentence(key, name=name, near=near, providers=providers))


def _nearest_judge(name: str) -> str:
    """Return the judge that a wrong name was most likely meant to be; "" if there is none."""
    for provider in PROVIDERS.values():
        if name.casefold().startswith(provider.model_starts or ("\0",)):
            return f"{provider.name}/{name}"
    before, slash, model = name.replace(":", "/").partition("/")
    near = nearest(before, PROVIDERS, cutoff=0.75)
    if near:
        return f"{near}/{model or '...'}"
    return f"openrouter/{name}" if slash else ""


def first_judge(environment: Mapping[str, str]) -> str:
    """Return the judge to begin with: of the first provider whose key is set, else `embedded`."""
    for provider in PROVIDERS.values():
        if provider.first_model and any(environment.get(name) for name in provider.key_names):
            return f"{provider.name}/{provider.first_model}"
    return "embedded"
