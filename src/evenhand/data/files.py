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
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any, cast

from evenhand import limits
from evenhand.errors import DataError, UsageError, nearest, quote
from evenhand.folders import open_plain
from evenhand.words import Code, Sentence

WRITTEN = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
}
"""By ending the formats that are written."""
READ = {**WRITTEN, ".tsv": "tsv", ".xlsx": "xlsx"}
"""By ending the formats that are read."""
TABLE_TOO = "for verdicts of pairs .txt"
"""Added to the list of endings where a verdict table is known too."""
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


def format_of(path: Path, endings: Mapping[str, str] = READ, also: str = "") -> str:
    """Return the format that the ending names; `also` lists endings that the caller knows beside
    them. Raises UsageError."""
    if found := endings.get(ending_of(path)):
        return found
    listed = " ".join(endings) + (f", {also}" if also else "")
    raise UsageError(
        Sentence("data.ending_not_known", path=path, listed=listed),
    )


def require_extra(module: str, what: str, extra: str) -> Any:
    """Return a module that an extra installs; raises UsageError."""
    try:
        return import_module(module)
    except ImportError:
        advice = f'pip install "evenhand[{extra}]"'
        raise UsageError(Sentence("data.not_installed", what=what), advice=advice) from None


def stem_of(path: Path) -> str:
    """Return the name of a file without its endings."""
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return advice that names the nearest of `names`, or nothing."""
    near = nearest(name, names)
    return f"did you mean {quote(near)}?" if near else ""


def require_file(path: Path) -> None:
    """Raise UsageError for a path that is missing or is a folder."""
    if path.is_dir():
        raise UsageError(Sentence("data.folder", path=path))
    require_folder(path.parent)
    if not path.exists():
        siblings = sorted(p.name for p in path.parent.iterdir())
        advice = did_you_mean(path.name, siblings)
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
        raise DataError(
            Sentence("data.not_sound_gzip_data", error=error),
            where=str(path),
        ) from None
    except OSError as error:
        raise UsageError(Sentence("data.cannot_read", path=path, strerror=error.strerror)) from None


def read_packed(stream: IO[bytes], packed: int, where: str) -> bytes:
    """Return all that a stream unpacks from so many bytes; raises DataError where it is more than
    any text comes to."""
    chunks: list[bytes] = []
    count = 0
    while chunk := stream.read(_CHUNK):
        count += len(chunk)
        if count > max(limits.RATIO_FREE_BYTES, packed * limits.UNPACKED_RATIO):
            raise DataError(
                Sentence("data.unpacks_more_than_times", unpacked_ratio=limits.UNPACKED_RATIO),
                where=where,
            )
        require_size(count, where)
        chunks.append(chunk)
    return b"".join(chunks)


def require_size(size: int, where: str) -> None:
    """Raise DataError for more bytes than a table may have: it is read into memory."""
    if size > limits.TABLE_BYTES:
        raise DataError(
            Sentence("data.file_holds_more_than", table_bytes=limits.TABLE_BYTES // 1024**3),
            where=where,
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
    line, looks = raw.count(b"\n", 0, at) + 1, f"; it looks like {guess}" if guess else ""
    entry = f'data = [{{ file = "...", encoding = "{guess or "cp1251"}" }}]'
    raise DataError(
        Sentence("data.not_utf_text_x", raw=Code(f"{raw[at]:02X}"), looks=looks, entry=entry),
        where=f"{name}:{line}",
    )


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
        raise DataError(
            Sentence("data.not_text", encoding=encoding, error=error),
            where=name,
        ) from None
    except (LookupError, ValueError):
        raise UsageError(
            Sentence("data.no_encoding", encoding=encoding),
            where=name,
        ) from None


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
