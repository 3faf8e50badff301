"""Rows of a data file as a stream, whatever its format, each with the place it came from.

A row comes out whole or not at all: whatever is wrong with a file is a `DataError` that says where
and what to do, whatever is wrong with its name a `UsageError` before anything is read. Cells of a
CSV file are strings, empty ones too; elsewhere values keep their type and numbers their spelling.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evenhand.data.columns import Moves
from evenhand.data.files import Format, format_of, opened, require_file
from evenhand.data.jsonrows import Keys, Numbered, Parse, read_array, read_lines, read_members
from evenhand.data.parquet import read_parquet, require_pyarrow
from evenhand.data.table import read_table
from evenhand.errors import DataError, UsageError, quoted
from evenhand.jsontext import parse, parse_lenient

_NO_COLUMNS: Mapping[str, str] = MappingProxyType({})
_READERS: dict[Format, Callable[[BufferedReader, str, Parse], Iterator[Numbered]]] = {
    "jsonl": read_lines,
    "json": read_array,
    "csv": lambda file, name, _: read_table(file, name),
    "parquet": lambda file, name, read: read_parquet(file, name, lenient=read is parse_lenient),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One row, and where it starts: `samples.jsonl:12` (of Parquet the row's number)."""

    value: dict[str, Any]
    where: str


def rows(
    path: Path,
    columns: Mapping[str, str] = _NO_COLUMNS,
    read: Parse = parse,
    root: Path | None = None,
) -> Iterator[Row]:
    """The rows of a file. `columns` maps a target name to the source it is moved from, both dotted.

    A mapped value replaces a field that already has the target's name; unmapped fields stay. `read`
    says how strictly JSON is read. With a root, the file must lie in that folder.
    """
    kind = format_of(path)
    require_file(path)
    if kind == "parquet":
        require_pyarrow()
    return _moved(path, Moves(columns), read, root) if columns else _plain(path, read, root)


def _moved(path: Path, moves: Moves, read: Parse, root: Path | None) -> Iterator[Row]:
    # As a rule the first row has every source, and this look ahead ends with it.
    moves.require_sources((row.value for row in _plain(path, read, root)), str(path))
    for row in _plain(path, read, root):
        moves.apply(row.value, row.where)
        yield row


def members(
    path: Path, key_paths: Collection[Keys], read: Parse = parse
) -> Iterator[tuple[Keys, Row]]:
    """The objects at these paths of a .json file that is one large object, each with its path."""
    format_of(path)
    require_file(path)
    with _readable(path) as file:
        for keys, value, line in read_members(file, str(path), key_paths, read):
            yield keys, Row(value, f"{path}:{line}")


def _plain(path: Path, read: Parse, root: Path | None) -> Iterator[Row]:
    name, row = str(path), None
    with _readable(path, root) as file:
        for value, line in _READERS[format_of(path)](file, name, read):
            row = Row(value, f"{name}:{line}")
            yield row
    if row is None:
        raise DataError("the file holds no rows", where=name, advice="is this the right file?")


@contextmanager
def _readable(path: Path, root: Path | None = None) -> Generator[BufferedReader]:
    """The bytes of a file; what goes wrong while they are read is said in its words."""
    try:
        with opened(path, root) as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _bad_gzip(error, str(path)) from None
    except OSError as error:
        raise UsageError(f"{quoted(path)} cannot be read: {error.strerror}") from None


def _bad_gzip(error: Exception, name: str) -> DataError:
    if "Not a gzipped file" in str(error):
        return DataError(
            "not gzip data, though its name ends in .gz",
            where=name,
            advice="take .gz off the name, or pack the file with gzip",
        )
    what = "cut off" if isinstance(error, EOFError) else "damaged"
    return DataError(
        f"the gzip data is {what}", where=name, advice="copy or download the file again"
    )
