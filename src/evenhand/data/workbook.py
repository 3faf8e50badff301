"""Workbooks, `.xlsx`, through python-calamine, which is imported only here and only when needed.

The first row of a sheet names the columns; cells come out as the texts that a CSV file would hold.
"""

from __future__ import annotations

import datetime
import re
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from evenhand import limits
from evenhand.data.cells import find_header
from evenhand.data.columns import Rows
from evenhand.data.files import LISTED, advise, require_extra
from evenhand.errors import DataError, NoRows
from evenhand.words import Sentence, few

_CHUNK = 1 << 16
_CELL_NAME = re.compile(rb"""\br ?= ?["'] ?([A-Za-z]*+)0*+([0-9]++)""")
_BLANKS = re.compile(rb"\s++")
_CARRIED = 4096
"""Bytes of a chunk that are looked at again with the next: a name may lie on the border."""


def read_workbook(raw: bytes, name: str, sheet: str | None = None) -> Rows:
    """Return the rows of a sheet, the first one unless named, numbered as the sheet numbers them;
    raises DataError."""
    calamine = require_extra("python_calamine", "workbook")
    _require_bounds(raw, name)
    try:
        with calamine.CalamineWorkbook.from_filelike(BytesIO(raw)) as book:
            names = list(book.sheet_names)
            page = book.get_sheet_by_name(_find_sheet(names, sheet, name))
            rows = [[_text(cell) for cell in cells] for cells in page.iter_rows()]
    except (calamine.CalamineError, OSError, ValueError) as error:
        raise _unsound_error(error, name) from None
    # Columns without a name behind the last one with a name are dropped.
    header, start = find_header([*map(_cut_end, rows)], name, range(1, len(rows) + 1))
    if start == len(rows) and sheet is None and names[1:]:
        raise NoRows(
            Sentence(
                "data.first_sheet_without_rows",
                first=names[0],
                second=names[1],
                others=few(names[1:], LISTED),
                file=Path(name).name,
            ),
            where=name,
        )
    records = [cells[: len(header)] for cells in rows[start:]]
    return Rows(name, records, header, range(start + 1, len(rows) + 1))


def _cut_end(cells: list[str]) -> list[str]:
    """Return a row without the blank cells at its end."""
    return cells[: max((at for at, cell in enumerate(cells, 1) if cell.strip()), default=0)]


def _find_sheet(names: list[str], sheet: str | None, name: str) -> str:
    if not names:
        raise DataError(Sentence("data.no_sheets"), where=name)
    if sheet is None or sheet in names:
        return sheet or names[0]
    raise DataError(Sentence("data.no_sheet", sheet=sheet), where=name, advice=advise(sheet, names))


def _text(cell: object) -> str:
    match cell:
        case bool():
            return "true" if cell else "false"
        case float() if cell.is_integer() and abs(cell) < 2**53:
            return str(int(cell))
        case datetime.date() | datetime.time():
            return cell.isoformat()
        case _:
            return str(cell)


def _require_bounds(raw: bytes, name: str) -> None:
    """Refuse a workbook that unpacks to more than memory should hold, whatever its index says, or
    whose cells lie too far apart; and the other kinds, .xlsb and .ods, which are laid out
    otherwise."""
    total, rows, columns = 0, 0, 1
    try:
        members = zipfile.ZipFile(BytesIO(raw)).infolist()
        if {"xl/workbook.bin", "content.xml"} & {member.filename for member in members}:
            raise DataError(Sentence("data.not_xlsx"), where=name)
        for member in members:
            carried = b""
            for chunk in _unpack(raw, member):
                total += len(chunk)
                if total > limits.WORKBOOK_BYTES:
                    megabytes = limits.WORKBOOK_BYTES // 1024**2
                    what = Sentence("data.workbook_too_large", megabytes=megabytes)
                    raise DataError(what, where=name)
                data = _BLANKS.sub(b" ", carried + chunk)
                for column, row in _CELL_NAME.findall(data):
                    rows, columns = max(rows, int(row[:10])), max(columns, _number(column[:8]))
                carried = data[-_CARRIED:]
    except (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError, ValueError) as error:
        raise _unsound_error(error, name) from None
    if rows * columns > limits.WORKBOOK_CELLS:
        raise DataError(Sentence("data.sheet_too_large", cells=limits.WORKBOOK_CELLS), where=name)


def _unsound_error(error: Exception, name: str) -> DataError:
    return DataError(Sentence("data.bad_workbook", error=error), where=name)


def _unpack(raw: bytes, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the unpacked bytes of a member in chunks."""
    lengths = raw[member.header_offset + 26 : member.header_offset + 30]
    skipped = int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
    start = member.header_offset + 30 + skipped
    packed = raw[start : start + member.compress_size]
    if member.compress_type != zipfile.ZIP_DEFLATED:
        yield packed
        return
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    while packed:
        yield inflate.decompress(packed, _CHUNK)
        packed = inflate.unconsumed_tail


def _number(column: bytes) -> int:
    """Return the number of a column: A is 1, AA 27."""
    number = 0
    for letter in column.upper():
        number = number * 26 + letter - 64
    return number
