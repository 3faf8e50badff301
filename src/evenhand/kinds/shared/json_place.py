"""Where in a JSON text that was refused something stands, in the words of a path: `scores.a[0]`.

Only of use for a text of which all before that place is JSON: the reader that refused it got there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|-?Infinity|NaN', re.DOTALL)


def place_of_number(text: str) -> str:
    """The place of the first number that JSON has not; nothing if there is none."""
    for mark, place in _tokens(text):
        if mark[-1] in "Ny":
            return path_of(place)
    return ""


def place_of_repetition(text: str) -> str:
    """The place of the first key that stands twice in one object; nothing if there is none."""
    keys: list[set[str]] = []
    repeated: list[str] = []
    for mark, place in _tokens(text):
        if mark == "{":
            keys.append(set())
            repeated.append("")
        elif mark == "}" and keys:
            keys.pop()
            if path := repeated.pop():
                return path
        elif mark == ":" and keys:
            key = str(place[-1])
            if key in keys[-1]:
                repeated[-1] = repeated[-1] or path_of(place)
            keys[-1].add(key)
    return ""


def path_of(place: list[str | int]) -> str:
    """A place as a path."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(steps).removeprefix(".")


def _tokens(text: str) -> Iterator[tuple[str, list[str | int]]]:
    """Every mark, string and odd number of a text, with the place where it stands: keys of objects
    and numbers of items."""
    place: list[str | int] = []
    string = ""
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark == ":" and place:
            place[-1] = _text_of(string)
        elif mark == "," and place and isinstance(place[-1], int):
            place[-1] += 1
        elif mark in "}]" and place:
            place.pop()
        elif mark[0] == '"':
            string = mark
        yield mark, place
        if mark in "{[":
            place.append("" if mark == "{" else 0)


def _text_of(string: str) -> str:
    try:
        return str(json.loads(string))
    except ValueError:
        return string[1:-1]
