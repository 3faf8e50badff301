"""From a judge's text to one JSON object, or the kind of problem with it.

`read` is total: for any text or bytes it returns, never raises, and takes linear time. It never
guesses: two objects, a duplicate key, NaN or a cut-off text are told, not mended. What it takes off
is wrapping only: a code fence and reasoning tags. Prose is no wrapping: a refusal may show the
form, and no list of words tells it from a verdict. Nor is what a candidate wrote ever a verdict:
`JudgedText` finds a reply that was copied from the judged text.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from evenhand import jsontext
from evenhand.judgment import Reason
from evenhand.kinds.phrases import opens_with_refusal
from evenhand.limits import JSON_DEPTH, REPLY_BYTES, REPLY_ELEMENTS

NEAR_CHARS = 20
"""So much before a mistake and after it tells which one is meant."""

CODES: dict[str, Reason] = {
    "not_json": "not_json",
    "empty": "empty",
    "refused": "refused",
    "filtered": "filtered",
    "truncated": "truncated",
    "prose_around": "not_json",
    "two_objects": "ambiguous",
    "duplicate_key": "ambiguous",
    "not_finite": "not_json",
    "bad_text": "not_json",
    "too_deep": "not_json",
    "not_object": "schema",
}


@dataclass(frozen=True, slots=True)
class Readable:
    """One object; `wrapped` if something stood around it."""

    value: dict[str, Any]
    wrapped: bool


@dataclass(frozen=True, slots=True)
class Unreadable:
    """No single object: the kind of problem, what it is about, its path, and what stands around the
    place from which on it is no JSON."""

    kind: str
    about: str = ""
    path: str = field(default="", compare=False)
    near: str = field(default="", compare=False)

    @property
    def code(self) -> Reason:
        return CODES[self.kind]


def read(reply: str | bytes) -> Readable | Unreadable:
    """Return the one JSON object that a reply is, or why there is none."""
    if len(reply) > REPLY_BYTES:
        return Unreadable("not_json")
    try:
        text = (reply.decode() if isinstance(reply, bytes) else reply).strip()
        text.encode()
    except UnicodeError:
        return Unreadable("bad_text")
    text = text.removeprefix("\ufeff").lstrip()
    if not text:
        return Unreadable("empty")
    answer = without_thinking(text)
    if answer is None:
        return Unreadable("truncated")
    bare = answer.strip()
    if fence := _FENCE.match(bare):
        bare = bare[fence.end() :].removesuffix("```").strip()
    at = 0 if bare[:1] == "[" else bare.find("{")
    if at < 0:
        return Unreadable("refused") if opens_with_refusal(bare) else _no_json(bare)
    value, rest = _decode(bare[at:])
    if isinstance(value, Unreadable):
        return value
    if not isinstance(value, dict):
        return Unreadable("not_object")
    if at or rest:
        return Unreadable("two_objects" if "{" in rest else "prose_around")
    return Readable(cast("dict[str, Any]", value), wrapped=bare != text)


_FENCE = re.compile(r"```\w*+\s*+")
_THINKING = re.compile(r"\s*<(think|thinking|thought|reasoning|analysis)>", re.IGNORECASE)
_THOUGHT = re.compile(r"</(?:think|thinking|thought|reasoning|analysis)>", re.IGNORECASE)
BAR = re.compile("[|｜│]")
"""What stands between the cells of a table's line."""


def without_thinking(text: str) -> str | None:
    """Return the text after leading reasoning; None if the reasoning never ends.

    Some chat templates swallow the opening tag, so a closing tag counts too if it cannot stand in
    an object: before any brace, or beside a line break, which no JSON string holds.
    """
    at = 0
    while True:
        opening, closing = _THINKING.match(text, at), _THOUGHT.search(text, at)
        if closing is None:
            return None if opening else text[at:]
        start, end = closing.span()
        if opening is None and "{" in text[at:start]:
            is_first_on_a_line = at == 0 and "\n" in text[start - 1 : start] + text[end : end + 1]
            if text[:1] == "{" or not is_first_on_a_line:
                return text[at:]
        at = end


_NOT_FINITE = object()
_SURROGATE = re.compile(r"\\u[dD][89abcdefABCDEF]")


