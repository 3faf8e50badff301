"""Keys: each is bound to the one origin it was meant for and shows its value nowhere else.

A key comes from the environment alone, never from a suite or a command line. It goes to the
service's own host, or to the `base_url` that the user chose (in the suite or in the environment):
whoever runs a suite written by others should read its `base_url` first. A redirect is never
followed. Everything a provider sends back is scrubbed of the key before it is shown or stored.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import NamedTuple, NoReturn
from urllib.parse import quote

from evenhand.errors import UsageError

MASK = "[key]"

# What local servers are given where a client insists on a key. Those are words, not secrets: to
# cut them out of replies would only damage the replies.
_PLACEHOLDERS = (
    "dummy empty fake-key local lm-studio no-key no-key-required none not-needed null ollama "
    "placeholder secret sk-no-key-required token xxx"
)
PLACEHOLDERS = frozenset(_PLACEHOLDERS.split())
SHORTEST_SECRET = 6


class Secret:
    """A key that can be sent and be cut out of texts, but not shown, copied or pickled."""

    __slots__ = ("_forms", "_value", "name", "origin")

    def __init__(self, name: str, value: str, origin: str) -> None:
        self.name, self.origin, self._value = name, origin, value
        self._forms = tuple(dict.fromkeys(_forms(value)))

    def __repr__(self) -> str:
        return f"Secret({self.name})"

    def __eq__(self, value: object) -> bool:
        return isinstance(value, Secret) and value._pair == self._pair

    def __hash__(self) -> int:
        """Of this process alone: the hash of a string is salted."""
        return hash(self._pair)

    @property
    def _pair(self) -> tuple[str, str]:
        return self._value, self.origin

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written anywhere")

    def header(self, origin: str, prefix: str = "") -> str:
        """The value of the header that carries the key; for its own origin only."""
        if origin != self.origin:
            raise ValueError(f"{self.name} is meant for {self.origin}, not for {origin}")
        return Masked(prefix + self._value)

    def scrub(self, text: str) -> str:
        """`text` without the key, in whatever plain encoding it stands there."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return text


class Account(NamedTuple):
    """Whose requests a provider counts together: what rates belong to."""

    provider: str
    address: str
    secret: Secret | None = None


class Masked(str):
    """A string that is sent as it is and shown masked, should it stand in a traceback."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(MASK)


def key_from(environment: Mapping[str, str], name: str, origin: str) -> Secret | None:
    """The key called `name`, bound to `origin`; None where the environment has none."""
    value = environment.get(name, "").strip()
    if not value:
        return None
    if not value.isascii() or not value.isprintable() or " " in value:
        raise UsageError(
            f"{name} holds a character that no key has",
            where="the environment",
            advice="Copy the key again, without quotation marks, blanks or line breaks.",
        )
    return Secret(name, value, origin)


def _forms(value: str) -> Iterator[str]:
    """The key as it is and in the encodings an echo may put it in."""
    if len(value) < SHORTEST_SECRET or value.lower() in PLACEHOLDERS:
        return
    raw = value.encode()
    yield value
    yield quote(value, safe="")
    yield raw.hex()
    yield raw.hex().upper()
    for shift in range(3):
        core = _base64_core(raw, shift)
        yield core
        yield core.replace("+", "-").replace("/", "_")


def _base64_core(raw: bytes, shift: int) -> str:
    """The characters that `raw` alone decides in the Base64 of a text it stands in, where
    `shift` is its position modulo three."""
    encoded = base64.b64encode(bytes(shift) + raw).decode()
    return encoded[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6]
