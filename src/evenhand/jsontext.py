"""JSON as text that comes back as it went in: key order and the spelling of numbers are kept.

`1.50` and `1e3` are read as numbers that remember how they were written. Duplicate keys, NaN and
Infinity are refused: a file that holds them says two things at once, or nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import to_json

compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""The fast writer, for values whose numbers need no spelling kept."""


class Spelled(float):
    """A number and how it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Spelled:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __reduce__(self) -> tuple[type[Spelled], tuple[str]]:
        return (Spelled, (self.text,))


def parse(text: str) -> Any:
    """The value of a JSON text. Raises ValueError; RecursionError never leaves it."""
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_lenient(text: str) -> Any:
    """As `parse`, with NaN and Infinity as null: other tools write them for a missing number."""
    try:
        return _lenient.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def dump(value: Any) -> str:
    """`value` as JSON on one line, every number as it was spelled."""
    return _spelled_out(value) if _is_spelled(value) else compact(value)


def swift(value: Any) -> str:
    """`value` as JSON in a fraction of the time, for millions of rows: numbers are not spelled as
    they were, and one that JSON has not is null."""
    return to_json(value).decode()


def as_text(value: object) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else dump(value)


def _is_spelled(value: Any) -> bool:
    """Whether the fast writer would lose the spelling of a number in `value`, or not know it."""
    left = [value]
    while left:
        inner = left.pop()
        kind = type(inner)
        if kind is dict:
            left.extend(inner.values())
        elif kind is list or kind is tuple:
            left.extend(inner)
        elif kind not in _PLAIN:
            return True
    return False


_PLAIN = frozenset({str, int, float, bool, type(None)})


def _spelled_out(value: Any) -> str:
    if isinstance(value, Spelled):
        return value.text
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        return "{" + ",".join(f"{compact(str(k))}:{dump(v)}" for k, v in given.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(dump, cast("list[Any]", value))) + "]"
    return compact(value)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: key order and the spelling of numbers count."""
    return dump(one) == dump(other)


def _number(text: str) -> float | Spelled:
    number = float(text)
    return number if repr(number) == text else Spelled(text)


def _integer(text: str) -> int | Spelled:
    return Spelled(text) if text == "-0" else int(text)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f'the key "{twice}" stands twice')
    return found


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


_decoder = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_number, parse_int=_integer, parse_constant=_refuse
)
_lenient = json.JSONDecoder(
    object_pairs_hook=_pairs,
    parse_float=_number,
    parse_int=_integer,
    parse_constant=lambda text: None,
)


_SPACE = re.compile(r"[\s,:]*")


def _skip(text: str, at: int) -> int:
    """Past white space and the marks between values."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def find_line(text: str, path: tuple[str | int, ...]) -> int | None:
    """The line of a valid JSON text on which the value at `path`, or what is left of it, stands."""
    at = _skip(text, 0)
    for step in path:
        inner = _step(text, at, step)
        if inner is None:
            break
        at = inner
    return text.count("\n", 0, at) + 1


def _step(text: str, at: int, step: str | int) -> int | None:
    """Where the member `step` of the container at `at` begins."""
    closing, at = {"{": "}", "[": "]"}.get(text[at], ""), at + 1
    index = 0
    while closing and text[(at := _skip(text, at))] != closing:
        key: str | int = index
        if closing == "}":
            key, at = _decoder.raw_decode(text, at)
            at = _skip(text, at)
        if key == step:
            return at
        _, at = _decoder.raw_decode(text, at)
        index += 1
    return None
