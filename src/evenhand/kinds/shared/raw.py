"""Values as JSON between a unit and its verdict: what must come back byte for byte stays a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from evenhand import jsontext
from evenhand.storedtext import stored_value
from evenhand.units import JsonObject


def raw_json(value: Mapping[str, Any]) -> Raw:
    """An object as the JSON text that it was read from."""
    return Raw(object_text(value))


def object_text(value: Mapping[str, Any]) -> str:
    """The same as a text."""
    return value.text if isinstance(value, JsonObject) else jsontext.dump(value)


def raw_object(text: Raw) -> JsonObject:
    """The object of a JSON text, not yet looked into."""
    return JsonObject(bytes(text).decode())


def read_raw(text: Raw) -> Any:
    """The value of a JSON text, key order and the spelling of numbers kept."""
    return stored_value(bytes(text).decode(), "a part of a unit")


def plain_number(number: float) -> int | float:
    """A number that no longer remembers how it was spelled."""
    return number if isinstance(number, int) else float(number)
