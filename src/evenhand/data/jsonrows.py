"""Rows of JSON files: an object a line (JSONL), or an array of objects (JSON), read as a stream.

A row that comes out is a JSON object that can be written again as UTF-8 and nests no deeper than
`limits.JSON_DEPTH`. No more than one row, bounded by `limits.LINE_BYTES`, is held at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from io import BufferedReader
from typing import Any, cast

from evenhand import limits
from evenhand.data import encoding
from evenhand.errors import DataError, quoted
from evenhand.jsontext import TooDeep, TooMany, dump, parse

Numbered = tuple[dict[str, Any], int]
"""A row and the line that it starts on."""
Parse = Callable[[str, int], Any]
"""How strictly JSON is read: from a text, and how deep it may nest, to its value."""
Keys = tuple[str, ...]
"""The keys to a value inside one large object."""

_CUT = "the file looks cut off: copy or export it again"
_NOT_A_LINE = 'a .jsonl file holds one {"...": ...} on each line; an array goes into a .json file'
_NOT_AN_ARRAY = "a .json file holds an array of objects, or one object; one a line is .jsonl"
SURROGATE = re.compile("[\ud800-\udfff]")


def read_lines(file: BufferedReader, name: str, read: Parse = parse) -> Iterator[Numbered]:
    """The rows of a JSONL file. Blank lines are passed over, and counted."""
    number, most, blank = 0, limits.LINE_BYTES, 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            raise too_long(f"{name}:{number}")
        if number == 1:
            line = encoding.first_bytes(line, f"{name}:1")
        if not line.strip():
            blank += 1
            if blank > limits.BLANK_LINES:
                raise only_blank(f"{name}:{number}")
            continue
        blank = 0
        try:
            value = read(line.decode(), limits.JSON_DEPTH)
        except ValueError as error:
            raise _line_error(line, f"{name}:{number}", error) from None
        # As a rule there is nothing to look for.
        if type(value) is not dict or b"\\" in line:
            value = checked(value, line, f"{name}:{number}", _NOT_A_LINE)
        yield value, number


def checked(value: Any, raw: bytes, where: str, advice: str) -> dict[str, Any]:
    """`value`, parsed from `raw`, if it may be a row."""
    if type(value) is not dict:
        raise DataError(
            f"a row must be an object, this is {quoted(_text(raw))}", where=where, advice=advice
        )
    row = cast("dict[str, Any]", value)
    # It is rare and costs a walk through the row: first the bytes are asked whether it can be.
    if b"\\" in raw and b"\\u" in raw:
        refuse_surrogate(row, where)
    return row


def too_long(where: str) -> DataError:
    """The error for a row beyond the bound."""
    megabytes = limits.LINE_BYTES // 1024**2
    return DataError(
        f"a row longer than {megabytes} MB",
        where=where,
        advice="a line break, quote or bracket may be missing, or this is not a text file",
    )


def only_blank(where: str) -> DataError:
    """The error for a file of blank lines."""
    return DataError(
        f"more than {limits.BLANK_LINES:,} blank lines one after the other",
        where=where,
        advice="is this the right file?",
    )


def json_error(error: ValueError, where: str, column: int, advice: str) -> DataError:
    """The error for text that is not JSON; `column` counts from 1."""
    if isinstance(error, TooDeep | TooMany):
        return DataError(str(error), where=where, advice="flatten or split the row")
    if not isinstance(error, json.JSONDecodeError):
        return DataError(quoted(error)[1:-1], where=where, advice="mend the row")
    near = error.doc[error.pos : error.pos + 40].strip()
    at = f"at {quoted(near)}" if near else "at its end"
    return DataError(
        f"not JSON, column {column}: {error.msg.removesuffix(' at')} {at}",
        where=where,
        advice=advice,
    )


def _line_error(line: bytes, where: str, error: ValueError) -> DataError:
    if isinstance(error, UnicodeDecodeError):
        return encoding.not_utf8(line, where, error)
    column = error.colno if isinstance(error, json.JSONDecodeError) else 0
    is_cut = column > 0 and not line.endswith(b"\n")
    return json_error(error, where, column, _CUT if is_cut else _NOT_A_LINE)


def _text(raw: bytes) -> str:
    return raw[:1000].decode(errors="replace").strip()


def refuse_surrogate(row: dict[str, Any], where: str) -> None:
    """Raise DataError for a row that has no UTF-8."""
    surrogate = SURROGATE.search(dump(row))
    if surrogate:
        raise DataError(
            f"half of a surrogate pair, \\u{ord(surrogate[0]):04x}, which no UTF-8 text can hold",
            where=where,
            advice="write the character itself, or both halves; an emoji may have been cut in two",
        )


class _Window:
    """The part of a JSON file that is in memory, and the place in it where reading stands."""

    _TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
    _SPACE = re.compile(rb"[ \t\r\n]*")
    _SCALAR = re.compile(rb"[-+.\w]*")
    _CHUNK = 1 << 18

    def __init__(self, file: BufferedReader, name: str, read: Parse = parse) -> None:
        self._file, self._name, self._read = file, name, read
        self._data, self._at = b"", 0
        self._line, self._column = 1, 1
        self._data = encoding.first_bytes(file.read(self._CHUNK), self.where)

    @property
    def line(self) -> int:
        return self._line

    @property
    def where(self) -> str:
        return f"{self._name}:{self._line}"

    def mark(self) -> bytes:
        """The next byte that is not white space; nothing at the end of the file."""
        while True:
            self._go(cast("re.Match[bytes]", self._SPACE.match(self._data, self._at)).end())
            if self._at < len(self._data) or not self._more():
                return self._data[self._at : self._at + 1]

    def skip(self) -> None:
        """Go past the mark."""
        self._go(self._at + 1)

    def row(self) -> dict[str, Any]:
        """The object that starts here."""
        if self.mark() != b"{":
            raise self.unexpected('a row that starts with "{"')
        end = self._end_of_value()
        raw, where, line, column = self._data[self._at : end], self.where, self._line, self._column
        try:
            value = self._read(encoding.decoded(raw, where), limits.JSON_DEPTH)
        except json.JSONDecodeError as error:
            at = error.colno + (column - 1 if error.lineno == 1 else 0)
            where = f"{self._name}:{line + error.lineno - 1}"
            raise json_error(error, where, at, "mend the row") from None
        except ValueError as error:
            raise json_error(error, where, column, "mend the row") from None
        self._go(end)
        return checked(value, raw, where, _NOT_AN_ARRAY)

    def key(self) -> str:
        """The string that starts here."""
        if self.mark() != b'"':
            raise self.unexpected('a key in "..."')
        while not (token := self._TOKEN.match(self._data, self._at)) or len(token[0]) == 1:
            if len(self._data) - self._at > limits.LINE_BYTES:
                raise too_long(self.where)
            if not self._more():
                raise self.unexpected("a key that ends")
        try:
            text: str = json.loads(encoding.decoded(token[0], self.where))
        except ValueError:
            raise self.unexpected("a key") from None
        self._go(token.end())
        return text

    def pass_over(self) -> None:
        """Go past the value that starts here, whatever its size, without keeping it."""
        mark = self.mark()
        if mark == b'"':
            self.key()
            return
        if mark not in (b"{", b"["):
            self._pass_scalar()
            return
        at, depth = self._scan(self._at, 0)
        while depth:
            self._go(at)
            if len(self._data) - self._at > limits.LINE_BYTES:
                raise too_long(self.where)
            if not self._more():
                raise self.unexpected("the end of a value that starts before")
            at, depth = self._scan(self._at, depth)
        self._go(at)

    def _pass_scalar(self) -> None:
        while True:
            self._go(cast("re.Match[bytes]", self._SCALAR.match(self._data, self._at)).end())
            if self._at < len(self._data) or not self._more():
                return

    def unexpected(self, expected: str) -> DataError:
        """The error for what stands here in place of what was expected."""
        rest = self._data[self._at : self._at + 100]
        if not rest:
            return DataError(f"the end of the file, not {expected}", where=self.where, advice=_CUT)
        what = f"column {self._column}: {expected} must stand here, not {quoted(_text(rest))}"
        return DataError(what, where=self.where, advice=_NOT_AN_ARRAY)

    def _end_of_value(self) -> int:
        at, depth = self._scan(self._at, 0)
        while depth:
            if len(self._data) - self._at > limits.LINE_BYTES:
                raise too_long(self.where)
            offset = at - self._at
            if not self._more():
                what = "a row that starts here never ends: a quote or bracket is not closed"
                raise DataError(what, where=self.where, advice=_CUT)
            at, depth = self._scan(self._at + offset, depth)
        return at

    def _scan(self, at: int, depth: int) -> tuple[int, int]:
        """Where to go on, and the depth there: 0 after the bracket that closes the value."""
        data = self._data
        for token in self._TOKEN.finditer(data, at):
            start = token.start()
            mark = data[start]
            if mark == 0x22:
                if token.end() == start + 1:  # a string that goes on in the next chunk
                    return start, depth
            elif mark in b"{[":
                depth += 1
            else:
                depth -= 1
                if not depth:
                    return start + 1, 0
        return len(data), depth

    def _more(self) -> bool:
        """Read on; a long row doubles the window, so that scanning stays linear."""
        self._data = self._data[self._at :]
        self._at = 0
        chunk = self._file.read(max(self._CHUNK, len(self._data)))
        self._data += chunk
        return bool(chunk)

    def _go(self, to: int) -> None:
        breaks = self._data.count(b"\n", self._at, to)
        if breaks:
            self._line += breaks
            self._column = to - self._data.rfind(b"\n", self._at, to)
        else:
            self._column += to - self._at
        self._at = to


def read_array(file: BufferedReader, name: str, read: Parse = parse) -> Iterator[Numbered]:
    """The rows of a JSON file: the objects of its array, or its one object."""
    window = _Window(file, name, read)
    mark = window.mark()
    if mark == b"[":
        yield from _members(window)
    elif mark:
        yield _numbered(window)
    if window.mark():
        raise window.unexpected("the end of the file")


def _members(window: _Window) -> Iterator[Numbered]:
    window.skip()
    if window.mark() != b"]":
        yield _numbered(window)
    while window.mark() == b",":
        window.skip()
        yield _numbered(window)
    if window.mark() != b"]":
        raise window.unexpected('"," or "]"')
    window.skip()


def _numbered(window: _Window) -> Numbered:
    window.mark()
    line = window.line
    return window.row(), line


def read_members(
    file: BufferedReader, name: str, key_paths: Collection[Keys], read: Parse = parse
) -> Iterator[tuple[Keys, dict[str, Any], int]]:
    """The objects at these paths of one large object, each with its path: the object there, or
    those of the array there. All else is passed over, so that memory holds one of them."""
    window = _Window(file, name, read)
    if window.mark() != b"{":
        raise window.unexpected("an object")
    yield from _inside(window, (), key_paths)
    if window.mark():
        raise window.unexpected("the end of the file")


def _inside(
    window: _Window, above: Keys, key_paths: Collection[Keys]
) -> Iterator[tuple[Keys, dict[str, Any], int]]:
    window.skip()
    while window.mark() != b"}":
        path = (*above, window.key())
        if window.mark() != b":":
            raise window.unexpected('":"')
        window.skip()
        mark = window.mark()
        if mark == b"[" and path in key_paths:
            yield from ((path, *row) for row in _members(window))
        elif mark == b"{" and any(keys[: len(path)] == path != keys for keys in key_paths):
            yield from _inside(window, path, key_paths)
        elif mark == b"{" and path in key_paths:
            yield (path, *_numbered(window))
        else:
            window.pass_over()
        if window.mark() == b",":
            window.skip()
        elif window.mark() != b"}":
            raise window.unexpected('"," or "}"')
    window.skip()
