"""Bytes to text. UTF-8 is read, with or without a byte order mark, and any encoding that the user
names.

What else is not UTF-8 is refused: a wrong guess would put garbled text before a judge. The guess of
charset-normalizer is only ever advice, and what `init` writes into a suite for the user to see.
"""

from __future__ import annotations

import codecs
import io
import re
from pathlib import Path

from evenhand.data.files import read_file
from evenhand.errors import DataError, UsageError, quoted

SAMPLE_BYTES = 1 << 16
TELLING_BYTES, TELLING_ACCENTS = 24, 4
"""Bytes beyond ASCII by which an encoding is guessed: in a word or two every guess is as good."""
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BINARY = (
    (b"\x1f\x8b", "gzip data", "give its name the ending .gz"),
    (b"PK\x03\x04", "a zip archive or a workbook", "give a workbook's name the ending .xlsx"),
    (b"PAR1", "a Parquet file", "give its name the ending .parquet"),
)
_LIKELY = ("cp1251", "cp1252", "gb18030", "cp932", "euc_jp", "koi8_r", "cp866", "big5")
"""The encodings that tables of our users come in; another one can always be named."""
_SUPERSETS = {"shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949"}
"""By encoding the one that files which are said to be in it are written in: it has more signs."""


def decode(raw: bytes, encoding: str | None, name: str) -> str:
    """Return bytes as text, UTF-8 unless another encoding is named; raises DataError with the
    line, and UsageError for an encoding that nobody knows."""
    if encoding is not None:
        return _decode_as(raw, encoding, name)
    for magic, what, advice in _BINARY:
        if raw.startswith(magic):
            raise DataError(f"this is {what}, not text", where=f"{name}:1", advice=advice)
    if guess := _wide(raw):
        raise _not_utf8(guess, f"{name}:1")
    try:
        return raw.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _not_utf8(_guess(raw), f"{name}:{line}", f" (0x{raw[error.start]:02X})") from None


def guess_encoding(path: Path) -> str | None:
    """Return the encoding that a text file is likely in; None for UTF-8, and where it cannot be
    told."""
    raw = read_file(path)
    try:
        raw.decode()
    except UnicodeDecodeError:
        return _wide(raw) or _guess(raw)
    return _wide(raw)


def _decode_as(raw: bytes, encoding: str, name: str) -> str:
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)  # refuses the codecs that make no text
        codec = codecs.lookup(encoding).name
        return raw.decode(_SUPERSETS.get(codec, codec)).removeprefix("\ufeff")
    except UnicodeError as error:
        raise DataError(
            f"not {encoding} text: {error}",
            where=name,
            advice="is the encoding right? without one, UTF-8 is read",
        ) from None
    except (LookupError, ValueError):
        raise UsageError(
            f"there is no encoding {quoted(encoding)}",
            where=name,
            advice="such as cp1251, cp1252, gb18030, shift_jis, euc-jp or utf-16",
        ) from None


def _guess(raw: bytes) -> str | None:
    from charset_normalizer import from_bytes  # spares every other start

    runs = [len(run) for run in _BEYOND_ASCII.findall(raw[:SAMPLE_BYTES])]
    # Accents stand singly among plain letters; other writing comes in words.
    if sum(runs) < (TELLING_ACCENTS if max(runs, default=0) <= 2 else TELLING_BYTES):
        return None
    match = from_bytes(raw[:SAMPLE_BYTES], cp_isolation=[*_LIKELY]).best()
    return match.encoding if match else None


def _wide(raw: bytes) -> str | None:
    """Return the name of an encoding with two or four bytes a character: by its mark, or by zeroes
    in every second byte."""
    for mark, name in _MARKS:
        if raw.startswith(mark):
            return name
    sample = raw[: SAMPLE_BYTES // 16]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) * 10 < len(sample) // 2 or min(even, odd) * 4 > max(even, odd) or even == odd:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _not_utf8(guess: str | None, where: str, at: str = "") -> DataError:
    if guess is None:
        return DataError(
            f"not UTF-8 text{at}",
            where=where,
            advice="save the file as UTF-8, or"
            ' name its encoding: data = [{ file = "...", encoding = "cp1251" }]',
        )
    return DataError(
        f"not UTF-8 text{at}; it looks like {guess}",
        where=where,
        advice=f'say so: data = [{{ file = "...", encoding = "{guess}" }}]; or save the file as'
        f" UTF-8, e.g. iconv -f {guess} -t UTF-8 OLD > NEW",
    )
