"""Keys: each is bound to the one origin it was meant for and shows its value nowhere else.

A key comes from the environment alone, never from a suite or a command line. Where it may go is
said in `trust`. A redirect is never followed. Everything a provider sends back is scrubbed of the
key before it is shown or stored.
"""

from __future__ import annotations

import base64
import hashlib
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import NamedTuple, NoReturn
from urllib.parse import quote

from evenhand.errors import UsageError
from evenhand.regexp import regexp
from evenhand.unseen import ASCII_CONTROLS, UNSEEN

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

    __slots__ = ("_forms", "_outlines", "_value", "_visible_forms", "name", "origin")

    def __init__(self, name: str, value: str, origin: str) -> None:
        self.name, self.origin, self._value = name, origin, value
        self._forms = tuple(dict.fromkeys(_forms(value)))
        # The password of a proxy may hold any character, also such as are not seen.
        visible = dict.fromkeys(UNSEEN.sub("", form) for form in self._forms)
        self._visible_forms = tuple(form for form in visible if len(form) >= SHORTEST_SECRET)
        self._outlines = tuple(dict.fromkeys(map(_outline, self._visible_forms)))

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

    @property
    def is_placeholder(self) -> bool:
        """Whether it is a word that stands where a client insists on a key, and no secret."""
        return self._value.lower() in PLACEHOLDERS

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written anywhere")

    @property
    def mark(self) -> str:
        """Four bytes of a hash: too few to find the key by."""
        return hashlib.blake2b(self._value.encode(), digest_size=4).hexdigest()

    def header(self, origin: str, prefix: str = "") -> str:
        """The value of the header that carries the key; for its own origin only."""
        if origin != self.origin:
            raise ValueError(f"{self.name} is meant for {self.origin}, not for {origin}")
        return Masked(prefix + self._value)

    def scrub(self, text: str) -> str:
        """`text` without the key, in whatever plain encoding it stands there, with escapes of JSON,
        URLs or HTML or hidden characters in it, too: whoever reads the text decodes it."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return self._unescaped(text) if self._forms and self._may_be_hidden_in(text) else text

    def _may_be_hidden_in(self, text: str) -> bool:
        """Whether a text in which the key does not stand may be read as one in which it does; asked
        of every reply, so it is quick."""
        outline = _outline(text)
        for sign, pattern in _SIGNS.items():
            if sign in outline and pattern.search(outline):
                return True
        return len(outline) < len(text) and any(form in outline for form in self._outlines)

    def _unescaped(self, text: str) -> str:
        spans: set[tuple[int, int]] = set()
        layers: list[_Layer] = []
        while len(layers) < DEEPEST_ESCAPES:
            layers.append(_decoded(layers[-1].text if layers else text))
            if not layers[-1].places:
                break
            for form in self._visible_forms:
                spans.update(
                    _source(layers, at, len(form)) for at in _places(layers[-1].text, form)
                )
        return _masked(text, sorted(spans))


class Account(NamedTuple):
    """Whose requests a provider counts together: what rates belong to."""

    provider: str
    address: str
    secret: Secret | None = None

    def __str__(self) -> str:
        """The same in every process, and without the key: only enough of a hash of it to tell a
        few keys of one user apart."""
        mark = "" if self.secret is None else self.secret.mark
        return f"{self.provider} {self.address} {mark}"


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


DEEPEST_ESCAPES = 4
_ESCAPE = regexp(
    # A run of backslashes is read once, from its first: from each of them it would be quadratic.
    r"(?<!\\)\\++(?:u(?:\{0*|0000)?([0-9a-f]{4}|[0-9a-f]{2}(?=\}))\}?|x([0-9a-f]{2})|(/)|\r?\n)"
    rf"|%([0-9a-f]{{2}})|&#0*([0-9]{{2,6}});|&#x0*([0-9a-f]{{2,5}});|{UNSEEN.pattern}",
    re.IGNORECASE,
)


_SIGNS = {
    "\\": regexp(r"\\(?:[uU]\{?0*[0-9a-fA-F]{2}|[xX][0-9a-fA-F]{2}|[/\n])"),
    "%": regexp("%[0-9a-fA-F]{2}"),
    "&#": regexp("&#[0-9xX]"),
}
"""What each kind of escape begins with: a search for one letter costs a tenth of one for all."""


def _outline(text: str) -> str:
    """A text without whatever may be unseen, and more: what is no ASCII. All escapes are."""
    return text.encode("ascii", "ignore").translate(None, ASCII_CONTROLS).decode()


class _Layer(NamedTuple):
    """A text with one layer of escapes read, and for each escape, where its character stands now
    and ends, and where the escape stood before: as much as there are escapes, however long the
    text."""

    text: str
    places: array[int]
    nexts: array[int]
    starts: array[int]
    ends: array[int]

    def source(self, at: int) -> tuple[int, int]:
        """Where the character at a place stood, with its escape."""
        index = bisect_right(self.places, at) - 1
        if index < 0:
            return at, at + 1
        if at < self.nexts[index]:
            return self.starts[index], self.ends[index]
        start = self.ends[index] + at - self.nexts[index]
        return start, start + 1


def _decoded(text: str) -> _Layer:
    """A text with one layer of escapes read; without places where it holds none."""
    parts: list[str] = []
    places, nexts, starts, ends = (array("Q") for _ in range(4))
    end = length = 0
    for match in _ESCAPE.finditer(text):
        character = _meant(match)
        length += match.start() - end
        places.append(length)
        length += len(character)
        nexts.append(length)
        parts += text[end : match.start()], character
        starts.append(match.start())
        end = match.end()
        ends.append(end)
    return _Layer("".join((*parts, text[end:])), places, nexts, starts, ends)


def _places(text: str, form: str) -> Iterator[int]:
    at = text.find(form)
    while at >= 0:
        yield at
        at = text.find(form, at + 1)


def _source(layers: list[_Layer], at: int, length: int) -> tuple[int, int]:
    """Where a part of the last layer stood in the text that the first was read from."""
    first, last = at, at + length - 1
    for layer in reversed(layers[1:]):
        first, last = layer.source(first)[0], layer.source(last)[1] - 1
    return layers[0].source(first)[0], layers[0].source(last)[1]


def _masked(text: str, spans: list[tuple[int, int]]) -> str:
    """A text with each span masked, once where they overlap."""
    parts: list[str] = []
    end = 0
    for start, stop in spans:
        if start >= end:
            parts += text[end:start], MASK
        end = max(end, stop)
    return "".join((*parts, text[end:]))


def _meant(match: re.Match[str]) -> str:
    """The character that an escape stands for; none for what is not seen."""
    unicode, byte, slash, percent, decimal, hexadecimal = match.groups()
    if slash:
        return slash
    if decimal:
        return chr(int(decimal))
    digits = unicode or byte or percent or hexadecimal
    return chr(int(digits, 16)) if digits else ""


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
