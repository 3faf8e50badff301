"""Parquet, through pyarrow, which is imported only here and only when needed.

A row that comes out holds JSON values alone. Columns that go in are flat: a column is typed when
all its values are of one scalar type (whole numbers and fractions together are fractions), else it
is text, with JSON for what is not text.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import BufferedReader
from itertools import islice
from typing import IO, Any, Literal, NamedTuple

from evenhand import limits
from evenhand.data.columns import (
    ColumnChunk,
    Parts,
    nested,
    parts_of,
    require_columns,
    too_deep,
)
from evenhand.data.files import seekable
from evenhand.data.jsonrows import Numbered
from evenhand.errors import DataError, UsageError, quoted
from evenhand.jsontext import ExactNumber, dump, is_deeper

Kind = Literal["none", "bool", "int", "long", "float", "text"]
"""`int` is exact as a fraction too, `long` is not."""

_EXACT = 2**53
"""Up to here a fraction holds every whole number."""
_JOINED: dict[frozenset[Kind], Kind] = {
    frozenset(("int", "long")): "long",
    frozenset(("int", "float")): "float",
}
_GROUP_ROWS = 2048
_JSON: frozenset[type] = frozenset({str, int, bool, type(None)})
"""Types of cells that are JSON values as they are."""


def require_pyarrow() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(
            "Parquet files need pyarrow, which is not installed",
            advice='pip install "evenhand[parquet]"',
        ) from None


class ParquetTable:
    """The columns of a Parquet file as JSON values. `lenient` reads NaN and infinity as null: other
    tools write them for a missing number."""

    def __init__(self, file: IO[bytes], name: str, *, lenient: bool = False) -> None:
        arrow, parquet = require_pyarrow()
        self._name, self._is_lenient = name, lenient
        self._errors = (arrow.ArrowException, OSError, ValueError, OverflowError)
        with self._sound():
            self._table = parquet.ParquetFile(file)
            self.header: list[str] = self._table.schema_arrow.names
        require_columns(self.header, name)
        self._depths = [limits.JSON_DEPTH - len(parts_of(column)) for column in self.header]

    def columns(self) -> Iterator[ColumnChunk]:
        """Some rows at a time, with their numbers, from 1. Where one cannot be read, those before
        it come first."""
        start = 1
        with self._sound():
            for batch in self._table.iter_batches(limits.BATCH_ROWS, use_threads=False):
                cells = [column.to_pylist() for column in batch.columns]
                yield from self._values(cells, range(start, start + batch.num_rows))
                start += batch.num_rows

    def _values(self, cells: list[list[Any]], numbers: range) -> Iterator[ColumnChunk]:
        wheres = _Places(self._name, numbers)
        try:
            values = [
                _values(column, wheres, depth, self._is_lenient)
                for column, depth in zip(cells, self._depths, strict=True)
            ]
        except DataError:
            if len(numbers) == 1:
                raise
            for at, number in enumerate(numbers):
                yield from self._values(
                    [[column[at]] for column in cells], range(number, number + 1)
                )
        else:
            yield values, numbers

    @contextmanager
    def _sound(self) -> Generator[None]:
        try:
            yield
        except self._errors as error:
            raise DataError(
                f"not a sound Parquet file: {quoted(error)[1:-1]}",
                where=self._name,
                advice="the file looks cut off or damaged: copy or export it again",
            ) from None


class _Places(NamedTuple):
    """Where rows stand."""

    name: str
    numbers: range

    def of(self, at: int) -> str:
        return f"{self.name}:{self.numbers[at]}"


def _values(column: list[Any], places: _Places, depth: int, lenient: bool) -> list[Any]:
    """The cells of a column as JSON values, which may nest so deep."""
    if _JSON.issuperset(map(type, column)):
        return column
    values = [
        cell if type(cell) is str else json_value(cell, places.of(at), lenient)
        for at, cell in enumerate(column)
    ]
    for at, value in enumerate(values):
        if type(value) in (dict, list) and is_deeper(value, depth):
            raise too_deep(places.of(at))
    return values


def read_parquet(file: BufferedReader, name: str, *, lenient: bool = False) -> Iterator[Numbered]:
    """The rows of a Parquet file, numbered from 1; dotted columns are nested."""
    with seekable(file) as whole:
        table = ParquetTable(whole, name, lenient=lenient)
        paths = [parts_of(column) for column in table.header]
        for columns, numbers in table.columns():
            for cells, number in zip(zip(*columns, strict=True), numbers, strict=True):
                yield nested(paths, cells), number


def flat_row(paths: list[Parts], values: Sequence[Any], where: str) -> dict[str, Any]:
    """One row of nested objects from JSON values in flat columns; raises DataError where they nest
    too deep together."""
    for path, value in zip(paths, values, strict=True):
        if type(value) in (dict, list) and is_deeper(value, limits.JSON_DEPTH - len(path)):
            raise too_deep(where)
    return nested(paths, values)


def json_value(value: Any, where: str, lenient: bool) -> Any:
    """A value of a table as JSON has it; raises DataError for one that has no such form, or nests
    deeper than a row may."""
    if isinstance(value, dict | list | tuple) and is_deeper(value, limits.JSON_DEPTH):
        raise too_deep(where)
    return _json_value(value, where, lenient)


def _json_value(value: Any, where: str, lenient: bool) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case float() if lenient:
            return None
        case dict():
            return {str(key): _json_value(inner, where, lenient) for key, inner in value.items()}
        case list() | tuple():
            return [_json_value(inner, where, lenient) for inner in value]
        case decimal.Decimal() if value.is_finite():
            return ExactNumber(str(value))
        case datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            raise DataError(
                f"{quoted(value)} ({type(value).__name__}) has no JSON form",
                where=where,
                advice="convert the column to text or numbers, missing values to null",
            )


def kind_of(value: Any) -> Kind:
    """The type of column that `value` asks for."""
    match value:
        case None:
            return "none"
        case bool():
            return "bool"
        case int() if abs(value) <= _EXACT:
            return "int"
        case int() if -(2**63) <= value < 2**63:
            return "long"
        case float() if math.isfinite(value):
            return "float"
        case _:
            return "text"


def joined_kind(first: Kind, second: Kind) -> Kind:
    """The type of column that holds both kinds without loss."""
    if second in (first, "none"):
        return first
    if first == "none":
        return second
    return _JOINED.get(frozenset((first, second)), "text")


def write_parquet(file: IO[bytes], kinds: dict[str, Kind], rows: Iterable[dict[str, Any]]) -> None:
    """Write the rows, null where a row has no such column."""
    arrow, parquet = require_pyarrow()
    types = [(name, _arrow_type(arrow, kind)) for name, kind in kinds.items()]
    schema, left = arrow.schema(types), iter(rows)
    with parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(left, _GROUP_ROWS)):
            columns = [[_cell(row.get(n), kind) for row in group] for n, kind in kinds.items()]
            arrays = [arrow.array(c, t) for c, (_, t) in zip(columns, types, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def _arrow_type(arrow: Any, kind: Kind) -> Any:
    match kind:
        case "bool":
            return arrow.bool_()
        case "int" | "long":
            return arrow.int64()
        case "float":
            return arrow.float64()
        case "none" | "text":
            return arrow.string()


def _cell(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind == "float":
        return float(value)
    return dump(value) if kind == "text" and not isinstance(value, str) else value
