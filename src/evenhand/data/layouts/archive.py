"""A zip archive from outside, read with care: how much it may unpack to is bounded.

Inspect packs its logs with Zstandard, which Python reads itself only from 3.14 on; before, the
package backports.zstd does it.
"""

from __future__ import annotations

import struct
import zlib
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from evenhand import limits
from evenhand.data.files import read_packed
from evenhand.errors import DataError, UsageError, quoted
from evenhand.folders import open_plain


class Archive:
    """The entries of a zip file."""

    def __init__(self, path: Path) -> None:
        self.path, self._left = path, limits.UNPACKED_BYTES
        self._zipfile = zip_module()
        try:
            self._file = open_plain(path)
        except OSError as error:
            raise UsageError(f"{quoted(path)} cannot be opened: {error.strerror}") from None
        try:
            self._zip = self._zipfile.ZipFile(self._file)
        except (self._zipfile.BadZipFile, OSError, ValueError) as error:
            self._file.close()
            raise self._damaged(error) from None

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
        return list(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """Return the bytes of an entry; raises DataError where the archive unpacks to too much."""
        try:
            entry = self._zip.getinfo(name)
            with self._zip.open(entry) as stream:
                data = read_packed(stream, entry.compress_size, str(self.path))
        except NotImplementedError:
            raise UsageError(
                "this log is packed with Zstandard",
                advice='pip install "evenhand[inspect]", or: inspect log convert --to json'
                " --output-dir DIR FILE",
            ) from None
        except (
            *(self._zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error),
            *(RuntimeError, ValueError),
        ) as error:
            raise self._damaged(error) from None
        self._left -= len(data)
        if self._left < 0:
            raise DataError(
                f"it unpacks to more than {limits.UNPACKED_BYTES // 1024**3} GB",
                where=str(self.path),
                advice="Is it the right file? Split the log, or export its scores as a table.",
            )
        return data

    def _damaged(self, error: Exception) -> DataError:
        return DataError(
            f"not a sound zip archive: {error}",
            where=str(self.path),
            advice="The file looks cut off or damaged: copy it again.",
        )


def zip_module() -> Any:
    """Return the module of Python, with Zstandard where it or its backport is there."""
    try:
        return import_module("backports.zstd.zipfile")
    except ImportError:
        return import_module("zipfile")
