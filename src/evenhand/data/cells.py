"""Tables of cells: comma-separated values, and the header of any sheet.

The separator (comma, semicolon, tab) is the one under which the header and the first record have
most cells. A title above the header, a line with a single cell, is stepped over.

A spreadsheet runs a cell that starts with `=`, `+`, `-` or `@` as a formula: of full width too in
East Asian editions, and some after blanks or characters that nobody sees. A text cell (or header)
that does, or that starts with TAB, CR or LF, is written with `'` before it, and so is one with such
a start after one or more `'`; reading takes one `'` off again, so that every text comes back as it
was. Numbers are no formulas and are written bare.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from evenhand import limits
from evenhand.data.columns import Rows, require_columns
from evenhand.data.recognise import is_usual_name
from evenhand.errors import DataError
from evenhand.words import Sentence

SEPARATORS = (",", ";", "\t")
"""Of equals the first is taken."""
_NAMED_SEPARATOR = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""A first line that spreadsheets write and read."""
_SAMPLE_CHARS = 1 << 16
_TITLES = 5
"""Lines above a header that may be titles."""
_START = r"(?:[\t\r\n]|[\s\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠﹦﹢﹣﹫])"
_FORMULA = re.compile(rf"'*{_START}")
_GUARDED = re.compile(rf"'+{_START}")


def guard(text: str) -> str:
    """Return a text as a cell that no spreadsheet runs."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguard(cell: str) -> str:
    """Return the text that was guarded."""
    return cell[1:] if cell.startswith("'") and _GUARDED.match(cell) else cell


def read_csv(text: str, name: str, separator: str | None = None) -> Rows:
    """Return the records of a table that are not blank; raises DataError with the line."""
    # The module's own bound on a cell is 128 KB and can only be set for the process.
    csv.field_size_limit(max(csv.field_size_limit(), limits.LINE_BYTES))
    first = 1
    if named := _NAMED_SEPARATOR.match(text):
        separator, text, first = named[1], text[named.end() :], 2
    if separator is None:
        sample = text[:_SAMPLE_CHARS]
        separator = max(SEPARATORS, key=lambda one: _fit(sample, one))
    records, lines = _read_records(text, name, separator, first)
    header, start = find_header(records, name, lines)
    del records[:start], lines[:start]
    for record, line in zip(records, lines, strict=True):
        if len(record) != len(header):
            raise DataError(
                Sentence("data.wrong_width", cells=len(record), columns=len(header)),
                where=f"{name}:{line}",
            )
    return Rows(name, records, header, lines)


def _read_records(
    text: str, name: str, separator: str, first: int
) -> tuple[list[list[str]], list[int]]:
    records: list[list[str]] = []
    lines: list[int] = []
    has_guards = "'" in text
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    start = first
    try:
        for record in reader:
            if record:
                cells = list(map(unguard, record)) if has_guards else record
                if sum(map(len, cells)) > limits.LINE_BYTES:
                    raise too_long(f"{name}:{start}")
                records.append(cells)
                lines.append(start)
            start = first + reader.line_num
    except csv.Error as error:
        raise _not_csv(str(error), f"{name}:{start}") from None
    return records, lines


def find_header(
    records: Sequence[Sequence[str]], name: str, lines: Sequence[int]
) -> tuple[list[str], int]:
    """Return the names of the columns, and where the records begin; raises DataError. Lines with a
    single cell that is no usual name are titles where a wider header and a record follow."""
    start = _count_titles(records)
    while start < len(records) and not any(map(str.strip, records[start])):
        start += 1
    if start == len(records):
        return [], start
    names, where = [cell.strip() for cell in records[start]], f"{name}:{lines[start]}"
    if "" in names:
        raise DataError(
            Sentence("data.column_without_name", number=names.index("") + 1), where=where
        )
    require_columns(names, where)
    return names, start + 1


def _count_titles(records: Sequence[Sequence[str]]) -> int:
    for number, cells in enumerate(records[: _TITLES + 1]):
        filled = [cell for cell in cells if cell.strip()]
        if len(filled) > 1:
            return number if number + 1 < len(records) else 0
        if filled and is_usual_name(filled[0]):
            break
    return 0


def _fit(sample: str, separator: str) -> tuple[bool, bool, int]:
    """Return how well a separator fits: header and first record are of one width, no title stands
    above them, and their width. A record that the sample does not hold to its end counts as
    none."""
    whole = sample[: sample.rfind("\n") + 1] if len(sample) == _SAMPLE_CHARS else sample
    reader = csv.reader(io.StringIO(whole, newline=""), delimiter=separator, strict=True)
    records: list[list[str]] = []
    with suppress(csv.Error):
        records.extend(islice(filter(None, reader), _TITLES + 2))
    titles = _count_titles(records)
    widths = [len(record) for record in records[titles : titles + 2]]
    is_table = len(set(widths)) == 1 and widths[0] > 1
    return is_table, not titles, widths[0] if is_table else 1


def too_long(where: str) -> DataError:
    """Return the error for a row beyond the bound."""
    return DataError(
        Sentence("data.row_too_long", megabytes=limits.LINE_BYTES // 1024**2), where=where
    )


def _not_csv(problem: str, where: str) -> DataError:
    if "larger than" in problem:
        return too_long(where)
    if "unexpected end" in problem:
        return DataError(Sentence("data.unclosed_quote"), where=where)
    return DataError(Sentence("data.not_csv", problem=problem), where=where)
