"""Workbooks, `.xlsx`, through python-calamine, which is imported only here and only when needed.

The first row of a sheet names the columns; cells come out as the texts that a CSV file would hold.
"""

from __future__ import annotations

import datetime
import zipfile
import zlib
from collections.abc import Iterator
from importlib import import_module
from io import BufferedReader
from typing import IO, Any

from evenhand import limits
from evenhand.data.columns import nested, parts_of, require_columns
from evenhand.data.files import did_you_mean, seekable
from evenhand.data.jsonrows import Numbered
from evenhand.errors import DataError, UsageError, quoted

_MOST_PACKED = 1032
"""Deflate packs no more bytes than this into one."""
_CHUNK = 1 << 16


def require_calamine() -> Any:
    """The module python_calamine; raises UsageError."""
    try:
        return import_module("python_calamine")
    except ImportError:
        raise UsageError(
            "workbooks need python-calamine, which is not installed",
            advice='pip install "evenhand[xlsx]", or save the sheet as "CSV UTF-8"',
        ) from None


def read_workbook(file: BufferedReader, name: str, sheet: str | None = None) -> Iterator[Numbered]:
    """The rows of a sheet, the first one unless named, numbered as the sheet numbers them."""
    calamine = require_calamine()
    with seekable(file) as whole:
        _require_size(whole, name)
        try:
            with calamine.CalamineWorkbook.from_filelike(whole) as book:
                yield from _rows(_sheet(book, sheet, name), name)
        except (calamine.CalamineError, OSError, ValueError) as error:
            raise DataError(
                f"not a sound workbook: {quoted(error)[1:-1]}",
                where=name,
                advice="open and save it again, without a password",
            ) from None


def _rows(sheet: Any, name: str) -> Iterator[Numbered]:
    rows = enumerate(sheet.iter_rows(), 1)
    for number, cells in rows:
        header = [_text(cell).strip() for cell in cells]
        if not any(header):
            continue
        paths, width = _paths(header, f"{name}:{number}")
        yield from (
            (nested(paths, [_text(cell) for cell in cells[:width]]), line) for line, cells in rows
        )


def _sheet(book: Any, sheet: str | None, name: str) -> Any:
    if sheet is None:
        return book.get_sheet_by_index(0)
    if sheet not in book.sheet_names:
        listed = ", ".join(map(quoted, book.sheet_names))
        raise DataError(
            f"there is no sheet {quoted(sheet)}",
            where=name,
            advice=f"{did_you_mean(sheet, book.sheet_names)} The sheets: {listed}".strip(),
        )
    return book.get_sheet_by_name(sheet)


def _paths(header: list[str], where: str) -> tuple[list[tuple[str, ...]], int]:
    """Where the cells of a row go; columns without a name behind the last one with a name are
    dropped."""
    width = max((i for i, column in enumerate(header, 1) if column), default=0)
    names = header[:width]
    if not all(names):
        raise DataError(
            f"the header has no name for column {names.index('') + 1}",
            where=where,
            advice="the first row must name every column",
        )
    require_columns(names, where)
    return [parts_of(column) for column in names], width


def _text(cell: object) -> str:
    match cell:
        case str():
            return cell
        case bool():
            return "true" if cell else "false"
        case float() if cell.is_integer() and abs(cell) < 2**53:
            return str(int(cell))
        case datetime.date() | datetime.time():
            return cell.isoformat()
        case _:
            return str(cell)


def _require_size(file: IO[bytes], name: str) -> None:
    """Refuse a workbook that unpacks to more than memory should hold, whatever its index says."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            total = sum(_unpacked(file, archive, member) for member in members)
    except (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError) as error:
        raise DataError(
            f"not a sound workbook: {quoted(error)[1:-1]}",
            where=name,
            advice='a workbook has the ending .xlsx; save a sheet as "CSV UTF-8" if it is another',
        ) from None
    finally:
        file.seek(0)
    if total > limits.WORKBOOK_BYTES:
        megabytes = limits.WORKBOOK_BYTES // 1024**2
        raise DataError(
            f"the workbook unpacks to more than {megabytes} MB",
            where=name,
            advice='save the sheet as "CSV UTF-8"',
        )


def _unpacked(file: IO[bytes], archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """How many bytes a member comes to; counted where it could be more than is allowed."""
    if member.compress_size * _MOST_PACKED <= limits.WORKBOOK_BYTES // 4:
        return max(member.file_size, member.compress_size)
    count, decompress = 0, zlib.decompressobj(-zlib.MAX_WBITS)
    file.seek(member.header_offset + 26)
    lengths = file.read(4)
    skipped = int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
    file.seek(skipped, 1)
    left = member.compress_size
    while left and count <= limits.WORKBOOK_BYTES:
        packed = file.read(min(_CHUNK, left))
        if not packed:
            break
        left -= len(packed)
        if member.compress_type != zipfile.ZIP_DEFLATED:
            count += len(packed)
            continue
        while packed:
            count += len(decompress.decompress(packed, _CHUNK))
            packed = decompress.unconsumed_tail
    return count
