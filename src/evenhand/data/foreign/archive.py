"""A zip archive from outside, read with care: how much it may unpack to is bounded.

Inspect packs its logs with Zstandard, which Python reads itself only from 3.14 on; before, pyarrow
does it.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from evenhand import limits
from evenhand.data.files import Bounded
from evenhand.errors import DataError, UsageError, quoted
from evenhand.folders import open_plain

_ZSTANDARD = 93
_HEADER = struct.Struct("<26xHH")
"""Of an entry: 26 bytes that the directory has too, then the lengths of its name and extras."""


class Archive:
    """The entries of a zip file, each as a stream of bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open_plain(path)
        except OSError as error:
            raise UsageError(f"{quoted(path)} cannot be opened: {error.strerror}") from None
        try:
            self._zip = zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            self._file.close()
            raise self._damaged(error) from None
        self._left = limits.UNPACKED_BYTES

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._zip.close()
        self._file.close()

    @property
    def names(self) -> list[str]:
        return self._zip.namelist()

    @contextmanager
    def opened(self, name: str) -> Generator[io.BufferedReader]:
        """The bytes of an entry, unpacked as they are read."""
        try:
            entry = self._zip.getinfo(name)
            with self._unpacked(entry) as stream:
                unpacked = Bounded(stream, entry.compress_size, str(self.path), self._take)
                yield io.BufferedReader(unpacked, 1 << 17)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error) as error:
            raise self._damaged(error) from None
        except (NotImplementedError, RuntimeError) as error:
            raise self._damaged(error) from None

    @contextmanager
    def _unpacked(self, entry: zipfile.ZipInfo) -> Generator[IO[bytes]]:
        try:
            with self._zip.open(entry) as stream:
                yield stream
                return
        except NotImplementedError:
            if entry.compress_type != _ZSTANDARD:
                raise
        arrow = _require_pyarrow()
        with open_plain(self.path) as file:
            file.seek(entry.header_offset)
            name, extra = _HEADER.unpack(file.read(_HEADER.size))
            file.seek(name + extra, io.SEEK_CUR)
            with arrow.CompressedInputStream(_Part(file, entry.compress_size), "zstd") as stream:
                yield stream

    def _take(self, number: int) -> None:
        """Count bytes that were unpacked; raises DataError where they are too many."""
        self._left -= number
        if self._left < 0:
            raise DataError(
                f"it unpacks to more than {limits.UNPACKED_BYTES // 1024**3} GB",
                where=str(self.path),
                advice="Is it the right file? Split the log, or export its scores as a table.",
            )

    def _damaged(self, error: Exception) -> DataError:
        return DataError(
            f"not a sound zip archive: {error}",
            where=str(self.path),
            advice="The file looks cut off or damaged: copy it again.",
        )


class _Part(io.RawIOBase):
    """The next so many bytes of a file."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        length = self._left if size < 0 else min(size, self._left)
        chunk = self._file.read(length)
        self._left -= len(chunk)
        return chunk


def _require_pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError:
        raise UsageError(
            "this log is packed with Zstandard, which needs pyarrow",
            advice='pip install "evenhand[parquet]", or: inspect log convert --to json'
            " --output-dir DIR FILE",
        ) from None
