"""The services behind remote judges: where each is, and what its key and its address are called.

An address comes from the suite's `base_url`, then from the environment, then from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from yarl import URL

from evenhand.errors import UsageError
from evenhand.judges.http import base_url

_VERSIONED = re.compile(r"/v\d\w*$")
_DATED = re.compile(r"\d{4}-\d\d-\d\d")
_HOST = re.compile(
    r"(?P<scheme>(?i:https?)://(?=[^:/]))?(?P<host>\[[^\]]*\]|[^:/]*)(?P<port>:\d+)?(?P<path>/.*)?"
)
# Where a server listens on all its addresses, with nothing to call by that name.
_ANYWHERE = re.compile(r"(?:0\.0\.0\.0|\[[0:]+\])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service: its address, the names of its settings, and how it is shown the key.

    `path` is added to an address that does not end in a version; `surplus` is what one may end in
    that is added anyway. `version_names` are settings that ask for an older form of the address.
    """

    provider: str
    url: str = ""
    key_names: tuple[str, ...]
    url_names: tuple[str, ...]
    needs_key: bool = True
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    headers: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    surplus: str = ""
    version_names: tuple[str, ...] = ()
    spelled: Callable[[str], str] = str


def ollama_url(text: str) -> str:
    """What OLLAMA_HOST holds, as a URL: it may lack scheme, host or port, and it may be the
    address that a server listens on, which is none to call."""
    found = _HOST.fullmatch(text)
    if found is None:
        return text
    host = "127.0.0.1" if _ANYWHERE.fullmatch(found["host"]) else found["host"]
    port = found["port"] or ("" if found["scheme"] else ":11434")
    return f"{found['scheme'] or 'http://'}{host}{port}{found['path'] or ''}"


OPENAI: Final = Service(
    provider="openai",
    url="https://api.openai.com/v1",
    key_names=("OPENAI_API_KEY",),
    url_names=("OPENAI_BASE_URL",),
)
OPENROUTER: Final = Service(
    provider="openrouter",
    url="https://openrouter.ai/api/v1",
    key_names=("OPENROUTER_API_KEY",),
    url_names=("OPENROUTER_BASE_URL",),
)
OLLAMA: Final = Service(
    provider="ollama",
    url="http://127.0.0.1:11434/v1",
    key_names=("OLLAMA_API_KEY",),
    url_names=("OLLAMA_BASE_URL", "OLLAMA_HOST"),
    needs_key=False,
    path="/v1",
    spelled=ollama_url,
)
AZURE: Final = Service(
    provider="azure",
    key_names=("AZURE_OPENAI_API_KEY",),
    url_names=("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_BASE_URL"),
    key_header="api-key",
    key_prefix="",
    path="/openai/v1",
    surplus=r"/openai(?:/deployments(?:/[^/]*)?)?$",
    version_names=("AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"),
)
ANTHROPIC: Final = Service(
    provider="anthropic",
    url="https://api.anthropic.com/v1",
    key_names=("ANTHROPIC_API_KEY",),
    url_names=("ANTHROPIC_BASE_URL",),
    key_header="x-api-key",
    key_prefix="",
    headers={"anthropic-version": "2023-06-01"},
    path="/v1",
)
GOOGLE: Final = Service(
    provider="google",
    url="https://generativelanguage.googleapis.com/v1beta",
    key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    url_names=("GEMINI_BASE_URL", "GOOGLE_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
    key_header="x-goog-api-key",
    key_prefix="",
    path="/v1beta",
    surplus=r"(?:(?<=/v1)|(?<=/v1beta))/models$",
)


def located(service: Service, given: str | None, environment: Mapping[str, str], model: str) -> URL:
    """The base URL of a service. Raises UsageError where it has none, or one that is none."""
    named = "base_url" if given is not None else first_set(environment, service.url_names)
    text = environment.get(named, "").strip() or service.url if given is None else given
    if given is None and not text:
        raise UsageError(
            f"{service.provider} has no address of its own",
            advice=f"Set {service.url_names[0]} in the environment, or base_url in [[judges]].",
        )
    url = base_url(service.spelled(text.strip()), where=named)
    if service.surplus:
        url = url.with_path(re.sub(service.surplus, "", url.raw_path), encoded=True)
    if not service.path or _VERSIONED.search(url.raw_path):
        return url
    version = environment.get(first_set(environment, service.version_names), "").strip()
    if _DATED.match(version):
        return (url / "openai" / "deployments" / model).with_query({"api-version": version})
    return url.with_path(url.raw_path.rstrip("/") + service.path, encoded=True)


def first_set(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    """The first of `names` that the environment sets; the first of all where it sets none."""
    found = (name for name in names if environment.get(name, "").strip())
    return next(found, names[0] if names else "")
