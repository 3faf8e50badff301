"""TOML from outside, bounded before it is believed: how deep it nests, how many names a key is made
of, how many values it holds. Python's reader takes time that grows with the square of a dotted
key, and runs out of stack in brackets."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from evenhand.jsontext import is_deeper
from evenhand.limits import JSON_DEPTH, NAME_PARTS, TOML_ELEMENTS
from evenhand.regexp import regexp

Loc = tuple[str | int, ...]
"""Where a value stands: the keys and places that lead to it."""


class TomlError(ValueError):
    """A text that is no TOML, or more of it than is read; and its line, where that is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def parse_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text; raises TomlError."""
    bare = _LITERALS.sub("s", text)
    _require_bounds(bare)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise TomlError(f"not TOML: {error}", int(line[1]) if line else None) from None
    except ValueError as error:  # a number of more digits than Python reads
        raise TomlError(f"not TOML: {error}") from None
    if is_deeper(values, JSON_DEPTH):
        raise TomlError(_too_deep())
    return values


_LITERALS = regexp(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5}|\Z)'
    r"|'''(?:[^']++|'(?!''))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]++|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+",
    re.DOTALL,
)
"""Strings and comments. One that never ends takes all that follows, so that each letter is looked
at once."""
_DOTTED = regexp(rf"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){{{NAME_PARTS},}}+")
_NO_BRACKET = regexp(r"[^\[\]{}]++")
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


def _require_bounds(bare: str) -> None:
    """Refuse a text, its strings replaced, that would nest, or hold, too much."""
    if dotted := _DOTTED.search(bare):
        line = bare.count("\n", 0, dotted.start()) + 1
        raise TomlError(f"not TOML: a key of more than {NAME_PARTS} names", line)
    brackets = _NO_BRACKET.sub("", bare)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > JSON_DEPTH:
        raise TomlError(_too_deep())
    if sum(bare.count(mark) for mark in "=,[{") > TOML_ELEMENTS:
        raise TomlError(f"not TOML: more than {TOML_ELEMENTS:,} values")


def _too_deep() -> str:
    return f"not TOML: nested more than {JSON_DEPTH} deep"


# Each letter is tried once: a line may be as long as the file.
_HEADER = regexp(r"\s*+(\[\[?)\s*+([^\]\s]++(?:\s++[^\]\s]++)*+)\s*+\]\]?\s*+(?:#.*)?$")
_NAME = regexp(r"""\"([^"]*)"|'([^']*)'|([\w-]+)""")
_KEY = regexp(rf"\s*((?:{_NAME.pattern})(?:\s*\.\s*(?:{_NAME.pattern}))*)\s*=")


def find_line(text: str, loc: Loc) -> int | None:
    """The line where a key of a TOML text stands; its table's line, or none, where it does not."""
    lines = {key: line for line, key in _keys(text)}
    while loc:
        if loc in lines:
            return lines[loc]
        if (*loc, 0) in lines:  # the first of an array of tables
            return lines[(*loc, 0)]
        loc = loc[:-1]
    return None


def _keys(text: str) -> Iterator[tuple[int, Loc]]:
    table: Loc = ()
    counts: dict[Loc, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            *outer, last = _names(header[2])
            table = ()
            for name in outer:
                table = _latest((*table, name), counts)
            table = (*table, last)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
            table = _latest(table, counts)
            yield number, table
        elif key := _KEY.match(line):
            yield number, (*table, *_names(key[1]))


def _latest(table: Loc, counts: Mapping[Loc, int]) -> Loc:
    """A table, or the last one of an array of tables so far."""
    return (*table, counts[table]) if table in counts else table


def _names(dotted: str) -> list[str]:
    return ["".join(groups) for groups in _NAME.findall(dotted)]
