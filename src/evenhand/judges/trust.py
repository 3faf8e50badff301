"""Addresses of judges and proxies, and which host may have which key.

A judge is at the suite's `base_url`, else where the environment says, else at its provider's own
address. A key goes to its provider's own host, to an address that came from the same place as the
key (both from the user's environment or command line, both from one `.env`), to this machine, or to
a host that the user has allowed. Anything else ends before a request. What the user allowed stands
in their environment or in a file of their own, never in a folder that a suite may bring."""

from __future__ import annotations

import ipaddress
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from yarl import URL

from evenhand.errors import UsageError, hide_in_address
from evenhand.folders import read_text
from evenhand.judges.credentials import key_from, place_of
from evenhand.judges.providers import JudgeOptions, Provider
from evenhand.words import Sentence

VARIABLE = "EVENHAND_TRUST_HOSTS"
FILE = "trusted-hosts"
SUITE_KEY = "base_url"
_VERSIONED = re.compile(r"/v\d\w*$")
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|[0-9a-f.]*:[0-9a-f:.]*(%25\w+)?", re.IGNORECASE)
"""A name, an IPv4 address, or one of IPv6, which has a colon."""


class KeyUse(NamedTuple):
    """A key and the address that it would go to. The places are files; empty where the user said
    so, in the environment, on the command line or in code."""

    provider: Provider
    key_name: str
    key_place: str
    url: URL
    address_name: str
    """The setting that holds the address; empty where it is the provider's own."""
    address_place: str

    @property
    def host(self) -> str:
        return host_of(self.url)

    @property
    def is_allowed(self) -> bool:
        """Return True if the key may go there without the user's word."""
        is_known = is_loopback(self.url) or not self.address_name or self.is_own
        return is_known or self.key_place == self.address_place

    @property
    def is_own(self) -> bool:
        """Return True if the address is at the provider's own host."""
        own = URL(self.provider.url)
        return bool(own.host) and (own.scheme, host_of(own)) == (self.url.scheme, self.host)

    @property
    def is_plaintext(self) -> bool:
        """Return True if whoever is on the way can read the key."""
        return self.url.scheme == "http" and not is_loopback(self.url)

    def sentence(self, key: str = "judges.key_would_go") -> Sentence:
        """Return a sentence with both places, for whoever is to allow it."""
        user = Sentence("judges.user_environment")
        asked = Sentence("judges.user_call") if self.address_name == SUITE_KEY else user
        return Sentence(
            key,
            key=self.key_name,
            key_place=self.key_place or user,
            host=self.host,
            setting=self.address_name,
            setting_place=self.address_place or asked,
        )


class TrustedHosts:
    """The hosts that a user has allowed, from the environment and from a file of their own."""

    def __init__(self, file: Path | None = None) -> None:
        config_home = Path(os.environ.get("XDG_CONFIG_HOME", ""))
        base = config_home if config_home.is_absolute() else Path.home() / ".config"
        self.file = file or base / "evenhand" / FILE

    def hosts(self) -> list[str]:
        """Return all of them, sorted. Raises UsageError for one that is no host."""
        lines = (line.partition("#")[0] for line in self._text().splitlines())
        words = [*" ".join(lines).split(), *os.environ.get(VARIABLE, "").replace(",", " ").split()]
        return sorted({host_named(word) for word in words})

    def remember(self, hosts: Sequence[str]) -> None:
        """Allow hosts from now on; raises UsageError if that cannot be written down."""
        text = self._text()
        fresh = [host for host in hosts if host not in text.splitlines()]
        if not fresh:
            return
        lines = [*([] if text.endswith("\n") or not text else [""]), *fresh, ""]
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # No link is followed: it may lead to a file of another program.
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            with os.fdopen(os.open(self.file, flags, 0o600), "a", encoding="utf-8") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write("\n".join(lines))
        except OSError as error:
            raise UsageError(
                Sentence("judges.trust_not_saved", reason=error.strerror), where=str(self.file)
            ) from None

    def _text(self) -> str:
        there = self.file.exists()
        return read_text(self.file) if there else ""


class Trust(NamedTuple):
    """The user's word about keys: hosts allowed before, and how to ask or to tell now. Without
    a question, what was not allowed before is refused."""

    hosts: TrustedHosts
    ask: Callable[[KeyUse], bool] | None = None
    tell: Callable[[str], None] = warnings.warn

    def check(self, use: KeyUse) -> None:
        """Raise UsageError for a key that may not go there; say so where others can read it."""
        self._require_allowed(use)
        if use.is_plaintext:
            self.tell(Sentence("judges.plain_http", key=use.key_name, host=use.host))

    def check_route(self, use: KeyUse, options: JudgeOptions) -> None:
        """Refuse a proxy that the suite's file names and the user has not allowed, and certificates
        of the suite's for a provider's own host: whoever wrote the file could read the key."""
        if options.proxy and options.proxy_place:
            url = parse_proxy(options.proxy, options.proxy_place)
            route = use._replace(url=url, address_name="proxy", address_place=options.proxy_place)
            self._require_allowed(route)
        elif options.ca_file and options.ca_file_place and use.is_own:
            raise UsageError(
                Sentence("judges.foreign_ca_file", host=use.host), where=options.ca_file_place
            )

    def _require_allowed(self, use: KeyUse) -> None:
        host = use.host
        if use.is_allowed or host in self.hosts.hosts():
            return
        if self.ask is None or not self.ask(use):
            raise UsageError(use.sentence("judges.key_not_sent"))
        self.hosts.remember([host])


