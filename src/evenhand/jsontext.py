"""JSON as text that comes back as it went in: key order and the spelling of numbers are kept.

`1.50` and `1e3` are read as numbers that remember how they were written. Refused, each by an error
of its own, is what says two things at once, or nothing, or would not fit the stack:

    ValueError
    ├── DuplicateKey        one key of an object stands twice
    ├── NotFinite           NaN or Infinity, which JSON has not
    ├── TooDeep             nested deeper than it may be; also where it would be written so deep
    ├── TooMany             more values than memory should be spent on
    └── JSONDecodeError     no JSON, from a position on
        └── Truncated       JSON as far as it goes, but the text breaks off

All of it takes time linear in the text. `parse` reads text from outside,
`loads_trusted` what `dump` wrote.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from sys import intern
from typing import Any, Generic, NoReturn, TypeVar, cast

from msgspec.json import Decoder, Encoder

from evenhand.errors import StoreError
from evenhand.limits import JSON_DEPTH, JSON_ELEMENTS, STORED_DEPTH
from evenhand.words import Sentence

compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""The fast writer, for values whose numbers need no spelling kept."""

canonical = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
).encode
"""The writer of keys and hashes: equal objects are one text, whatever the order of their keys."""


class DuplicateKey(ValueError):
    """A key of one object stands twice: which of its values is meant?"""

    def __init__(self, name: str) -> None:
        super().__init__(Sentence("json.duplicate_key", name=name))
        self.name = name


class NotFinite(ValueError):
    """A number that JSON has not, as it is spelled."""

    def __init__(self, text: str) -> None:
        super().__init__(Sentence("json.not_finite", text=text))
        self.text = text


class TooDeep(ValueError):
    """A value that nests more brackets than it may."""

    def __init__(self, depth: int) -> None:
        super().__init__(Sentence("json.too_deep", depth=depth))


class TooMany(ValueError):
    """A text of more values than it may hold."""

    def __init__(self, elements: int) -> None:
        super().__init__(Sentence("json.too_many", n=elements))


class Truncated(json.JSONDecodeError):
    """The beginning of a JSON text, and nothing after it."""


class ExactNumber(float):
    """A number and how it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> ExactNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __reduce__(self) -> tuple[type[ExactNumber], tuple[str]]:
        return (ExactNumber, (self.text,))


def parse(text: str, depth: int = JSON_DEPTH, elements: int = JSON_ELEMENTS) -> Any:
    """Return the value of a JSON text that nests no deeper than `depth` and holds no more values
    than `elements`; raises the errors above."""
    return _read(_decoder, text, depth, elements)


def parse_lenient(text: str, depth: int = JSON_DEPTH, elements: int = JSON_ELEMENTS) -> Any:
    """Return what `parse` does, with NaN and Infinity as null: other tools write them for a missing
    number."""
    return _read(_lenient, text, depth, elements)


def loads_trusted(text: str) -> Any:
    """Return the value that `dump` wrote as this text."""
    return _read(_decoder, text, STORED_DEPTH, len(text))


def _read(decoder: json.JSONDecoder, text: str, depth: int, elements: int) -> Any:
    require_bounds(text, depth, elements)
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        raise _name_error(error) from None
    except RecursionError:
        raise TooDeep(depth) from None


def _name_error(error: json.JSONDecodeError) -> json.JSONDecodeError:
    """Return an error as Truncated where the text breaks off."""
    is_stump = error.msg != "Extra data" and _STUMP.match(error.doc, error.pos)
    if is_stump or error.msg.startswith("Unterminated string"):
        return Truncated(error.msg, error.doc, error.pos)
    return error


def parse_members(text: str, *, lenient: bool = False) -> Iterator[tuple[Any, int, int]]:
    """Yield the members of an array that a text holds, or its one value, each with the places where
    it begins and ends; raises the errors above. None may nest deeper than JSON_DEPTH."""
    decoder, at = _lenient if lenient else _decoder, _BLANKS(text, 0).end()
    is_array = text.startswith("[", at)
    end = at = _BLANKS(text, at + is_array).end()
    is_more = not (is_array and text.startswith("]", at))
    while is_more:
        value, end = _read_member(decoder, text, at)
        yield value, at, end
        end = _BLANKS(text, end).end()
        is_more = is_array and text.startswith(",", end)
        at = _BLANKS(text, end + 1).end()
    if is_array and not text.startswith("]", end):
        raise _name_error(json.JSONDecodeError("Expecting ',' or ']'", text, end))
    if (end := _BLANKS(text, end + is_array).end()) < len(text):
        raise json.JSONDecodeError("Extra data", text, end)


def _read_member(decoder: json.JSONDecoder, text: str, at: int) -> tuple[Any, int]:
    try:
        value, end = decoder.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise _name_error(error) from None
    except RecursionError:
        raise TooDeep(JSON_DEPTH) from None
    brackets = text.count("{", at, end) + text.count("[", at, end)
    if brackets > JSON_ELEMENTS:
        require_bounds(text[at:end], JSON_DEPTH, JSON_ELEMENTS)
    if brackets > JSON_DEPTH and is_deeper(value, JSON_DEPTH):
        raise TooDeep(JSON_DEPTH)
    return value, end


def require_bounds(text: str, depth: int, elements: int) -> None:
    """Refuse a JSON text before anything is built of it; raises TooDeep or TooMany."""
    # Few texts hold so many marks, in strings or outside; only in these are strings left out.
    brackets = text.count("{") + text.count("[")
    if brackets <= depth and brackets + text.count(",") <= elements:
        return
    bare = _STRING.sub("", text)
    steps = (_STEPS[bracket] for bracket in _NO_BRACKET.sub("", bare))
    if any(level > depth for level in accumulate(steps)):
        raise TooDeep(depth)
    if bare.count("{") + bare.count("[") + bare.count(",") > elements:
        raise TooMany(elements)


_STUMP = re.compile(
    r"(?:-|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|[.eE][-+]?|\\?u?[0-9a-fA-F]{0,4})\s*+\Z"
)
"""The rest of a text that breaks off within a literal, a number or an escape."""
_BLANKS = cast("Callable[[str, int], re.Match[str]]", re.compile(r"[ \t\n\r]*+").match)
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_BRACKET = re.compile(r"[^\[\]{}]++")
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


def dump(value: Any) -> str:
    """Return `value` as JSON on one line, every number as it was spelled; raise TooDeep where
    `loads_trusted` would not read it back."""
    return _dump_exact(value, STORED_DEPTH)


def dumps_lossy(value: Any) -> str:
    """Return `value` as JSON in a fraction of the time, for millions of rows: numbers are not
    spelled as they were, and one that JSON has not is null."""
    return _lossy.encode(value).decode()


_lossy = Encoder(enc_hook=float)


def as_text(value: object) -> str:
    """Return a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else dump(value)


