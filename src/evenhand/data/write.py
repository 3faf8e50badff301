"""Rows into a data file, whatever its format: whole or not at all.

The rows go into a temporary file beside the target, which takes its place only when the last byte
is on the disk; on any error nothing is left. The same rows give the same bytes. Memory holds one
row, for Parquet one group of rows: a table's columns are known only after its last row, so the
rows of tables wait in an unnamed spool file.
"""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from evenhand.data.cells import write_csv
from evenhand.data.columns import flattened, parent_among
from evenhand.data.files import TABLE_TOO, format_of, packed, require_folder
from evenhand.data.sql import Kind, join_kinds, kind_of, require_duckdb, write_parquet
from evenhand.errors import DataError, UsageError, quoted
from evenhand.jsontext import compact, dump, loads_trusted

Rows = Iterable[Mapping[str, Any]]

_PLAIN = frozenset((str, int, float, bool, type(None)))
"""Values without a spelling to keep: a row of these alone is written in one go."""


def write(path: Path, rows: Rows) -> int:
    """Write the rows and return how many there were.

    CSV and Parquet are flat: objects become dotted columns, and lists JSON text.
    """
    kind = format_of(path, TABLE_TOO)
    if kind == "parquet":
        require_duckdb("Parquet files")
    with replacing(path) as raw, packed(raw, path) as file:
        if kind == "jsonl":
            return _write_lines(file, rows)
        if kind == "json":
            return _write_array(file, rows)
        with tempfile.TemporaryFile(dir=path.parent) as unnamed:
            spool = _Spool(unnamed, rows)
            if kind == "csv":
                write_csv(file, list(spool.kinds), spool.rows())
            else:
                write_parquet(file, spool.kinds, spool.rows())
            return spool.count


def write_text(path: Path, lines: Iterable[str]) -> int:
    """Write lines of text as they are, each with its line break, and return how many; packed
    where the name says gzip."""
    with replacing(path) as raw, packed(raw, path) as file:
        count = 0
        for count, line in enumerate(lines, 1):  # noqa: B007
            file.write(line.encode() + b"\n")
        return count


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file as it is."""
    with replacing(path) as file:
        file.write(data)


def _device(path: Path) -> IO[bytes]:
    """Return a pipe or a device to write to; raise UsageError for a pipe that nobody reads, which
    would be waited for in vain."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise UsageError(f"{quoted(path)} is a pipe that nobody reads") from None
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "wb")


@contextmanager
def replacing(path: Path) -> Generator[IO[bytes]]:
    """Yield a file that becomes `path` when the block ends well. A pipe or a device is written to
    as it is: a file must not take its place."""
    target = path.resolve()  # through a link: the file it points to is replaced, not the link
    if target.is_dir():
        raise UsageError(f"{quoted(path)} is a folder", advice="name a file in it")
    require_folder(target.parent)
    is_device = target.exists() and not target.is_file()
    temporary = target.with_name(f".evenhand-{secrets.token_hex(8)}.tmp")
    try:
        with _device(target) if is_device else temporary.open("xb") as file:
            yield file
            file.flush()
            if not is_device:
                os.fsync(file.fileno())
        if not is_device:
            temporary.replace(target)
    except OSError as error:
        raise UsageError(f"{quoted(path)} cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _encoded(rows: Rows) -> Iterator[bytes]:
    for number, row in enumerate(rows, 1):
        try:
            yield _text(row).encode()
        except ValueError as error:
            what = "half of a surrogate pair" if isinstance(error, UnicodeError) else str(error)
            raise DataError(f"row {number} cannot be written as JSON: {what}") from None


def _text(row: Mapping[str, Any]) -> str:
    is_plain = _PLAIN.issuperset(map(type, row.values()))
    return compact(row) if is_plain and isinstance(row, dict) else dump(row)


def _write_lines(file: IO[bytes], rows: Rows) -> int:
    count = 0
    for count, line in enumerate(_encoded(rows), 1):  # noqa: B007
        file.write(line + b"\n")
    return count


def _write_array(file: IO[bytes], rows: Rows) -> int:
    count = 0
    file.write(b"[")
    for count, line in enumerate(_encoded(rows), 1):
        file.write((b",\n" if count > 1 else b"\n") + line)
    file.write(b"\n]\n")
    return count


class _Spool:
    """Flat rows on the disk, with the columns they have among them and the kind of each."""

    def __init__(self, file: IO[bytes], rows: Rows) -> None:
        self.kinds: dict[str, Kind] = {}
        self._file = file
        self.count = _write_lines(file, map(self._flat, rows))
        self._settle_columns()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the flat rows again."""
        self._file.seek(0)
        for line in self._file:
            yield loads_trusted(line.decode())

    def _flat(self, row: Mapping[str, Any]) -> dict[str, Any]:
        flat: dict[str, Any] = {}
        for name, value in flattened(row):
            if name in flat:
                raise _no_table(f"two fields of one row are called {quoted(name)}")
            flat[name] = value
            kind = self.kinds.get(name, "none")
            self.kinds[name] = kind if kind == "text" else join_kinds(kind, kind_of(value))
        return flat

    def _settle_columns(self) -> None:
        """Drop the column of an object that is null in some rows; refuse a real clash."""
        while clash := parent_among(self.kinds):
            above, name = clash
            if self.kinds.pop(above) != "none":
                raise _no_table(f"{quoted(above)} is a value in one row, and holds {quoted(name)}")


def _no_table(why: str) -> DataError:
    return DataError(
        f"the rows do not make a table: {why}", advice="write .jsonl, which keeps any shape"
    )
