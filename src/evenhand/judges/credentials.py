"""Keys: where they come from, and what keeps them from being shown.

A key comes from the user's environment or from the `.env` of a folder, which whoever made the
folder may have written; never from a suite or a command line. `.env` sets keys and addresses of
judges and nothing else. It is taken as it stands: a value that named another variable could carry a
key of the user's into an address of somebody else's.

A key is bound to one origin; `trust` says which. Everything a provider sends back is scrubbed of
the key before it is shown or stored.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import NamedTuple, NoReturn
from urllib.parse import quote as percent_encode

from evenhand.errors import UsageError
from evenhand.folders import read_text
from evenhand.judges.providers import PROVIDERS
from evenhand.text import CONTROLS, INVISIBLE
from evenhand.words import Sentence

FILE = ".env"
_READ = frozenset(
    name for provider in PROVIDERS.values() for name in (*provider.key_names, *provider.url_names)
)
_NETWORK = re.compile(r"\w+_proxy|(ssl|requests|curl)_\w*(cert|ca)_?\w*", re.IGNORECASE)
"""Proxies and certificates: who sets them reads what is sent."""
_REFERENCE = re.compile(r"\$\{[^}]*\}")
MASK = "[key]"
WITHHELD = "[text withheld: it repeats the key in disguise]"
# What local servers are given where a client insists on a key. Those are words, not secrets: to
# cut them out of replies would only damage the replies.
_PLACEHOLDERS = (
    "dummy empty fake-key local lm-studio no-key no-key-required none not-needed null ollama "
    "placeholder secret sk-no-key-required token xxx"
)
PLACEHOLDERS = frozenset(_PLACEHOLDERS.split())
SHORTEST_SECRET = 6
DEEPEST_ESCAPES = 4
_HIDDEN = re.compile(f"[{CONTROLS}{INVISIBLE}]")
_ESCAPE = re.compile(
    # A run of backslashes is read once, from its first: from each of them it would be quadratic.
    r"(?<!\\)\\++(?:u(?:\{0*|0000)?([0-9a-f]{4}|[0-9a-f]{2}(?=\}))\}?|x([0-9a-f]{2})|(/)|\r?\n)"
    rf"|%([0-9a-f]{{2}})|&#x0*([0-9a-f]{{2,5}});|&#0*([0-9]{{2,6}});|[{CONTROLS}{INVISIBLE}]",
    re.IGNORECASE,
)
"""Escapes of JSON, Python, URLs and HTML, and characters that are not seen."""


class Environment(dict[str, str]):
    """The settings by name. `places` says which file sets one that the user's environment lacks;
    `unread` names proxies and certificates of a `.env`, which are left alone."""

    def __init__(
        self,
        values: Mapping[str, str],
        places: Mapping[str, str] | None = None,
        unread: tuple[str, ...] = (),
    ) -> None:
        super().__init__(values)
        self.places, self.unread = dict(places or {}), unread


def place_of(environment: Mapping[str, str], name: str) -> str:
    """Return the file that sets a name; empty where the environment of the user does."""
    return environment.places.get(name, "") if isinstance(environment, Environment) else ""


def environment(folder: Path | None = None) -> Environment:
    """Return the environment over the `.env` of a folder, by default the working folder: what is
    really set wins. Raises UsageError for settings of Evenhand in `.env`: they would go unread."""
    path = (folder or Path.cwd()) / FILE
    settings = _settings(path)
    for name in settings:
        if name.startswith("EVENHAND_"):
            raise UsageError(Sentence("judges.not_read_here", name=name), where=str(path))
    values = {name: value for name, value in settings.items() if name in _READ}
    for name, value in values.items():
        if reference := _REFERENCE.search(value):
            raise UsageError(
                Sentence("judges.reference", name=name, reference=reference[0]), where=str(path)
            )
    unread = tuple(name for name in settings if _NETWORK.fullmatch(name))
    return Environment(values | dict(os.environ), dict.fromkeys(values, str(path)), unread)


def _settings(path: Path) -> dict[str, str]:
    """Return the settings of a `.env` that the environment lacks; none if there is no such file."""
    # A folder of that name is somebody's virtual environment.
    if not path.exists() or path.is_dir():
        return {}
    from dotenv import dotenv_values

    values = dotenv_values(stream=StringIO(read_text(path)), interpolate=False)
    return {
        name: value
        for name, value in values.items()
        if value is not None and name not in os.environ
    }


class Secret:
    """A key that can be sent and be cut out of texts, but not shown, copied or pickled."""

    __slots__ = ("_forms", "_value", "name", "origin")

    def __init__(self, name: str, value: str, origin: str) -> None:
        self.name, self.origin, self._value = name, origin, value
        self._forms = tuple(dict.fromkeys(_encodings(value)))

    def __repr__(self) -> str:
        return f"Secret({self.name})"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Secret) and (other._value, other.origin)
        return same == (self._value, self.origin)

    def __hash__(self) -> int:
        """Of this process alone: the hash of a string is salted."""
        return hash((self._value, self.origin))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written anywhere")

    @property
    def is_placeholder(self) -> bool:
        """Return True if it is a word for clients that insist on a key, and no secret."""
        return self._value.lower() in PLACEHOLDERS

    @property
    def mark(self) -> str:
        """Return four bytes of a hash: too few to find the key by."""
        return hashlib.blake2b(self._value.encode(), digest_size=4).hexdigest()

    def header(self, origin: str, prefix: str = "") -> str:
        """Return the value of the header that carries the key. Raises ValueError for another
        origin than its own."""
        if origin != self.origin:
            raise ValueError(f"{self.name} is meant for {self.origin}, not for {origin}")
        return Masked(prefix + self._value)

    def scrub(self, text: str) -> str:
        """Return `text` with the key masked, in whatever plain encoding it stands there. A text
        that holds it under escapes or hidden characters is withheld as a whole: whoever reads the
        text would decode it."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return WITHHELD if self._forms and self._is_hidden_in(text) else text

    def _is_hidden_in(self, text: str) -> bool:
        visible = [_HIDDEN.sub("", form) for form in self._forms]
        visible = [form for form in visible if len(form) >= SHORTEST_SECRET]
        for _ in range(DEEPEST_ESCAPES):
            decoded = _ESCAPE.sub(_unescape, text)
            if decoded == text:
                return False
            if any(form in decoded for form in visible):
                return True
            text = decoded
        return False


