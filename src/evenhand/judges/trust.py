"""Which host may have which key.

A key goes to its provider's own host, to an address that came from the same place as the key (both
from the user's environment or command line, both from one `.env`), to this machine, or to a host
that the user has allowed. Anything else ends before a request. What the user allowed stands in
their environment or in a file of their own, never in a folder that a suite may bring.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from yarl import URL

from evenhand.errors import UsageError, quoted
from evenhand.folders import read_text
from evenhand.judges.http import is_loopback
from evenhand.judges.provider import Provider

VARIABLE = "EVENHAND_TRUST_HOSTS"
FILE = "trusted-hosts"
SUITE_KEY = "base_url"
_USER = "the environment"


class Passage(NamedTuple):
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
    def is_fit(self) -> bool:
        """Whether the key may go there without the user's word."""
        if is_loopback(self.url) or not self.address_name:
            return True
        own = URL(self.provider.url) if self.provider.url else None
        if own and (own.scheme, host_of(own)) == (self.url.scheme, self.host):
            return True
        return self.key_place == self.address_place

    @property
    def is_open(self) -> bool:
        """Whether whoever stands on the way can read the key."""
        return self.url.scheme == "http" and not is_loopback(self.url)

    def sentence(self) -> str:
        """Both places, for whoever is to allow it."""
        asked = "the call" if self.address_name == SUITE_KEY else _USER
        return (
            f"{self.key_name} from {self.key_place or _USER} would go to {quoted(self.host)},"
            f" which {self.address_name} in {self.address_place or asked} names"
        )


def host_of(url: URL) -> str:
    """The host as it is connected to: lower case, ASCII, without the dot at its end."""
    return (url.raw_host or "").lower().removesuffix(".")


def host_named(text: str) -> str:
    """A host as a user names it, alone, with a port or in a URL; raises UsageError."""
    text = text.strip()
    try:
        is_bare_v6 = text.count(":") > 1 and "/" not in text and "[" not in text
        host = host_of(URL(text if "//" in text else f"//{f'[{text}]' if is_bare_v6 else text}"))
    except ValueError:
        host = ""
    if not host or any(character in text for character in "*%@ "):
        raise UsageError(
            f"{quoted(text)} is no name of a host", advice="It looks like gateway.example.com."
        )
    return host


class TrustedHosts:
    """The hosts that a user has allowed, from the environment and from a file of their own."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or _config_home() / FILE

    def __contains__(self, host: str) -> bool:
        return host in self.hosts()

    def hosts(self) -> list[str]:
        """All of them, sorted. Raises UsageError where one is no host."""
        lines = (line.partition("#")[0] for line in self._text().splitlines())
        words = [*" ".join(lines).split(), *os.environ.get(VARIABLE, "").replace(",", " ").split()]
        return sorted({host_named(word) for word in words})

    def remember(self, hosts: Sequence[str]) -> None:
        """Allow hosts from now on; raises UsageError where that cannot be written down."""
        lines = self._text().splitlines()
        fresh = [host for host in hosts if host not in lines]
        if not fresh:
            return
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            beside = self.file.with_name(f"{FILE}.{os.getpid()}.new")
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            with os.fdopen(os.open(beside, flags, 0o600), "w", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in (*lines, *fresh)))
            beside.replace(self.file)
        except OSError as error:
            raise UsageError(
                f"what you trust cannot be written down: {error.strerror}",
                where=str(self.file),
                advice=f"Set {VARIABLE} in the environment instead.",
            ) from None

    def _text(self) -> str:
        there = self.file.exists()
        return read_text(self.file, "the list of hosts that you trust") if there else ""


def _config_home() -> Path:
    """The user's folder of settings of Evenhand."""
    setting = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(setting) if Path(setting).is_absolute() else Path.home() / ".config"
    return base / "evenhand"


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=2)


class Trust(Struct, frozen=True):
    """What the user says about keys: hosts allowed before, and how to ask or to tell now. Without
    a question, what was not allowed before is refused."""

    hosts: TrustedHosts
    ask: Callable[[Passage], bool] | None = None
    tell: Callable[[str], None] = _warn

    def check(self, passage: Passage) -> None:
        """Raises UsageError for a key that may not go there; says so where others can read it."""
        if not passage.is_fit and passage.host not in self.hosts:
            if self.ask is None or not self.ask(passage):
                raise refusal(passage)
            self.hosts.remember([passage.host])
        if passage.is_open:
            self.tell(
                f"Note: {passage.key_name} goes to {passage.host} over plain http:"
                " whoever is on the way can read it."
            )


def refusal(passage: Passage) -> UsageError:
    """The error for a key that may not go where it would."""
    return UsageError(f"{passage.sentence()}; nothing was sent", advice=" ".join(_ways(passage)))


def _ways(passage: Passage) -> Iterator[str]:
    host = passage.host
    yield f"If that host may have this key: evenhand run --trust-host {host} (remembered),"
    yield f"or {VARIABLE}={host} in the environment."
    place = passage.key_place or _USER
    if passage.address_name != SUITE_KEY:
        yield f"Else set {passage.address_name} in {place} too, or take it away."
    elif passage.provider.url_names:
        yield f"Else take base_url away, and set {passage.provider.url_names[0]} in {place}."
