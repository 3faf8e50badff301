"""Data files by their ending, their bytes, and their text.

A path that cannot be used at all is a `UsageError` before anything is read; the ending alone, in
any case of letters, decides the format. What is read is bounded, packed or not.

UTF-8 is read, with or without a byte order mark, and any encoding that the user names. What else is
not UTF-8 is refused: a wrong guess would put garbled text before a judge. The guess of
charset-normalizer is only ever advice, and what `init` writes into a suite for the user to see.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import zlib
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import IO, Any, cast

from evenhand import limits
from evenhand.errors import DataError, UsageError, nearest
from evenhand.folders import open_plain
from evenhand.words import Code, Sentence, few

WRITTEN = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
}
"""By ending the formats that are written."""
READ = {**WRITTEN, ".tsv": "tsv", ".xlsx": "xlsx", ".eval": "eval"}
"""By ending the formats that are read."""
LISTED = 20
"""Columns, files or sheets that an error names at most."""
_CHUNK = 1 << 20
SAMPLE_BYTES = 1 << 16
TELLING_BYTES, TELLING_ACCENTS = 24, 4
"""Bytes beyond ASCII by which an encoding is guessed: in a word or two every guess is as good."""
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
_LIKELY = ["cp1251", "cp1252", "gb18030", "cp932", "euc_jp", "koi8_r", "cp866", "big5"]
"""The encodings that tables of our users come in; another one can always be named."""
_SUPERSETS = {"shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949"}
"""By encoding the one that files which are said to be in it are written in: it has more signs."""


def is_gzipped(path: Path) -> bool:
    """Return True if the name says gzip."""
    return path.suffix.lower() == ".gz"


def ending_of(path: Path) -> str:
    """Return the ending that names the format, in lower case, without `.gz`."""
    return (path.with_suffix("") if is_gzipped(path) else path).suffix.lower()


def is_data_file(path: Path) -> bool:
    """Return True if the name says a format that can be read."""
    return ending_of(path) in READ


def format_of(path: Path) -> str:
    """Return the format to read that the ending names; raises UsageError."""
    if found := READ.get(ending_of(path)):
        return found
    raise UsageError(Sentence("data.unknown_ending", path=path, endings=Code(" ".join(READ))))


def written_format(path: Path) -> str:
    """Return the format to write that the ending names; raises UsageError."""
    if found := WRITTEN.get(ending_of(path)):
        return found
    endings = Code(" ".join(WRITTEN))
    raise UsageError(Sentence("data.unknown_written_ending", path=path, endings=endings))


def require_extra(module: str, use: str) -> Any:
    """Return a module that an extra installs; raises UsageError. `use` is what needs it: `query`,
    `parquet`, `workbook`."""
    try:
        return import_module(module)
    except ImportError:
        raise UsageError(Sentence(f"data.missing_for_{use}")) from None


def stem_of(path: Path) -> str:
    """Return the name of a file without its endings."""
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def advise(name: str, names: Collection[str]) -> str:
    """Return advice that lists `names`, the nearest first; empty where there are none."""
    near, listed = nearest(name, names), few(list(names), LISTED)
    if near:
        return Sentence("data.did_you_mean", near=near, names=listed)
    return Sentence("data.there_are", names=listed) if names else ""


def require_file(path: Path) -> None:
    """Raise UsageError for a path that is missing or is a folder."""
    if path.is_dir():
        raise UsageError(Sentence("data.is_folder", path=path))
    require_folder(path.parent)
    if not path.exists():
        siblings = sorted(p.name for p in path.parent.iterdir() if not p.name.startswith("."))
        advice = advise(path.name, siblings)
        raise UsageError(Sentence("data.no_file", path=path), advice=advice)


def require_folder(folder: Path) -> None:
    """Raise UsageError for a folder that does not exist."""
    if not folder.is_dir():
        raise UsageError(Sentence("data.no_folder", folder=folder))


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
        raise DataError(Sentence("data.bad_gzip", error=error), where=str(path)) from None
    except OSError as error:
        raise UsageError(Sentence("data.unreadable", path=path, reason=error.strerror)) from None


def read_packed(stream: IO[bytes], packed: int, where: str) -> bytes:
    """Return all that a stream unpacks from so many bytes; raises DataError where it is more than
    any text comes to."""
    chunks: list[bytes] = []
    count = 0
    while chunk := stream.read(_CHUNK):
        count += len(chunk)
        if count > max(limits.RATIO_FREE_BYTES, packed * limits.UNPACKED_RATIO):
            raise DataError(
                Sentence("data.unpacks_to_too_much", times=limits.UNPACKED_RATIO), where=where
            )
        require_size(count, where)
        chunks.append(chunk)
    return b"".join(chunks)


def require_size(size: int, where: str) -> None:
    """Raise DataError for more bytes than a table may have: it is read into memory."""
    if size > limits.TABLE_BYTES:
        raise DataError(
            Sentence("data.file_too_large", gigabytes=limits.TABLE_BYTES // 1024**3), where=where
        )


def decode(raw: bytes, encoding: str | None, name: str) -> str:
    """Return bytes as text, UTF-8 unless another encoding is named; raises DataError with the
    line, and UsageError for an encoding that nobody knows."""
    if encoding is not None:
        return _decode_as(raw, encoding, name)
    at, guess = 0, _guess_wide(raw)
    if not guess:
        try:
            return raw.removeprefix(codecs.BOM_UTF8).decode()
        except UnicodeDecodeError as error:
            at, guess = error.start, _guess(raw)
    key, byte = "data.looks_encoded" if guess else "data.not_utf8", Code(f"{raw[at]:02X}")
    line = raw.count(b"\n", 0, at) + 1
    raise DataError(Sentence(key, byte=byte, encoding=guess), where=f"{name}:{line}")


def guess_encoding(path: Path) -> str | None:
    """Return the encoding that a text file is likely in; None for UTF-8, and where it cannot be
    told."""
    raw = read_file(path)
    if guess := _guess_wide(raw):
        return guess
    try:
        raw.decode()
    except UnicodeDecodeError:
        return _guess(raw)
    return None


def _decode_as(raw: bytes, encoding: str, name: str) -> str:
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)  # refuses the codecs that make no text
        codec = codecs.lookup(encoding).name
        return raw.decode(_SUPERSETS.get(codec, codec)).removeprefix("\ufeff")
    except UnicodeError as error:
        what = Sentence("data.not_encoded", encoding=encoding, error=error)
        raise DataError(what, where=name) from None
    except (LookupError, ValueError):
        raise UsageError(Sentence("data.no_encoding", encoding=encoding), where=name) from None


def _guess(raw: bytes) -> str | None:
    from charset_normalizer import from_bytes  # spares every other start

    runs = [len(run) for run in _BEYOND_ASCII.findall(raw[:SAMPLE_BYTES])]
    # Accents stand singly among plain letters; other writing comes in words.
    if sum(runs) < (TELLING_ACCENTS if max(runs, default=0) <= 2 else TELLING_BYTES):
        return None
    match = from_bytes(raw[:SAMPLE_BYTES], cp_isolation=_LIKELY).best()
    return match.encoding if match else None


def _guess_wide(raw: bytes) -> str | None:
    """Return the name of an encoding with two bytes a character, by the many zeroes that it has."""
    sample = raw[: SAMPLE_BYTES // 16]
    if sample.count(0) <= 3 + len(sample) // 20:
        return None
    return "utf-16-be" if sample[::2].count(0) > sample[1::2].count(0) else "utf-16-le"
