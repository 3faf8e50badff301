"""TOML from outside: errors with their line, and the line of a key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.jsontext import is_deeper
from evenhand.limits import JSON_DEPTH, NAME_PARTS, TOML_ELEMENTS
from evenhand.words import Sentence

Loc = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""


class TomlError(ValueError):
    """A text that is not TOML, or nested too deep; and its line, where that is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text; raises TomlError."""
    # tomllib's time grows with the square of a dotted key; keys begin lines or tables.
    if dotted := _DOTTED.search(text):
        line_number = text.count("\n", 0, dotted.start()) + 1
        raise TomlError(Sentence("kinds.toml_names", most=NAME_PARTS), line_number)
    if sum(text.count(mark) for mark in "=,[{") > TOML_ELEMENTS:
        raise TomlError(Sentence("kinds.toml_values", most=TOML_ELEMENTS))
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        message = Sentence("kinds.not_toml", error=error)
        raise TomlError(message, int(line[1]) if line else None) from None
    except ValueError as error:  # a number of more digits than Python reads
        raise TomlError(Sentence("kinds.not_toml", error=error)) from None
    except RecursionError:
        values = None
    if values is None or is_deeper(values, JSON_DEPTH):
        raise TomlError(Sentence("kinds.toml_depth", most=JSON_DEPTH))
    return values


_DOTTED = re.compile(
    rf"(?:^|[\[{{,])[ \t]*+[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){{{NAME_PARTS},}}+", re.M
)
# Each letter is tried once: a line may be as long as the file.
_HEADER = re.compile(r"\s*+(\[\[?)\s*+([^\]\s]++(?:\s++[^\]\s]++)*+)\s*+\]\]?\s*+(?:#.*)?$")
_NAME = re.compile(r"""\"([^"]*)"|'([^']*)'|([\w-]+)""")
_KEY = re.compile(rf"\s*((?:{_NAME.pattern})(?:\s*\.\s*(?:{_NAME.pattern}))*)\s*=")


def find_line(text: str, loc: Loc) -> int | None:
    """Return the line of a key in a TOML text; where it has none, that of its table, or else
    None."""
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
    """Return a table, or the last one so far of an array of tables."""
    return (*table, counts[table]) if table in counts else table


def _names(dotted: str) -> list[str]:
    return ["".join(groups) for groups in _NAME.findall(dotted)]
