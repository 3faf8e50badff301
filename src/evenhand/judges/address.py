"""Where a remote judge is: by the suite's `base_url`, then the environment, then its provider."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from yarl import URL

from evenhand.errors import UsageError
from evenhand.judges.environment import place_of
from evenhand.judges.http import base_url
from evenhand.judges.provider import JudgeOptions, Provider
from evenhand.judges.secrets import key_from
from evenhand.judges.trust import SUITE_KEY, Passage

_VERSIONED = re.compile(r"/v\d\w*$")
_DATED = re.compile(r"\d{4}-\d\d-\d\d")


class Address(NamedTuple):
    """Where a judge is, the setting that says so (empty for its provider's own address), and the
    file which that stands in (empty where the user says so themselves)."""

    url: URL
    setting: str
    place: str


def address_of(provider: Provider, options: JudgeOptions, model: str) -> Address:
    """The base URL of a provider. Raises UsageError where it has none, or one that is none."""
    environment, service = options.environment, provider.service
    text, setting, place = _text_of(provider, options)
    url = base_url(service.spell(text), where=setting)
    if service.surplus:
        url = url.with_path(re.sub(service.surplus, "", url.raw_path), encoded=True)
    if not service.path or _VERSIONED.search(url.raw_path):
        return Address(url, setting, place)
    version = environment.get(first_set(environment, service.version_names), "").strip()
    if _DATED.match(version):
        url = (url / "openai" / "deployments" / model).with_query({"api-version": version})
    else:
        url = url.with_path(url.raw_path.rstrip("/") + service.path, encoded=True)
    return Address(url, setting, place)


def _text_of(provider: Provider, options: JudgeOptions) -> tuple[str, str, str]:
    """The address as it stands in the setting that holds it, that setting and its file."""
    if options.base_url is not None:
        return options.base_url.strip(), SUITE_KEY, options.base_url_place
    environment = options.environment
    setting = first_set(environment, provider.url_names)
    text = environment.get(setting, "").strip()
    if text:
        return text, setting, place_of(environment, setting)
    if not provider.url:
        raise UsageError(
            f"{provider.name} has no address of its own",
            advice=f"Set {provider.url_names[0]} in the environment, or base_url in [[judges]].",
        )
    return provider.url, "", ""


def passage_of(provider: Provider, options: JudgeOptions, address: Address) -> Passage:
    """The key that would go to an address of a provider, whether it is set or not."""
    key_name = first_set(options.environment, provider.key_names)
    key_place = place_of(options.environment, key_name)
    return Passage(provider, key_name, key_place, *address)


def key_passage(provider: Provider, options: JudgeOptions, model: str) -> Passage | None:
    """The key that a judge would send, and where to; None where it has none to send."""
    name = first_set(options.environment, provider.key_names)
    secret = key_from(options.environment, name, "") if name else None
    if secret is None or secret.is_placeholder:
        return None
    return passage_of(provider, options, address_of(provider, options, model))


def first_set(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    """The first of `names` that the environment sets; the first of all where it sets none."""
    for name in names:
        if environment.get(name, "").strip():
            return name
    return names[0] if names else ""
