"""Data files by their ending, and their bytes.

A path that cannot be used at all is a `UsageError` before anything is read; the ending alone, in
any case of letters, decides the format. What is read is bounded, packed or not.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, cast

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
TABLE_TOO = "for verdicts of pairs .txt"
"""Added to the list of endings where a verdict table is known too."""
_CHUNK = 1 << 20


def is_gzipped(path: Path) -> bool:
    """Return True if the name says gzip."""
    return path.suffix.lower() == ".gz"


def ending_of(path: Path) -> str:
    """Return the ending that names the format, in lower case, without `.gz`."""
    inner = path.with_suffix("") if is_gzipped(path) else path
    return inner.suffix.lower()


def is_data_file(path: Path) -> bool:
    """Return True if the name says a format that can be read."""
    return ending_of(path) in READ_ENDINGS


def format_of(path: Path, also: str = "") -> Format:
    """Return the format to write that the ending names; `also` lists endings that the caller knows
    beside them. Raises UsageError."""
    if (written := ENDINGS.get(ending_of(path))) is None:
        raise _unknown_ending(path, " ".join(ENDINGS) + (f", {also}" if also else ""))
    return written


def read_format_of(path: Path) -> ReadFormat:
    """Return the format to read that the ending names; raises UsageError."""
    if (read := READ_ENDINGS.get(ending_of(path))) is None:
        raise _unknown_ending(path, " ".join(READ_ENDINGS))
    return read


def _unknown_ending(path: Path, endings: str) -> UsageError:
    return UsageError(
        f"{quoted(path)} has an ending that is not known",
        advice=f"known endings: {endings}, each also with .gz after it",
    )


def stem_of(path: Path) -> str:
    """Return the name of a file without its endings."""
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return advice that names the nearest of `names`, or nothing."""
    near = nearest(name, names)
    return f"did you mean {quoted(near)}?" if near else ""


def require_file(path: Path) -> None:
    """Raise UsageError for a path that is missing or is a folder."""
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
    """Raise UsageError for a folder that does not exist."""
    if folder.is_dir():
        return
    above = folder.parent
    siblings = sorted(p.name for p in above.iterdir() if p.is_dir()) if above.is_dir() else []
    raise UsageError(
        f"there is no folder {quoted(folder)}", advice=did_you_mean(folder.name, siblings)
    )


def read_file(path: Path, root: Path | None = None) -> bytes:
    """Return the bytes of a plain file, unpacked where its name says gzip; with a root, of one that
    lies in it. Raises UsageError or DataError."""
    try:
        with open_plain(path, root) as file:
            size = os.fstat(file.fileno()).st_size
            if not is_gzipped(path):
                require_size(size, str(path))
                return file.read()
            with gzip.GzipFile(fileobj=file) as unpacked:
                return read_packed(cast("IO[bytes]", unpacked), size, str(path))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _bad_gzip(error, str(path)) from None
    except OSError as error:
        raise UsageError(f"{quoted(path)} cannot be read: {error.strerror}") from None


def read_packed(stream: IO[bytes], packed: int, where: str) -> bytes:
    """Return all that a stream unpacks from so many bytes; raises DataError where it is more than
    any text comes to."""
    chunks: list[bytes] = []
    count = 0
    while chunk := stream.read(_CHUNK):
        count += len(chunk)
        if count > max(limits.RATIO_FREE_BYTES, packed * limits.UNPACKED_RATIO):
            raise DataError(
                f"it unpacks to more than {limits.UNPACKED_RATIO} times its size",
                where=where,
                advice="is it the right file? if so, unpack it first",
            )
        require_size(count, where)
        chunks.append(chunk)
    return b"".join(chunks)


def require_size(size: int, where: str) -> None:
    """Raise DataError for more bytes than a table may have: it is read into memory."""
    if size > limits.TABLE_BYTES:
        raise DataError(
            f"the file holds more than {limits.TABLE_BYTES // 1024**3} GB",
            where=where,
            advice="is it the right file? if so, split it",
        )


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


@contextmanager
def packed(file: IO[bytes], path: Path) -> Generator[IO[bytes]]:
    """Yield where to write the bytes of a file: packed where its name says gzip, without a time
    stamp."""
    if not is_gzipped(path):
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as pack:
        yield cast("IO[bytes]", pack)
