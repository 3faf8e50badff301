"""Workbooks as spreadsheets write them, small."""

from __future__ import annotations

import zipfile
from xml.sax.saxutils import escape

_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def write_workbook(path, sheets):
    """Write sheets of rows; a cell is a text, a number, true or false, or None for nothing."""
    names = list(sheets)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _types(len(names)))
        archive.writestr("_rels/.rels", _relations([("officeDocument", "xl/workbook.xml")]))
        archive.writestr("xl/workbook.xml", _workbook(names))
        parts = [("worksheet", f"worksheets/sheet{i}.xml") for i in range(1, len(names) + 1)]
        archive.writestr("xl/_rels/workbook.xml.rels", _relations(parts))
        for i, name in enumerate(names, 1):
            archive.writestr(f"xl/worksheets/sheet{i}.xml", _sheet(sheets[name]))


def _types(sheets):
    parts = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml"'
        f' ContentType="{_SHEET_TYPE}.worksheet+xml"/>'
        for i in range(1, sheets + 1)
    )
    return (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_SHEET_TYPE}.sheet.main+xml"/>'
        f"{parts}</Types>"
    )


def _relations(targets):
    inner = "".join(
        f'<Relationship Id="rId{i}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for i, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{inner}</Relationships>'


def _workbook(names):
    sheets = "".join(
        f'<sheet name="{escape(name)}" sheetId="{i}" r:id="rId{i}"/>'
        for i, name in enumerate(names, 1)
    )
    return f'<workbook {_MAIN} xmlns:r="{_OFFICE}"><sheets>{sheets}</sheets></workbook>'


def _sheet(rows):
    lines = "".join(
        f'<row r="{number}">{"".join(_cell(cell, number, i) for i, cell in enumerate(row))}</row>'
        for number, row in enumerate(rows, 1)
    )
    return f"<worksheet {_MAIN}><sheetData>{lines}</sheetData></worksheet>"


def _cell(cell, row, column):
    place = f"{chr(ord('A') + column)}{row}"
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return f'<c r="{place}" t="b"><v>{int(cell)}</v></c>'
    if isinstance(cell, int | float):
        return f'<c r="{place}"><v>{cell}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{escape(str(cell))}</t></is></c>'