class Account(NamedTuple):
    """The requests that a provider counts together: rates belong to it."""

    provider: str
    address: str
    secret: Secret | None = None

    def __str__(self) -> str:
        """Return it without the key, in the same form in every process."""
        mark = "" if self.secret is None else self.secret.mark
        return f"{self.provider} {self.address} {mark}"


class Masked(str):
    """A string that is sent as it is and shown masked, should it stand in a traceback."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(MASK)


def key_from(environment: Mapping[str, str], name: str, origin: str) -> Secret | None:
    """Return the key called `name`, bound to `origin`; None if the environment has none. Raises
    UsageError for one that no header takes."""
    value = environment.get(name, "").strip()
    if not value:
        return None
    if not value.isascii() or not value.isprintable() or " " in value:
        raise UsageError(Sentence("judges.bad_key", key=name))
    return Secret(name, value, origin)


def _unescape(match: re.Match[str]) -> str:
    """Return the character that an escape stands for; none for what is not seen."""
    unicode, byte, slash, percent, hexadecimal, decimal = match.groups()
    digits = unicode or byte or percent or hexadecimal
    code = int(digits, 16) if digits else int(decimal or 0)
    return slash or (chr(code) if 0 < code < 0x110000 else "")


def _encodings(value: str) -> Iterator[str]:
    """Yield the key as it is and in the encodings an echo may put it in."""
    if len(value) < SHORTEST_SECRET or value.lower() in PLACEHOLDERS:
        return
    raw = value.encode()
    yield from (value, percent_encode(value, safe=""), raw.hex(), raw.hex().upper())
    for shift in range(3):
        # The characters that `raw` alone decides, at each position modulo three.
        encoded = base64.b64encode(bytes(shift) + raw).decode()
        core = encoded[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6]
        yield from (core, core.replace("+", "-").replace("/", "_"))
