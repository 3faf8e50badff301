"""CSV: a header, then a row of strings per record; double quotes, UTF-8, and commas, semicolons or
tabs between the cells, whichever the header and the first record agree on.

A spreadsheet runs a cell that starts with `=`, `+`, `-` or `@` as a formula: of full width too in
East Asian editions, and some after blanks or characters that nobody sees. A text cell (or header)
that does, or that starts with TAB, CR or LF, is written with `'` before it, and so is one with such
a start after one or more `'`; reading takes one `'` off again, so that every text comes back as it
was. Numbers are no formulas and are written bare.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from io import BufferedReader
from typing import IO, Any, Protocol

from evenhand import limits
from evenhand.data import encoding
from evenhand.data.columns import ColumnChunk, nested, parts_of, require_columns
from evenhand.data.jsonrows import Numbered, only_blank, too_long
from evenhand.errors import DataError
from evenhand.jsontext import dump

_START = r"(?:[\t\r\n]|[\s\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠﹦﹢﹣﹫])"


class Records(Protocol):
    """What `csv.reader` gives: records, and how many lines it read."""

    line_num: int

    def __next__(self) -> list[str]: ...


_FORMULA = re.compile(rf"'*{_START}")
_GUARDED = re.compile(rf"'+{_START}")


def guarded(text: str) -> str:
    """`text` as a cell that no spreadsheet runs."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(cell: str) -> str:
    """The text that was guarded."""
    return cell[1:] if cell.startswith("'") and _GUARDED.match(cell) else cell


class _Lines:
    """The lines of a CSV file as text, from a number on; a record of several lines is bounded as a
    whole. Blocks without a quote, in which every line is a record, are passed on as they are."""

    _BLOCK_BYTES = 1 << 18

    def __init__(self, file: BufferedReader, name: str, passed: int = 0) -> None:
        self._file, self.name = file, name
        self._number, self._bytes, self.passed = passed, 0, passed
        self.start = passed + 1
        self._block, self._left = b"", 0
        """What was looked at and is still to be read, and the lines of a block that are."""
        self.is_guarded = True
        """Whether cells of the record being read may be guarded."""

    @property
    def where(self) -> str:
        """The line on which the record being read starts."""
        return f"{self.name}:{self.start}"

    def begin(self, line: int) -> None:
        """A new record starts with this line."""
        self.start, self._bytes = line, 0

    def __iter__(self) -> Iterator[str]:
        if not (head := self._line()):
            return
        yield self._text(encoding.first_bytes(head, f"{self.name}:{self._number + 1}"))
        while block := self._next_block():
            text = None if self._bytes else self._records(block)
            self.is_guarded = text is None or "'" in text
            self._left = block.count(b"\n") + (not block.endswith(b"\n"))
            if text is None:
                yield from map(self._text, io.BytesIO(block))
            else:
                for line in io.StringIO(text, newline="\n"):
                    self._left -= 1
                    self._number += 1
                    yield line

    def _next_block(self) -> bytes:
        """Some whole lines; none at the end of the file."""
        block, self._block = self._block, b""
        if not block:
            block = self._file.read(min(self._BLOCK_BYTES, limits.LINE_BYTES))
            if block and not block.endswith(b"\n"):
                block += self._line()
        return block

    def _line(self) -> bytes:
        return self._file.readline(limits.LINE_BYTES + 1)

    def _records(self, block: bytes) -> str | None:
        """A block of which every line is a record; None where one may be longer, or is too long or
        no UTF-8."""
        if b'"' in block:
            return None
        if len(block) > limits.LINE_BYTES and max(map(len, io.BytesIO(block))) > limits.LINE_BYTES:
            return None
        try:
            return block.decode()
        except UnicodeDecodeError:
            return None

    def _text(self, line: bytes) -> str:
        self._number += 1
        self._left -= 1
        self._bytes += len(line)
        if self._bytes > limits.LINE_BYTES:
            raise too_long(self.where)
        return encoding.decoded(line, f"{self.name}:{self._number}")

    @property
    def is_at_block(self) -> bool:
        """Whether the record that comes next begins a block."""
        return not self._left

    def plain_lines(self) -> list[str]:
        """The lines of the next block, each a record whose cells stand between separators and
        nothing else; none where it is not such a block, which is then still to be read."""
        if self._left or not (block := self._next_block()):
            return []
        text = (self._records(block) or "").replace("\r\n", "\n")
        if not text or "\r" in text or "\0" in text or "\n\n" in text or text[0] == "\n":
            self._block = block
            return []
        lines = text.removesuffix("\n").split("\n")
        self.is_guarded = "'" in text
        self._number += len(lines)
        self.passed += len(lines)
        return lines


