"""Rows of tables, and the dotted names of their columns: `meta.model` is the field `model` of the
object `meta`.

Flat columns become nested objects and nested objects flat columns; a name with an empty part
(`a..b`) is one plain name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from evenhand import limits
from evenhand.data.files import advise
from evenhand.errors import DataError
from evenhand.jsontext import TooDeep, is_deeper
from evenhand.kinds.rows import PlacedRow
from evenhand.words import Code, Sentence

Row = PlacedRow
"""One row, and where it starts: `samples.jsonl:12` (of Parquet the row's number)."""
_ABSENT = object()
_NAMES_KEPT = 1000


class Rows:
    """The rows of one table: a new object for each row whenever they are read."""

    def __init__(
        self,
        name: str,
        records: Sequence[Any],
        header: Sequence[str] = (),
        lines: Sequence[int] | None = None,
    ) -> None:
        """`records` are objects, or, where there is a header, cells in its order; `lines` are the
        lines on which they start, if these are not numbered from 1."""
        self.name, self._records, self._header = name, records, header
        self._lines = range(1, len(records) + 1) if lines is None else lines

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Row]:
        for value, line in zip(self.values(), self._lines, strict=True):
            yield Row(value, f"{self.name}:{line}")

    def values(self) -> Iterator[dict[str, Any]]:
        """Yield the rows without their places."""
        header, records = self._header, self._records
        if not header:
            return (
                {k: dict(v) if isinstance(v, dict) else v for k, v in r.items()} for r in records
            )
        paths = [parts_of(column) for column in header]
        if all(len(path) == 1 for path in paths):
            return (dict(zip(header, cells, strict=True)) for cells in records)
        return (nest(paths, cells) for cells in records)


@lru_cache(maxsize=4096)
def parts_of(name: str) -> tuple[str, ...]:
    """Return the keys that a dotted name goes through."""
    parts = tuple(name.split("."))
    return parts if all(parts) else (name,)


def require_columns(names: Sequence[str], where: str) -> None:
    """Refuse columns that cannot stand beside each other in one row, or nest too deep."""
    for name in names:
        require_parts(name, where)
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(Sentence("data.column_twice", name=twice), where=where)
    if clash := parent_among(names):
        parent, name = clash
        raise DataError(Sentence("data.column_inside", name=name, parent=parent), where=where)


def require_parts(name: str, where: str) -> None:
    """Refuse a dotted name of more parts than anybody nests."""
    if name.count(".") >= limits.NAME_PARTS and len(parts_of(name)) > limits.NAME_PARTS:
        raise DataError(
            Sentence("data.column_too_deep", name=name, most=limits.NAME_PARTS), where=where
        )


def parent_among(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two of the names, the first an object for the second and a value itself."""
    columns = dict.fromkeys(names)
    for name in columns:
        parts = parts_of(name)
        for length in range(1, len(parts)):
            if (above := ".".join(parts[:length])) in columns:
                return above, name
    return None


def nest(paths: Sequence[tuple[str, ...]], values: Iterable[Any]) -> dict[str, Any]:
    """Return one row of nested objects from one row of flat columns."""
    row: dict[str, Any] = {}
    for path, value in zip(paths, values, strict=True):
        holder = row
        for part in path[:-1]:
            holder = holder.setdefault(part, {})
        holder[path[-1]] = value
    return row


def flatten(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the columns of one row: objects opened, lists as they are, empty objects left out."""
    for key, value in row.items():
        if isinstance(value, dict | Mapping):  # dict first: the abstract test is slow
            yield from flatten(cast("Mapping[str, Any]", value), f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def require_depth(value: object, depth: int, where: str) -> None:
    """Refuse a value that nests deeper than a row may; `depth` is that of its column."""
    if isinstance(value, dict | list | tuple) and is_deeper(value, limits.JSON_DEPTH - depth):
        problem = TooDeep(limits.JSON_DEPTH).args[0]
        raise DataError(Sentence("data.row_too_large", problem=problem), where=where)


def require_sources(
    columns: Mapping[str, str],
    rows: Iterable[dict[str, Any]],
    where: str,
    source: str = "[columns]",
) -> None:
    """Refuse a column to copy that no row has; `source` is what names the columns, for errors.
    Reads only as far as it must."""
    for name in (*columns, *columns.values()):
        require_parts(name, source)
    absent = set(columns.values())
    names: dict[str, None] = {}
    for row in rows:
        absent = {name for name in absent if _value(row, name) is _ABSENT}
        if not absent:
            return
        if len(names) < _NAMES_KEPT:
            names |= dict.fromkeys(name for name, _ in flatten(row))
    if names:
        name, used = min(absent), set(columns.values())
        raise DataError(
            Sentence("data.in_no_row", name=name, source=Code(source)),
            where=where,
            advice=advise(name, [other for other in names if other not in used] or [*names]),
        )


def copy_fields(row: dict[str, Any], columns: Mapping[str, str], where: str) -> None:
    """Fill the fields of a row in place: `columns` maps a target name to the source that it is
    copied from, both dotted. A source may feed two targets, or swap with one."""
    values = [(target, _value(row, source)) for target, source in columns.items()]
    for target, value in values:
        if value is not _ABSENT:
            set_field(row, target, value, where)


def _value(row: dict[str, Any], name: str) -> Any:
    """Return the value under a name: of one plain key, else through nested objects."""
    value: Any = row
    for part in (name,) if name in row else parts_of(name):
        value = value.get(part, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value


def remove_field(row: dict[str, Any], name: str) -> None:
    """Take a field out of a row, in place, where it is there."""
    above, _, last = ("", "", name) if name in row else name.rpartition(".")
    holder = _value(row, above) if above else row
    if isinstance(holder, dict):
        holder.pop(last, None)


def set_field(row: dict[str, Any], target: str, value: Any, where: str) -> None:
    """Put a value where a dotted name says, in place; raises DataError."""
    path, holder = parts_of(target), row
    require_depth(value, len(path), where)
    for part in path[:-1]:
        inner = holder.get(part)
        if inner in (None, ""):
            inner = holder[part] = {}
        if not isinstance(inner, dict):
            raise DataError(Sentence("data.not_an_object", target=target, part=part), where=where)
        holder = cast("dict[str, Any]", inner)
    holder[path[-1]] = value
