"""Dotted names: `meta.model` is the field `model` of the object `meta`.

Flat columns become nested objects and nested objects flat columns; a name with an empty part
(`a..b`) is one plain name. `Copies` fills fields as a suite's `[columns]` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from evenhand import limits
from evenhand.data.files import did_you_mean
from evenhand.errors import DataError, quoted
from evenhand.jsontext import TooDeep, is_deeper

Parts = tuple[str, ...]

_ABSENT = object()
_NAMES_KEPT = 1000


def parts_of(name: str) -> Parts:
    """Return the keys that a dotted name goes through."""
    parts = tuple(name.split("."))
    return parts if all(parts) else (name,)


def require_columns(names: list[str], where: str) -> None:
    """Refuse columns that cannot stand beside each other in one row, or nest too deep."""
    for name in names:
        require_parts(name, where)
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise DataError(
            f"the column {quoted(twice)} stands twice", where=where, advice="rename one of them"
        )
    clash = parent_among(names)
    if clash:
        raise DataError(
            f"the column {quoted(clash[1])} would stand inside the column {quoted(clash[0])}",
            where=where,
            advice="rename one of them",
        )


def require_parts(name: str, where: str) -> None:
    """Refuse a dotted name of more parts than anybody nests."""
    # The dots bound the parts: few names need be split for it.
    if name.count(".") >= limits.NAME_PARTS and len(parts_of(name)) > limits.NAME_PARTS:
        raise DataError(
            f"the column {quoted(name[:60])}... is nested more than {limits.NAME_PARTS} deep",
            where=where,
            advice="rename the column: each dot in its name opens an object",
        )


def parent_among(names: Iterable[str]) -> tuple[str, str] | None:
    """Two of the names, the first an object for the second and a value itself."""
    columns = dict.fromkeys(names)
    for name in columns:
        parts = parts_of(name)
        for length in range(1, len(parts)):
            above = ".".join(parts[:length])
            if above in columns:
                return above, name
    return None


def nested(paths: list[Parts], values: Iterable[Any]) -> dict[str, Any]:
    """Return one row of nested objects from one row of flat columns."""
    row: dict[str, Any] = {}
    for path, value in zip(paths, values, strict=True):
        holder = row
        for part in path[:-1]:
            holder = holder.setdefault(part, {})
        holder[path[-1]] = value
    return row


def flattened(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the columns of one row: objects opened, lists as they are, empty objects left out."""
    for key, value in row.items():
        if isinstance(value, dict | Mapping):  # dict first: the abstract test is slow
            yield from flattened(cast("Mapping[str, Any]", value), f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def too_deep(where: str) -> DataError:
    """Return the error for a row that nests too deep."""
    return DataError(
        str(TooDeep(limits.JSON_DEPTH)), where=where, advice="flatten or split the row"
    )


class Copies:
    """Fields to fill: target name to source name, both dotted. The rest of a row stays."""

    def __init__(self, columns: Mapping[str, str], source: str = "[columns]") -> None:
        """`source` is what names the columns, for errors."""
        self._copies, self._source = dict(columns), source
        for name in (*self._copies, *self._copies.values()):
            require_parts(name, source)

    def apply(self, row: dict[str, Any], where: str) -> dict[str, Any]:
        """Fill the fields of `row` in place. A source may feed two targets, or swap with one."""
        paths = [(target, _path_in(row, source)) for target, source in self._copies.items()]
        values = [(target, _at(row, path)) for target, path in paths if path]
        for target, value in values:
            place(row, target, value, where)
        return row

    def require_sources(self, rows: Iterable[dict[str, Any]], where: str) -> None:
        """Refuse a source that no row has. Reads only as far as it must."""
        sources = set(self._copies.values())
        names: dict[str, None] = {}
        if not sources:
            return
        for row in rows:
            sources = {source for source in sources if not _path_in(row, source)}
            if not sources:
                return
            if len(names) < _NAMES_KEPT:
                names.update(dict.fromkeys(_names(row)))
        if names:
            raise self._no_source(min(sources), list(names), where)

    def _no_source(self, source: str, names: Sequence[str], where: str) -> DataError:
        there = f"the rows have: {', '.join(quoted(name) for name in names[:12])}"
        used = set(self._copies.values())
        near = did_you_mean(source, [name for name in names if name not in used])
        return DataError(
            f"no row has the column {quoted(source)} that {self._source} names",
            where=where,
            advice=f"{near} {there}".strip(),
        )


def _names(row: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in row.items():
        yield prefix + key
        if isinstance(value, dict):
            yield from _names(cast("dict[str, Any]", value), f"{prefix}{key}.")


def _path_in(row: dict[str, Any], name: str) -> Parts | None:
    """Return the path of `name` in the row: one plain key, else keys through nested objects; None
    where the row has neither."""
    if name in row:
        return (name,)
    path = parts_of(name)
    return None if _at(row, path) is _ABSENT else path


def _at(row: dict[str, Any], path: Parts) -> Any:
    value: Any = row
    for part in path:
        if not isinstance(value, dict):
            return _ABSENT
        value = cast("dict[str, Any]", value).get(part, _ABSENT)
    return value


def remove(row: dict[str, Any], name: str) -> None:
    """Take a field out of a row, in place, where it is there."""
    path = _path_in(row, name) or (name,)
    holder = _at(row, path[:-1])
    if isinstance(holder, dict):
        cast("dict[str, Any]", holder).pop(path[-1], None)


def place(row: dict[str, Any], target: str, value: Any, where: str) -> None:
    """Put a value where a dotted name says, in place; raises DataError."""
    path, holder = parts_of(target), row
    if isinstance(value, dict | list) and is_deeper(value, limits.JSON_DEPTH - len(path)):
        raise too_deep(where)
    for part in path[:-1]:
        inner = holder.get(part)
        if inner in (None, ""):
            inner = holder[part] = {}
        if not isinstance(inner, dict):
            raise DataError(
                f"{quoted(target)} cannot be placed: {quoted(part)} is not an object",
                where=where,
                advice=f"map {quoted(part)} to another name under [columns] too",
            )
        holder = cast("dict[str, Any]", inner)
    holder[path[-1]] = value