def _decode(text: str) -> tuple[object, str]:
    """Return the JSON value at the beginning of a text, or the problem, and what follows it."""
    rest = ""
    try:
        try:
            value = jsontext.parse(text, JSON_DEPTH, REPLY_ELEMENTS)
        except json.JSONDecodeError as error:
            if error.msg != "Extra data":
                raise
            text, rest = text[: error.pos], text[error.pos :]
            value = jsontext.parse(text, JSON_DEPTH, REPLY_ELEMENTS)
        if _SURROGATE.search(text):
            jsontext.dump(value).encode()
    except jsontext.DuplicateKey as error:
        return Unreadable("duplicate_key", error.name), rest
    except jsontext.NotFinite as error:
        path = _find_not_finite(text)
        return Unreadable("not_finite", error.text, path) if path else _no_json(text), rest
    except jsontext.TooDeep:
        return Unreadable("too_deep"), rest
    except jsontext.Truncated:
        return Unreadable("truncated"), rest
    except json.JSONDecodeError as error:
        return _no_json(text, error.pos), rest
    except UnicodeError:
        return Unreadable("bad_text"), rest
    except ValueError:
        return _no_json(text), rest
    return value, rest


def _find_not_finite(text: str) -> str:
    """Return the path of the first NaN or Infinity; nothing if the text is no JSON beside it."""
    try:
        rest = [("", json.loads(text, parse_constant=lambda _: _NOT_FINITE))]
    except (ValueError, RecursionError):
        return ""
    for path, value in rest:
        if value is _NOT_FINITE:
            return path.removeprefix(".")
        if isinstance(value, dict):
            rest += [(f"{path}.{key}", part) for key, part in value.items()]
        elif isinstance(value, list):
            rest += [(f"{path}[{index}]", part) for index, part in enumerate(value)]
    return ""


def _no_json(text: str, at: int = 0) -> Unreadable:
    """Return the problem of a text that is no JSON from an offset on."""
    start, end = max(0, at - NEAR_CHARS), at + NEAR_CHARS
    near = " ".join(text[start:end].split())
    return Unreadable("not_json", near=f"{'…' * (start > 0)}{near}{'…' * (end < len(text))}")


PHRASE_CHARS = 12
"""A shorter text may be alike by chance: `high`, `not applicable`."""
REASONS_CHARS = 24
"""The same of all reasons of a reply together: where they are shorter, its keys count too."""
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[bfnrt])")


class JudgedText:
    """What was put before the judge to be judged; folded when a reply is held against it."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def holds(self, value: Mapping[str, Any]) -> bool:
        """Return True if a reply with reasons was copied from one of the texts: every part of it
        stands there, in any order, however spaced, quoted or escaped."""
        reasons = list(_find_reasons({key: value[key] for key in value if key != "meta"}))
        if not any(reasons):
            return False
        long = sum(len(reason) for reason in reasons if len(reason) >= PHRASE_CHARS)
        found = _find_parts(value, has_keys=long < REASONS_CHARS)
        parts = [part for part in map(_fold, found) if part]
        return any(all(part in folding for part in parts) for folding in self._foldings)

    def holds_line(self, line: str) -> bool:
        """Return True if a line of a table stands in one of the texts."""
        return any(_fold(line) in folding for folding in self._foldings)

    @cached_property
    def _foldings(self) -> list[str]:
        readings = {text: None for each in self.texts for text in (each, _unescape(each))}
        return list(map(_fold, readings))


def _find_reasons(value: object, name: str = "") -> Iterator[str]:
    """Yield the texts of a reply that are the judge's own words: evidence is a copy."""
    if isinstance(value, dict):
        for key, part in cast("dict[str, object]", value).items():
            yield from _find_reasons(part, key)
    elif isinstance(value, list) and name != "evidence":
        for part in cast("list[object]", value):
            yield from _find_reasons(part, name)
    elif isinstance(value, str):
        yield value


def _find_parts(value: object, name: str = "", *, has_keys: bool) -> Iterator[str]:
    """Yield every long text of an object, every other leaf behind its key, and its keys if
    `has_keys`."""
    if isinstance(value, dict):
        for key, part in cast("dict[str, object]", value).items():
            if has_keys:
                yield key
            yield from _find_parts(part, key, has_keys=has_keys)
    elif isinstance(value, list):
        for part in cast("list[object]", value):
            yield from _find_parts(part, name, has_keys=has_keys)
    elif isinstance(value, str):
        yield value if len(value) >= PHRASE_CHARS or not value else name + value
    elif value is not None:
        yield name + jsontext.dump(value)


def _unescape(text: str) -> str:
    """Return a text with the escapes of JSON, however often nested, and of HTML resolved."""
    plain = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else " ", text)
    return html.unescape(plain)


def _fold(text: str) -> str:
    """Return the letters and digits of a text, without case and width."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