def is_deeper(value: Any, depth: int) -> bool:
    """Return True if a value nests more than `depth` objects and lists, or, as one that holds
    itself may, more of them than can be looked at."""
    level = [value]
    for _ in range(depth + 1):
        holders = [item for item in level if isinstance(item, Mapping | list | tuple)]
        if not holders or len(holders) > JSON_ELEMENTS:
            return bool(holders)
        level = []
        for holder in holders:
            level += holder.values() if isinstance(holder, Mapping) else holder
    return True


def _dump_exact(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return compact(value)
    if isinstance(value, ExactNumber):
        return value.text
    # dict before Mapping: the abstract test is slow
    if not isinstance(value, (dict, list, tuple, Mapping)):
        return compact(value)
    if not depth:
        raise TooDeep(STORED_DEPTH)
    if isinstance(value, (dict, Mapping)):
        inner = [f"{compact(str(key))}:{_dump_exact(value[key], depth - 1)}" for key in value]
        return "{" + ",".join(inner) + "}"
    return "[" + ",".join([_dump_exact(item, depth - 1) for item in value]) + "]"


def same(first: Any, second: Any) -> bool:
    """Return True if two values are equal as JSON: key order and the spelling of numbers count."""
    return dump(first) == dump(second)


def _number(text: str) -> float | ExactNumber:
    number = float(text)
    return number if repr(number) == text else ExactNumber(text)


DIGITS_MOST = 300
"""Digits of a whole number that is read as one: each such number is finite as a float too."""


def _integer(text: str) -> int | ExactNumber:
    return ExactNumber(text) if text == "-0" or len(text) > DIGITS_MOST else int(text)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Rows of a table have the same keys: one text of each is kept, and not one a row.
    members = {intern(name): value for name, value in pairs}
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise DuplicateKey(next(name for name, count in counts.items() if count > 1))
    return members


def _refuse(text: str) -> NoReturn:
    raise NotFinite(text)


_decoder = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_number, parse_int=_integer, parse_constant=_refuse
)
_lenient = json.JSONDecoder(
    object_pairs_hook=_pairs,
    parse_float=_number,
    parse_int=_integer,
    parse_constant=lambda text: None,
)


_GAP = cast("Callable[[str, int], re.Match[str]]", re.compile(r"[\s,:]*").match)
"""Matches white space and the marks between values."""


def find_line(text: str, path: tuple[str | int, ...]) -> int:
    """Return the line of a valid JSON text on which the value at `path`, or what is left of it,
    stands."""
    at = _GAP(text, 0).end()
    for step in path:
        inner = _find_member(text, at, step)
        if inner is None:
            break
        at = inner
    return text.count("\n", 0, at) + 1


def _find_member(text: str, at: int, step: str | int) -> int | None:
    """Return the offset of the member `step` of the container at `at`."""
    closing, at = {"{": "}", "[": "]"}.get(text[at], ""), at + 1
    index = 0
    while closing and text[(at := _GAP(text, at).end())] != closing:
        key: str | int = index
        if closing == "}":
            key, at = _decoder.raw_decode(text, at)
            at = _GAP(text, at).end()
        if key == step:
            return at
        _, at = _decoder.raw_decode(text, at)
        index += 1
    return None


# Texts that a store keeps

T = TypeVar("T")
_UNREADABLE = (ValueError, TypeError, RecursionError)


class StoredText(Generic[T]):
    """Reads texts of one type back; `noun` is what such a text is called where it is damaged."""

    def __init__(self, type_: Any, noun: str) -> None:
        self._decoder: Decoder[T] = Decoder(type_)
        self._noun = noun

    def read(self, text: str | bytes) -> T:
        """Return the value of a text; raises StoreError where it cannot be read."""
        try:
            return self._decoder.decode(text)
        except _UNREADABLE as error:
            raise damage_error(self._noun, error) from None


def stored_value(text: str, noun: str) -> Any:
    """Return the value that `dump` wrote as a text of a store; raises StoreError."""
    try:
        return loads_trusted(text)
    except (*_UNREADABLE, AttributeError) as error:
        raise damage_error(noun, error) from None


def stored_object(text: str, noun: str) -> dict[str, Any]:
    """Return the object that `dump` wrote as a text of a store; raises StoreError."""
    value = stored_value(text, noun)
    if not isinstance(value, dict):
        raise damage_error(noun, TypeError("it is not an object"))
    return value


def damage_error(noun: str, error: Exception) -> StoreError:
    """Return the error for a text of a store that cannot be read."""
    return StoreError(
        Sentence("web.store_cannot_read", noun=noun, error=error),
    )
