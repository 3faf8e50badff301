"""Values as JSON between a unit and its verdict: what must come back byte for byte stays a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from msgspec import Raw

from evenhand import jsontext


def raw_json(value: Mapping[str, Any]) -> Raw:
    """An object as the JSON text that it was read from."""
    return Raw(jsontext.dump(value))


def read_raw(text: Raw) -> Mapping[str, Any]:
    """The object of a JSON text, key order and the spelling of numbers kept."""
    return cast("Mapping[str, Any]", jsontext.parse(bytes(text).decode()))


def plain_number(number: float) -> int | float:
    """A number that no longer remembers how it was spelled."""
    return number if isinstance(number, int) else float(number)