SEPARATORS = (",", ";", "\t")
"""Of equals the first is taken."""
_NAMED_SEPARATOR = re.compile(rb"(?:\xef\xbb\xbf)?sep=(.)\r?\n", re.IGNORECASE)
"""A first line that spreadsheets write and read."""


def separator_of(head: bytes) -> str:
    """What stands between the cells of a file that begins so: the separator that gives most columns
    and as many cells in the first record."""
    text = head.removeprefix(codecs.BOM_UTF8).decode(errors="replace")
    return max(SEPARATORS, key=lambda separator: _width(text, separator))


def _width(text: str, separator: str) -> int:
    """How many columns a text has; 1 where its first record has another number than its header. A
    record that the text does not hold to its end counts as none."""
    lines = text.splitlines(keepends=True)
    whole = lines if text.endswith(("\n", "\r")) or len(lines) == 1 else lines[:-1]
    records = (cells for cells in csv.reader(whole, delimiter=separator, strict=True) if cells)
    header: list[str] = []
    try:
        header = next(records, [])
        first = next(records, header)
    except csv.Error:
        return len(header)
    return len(header) if len(first) == len(header) else 1


def _named_separator(file: BufferedReader) -> str | None:
    """The separator that the first line names, which is then passed over."""
    match = _NAMED_SEPARATOR.match(file.peek(16)[:16])
    if match is None:
        return None
    file.readline()
    return match[1].decode("latin-1")


def separator_in(file: BufferedReader) -> str:
    """What stands between the cells of a CSV file, from its start."""
    return _named_separator(file) or separator_of(file.peek(1 << 16))


Chunk = tuple[list[list[str]], Sequence[int]]
"""Records, and the line on which each starts."""


