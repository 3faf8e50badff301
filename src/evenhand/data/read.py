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
from functools import partial
from io import BufferedReader
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from evenhand.data.columns import ColumnChunk, Copies
from evenhand.data.encoding import Recoded
from evenhand.data.files import ReadFormat, opened, read_format_of, require_file, seekable
from evenhand.data.jsonrows import Keys, Numbered, Parse, read_array, read_lines, read_members
from evenhand.data.parquet import ParquetTable, read_parquet, require_pyarrow
from evenhand.data.table import CellTable, read_table, separator_in
from evenhand.data.workbook import read_workbook, require_calamine, sheet_names
from evenhand.errors import DataError, NoRows, UsageError, quoted
from evenhand.jsontext import parse, parse_lenient

_NO_COLUMNS: Mapping[str, str] = MappingProxyType({})


class Row(NamedTuple):
    """One row, and where it starts: `samples.jsonl:12` (of Parquet the row's number)."""

    value: dict[str, Any]
    where: str


class FileForm(Struct, frozen=True, kw_only=True):
    """What nobody can see from a file's name."""

    encoding: str | None = None
    """Of a text file; UTF-8 unless given."""
    sheet: str | None = None
    """Of a workbook; the first one unless given."""


_USUAL = FileForm()
_Reader = Callable[[BufferedReader, str, Parse, FileForm], Iterator[Numbered]]
_READERS: dict[ReadFormat, _Reader] = {
    "jsonl": lambda file, name, read, _: read_lines(file, name, read),
    "json": lambda file, name, read, _: read_array(file, name, read),
    "csv": lambda file, name, *_: read_table(file, name),
    "tsv": lambda file, name, *_: read_table(file, name, "\t"),
    "xlsx": lambda file, name, _, form: read_workbook(file, name, form.sheet),
    "parquet": lambda file, name, read, _: read_parquet(file, name, lenient=read is parse_lenient),
}


def rows(
    path: Path,
    columns: Mapping[str, str] = _NO_COLUMNS,
    read: Parse = parse,
    root: Path | None = None,
    form: FileForm = _USUAL,
) -> Iterator[Row]:
    """The rows of a file. `columns` maps a target name to the source it is copied from, both
    dotted.

    A mapped value replaces a field that already has the target's name; unmapped fields stay. `read`
    says how strictly JSON is read. With a root, the file must lie in that folder.
    """
    file_format = read_format_of(path)
    require_file(path)
    if file_format == "parquet":
        require_pyarrow()
    elif file_format == "xlsx":
        require_calamine()
    plain = partial(_plain, path, read, root, form)
    return _mapped(plain, Copies(columns), str(path)) if columns else plain()


def _mapped(plain: Callable[[], Iterator[Row]], copies: Copies, name: str) -> Iterator[Row]:
    # As a rule the first row has every source, and this look ahead ends with it.
    copies.require_sources((row.value for row in plain()), name)
    for row in plain():
        copies.apply(row.value, row.where)
        yield row


def members(
    path: Path, key_paths: Collection[Keys], read: Parse = parse
) -> Iterator[tuple[Keys, Row]]:
    """The objects at these paths of a .json file that is one large object, each with its path."""
    read_format_of(path)
    require_file(path)
    with _readable(path) as file:
        for keys, value, line in read_members(file, str(path), key_paths, read):
            yield keys, Row(value, f"{path}:{line}")


class ColumnTable(Protocol):
    """A table whose rows all have the columns of its header."""

    header: list[str]

    def columns(self) -> Iterator[ColumnChunk]:
        """Some rows at a time; raises DataError."""
        ...


def has_columns(path: Path) -> bool:
    """Whether a file can be read by `column_table`."""
    return read_format_of(path) in ("csv", "tsv", "parquet")


@contextmanager
def column_table(path: Path, read: Parse = parse) -> Generator[ColumnTable]:
    """The columns of such a file, for whoever reads so many rows that an object for each would take
    too long."""
    file_format = read_format_of(path)
    with _readable(path) as file:
        if file_format == "parquet":
            with seekable(file) as whole:
                yield ParquetTable(whole, str(path), lenient=read is parse_lenient)
        else:
            yield CellTable(file, str(path), "\t" if file_format == "tsv" else None)


def other_sheets(path: Path) -> list[str]:
    """The sheets of a workbook beside the first one; none where the file is no workbook."""
    if read_format_of(path) != "xlsx":
        return []
    with _readable(path) as file:
        return sheet_names(file, str(path))[1:]


def separator(path: Path) -> str:
    """What stands between the cells of a text table; nothing where the file is none."""
    file_format = read_format_of(path)
    if file_format != "csv":
        return "\t" if file_format == "tsv" else ""
    with _readable(path) as file:
        return separator_in(file)


def _plain(path: Path, read: Parse, root: Path | None, form: FileForm) -> Iterator[Row]:
    name, row, file_format = str(path), None, read_format_of(path)
    with _readable(path, root) as file:
        is_text = form.encoding is not None and file_format not in ("parquet", "xlsx")
        text: Any = BufferedReader(Recoded(file, form.encoding or "", name)) if is_text else file
        for value, line in _READERS[file_format](text, name, read, form):
            row = Row(value, f"{name}:{line}")
            yield row
    if row is None:
        raise no_rows(name)


def no_rows(name: str) -> NoRows:
    """The error for a file that holds none."""
    return NoRows("the file holds no rows", where=name, advice="is this the right file?")


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
