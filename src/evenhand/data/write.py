"""Rows into a data file, whatever its format: whole or not at all.

The rows go into a temporary file beside the target, which takes its place only when the last byte
is on the disk; on any error nothing is left. The same rows give the same bytes. A table's columns
are known only after its last row, so the rows of tables wait in an unnamed file.
"""

from __future__ import annotations

import csv
import errno
import gzip
import io
import os
import secrets
import tempfile
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from evenhand.data.cells import guard
from evenhand.data.columns import flatten, parent_among
from evenhand.data.files import is_gzipped, require_folder, written_format
from evenhand.data.sql import CellKind, kind_of, require_duckdb, write_parquet
from evenhand.errors import DataError, UsageError
from evenhand.jsontext import compact, dump, loads_trusted
from evenhand.words import Sentence

_PLAIN = frozenset((str, int, float, bool, type(None)))
"""Values without a spelling to keep: a row of these alone is written in one go."""


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write the rows and return how many there were.

    CSV and Parquet are flat: objects become dotted columns, and lists JSON text.
    """
    written = written_format(path)
    if written == "parquet":
        require_duckdb("parquet")
    with _replacing(path) as file:
        if written == "jsonl":
            return _write_lines(file, _encode(rows))
        if written == "json":
            return _write_array(file, _encode(rows))
        with tempfile.TemporaryFile(dir=path.parent) as spool:
            columns: dict[str, set[CellKind]] = {}
            count = _write_lines(spool, _encode(_flatten(row, columns) for row in rows))
            _drop_null_objects(columns)
            spool.seek(0)
            flat = (loads_trusted(line.decode()) for line in spool)
            if written == "csv":
                _write_csv(file, columns, flat)
            else:
                write_parquet(file, columns, flat)
            return count


def write_text(path: Path, lines: Iterable[str]) -> int:
    """Write lines of text as they are, each with its line break, and return how many; packed
    where the name says gzip."""
    with _replacing(path) as file:
        return _write_lines(file, (line.encode() for line in lines))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file; packed where the name says gzip."""
    with _replacing(path) as file:
        file.write(data)


def _open_device(path: Path) -> IO[bytes]:
    """Return a pipe or a device to write to; raise UsageError for a pipe that nobody reads, which
    would be waited for in vain."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise UsageError(Sentence("data.pipe_without_reader", path=path)) from None
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "wb")


@contextmanager
def _replacing(path: Path) -> Generator[IO[bytes]]:
    """Yield a file that becomes `path` when the block ends well, packed where the name says gzip. A
    pipe or a device is written to as it is: a file must not take its place."""
    target = path.resolve()  # through a link: the file it points to is replaced, not the link
    if target.is_dir():
        raise UsageError(Sentence("data.is_folder", path=path))
    require_folder(target.parent)
    is_device = target.exists() and not target.is_file()
    temporary = target.with_name(f".evenhand-{secrets.token_hex(8)}.tmp")
    try:
        with _open_device(target) if is_device else temporary.open("xb") as file:
            if is_gzipped(path):
                # Without a time stamp: the same rows give the same bytes.
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as pack:
                    yield cast("IO[bytes]", pack)
            else:
                yield file
            file.flush()
            if not is_device:
                os.fsync(file.fileno())
        if not is_device:
            temporary.replace(target)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(Sentence("data.unwritable", path=path, reason=reason)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _encode(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    for number, row in enumerate(rows, 1):
        is_plain = isinstance(row, dict) and _PLAIN.issuperset(map(type, row.values()))
        try:
            yield (compact if is_plain else dump)(row).encode()
        except UnicodeError:
            raise DataError(Sentence("data.surrogate_in_row", number=number)) from None
        except ValueError as error:
            what = Sentence("data.row_not_json", number=number, problem=error.args[0])
            raise DataError(what) from None


def _write_lines(file: IO[bytes], lines: Iterable[bytes]) -> int:
    count = 0
    for count, line in enumerate(lines, 1):  # noqa: B007
        file.write(line + b"\n")
    return count


def _write_array(file: IO[bytes], members: Iterable[bytes]) -> int:
    count = 0
    for count, member in enumerate(members, 1):
        file.write((b",\n" if count > 1 else b"[\n") + member)
    file.write(b"\n]\n" if count else b"[]\n")
    return count


def _flatten(row: Mapping[str, Any], columns: dict[str, set[CellKind]]) -> dict[str, Any]:
    """Return a row as flat columns, and note the kinds of its cells in `columns`."""
    flat: dict[str, Any] = {}
    for name, value in flatten(row):
        if name in flat:
            raise DataError(Sentence("data.field_twice", name=name))
        flat[name] = value
        columns.setdefault(name, set()).add(kind_of(value))
    return flat


def _drop_null_objects(columns: dict[str, set[CellKind]]) -> None:
    """Drop the column of an object that is null in some rows; refuse a real clash."""
    while clash := parent_among(columns):
        above, name = clash
        if columns.pop(above) != {"none"}:
            raise DataError(Sentence("data.value_and_object", name=above, inner=name))


def _write_csv(
    file: IO[bytes], columns: Collection[str], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Write a header and the rows, an empty cell where a row has no such column."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    # With CRLF as its line end the writer quotes both CR and LF inside cells, on every Python.
    writer = csv.writer(text, lineterminator="\r\n")
    if columns:
        writer.writerow(map(guard, columns))
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    text.flush()
    text.detach()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return guard(value) if isinstance(value, str) else dump(value)
