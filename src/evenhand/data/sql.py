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
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import IO, Any, Literal

from evenhand import limits
from evenhand.data.cells import Grid
from evenhand.data.columns import parts_of, require_columns, too_deep
from evenhand.errors import DataError, UsageError, quoted
from evenhand.jsontext import ExactNumber, compact, dump, is_deeper

Kind = Literal["none", "bool", "int", "long", "float", "text"]
"""`int` is exact as a fraction too, `long` is not."""
_EXACT = 2**53
"""Up to here a fraction holds every whole number."""
_JOINED: dict[frozenset[Kind], Kind] = {
    frozenset(("int", "long")): "long",
    frozenset(("int", "float")): "float",
}
_SQL_TYPES: dict[Kind, str] = {
    "none": "VARCHAR",
    "text": "VARCHAR",
    "bool": "BOOLEAN",
    "int": "BIGINT",
    "long": "BIGINT",
    "float": "DOUBLE",
}
_JSON: frozenset[type] = frozenset({str, int, bool, type(None)})
"""Types of cells that are JSON values as they are."""
_LINE_LEAST = 1 << 24


def require_duckdb(what: str) -> Any:
    """Return the module duckdb; raises UsageError."""
    try:
        return import_module("duckdb")
    except ImportError:
        raise UsageError(
            f"{what} need DuckDB, which is not installed", advice='pip install "evenhand[sql]"'
        ) from None


def _connect(duckdb: Any) -> Any:
    # Rows come in the order of the file, and nothing is fetched from anywhere.
    settings = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "threads": "1",
    }
    return duckdb.connect(":memory:", config=settings)


def query(sql: str) -> Grid:
    """Return the rows of a query, which may name files; raises UsageError."""
    duckdb = require_duckdb("queries")
    try:
        with _connect(duckdb) as connection:
            statements = duckdb.extract_statements(sql)
            if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
                raise UsageError(
                    "--sql takes one query that only reads",
                    advice="Begin it with SELECT, FROM, WITH or UNPIVOT.",
                )
            result = connection.execute(statements[0])
            header = [column[0] for column in result.description]
            records = result.fetchall()
    except duckdb.Error as error:
        raise UsageError(
            f"the query cannot be run: {quoted(error)[1:-1]}",
            advice="It is SQL of DuckDB; files are named in quotes: select * from 'votes.csv'",
        ) from None
    return _grid(header, records, "query", lenient=True)


def read_parquet(raw: bytes, name: str, *, lenient: bool = False) -> Grid:
    """Return the rows of a Parquet file, numbered from 1; raises DataError. `lenient` reads NaN and
    infinity as null."""
    duckdb = require_duckdb("Parquet files")
    try:
        with TemporaryDirectory() as folder, _connect(duckdb) as connection:
            copy = Path(folder, "rows.parquet")
            copy.write_bytes(raw)
            result = connection.execute("SELECT * FROM read_parquet($1)", [str(copy)])
            header = [column[0] for column in result.description]
            records = result.fetchall()
    except (duckdb.Error, ValueError, OverflowError) as error:
        raise DataError(
            f"not a sound Parquet file: {quoted(error)[1:-1]}",
            where=name,
            advice="the file looks cut off or damaged: copy or export it again",
        ) from None
    return _grid(header, records, name, lenient=lenient)


def _grid(header: list[str], records: list[Sequence[Any]], name: str, *, lenient: bool) -> Grid:
    require_columns(header, name)
    if not _JSON.issuperset({type(cell) for record in records for cell in record}):
        depths = [limits.JSON_DEPTH - len(parts_of(column)) for column in header]
        for number, record in enumerate(records, 1):
            where = f"{name}:{number}"
            cells = [json_value(cell, where, lenient=lenient) for cell in record]
            for cell, depth in zip(cells, depths, strict=True):
                if isinstance(cell, dict | list) and is_deeper(cell, depth):
                    raise too_deep(where)
            records[number - 1] = cells
    return Grid(header, records, range(1, len(records) + 1))


def json_value(value: Any, where: str, *, lenient: bool) -> Any:
    """Return a value of a table as JSON has it; raises DataError for one that has no such form, or
    nests deeper than a row may."""
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
        case uuid.UUID():
            return str(value)
        case _:
            raise DataError(
                f"{quoted(value)} ({type(value).__name__}) has no JSON form",
                where=where,
                advice="convert the column to text or numbers, missing values to null",
            )


def kind_of(value: Any) -> Kind:
    """Return the type of column that a value asks for."""
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


def join_kinds(first: Kind, second: Kind) -> Kind:
    """Return the type of column that holds both kinds without loss."""
    if second in (first, "none"):
        return first
    if first == "none":
        return second
    return _JOINED.get(frozenset((first, second)), "text")


def write_parquet(
    file: IO[bytes], kinds: Mapping[str, Kind], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Write rows, null where a row has no such column."""
    duckdb = require_duckdb("Parquet files")
    with TemporaryDirectory() as folder, _connect(duckdb) as connection:
        source, target, longest = Path(folder, "rows.jsonl"), Path(folder, "rows.parquet"), 0
        with source.open("wb") as lines:
            for row in rows:
                cells = [_cell(row.get(name), kind) for name, kind in kinds.items()]
                line = compact({f"c{at}": cell for at, cell in enumerate(cells)}).encode() + b"\n"
                longest = max(longest, len(line))
                lines.write(line)
        # A table has at least one column.
        kinds = kinds or {"empty": "none"}
        types = ", ".join(f"c{at}: '{_SQL_TYPES[kind]}'" for at, kind in enumerate(kinds.values()))
        named = ", ".join(f"c{at} AS {_identifier(name)}" for at, name in enumerate(kinds))
        connection.execute(
            f"COPY (SELECT {named} FROM read_json('{source}', columns = {{{types}}},"  # noqa: S608
            " format = 'newline_delimited', compression = 'none',"
            f" maximum_object_size = {max(longest + 1, _LINE_LEAST)}))"
            f" TO '{target}' (FORMAT parquet)"
        )
        with target.open("rb") as written:
            copyfileobj(written, file)


def _identifier(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _cell(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind == "float":
        return float(value)
    return dump(value) if kind == "text" and not isinstance(value, str) else value