class CellTable:
    """The records of a CSV file as lists of cells, as many as its header has."""

    def __init__(self, file: BufferedReader, name: str, separator: str | None = None) -> None:
        # The module's own bound on a cell is 128 KB and can only be set for the process.
        csv.field_size_limit(max(csv.field_size_limit(), limits.LINE_BYTES))
        first_line = _named_separator(file)
        delimiter = first_line or separator or separator_of(file.peek(1 << 16))
        self._lines, self._separator = _Lines(file, name, 1 if first_line else 0), delimiter
        self._records: Records = csv.reader(iter(self._lines), strict=True, delimiter=delimiter)
        self.header = _header(self._next(), self.where)

    @property
    def line(self) -> int:
        """Where the record that was read last starts."""
        return self._lines.start

    @property
    def where(self) -> str:
        return self._lines.where

    def __iter__(self) -> Iterator[list[str]]:
        """The records that are not blank."""
        width, lines = len(self.header), self._lines
        while cells := self._next():
            if len(cells) != width:
                raise _ragged(self.header, cells, self.where)
            yield list(map(unguarded, cells)) if lines.is_guarded else cells

    def chunks(self) -> Iterator[Chunk]:
        """The same, some at a time, with the lines on which they start. Where one cannot be read,
        those before it come first."""
        lines, size, has_more = self._lines, limits.CHUNK_ROWS, True
        while has_more:
            start = lines.passed + self._records.line_num + 1
            if block := lines.plain_lines():
                for at in range(0, len(block), size):
                    yield from self._split(block[at : at + size], start + at)
            else:
                has_more = yield from self._several()

    def columns(self) -> Iterator[ColumnChunk]:
        """The same column by column."""
        for records, lines in self.chunks():
            yield list(zip(*records, strict=True)), lines[: len(records)]

    def _split(self, block: list[str], start: int) -> Iterator[Chunk]:
        """The records that lines are, from a line on."""
        width, records = len(self.header), [line.split(self._separator) for line in block]
        if self._lines.is_guarded:
            records = [list(map(unguarded, record)) for record in records]
        odd = next((at for at, record in enumerate(records) if len(record) != width), None)
        if odd != 0:
            yield records[:odd], range(start, start + len(records))
        if odd is not None:
            raise _ragged(self.header, records[odd], f"{self._lines.name}:{start + odd}")

    def _several(self) -> Generator[Chunk, None, bool]:
        """Some records to the end of a block at most; whether there are more."""
        records, starts, lines = list[list[str]](), list[int](), self._lines
        problem, chars = None, 0
        try:
            for record in self:
                records.append(record)
                starts.append(lines.start)
                chars += sum(map(len, record))
                is_full = len(records) >= limits.CHUNK_ROWS or chars > limits.CHUNK_CHARS
                if is_full or lines.is_at_block:
                    break
        except DataError as error:
            problem = error
        if records:
            yield records, starts
        if problem is not None:
            raise problem
        return bool(records)

    def _next(self) -> list[str]:
        """The next record that is not blank; none at the end of the file."""
        blank, lines, records = 0, self._lines, self._records
        passed = lines.passed
        try:
            lines.begin(passed + records.line_num + 1)
            while not (cells := next(records)):
                lines.begin(passed + records.line_num + 1)
                blank += 1
                if blank > limits.BLANK_LINES:
                    raise only_blank(lines.where)
            return cells
        except StopIteration:
            return []
        except csv.Error as error:
            raise _not_csv(str(error), lines.where) from None


def read_table(file: BufferedReader, name: str, separator: str | None = None) -> Iterator[Numbered]:
    """The rows of a CSV file; dotted columns are nested. Blank lines are passed over."""
    table = CellTable(file, name, separator)
    header = table.header
    paths = [parts_of(name) for name in header]
    is_flat = max(map(len, paths), default=1) == 1
    for cells in table:
        row = dict(zip(header, cells, strict=True)) if is_flat else nested(paths, cells)
        yield row, table.line


def _header(cells: list[str], where: str) -> list[str]:
    names = [unguarded(cell) for cell in cells]
    blank = next((i for i, name in enumerate(names, 1) if not name.strip()), 0)
    if blank:
        raise DataError(
            f"the header has no name for column {blank}",
            where=where,
            advice="the first line must name every column (pandas: to_csv(..., index=False))",
        )
    require_columns(names, where)
    return names


def _ragged(header: list[str], cells: list[str], where: str) -> DataError:
    return DataError(
        f"a row of {len(cells)}, where the header has {len(header)} columns",
        where=where,
        advice='a cell that holds a comma, quote or line break must stand in "..."',
    )


def _not_csv(problem: str, where: str) -> DataError:
    if "unexpected end" in problem:
        what, advice = "a quote that opens here is never closed", "close it; the file may be cut"
    elif "new-line" in problem:
        what = "a carriage return without a line feed, outside quotes"
        advice = "save the file with LF or CRLF line ends"
    else:
        what, advice = f"not CSV: {problem}", 'a quote inside a quoted cell is written twice, ""'
    return DataError(what, where=where, advice=advice)


def write_table(file: IO[bytes], columns: list[str], rows: Iterable[dict[str, Any]]) -> None:
    """Write a header and the rows, an empty cell where a row has no such column."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
    # With CRLF as its line end the writer quotes both CR and LF inside cells, on every Python.
    writer = csv.writer(text, lineterminator="\r\n")
    if columns:
        writer.writerow(map(guarded, columns))
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
    text.flush()
    text.detach()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return guarded(value) if isinstance(value, str) else dump(value)
