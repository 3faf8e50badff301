"""Pieces of JSON Schema, in the strict form that endpoints take."""

from __future__ import annotations

from typing import Any


def object_of(**properties: Any) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
