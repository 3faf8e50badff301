"""What is judged. Units are frozen and built by the loaders; nothing here reads a file.

A unit's `meta` and `id` identify it to people and to the statistics; they never reach a judge
unless the suite exposes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand import jsontext

META_FIELDS = ("run_id", "model", "prompt_variant", "eval_set_variant", "question_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One output to score on a rubric."""

    id: str
    question: str
    model_output: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    rubric: Mapping[str, Any] | None = None
    language: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    """`reference`, `context` and earlier `messages`, where the row has them."""


def sample_id(row: Mapping[str, Any]) -> str:
    """The id of a sample row: its `id`, else the five meta fields joined by `/`."""
    given = row.get("id")
    if given is not None:
        return str(given)
    meta: Mapping[str, Any] = row.get("meta") or {}
    return "/".join(_escaped(meta.get(name)) for name in META_FIELDS)


def _escaped(value: object) -> str:
    text = value if isinstance(value, str) else "" if value is None else jsontext.dump(value)
    return text.replace("%", "%25").replace("/", "%2F")
