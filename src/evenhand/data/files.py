"""Data files by their ending, and how they are opened.

A path that cannot be used at all is a `UsageError` before any row is read; the ending alone, in
any case of letters, decides the format.
"""

from __future__ import annotations

import gzip
import io
import os
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, cast

from evenhand import limits
from evenhand.errors import DataError, UsageError, nearest, quoted
from evenhand.folders import open_plain

Format = Literal["jsonl", "json", "csv", "parquet"]
ReadFormat = Literal["jsonl", "json", "csv", "parquet", "tsv", "xlsx"]

ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
}
READ_ENDINGS: dict[str, ReadFormat] = {**ENDINGS, ".tsv": "tsv", ".xlsx": "xlsx"}
TABLE_TOO = "for people .xlsx, for verdicts of pairs .txt"
"""What to say of endings where a verdict table is known too."""


def is_gzipped(path: Path) -> bool:
    """Whether the name says gzip."""
    return path.suffix.lower() == ".gz"


def is_text(path: Path) -> bool:
    """Whether the name says plain text, which a verdict table is."""
    return _ending(path) == ".txt"


def is_table(path: Path) -> bool:
    """Whether the name says a format with columns, in which a list is one cell."""
    return ENDINGS.get(_ending(path)) in ("csv", "parquet")


def is_csv(path: Path) -> bool:
    """Whether the name says comma-separated values."""
    return _ending(path) == ".csv"


def is_workbook(path: Path) -> bool:
    """Whether the name says a workbook."""
    return _ending(path) == ".xlsx"


def is_data_file(path: Path) -> bool:
    """Whether the name says a format that can be read."""
    return _ending(path) in READ_ENDINGS


def format_of(path: Path, also: str = "") -> Format:
    """The format to write that the ending names; `also` tells what other endings the caller
    knows."""
    if (written := ENDINGS.get(_ending(path))) is None:
        raise _unknown_ending(path, " ".join(ENDINGS) + (f", {also}" if also else ""))
    return written


def read_format_of(path: Path) -> ReadFormat:
    """The format to read that the ending names."""
    if (read := READ_ENDINGS.get(_ending(path))) is None:
        raise _unknown_ending(path, " ".join(READ_ENDINGS))
    return read


def _unknown_ending(path: Path, endings: str) -> UsageError:
    return UsageError(
        f"{quoted(path)} has an ending that is not known",
        advice=f"known endings: {endings}, each also with .gz after it",
    )


def _ending(path: Path) -> str:
    inner = path.with_suffix("") if is_gzipped(path) else path
    return inner.suffix.lower()


def stem_of(path: Path) -> str:
    """The name of a file without its endings."""
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Advice that names the nearest of `names`, or nothing."""
    near = nearest(name, names)
    return f"did you mean {quoted(near)}?" if near else ""


def require_file(path: Path) -> None:
    """Refuse a path that is missing or is a folder."""
    if path.is_dir():
        names = sorted(p.name for p in path.iterdir() if is_data_file(p))
        advice = f"name a file in it: {', '.join(names[:8])}" if names else "name a data file"
        raise UsageError(f"{quoted(path)} is a folder", advice=advice)
    if not path.exists():
        require_folder(path.parent)
        siblings = sorted(p.name for p in path.parent.iterdir() if p.is_file())
        raise UsageError(
            f"there is no file {quoted(path)}", advice=did_you_mean(path.name, siblings)
        )


def require_folder(folder: Path) -> None:
    """Refuse a folder that does not exist."""
    if folder.is_dir():
        return
    above = folder.parent
    siblings = sorted(p.name for p in above.iterdir() if p.is_dir()) if above.is_dir() else []
    raise UsageError(
        f"there is no folder {quoted(folder)}", advice=did_you_mean(folder.name, siblings)
    )


@contextmanager
def opened(path: Path, root: Path | None = None) -> Generator[io.BufferedReader]:
    """The bytes of a plain file, unpacked where its name says gzip; with a root, of one in it."""
    try:
        file = cast("io.BufferedReader", open_plain(path, root))
    except OSError as error:
        raise UsageError(f"{quoted(path)} cannot be opened: {error.strerror}") from None
    with file:
        if not is_gzipped(path):
            yield file
            return
        # Buffered around it: readline then runs in C, not through GzipFile's Python method.
        size = os.fstat(file.fileno()).st_size
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield io.BufferedReader(Bounded(cast("IO[bytes]", unpacked), size, str(path)), 1 << 17)


def require_ratio(unpacked: int, packed: int, where: str) -> None:
    """Refuse what unpacks to far more than any text does; raises DataError."""
    if unpacked > max(limits.RATIO_FREE_BYTES, packed * limits.UNPACKED_RATIO):
        raise DataError(
            f"it unpacks to more than {limits.UNPACKED_RATIO} times its size",
            where=where,
            advice="is it the right file? if so, unpack it first",
        )


class Bounded(io.RawIOBase):
    """What a stream unpacks, at a bounded ratio to the `packed` bytes that it is made of. `take` is
    told how many bytes came, and may refuse them."""

    def __init__(
        self,
        stream: IO[bytes],
        packed: int,
        where: str,
        take: Callable[[int], None] = lambda number: None,
    ) -> None:
        self._stream, self._packed, self._where, self._take = stream, packed, where, take
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._stream.read(len(buffer))
        self._take(len(chunk))
        self._count += len(chunk)
        require_ratio(self._count, self._packed, self._where)
        buffer[: len(chunk)] = chunk
        return len(chunk)


@contextmanager
def seekable(file: io.BufferedReader) -> Generator[IO[bytes]]:
    """The file itself, or a temporary one of what gzip unpacks, for formats whose index is at the
    end."""
    if not isinstance(file.raw, Bounded):
        yield file
        return
    with tempfile.TemporaryFile() as whole:
        while chunk := file.read(1 << 20):
            if whole.tell() + len(chunk) > limits.WORKBOOK_BYTES:
                raise DataError("it unpacks to more than is taken in", advice="unpack it first")
            whole.write(chunk)
        whole.seek(0)
        yield whole


@contextmanager
def packed(file: IO[bytes], path: Path) -> Generator[IO[bytes]]:
    """Where to write the bytes of a file: packed where its name says gzip, without a time stamp."""
    if not is_gzipped(path):
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as pack:
        yield cast("IO[bytes]", pack)
