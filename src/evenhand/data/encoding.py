"""Bytes to text. Only UTF-8 is read, with or without a byte order mark.

Other encodings are refused, never converted: a wrong guess would put garbled text before a judge.
The guess is only ever advice.
"""

from __future__ import annotations

import codecs

from evenhand.data.likely import SAMPLE_BYTES, likely_encoding
from evenhand.errors import DataError

_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_BINARY = (
    (b"\x1f\x8b", "gzip data", "give its name the ending .gz"),
    (b"PK\x03\x04", "a zip archive or a workbook", 'save the sheet as "CSV UTF-8"'),
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


def _refused(likely: str | None, where: str, at: str = "") -> DataError:
    if likely is None:
        return DataError(f"not UTF-8 text{at}", where=where, advice="save the file as UTF-8")
    return DataError(
        f"not UTF-8 text{at}; it looks like {likely}",
        where=where,
        advice=f"save the file as UTF-8, e.g. iconv -f {likely.split()[0]} -t UTF-8 OLD > NEW",
    )


def _utf16(sample: bytes) -> str | None:
    """ASCII in UTF-16 has a zero in every second byte, and always the same second byte."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) * 10 < len(sample) // 2 or min(even, odd) * 4 > max(even, odd) or even == odd:
        return None
    return "UTF-16LE" if odd > even else "UTF-16BE"
