"""DuckDB, which is imported only here and only when needed: tables reshaped by SQL, and Parquet in
and out.

A row that comes out holds JSON values alone. Columns that go into a Parquet file are flat: a column
is typed when all its values are of one scalar type (whole numbers and fractions together are
fractions), else it is text, with JSON for what is not text.
"""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import IO, Any, Literal

from evenhand.data.columns import Rows, parts_of, require_columns, require_depth
from evenhand.data.files import require_extra
from evenhand.errors import DataError, UsageError
from evenhand.jsontext import ExactNumber, compact, dump
from evenhand.words import Sentence

CellKind = Literal["none", "bool", "int", "float", "text"]
_TYPES: tuple[tuple[str, frozenset[CellKind]], ...] = (
    ("VARCHAR", frozenset()),
    ("BOOLEAN", frozenset({"bool"})),
    ("BIGINT", frozenset({"int"})),
    ("DOUBLE", frozenset({"int", "float"})),
)
"""Types of columns, and the kinds of cells that each holds without loss."""
_JSON: frozenset[type] = frozenset({str, int, bool, type(None)})
"""Types of cells that are JSON values as they are."""
_LINE_LEAST = 1 << 24


def require_duckdb(use: str) -> Any:
    """Return the module duckdb; raises UsageError."""
    return require_extra("duckdb", use)


def _connect(duckdb: Any) -> Any:
    # Rows come in the order of the file, and nothing is fetched from anywhere.
    settings = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "threads": "1",
    }
    return duckdb.connect(":memory:", config=settings)


def query(sql: str) -> Rows:
    """Return the rows of a query, which may name files; raises UsageError."""
    duckdb = require_duckdb("query")
    try:
        with _connect(duckdb) as connection:
            statements = duckdb.extract_statements(sql)
            if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
                raise UsageError(Sentence("data.one_query"))
            result = connection.execute(statements[0])
            header = [column[0] for column in result.description]
            records = result.fetchall()
    except duckdb.Error as error:
        raise UsageError(Sentence("data.bad_query", error=error)) from None
    return _rows(header, records, "query", lenient=True)


def read_parquet(raw: bytes, name: str, *, lenient: bool = False) -> Rows:
    """Return the rows of a Parquet file, numbered from 1; raises DataError. `lenient` reads NaN and
    infinity as null."""
    duckdb = require_duckdb("parquet")
    try:
        with TemporaryDirectory() as folder, _connect(duckdb) as connection:
            copy = Path(folder, "rows.parquet")
            copy.write_bytes(raw)
            result = connection.execute("SELECT * FROM read_parquet($1)", [str(copy)])
            header = [column[0] for column in result.description]
            records = result.fetchall()
    except (duckdb.Error, ValueError, OverflowError) as error:
        raise DataError(Sentence("data.bad_parquet", error=error), where=name) from None
    return _rows(header, records, name, lenient=lenient)


def _rows(header: list[str], records: list[Sequence[Any]], name: str, *, lenient: bool) -> Rows:
    require_columns(header, name)
    if not _JSON.issuperset({type(cell) for record in records for cell in record}):
        depths = [len(parts_of(column)) for column in header]
        for at, record in enumerate(records):
            records[at] = [
                json_value(cell, f"{name}:{at + 1}", depth, lenient=lenient)
                for cell, depth in zip(record, depths, strict=True)
            ]
    return Rows(name, records, header)


def json_value(value: Any, where: str, depth: int, *, lenient: bool = True) -> Any:
    """Return a value of a table as JSON has it; raises DataError for one that has no such form, or
    nests deeper than a row may: `depth` is that of its column."""
    require_depth(value, depth, where)
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
        case uuid.UUID():
            return str(value)
        case _:
            raise DataError(
                Sentence("data.no_json_form", value=value, type=type(value).__name__), where=where
            )


def kind_of(value: Any) -> CellKind:
    """Return the kind of a cell."""
    match value:
        case None:
            return "none"
        case bool():
            return "bool"
        case int() if -(2**63) <= value < 2**63:
            return "int"
        case float() if math.isfinite(value):
            return "float"
        case _:
            return "text"


def _type_of(kinds: Collection[CellKind]) -> str:
    """Return the type of a column that holds cells of these kinds without loss."""
    held = {kind for kind in kinds if kind != "none"}
    return next((name for name, holds in _TYPES if held <= holds), "VARCHAR")


def write_parquet(
    file: IO[bytes], columns: Mapping[str, Collection[CellKind]], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Write rows, null where a row has no such column; `columns` are the kinds of the cells of
    each."""
    duckdb = require_duckdb("parquet")
    types = [_type_of(kinds) for kinds in columns.values()]
    with TemporaryDirectory() as folder, _connect(duckdb) as connection:
        source, target, longest = Path(folder, "rows.jsonl"), Path(folder, "rows.parquet"), 0
        with source.open("wb") as lines:
            for row in rows:
                cells = [_cell(row.get(name), t) for name, t in zip(columns, types, strict=True)]
                line = compact({f"c{at}": cell for at, cell in enumerate(cells)}).encode() + b"\n"
                longest = max(longest, len(line))
                lines.write(line)
        # A table has at least one column.
        names, types = [*columns] or ["empty"], types or ["VARCHAR"]
        typed = ", ".join(f"c{at}: '{one}'" for at, one in enumerate(types))
        named = ", ".join(f"c{at} AS {_identifier(name)}" for at, name in enumerate(names))
        connection.execute(
            f"COPY (SELECT {named} FROM read_json('{source}', columns = {{{typed}}},"  # noqa: S608
            " format = 'newline_delimited', compression = 'none',"
            f" maximum_object_size = {max(longest + 1, _LINE_LEAST)}))"
            f" TO '{target}' (FORMAT parquet)"
        )
        with target.open("rb") as written:
            copyfileobj(written, file)


def _identifier(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _cell(value: Any, column: str) -> Any:
    if value is None:
        return None
    if column == "DOUBLE":
        return float(value)
    return dump(value) if column == "VARCHAR" and not isinstance(value, str) else value
