"""Where a remote judge is: by the suite's `base_url`, then the environment, then its provider."""

from __future__ import annotations

import re
from collections.abc import Mapping

from yarl import URL

from evenhand.errors import UsageError
from evenhand.judges.http import base_url
from evenhand.judges.provider import Provider

_VERSIONED = re.compile(r"/v\d\w*$")
_DATED = re.compile(r"\d{4}-\d\d-\d\d")


def address_of(
    provider: Provider, suite_url: str | None, environment: Mapping[str, str], model: str
) -> URL:
    """The base URL of a provider. Raises UsageError where it has none, or one that is none."""
    text, setting = _text_of(provider, suite_url, environment)
    service = provider.service
    url = base_url(service.spell(text), where=setting)
    if service.surplus:
        url = url.with_path(re.sub(service.surplus, "", url.raw_path), encoded=True)
    if not service.path or _VERSIONED.search(url.raw_path):
        return url
    version = environment.get(first_set(environment, service.version_names), "").strip()
    if _DATED.match(version):
        return (url / "openai" / "deployments" / model).with_query({"api-version": version})
    return url.with_path(url.raw_path.rstrip("/") + service.path, encoded=True)


def _text_of(
    provider: Provider, suite_url: str | None, environment: Mapping[str, str]
) -> tuple[str, str]:
    """The address as it stands in the setting that holds it, and the name of that setting."""
    if suite_url is not None:
        return suite_url.strip(), "base_url"
    setting = first_set(environment, provider.url_names)
    text = environment.get(setting, "").strip() or provider.url
    if not text:
        raise UsageError(
            f"{provider.name} has no address of its own",
            advice=f"Set {provider.url_names[0]} in the environment, or base_url in [[judges]].",
        )
    return text, setting


def first_set(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    """The first of `names` that the environment sets; the first of all where it sets none."""
    for name in names:
        if environment.get(name, "").strip():
            return name
    return names[0] if names else ""