def key_use(provider: Provider, options: JudgeOptions) -> KeyUse:
    """Return the key of a judge, set or not, and its base URL. Raises UsageError for an address
    that is none."""
    environment = options.environment
    key_name, setting = (
        next((name for name in names if environment.get(name, "").strip()), (*names, "")[0])
        for names in (provider.key_names, provider.url_names)
    )
    place = place_of(environment, setting)
    text = environment.get(setting, "")
    if options.base_url is not None:
        text, setting, place = options.base_url, SUITE_KEY, options.base_url_place
    elif not text.strip():
        text, setting, place = provider.url, "", ""
    if not text:
        raise UsageError(
            Sentence("judges.no_address", provider=provider.name, setting=provider.url_names[0])
        )
    url = base_url(provider.spell_url(text.strip()), where=setting)
    if provider.path and not _VERSIONED.search(url.raw_path):
        url = url.with_path(url.raw_path.rstrip("/") + provider.path, encoded=True)
    return KeyUse(provider, key_name, place_of(environment, key_name), url, setting, place)


def has_key(use: KeyUse, environment: Mapping[str, str]) -> bool:
    """Return True if there is a key to send, and no mere placeholder."""
    secret = key_from(environment, use.key_name, "")
    return secret is not None and not secret.is_placeholder


def base_url(text: str, *, where: str) -> URL:
    """Return a base URL as the user gave it, without the trailing slash. Raises UsageError."""
    try:
        url = URL(text.strip())
        problem = _problem(url)
    except ValueError:
        url, problem = URL(), "judges.url_no_url"
    if problem:
        # Without the parts that may hold a secret.
        shown = re.split("[?#]", hide_in_address(text))[0]
        raise UsageError(
            Sentence(problem, address=shown), where=where, advice=Sentence("judges.url_example")
        )
    path = url.raw_path.rstrip("/")
    path = path.removesuffix("/chat/completions").removesuffix("/messages")
    return url.with_path(path, encoded=True)


def _problem(url: URL) -> str:
    """Return the key of what is wrong with a base URL; "" if nothing is."""
    if url.scheme not in ("http", "https") or not url.host:
        return "judges.url_no_http"
    # The resolver raises UnicodeError, a ValueError, for a label it cannot encode.
    url.host.encode("idna")
    if not _HOST.fullmatch(url.raw_host or ""):
        return "judges.url_bad_host"
    # Also behind a slash: a password may hold one.
    if "@" in str(url):
        return "judges.url_password"
    return "judges.url_query" if url.raw_query_string or url.raw_fragment else ""


def host_of(url: URL) -> str:
    """Return the host as it is connected to: lower case, ASCII, without the dot at its end."""
    return (url.raw_host or "").lower().removesuffix(".")


def host_named(text: str) -> str:
    """Return a host as a user names it, alone, with a port or in a URL; raises UsageError."""
    text = text.strip()
    try:
        is_bare_v6 = text.count(":") > 1 and "/" not in text and "[" not in text
        host = host_of(URL(text if "//" in text else f"//{f'[{text}]' if is_bare_v6 else text}"))
    except ValueError:
        host = ""
    if not host or any(character in text for character in "*%@ "):
        raise UsageError(Sentence("judges.no_host_name", name=text))
    return host


def is_loopback(url: URL) -> bool:
    """Return True if `url` leads to this machine, whatever a name server says."""
    host = url.host or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def proxy_for(url: URL, environment: Mapping[str, str]) -> URL | None:
    """Return the proxy that the environment names for `url`."""
    name = f"{url.scheme}_proxy"
    proxy = environment.get(name) or environment.get(name.upper())
    if not proxy or is_loopback(url):
        return None
    import urllib.request  # spares every start without a proxy

    spared = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    # Not in the stubs of the standard library.
    bypassed: Any = getattr(urllib.request, "proxy_bypass_environment")  # noqa: B009
    if bypassed(f"{url.host}:{url.port}", {"no": spared}):
        return None
    return parse_proxy(proxy, name)


def parse_proxy(text: str, where: str) -> URL:
    """Return a proxy as a URL. Raises UsageError, which never shows it: it may hold a password."""
    text = text.strip()
    try:
        url = URL(text if "://" in text else f"http://{text}")
        has_host = url.scheme in ("http", "https") and _HOST.fullmatch(url.raw_host or "")
    except ValueError:
        url, has_host = URL(), None
    if not has_host or url.raw_path not in ("", "/") or url.raw_query_string:
        raise UsageError(Sentence("judges.bad_proxy"), where=where)
    return url
