"""A table for people to open in a spreadsheet: `.xlsx`, or a `.csv` that is opened rightly by a
double click.

A `.csv` begins with a byte order mark, without which Excel takes it for the encoding of the
country. In Russian, as there, semicolons stand between its cells and commas in its numbers. What a
spreadsheet would run is guarded as in any other `.csv`; in a workbook texts are texts, and neither
formulas nor links.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import io
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

from evenhand.data.cells import guarded
from evenhand.data.files import ending_of, packed
from evenhand.data.write import replacing
from evenhand.errors import UsageError

CELL_MOST = 32_767
"""Characters of a cell of a workbook."""
ROWS_MOST = 1_048_576
"""Rows of a sheet, its header among them."""
_CUT = "… [cut: a cell holds no more]"
_MADE = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
"""The same rows give the same bytes."""
_SEMICOLONS = ("ru",)

Value = str | int | float | None


class SheetColumn(NamedTuple):
    """A column: its header, and how wide it is to be, in characters."""

    header: str
    width: int


class Sheet(NamedTuple):
    """A table and the language in which its numbers are to be read."""

    columns: Sequence[SheetColumn]
    rows: Iterable[Sequence[Value]]
    language: str


class Written(NamedTuple):
    """The number of rows written, and of texts cut to the length that a cell can hold."""

    rows: int
    cut: int = 0


def write_sheet(path: Path, sheet: Sheet) -> Written:
    """Write a table for people, by the ending of the file: whole or not at all."""
    if ending_of(path) != ".xlsx":
        with replacing(path) as raw, packed(raw, path) as file:
            return Written(_write_csv(file, sheet))
    xlsxwriter = require_xlsxwriter()
    with replacing(path) as raw, packed(raw, path) as file:
        return _write_workbook(xlsxwriter, file, sheet)


def require_xlsxwriter() -> Any:
    """Return the module xlsxwriter; raise UsageError where it is not installed."""
    try:
        return import_module("xlsxwriter")
    except ImportError:
        raise UsageError(
            "workbooks need XlsxWriter, which is not installed",
            advice='pip install "evenhand[xlsx]", or write a .csv with --people',
        ) from None


def _write_csv(file: IO[bytes], sheet: Sheet) -> int:
    file.write(codecs.BOM_UTF8)
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
    in_russian = sheet.language in _SEMICOLONS
    writer = csv.writer(text, lineterminator="\r\n", delimiter=";" if in_russian else ",")
    writer.writerow([guarded(column.header) for column in sheet.columns])
    count = 0
    for count, row in enumerate(sheet.rows, 1):  # noqa: B007
        writer.writerow([_csv_cell(value, in_russian) for value in row])
    text.flush()
    text.detach()
    return count


def _csv_cell(value: Value, in_russian: bool) -> str:
    if isinstance(value, str):
        return guarded(value)
    if value is None:
        return ""
    number = str(int(value) if float(value).is_integer() else value)
    return number.replace(".", ",") if in_russian else number


def _write_workbook(xlsxwriter: Any, file: IO[bytes], sheet: Sheet) -> Written:
    options = {
        "constant_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
    }
    with xlsxwriter.Workbook(file, options) as book:
        book.set_properties({"author": "Evenhand", "created": _MADE})
        page = book.add_worksheet("Evenhand")
        cell, head = ({"valign": "top", "text_wrap": True}, {"bold": True, "bottom": 1})
        body, header = book.add_format(cell), book.add_format(cell | head)
        for place, column in enumerate(sheet.columns):
            page.set_column(place, place, column.width, body)
        page.freeze_panes(1, 1)
        for place, column in enumerate(sheet.columns):
            page.write_string(0, place, _clean(column.header)[:CELL_MOST], header)
        count = cuts = 0
        for count, row in enumerate(sheet.rows, 1):
            if count >= ROWS_MOST:
                raise UsageError(
                    f"a sheet of a workbook holds {ROWS_MOST:,} rows, and there are more",
                    advice="Select some with --where, or write a .csv with --people.",
                )
            cuts += sum(_write_cell(page, count, place, v, body) for place, v in enumerate(row))
        if count:
            page.autofilter(0, 0, count, len(sheet.columns) - 1)
    return Written(count, cuts)


def _write_cell(page: Any, row: int, place: int, value: Value, form: Any) -> bool:
    """Write a cell; whether its text had to be cut."""
    if value is None:
        return False
    if not isinstance(value, str):
        page.write_number(row, place, value, form)
        return False
    text = _clean(value)
    is_long = _units(text) > CELL_MOST
    page.write_string(row, place, _shortened(text) if is_long else text, form)
    return is_long


def _clean(text: str) -> str:
    """Without halves of surrogate pairs, which no file can hold."""
    return text.encode("utf-8", "replace").decode()


def _units(text: str) -> int:
    """Characters as workbooks count them: those beyond the first plane are two."""
    return len(text) + sum(character > "\uffff" for character in text)


def _shortened(text: str) -> str:
    start = text[: CELL_MOST - len(_CUT)]
    while _units(start) + len(_CUT) > CELL_MOST:
        start = start[: -(_units(start) + len(_CUT) - CELL_MOST)]
    return start + _CUT
