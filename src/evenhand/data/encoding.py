"""Bytes to text. UTF-8 is read, with or without a byte order mark, and any encoding that the
user names.

What else is not UTF-8 is refused: a wrong guess would put garbled text before a judge. The guess is
only ever advice.
"""

from __future__ import annotations

import codecs
import io
from pathlib import Path
from typing import Any

from evenhand.data.files import opened
from evenhand.data.likely import SAMPLE_BYTES, likely_encoding
from evenhand.data.wider import decoder
from evenhand.errors import DataError, UsageError, quoted

_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_CHUNK = 1 << 16
_BINARY = (
    (b"\x1f\x8b", "gzip data", "give its name the ending .gz"),
    (b"PK\x03\x04", "a zip archive or a workbook", "give a workbook's name the ending .xlsx"),
    (b"PAR1", "a Parquet file", "give its name the ending .parquet"),
)


def first_bytes(head: bytes, where: str) -> bytes:
    """The start of a file less its UTF-8 mark, unless it shows that this is no UTF-8 text."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            raise _refused(name, where)
    for magic, what, advice in _BINARY:
        if head.startswith(magic):
            raise DataError(f"this is {what}, not text", where=where, advice=advice)
    likely = _utf16(head[:SAMPLE_BYTES]) if b"\0" in head else None
    if likely:
        raise _refused(likely, where)
    return head.removeprefix(codecs.BOM_UTF8)


def decoded(raw: bytes, where: str) -> str:
    """`raw` as text."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(raw, where, error) from None


def not_utf8(raw: bytes, where: str, error: UnicodeDecodeError) -> DataError:
    """The error for a row that is not UTF-8 text, with the likely encoding."""
    at = f" (0x{raw[error.start]:02X} at byte {error.start + 1} of the row)"
    return _refused(likely_encoding(raw), where, at)


def sampled_encoding(path: Path) -> str | None:
    """The encoding that a text file is likely in, as a name for `Recoded`; None for UTF-8, and
    where it cannot be told."""
    with opened(path) as file:
        head = file.read(SAMPLE_BYTES * 16)
    whole = head[: head.rfind(b"\n") + 1] or head
    try:
        first_bytes(whole, str(path)).decode()
    except UnicodeDecodeError:
        likely = likely_encoding(whole)
    except DataError:
        likely = next((name for mark, name in _MARKS if head.startswith(mark)), None)
        likely = likely or _utf16(head[:SAMPLE_BYTES])
    else:
        return None
    return likely.split()[0].lower() if likely else None


class Recoded(io.RawIOBase):
    """A file in another encoding, read as UTF-8; raises DataError where it is not in it."""

    def __init__(self, file: io.BufferedReader, encoding: str, name: str) -> None:
        self._file, self._encoding, self._name = file, encoding, name
        try:
            io.TextIOWrapper(io.BytesIO(), encoding)  # refuses the codecs that make no text
            self._decoder = decoder(encoding)
        except (LookupError, ValueError):
            raise UsageError(
                f"there is no encoding {quoted(encoding)}",
                where=name,
                advice="such as cp1251, cp1252, gb18030, shift_jis, euc-jp or utf-16",
            ) from None
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        is_last = False
        while not self._left and not is_last:
            raw = self._file.read(_CHUNK)
            is_last = not raw
            try:
                self._left = self._decoder.decode(raw, final=is_last).encode()
            except UnicodeError as error:
                raise DataError(
                    f"not {self._encoding} text: {error}",
                    where=self._name,
                    advice="is the encoding right? without one, UTF-8 is read",
                ) from None
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def _refused(likely: str | None, where: str, at: str = "") -> DataError:
    if likely is None:
        return DataError(f"not UTF-8 text{at}", where=where, advice="save the file as UTF-8")
    return DataError(
        f"not UTF-8 text{at}; it looks like {likely}",
        where=where,
        advice=f'say so: data = [{{ file = "...", encoding = "{likely.split()[0]}" }}];'
        f" or save the file as UTF-8, e.g. iconv -f {likely.split()[0]} -t UTF-8 OLD > NEW",
    )


def _utf16(sample: bytes) -> str | None:
    """ASCII in UTF-16 has a zero in every second byte, and always the same second byte."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) * 10 < len(sample) // 2 or min(even, odd) * 4 > max(even, odd) or even == odd:
        return None
    return "UTF-16LE" if odd > even else "UTF-16BE"
