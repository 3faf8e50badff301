"""The fields of rubrics and checklists as their files have them; what is wrong with one is a
RubricTextError with the path of keys to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from evenhand import jsontext
from evenhand.kinds.kind import RubricTextError
from evenhand.kinds.prompt import unknown
from evenhand.observation import RESERVED
from evenhand.tomltext import TomlError, parse_toml
from evenhand.words import Code, Sentence

Path = tuple[str | int, ...]


def parse_value(text: str, ending: str) -> Any:
    """Return the value of a TOML or JSON text; raise RubricTextError with the line."""
    try:
        return parse_toml(text) if ending == ".toml" else jsontext.parse(text)
    except TomlError as error:
        raise RubricTextError(error.args[0], line=error.line) from None
    except ValueError as error:
        raise RubricTextError(
            Sentence("kinds.not_json", error=error), line=getattr(error, "lineno", None)
        ) from None


def read_object(value: object, path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """Return an object that has no other keys."""
    if not isinstance(value, Mapping):
        raise RubricTextError(Sentence("kinds.no_keys", keys=Code(", ".join(keys))), path=path)
    for key in value:
        if key not in keys:
            raise RubricTextError(unknown("key", key, keys), path=(*path, key))
    return dict(value)


def read_list(fields: Mapping[str, Any], name: str, path: Path) -> Sequence[object]:
    """Return a list that is not empty."""
    value = fields.get(name)
    if not isinstance(value, list) or not value:
        raise RubricTextError(Sentence("kinds.empty_list", name=name), path=(*path, name))
    return cast("list[object]", value)


def read_text(fields: Mapping[str, Any], name: str, path: Path) -> str:
    """Return a text that says something."""
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RubricTextError(Sentence("kinds.empty_text", name=name), path=(*path, name))
    return value


def read_id(fields: Mapping[str, Any], path: Path) -> str:
    """Return the id of a dimension or criterion, which no other figure is called by."""
    ident = read_text(fields, "id", path)
    if ident in RESERVED:
        raise RubricTextError(Sentence("kinds.reserved_id", name=ident), path=(*path, "id"))
    return ident


def require_plain(fields: Mapping[str, Any], path: Path) -> None:
    """Require values that JSON and Unicode can hold: no half of a surrogate pair, date or NaN."""
    try:
        jsontext.dump(fields).encode()
    except (TypeError, ValueError):
        raise RubricTextError(Sentence("kinds.no_json_value"), path=path) from None


def require_different(name: str, values: Sequence[object], path: Path) -> None:
    """Require that no two values are the same."""
    for index, value in enumerate(values):
        if value in values[:index]:
            message = Sentence("kinds.same_value", name=name, value=jsontext.dump(value))
            raise RubricTextError(message, path=(*path, index, name))
