"""What every kind of input row has in common, and the sentence that says what is wrong with one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, cast

EXTRAS = ("reference", "context", "messages")


class RowError(ValueError):
    """What is wrong with an input row."""


def without_empty(row: Mapping[str, Any], texts: Collection[str]) -> dict[str, Any]:
    """The row without its empty cells: they count as absent, but for the texts that are judged."""
    return {key: value for key, value in row.items() if value != "" or key in texts}


def text_of(row: Mapping[str, Any], name: str, fields: Collection[str]) -> str:
    """A text that must be there; raises RowError, with a guess at which column was meant."""
    value = row.get(name)
    if isinstance(value, str):
        return value
    if name in row:
        raise RowError(f'"{name}" must be a text, and is {named(value)}')
    close = get_close_matches(name, [key for key in row if key not in fields], n=1, cutoff=0.5)
    hint = f'; did you mean "{close[0]}"? Map it: [columns] {name} = "{close[0]}"' if close else ""
    raise RowError(f'"{name}" is missing{hint}')


def filled_text_of(row: Mapping[str, Any], name: str, fields: Collection[str]) -> str:
    """A text that must be there and say something; raises RowError."""
    text = text_of(row, name, fields)
    if not text.strip():
        raise RowError(f'"{name}" is empty')
    return text


def meta_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row's `meta`; raises RowError."""
    meta = row.get("meta")
    if meta is not None and not isinstance(meta, Mapping):
        raise RowError(f'"meta" must be an object, and is {named(meta)}')
    return cast("Mapping[str, Any]", meta or {})


def check_id(value: object, name: str = "id") -> None:
    """An id is a text or a whole number; raises RowError."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise RowError(f'"{name}" must be a text, and is {named(value)}')


def language_of(row: Mapping[str, Any]) -> str | None:
    """The row's own language, if it has one; raises RowError."""
    value = row.get("language")
    if value is None or isinstance(value, str):
        return value
    raise RowError(f'"language" must be a text such as "en", and is {named(value)}')


def extras_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """What may be shown beside the judged text, where the row has it."""
    return {name: row[name] for name in EXTRAS if row.get(name) is not None}


def named(value: object) -> str:
    """What kind of thing a value is, in words."""
    names = {dict: "an object", list: "a list", bool: "true or false", str: "a text"}
    return "null" if value is None else names.get(type(value), "a number")


def check_language(language: str | None, spoken: Collection[str]) -> None:
    """A row's language must be one that the protocol speaks; raises RowError."""
    if language and language not in spoken:
        known = ", ".join(spoken)
        raise RowError(f'the protocol speaks {known}, and "language" is {language}')
