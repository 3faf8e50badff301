"""Workbooks, `.xlsx`, through python-calamine, which is imported only here and only when needed.

The first row of a sheet names the columns; cells come out as the texts that a CSV file would hold.
"""

from __future__ import annotations

import datetime
import re
import zipfile
import zlib
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from evenhand import limits
from evenhand.data.cells import Grid, find_header
from evenhand.data.files import did_you_mean
from evenhand.errors import DataError, NoRows, UsageError, quoted

_CHUNK = 1 << 16


def require_calamine() -> Any:
    """Return the module python_calamine; raises UsageError."""
    try:
        return import_module("python_calamine")
    except ImportError:
        raise UsageError(
            "workbooks need python-calamine, which is not installed",
            advice='pip install "evenhand[xlsx]", or save the sheet as "CSV UTF-8"',
        ) from None


def read_workbook(raw: bytes, name: str, sheet: str | None = None) -> Grid:
    """Return the rows of a sheet, the first one unless named, numbered as the sheet numbers them;
    raises DataError."""
    calamine, file = require_calamine(), BytesIO(raw)
    _require_size(file, name)
    try:
        with calamine.CalamineWorkbook.from_filelike(file) as book:
            page = _sheet(book, sheet, name)
            rows = [[_text(cell) for cell in cells] for cells in page.iter_rows()]
            names = list(book.sheet_names)
    except (calamine.CalamineError, OSError, ValueError) as error:
        raise DataError(
            f"not a sound workbook: {quoted(error)[1:-1]}",
            where=name,
            advice="open and save it again, without a password",
        ) from None
    # Columns without a name behind the last one with a name are dropped.
    header, start = find_header(
        [_without_blank_end(cells) for cells in rows], name, range(1, len(rows) + 1)
    )
    records = [cells[: len(header)] for cells in rows[start:]]
    if not records and sheet is None and len(names) > 1:
        raise _bare_sheet(names, name)
    return Grid(header, records, range(start + 1, len(rows) + 1))


def _without_blank_end(cells: list[str]) -> list[str]:
    width = max((i for i, cell in enumerate(cells, 1) if cell.strip()), default=0)
    return cells[:width]


def sheet_names(raw: bytes, name: str) -> list[str]:
    """Return the names of the sheets of a workbook."""
    calamine, file = require_calamine(), BytesIO(raw)
    _require_size(file, name)
    with calamine.CalamineWorkbook.from_filelike(file) as book:
        return list(book.sheet_names)


def _bare_sheet(sheets: list[str], name: str) -> NoRows:
    """Return the error for a first sheet without rows, such as a cover."""
    first, *others = map(quoted, sheets)
    return NoRows(
        f"the first sheet, {first}, holds no rows",
        where=name,
        advice=f"name another, for init as --sheet {others[0]}, in a suite as"
        f" data = [{{ file = {quoted(Path(name).name)}, sheet = {others[0]} }}]. The other sheets:"
        f" {', '.join(others)}",
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
    """Refuse a workbook that unpacks to more than memory should hold, whatever its index says, or
    whose cells lie too far apart."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _require_kind({member.filename for member in members}, name)
            extent = _Extent()
            total = 0
            for member in members:
                total += sum(
                    map(extent.add, _unpacked(file, member, limits.WORKBOOK_BYTES - total))
                )
    except (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError, ValueError) as error:
        raise DataError(
            f"not a sound workbook: {quoted(error)[1:-1]}",
            where=name,
            advice='a workbook has the ending .xlsx; save a sheet as "CSV UTF-8" if it is another',
        ) from None
    finally:
        file.seek(0)
    if total > limits.WORKBOOK_BYTES:
        megabytes = limits.WORKBOOK_BYTES // 1024**2
        raise _too_large(f"the workbook unpacks to more than {megabytes} MB", name)
    if extent.cells > limits.WORKBOOK_CELLS:
        raise _too_large(f"a sheet spans more than {limits.WORKBOOK_CELLS:,} cells", name)


def _too_large(what: str, name: str) -> DataError:
    return DataError(what, where=name, advice='save the sheet as "CSV UTF-8"')


def _require_kind(names: set[str], name: str) -> None:
    """Refuse the other kinds of workbook, which are laid out otherwise: .xlsb and .ods."""
    if "xl/workbook.bin" in names or "content.xml" in names:
        raise DataError("this is no .xlsx workbook", where=name, advice="save it as .xlsx or CSV")


class _Extent:
    """The rows and columns that the cells of the sheets span, by the names of the cells (`B12`)."""

    _NAME = re.compile(rb"""\br ?= ?["'] ?([A-Za-z]*+)0*+([0-9]++)""")
    _BLANKS = re.compile(rb"\s++")
    _CARRIED = 4096

    def __init__(self) -> None:
        self._rows, self._columns, self._carried = 0, 1, b""

    @property
    def cells(self) -> int:
        return self._rows * self._columns

    def add(self, chunk: bytes) -> int:
        """Look at the next bytes of a member; their number."""
        data = self._BLANKS.sub(b" ", self._carried + chunk)
        for column, row in self._NAME.findall(data):
            self._rows = max(self._rows, int(row[:10]))
            self._columns = max(self._columns, _number(column[:8]))
        self._carried = data[-self._CARRIED :]
        return len(chunk)


def _number(column: bytes) -> int:
    """Return the number of a column: A is 1, AA 27."""
    number = 0
    for letter in column.upper():
        number = number * 26 + letter - 64
    return number


def _unpacked(file: IO[bytes], member: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
    """Yield the unpacked bytes of a member, to a little beyond `most` bytes."""
    file.seek(member.header_offset + 26)
    lengths = file.read(4)
    skipped = int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
    file.seek(skipped, 1)
    left, count, decompress = member.compress_size, 0, zlib.decompressobj(-zlib.MAX_WBITS)
    while left > 0 and count <= most:
        packed = file.read(min(_CHUNK, left))
        if not packed:
            break
        left -= len(packed)
        while packed and count <= most:
            chunk, packed = _next_chunk(packed, member, decompress)
            count += len(chunk)
            yield chunk


def _next_chunk(packed: bytes, member: zipfile.ZipInfo, decompress: Any) -> tuple[bytes, bytes]:
    if member.compress_type != zipfile.ZIP_DEFLATED:
        return packed, b""
    chunk = decompress.decompress(packed, _CHUNK)
    return chunk, decompress.unconsumed_tail
