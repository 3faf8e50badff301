"""The rows of a data file, read once into memory, each with the place that it came from.

Whatever is wrong with a file is a `DataError` that says where and what to do, whatever is wrong
with its name a `UsageError`. Cells of a CSV file are strings, empty ones too; elsewhere values keep
their type and numbers their spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from msgspec import Struct

from evenhand import limits
from evenhand.data.cells import Grid, read_csv, too_long
from evenhand.data.columns import Copies, nested, parts_of, require_columns, too_deep
from evenhand.data.encoding import decode
from evenhand.data.files import read_file, read_format_of, require_file
from evenhand.data.sql import json_value, read_parquet, require_duckdb
from evenhand.data.workbook import read_workbook, require_calamine, sheet_names
from evenhand.errors import DataError, NoRows, UsageError, quoted
from evenhand.jsontext import (
    TooDeep,
    TooMany,
    Truncated,
    dump,
    is_deeper,
    parse,
    parse_lenient,
    parse_members,
)

_NO_COLUMNS: Mapping[str, str] = MappingProxyType({})
_CUT = "the file looks cut off: copy or export it again"
_NOT_A_LINE = 'a .jsonl file holds one {"...": ...} on each line; an array goes into a .json file'
_NOT_AN_ARRAY = "a .json file holds an array of objects, or one object; one a line is .jsonl"
_BETWEEN = re.compile(r"[\s,\[]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
MEMORY = "rows"
"""What errors call a table that has no file."""


class Row(NamedTuple):
    """One row, and where it starts: `samples.jsonl:12` (of Parquet the row's number)."""

    value: dict[str, Any]
    where: str


class FileForm(Struct, frozen=True, kw_only=True):
    """The properties of a file that its name does not tell."""

    encoding: str | None = None
    """Of a text file; UTF-8 unless given."""
    sheet: str | None = None
    """Of a workbook; the first one unless given."""


_USUAL = FileForm()


class Rows:
    """The rows of one table: a new object for each row whenever they are read."""

    def __init__(self, name: str, lines: Sequence[int]) -> None:
        self.name, self.lines = name, lines

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Row]:
        for value, line in zip(self.values(), self.lines, strict=True):
            yield Row(value, f"{self.name}:{line}")

    def values(self) -> Iterator[dict[str, Any]]:
        """Yield the rows without their places."""
        raise NotImplementedError


class _GridRows(Rows):
    def __init__(self, name: str, grid: Grid) -> None:
        super().__init__(name, grid.lines)
        self._header, self._records = grid.header, grid.records
        self._paths = [parts_of(column) for column in grid.header]

    def values(self) -> Iterator[dict[str, Any]]:
        if all(len(path) == 1 for path in self._paths):
            return (dict(zip(self._header, cells, strict=True)) for cells in self._records)
        return (nested(self._paths, cells) for cells in self._records)


class _ObjectRows(Rows):
    def __init__(self, name: str, lines: Sequence[int], objects: Sequence[dict[str, Any]]) -> None:
        super().__init__(name, lines)
        self._objects = objects

    def values(self) -> Iterator[dict[str, Any]]:
        for row in self._objects:
            yield {k: dict(v) if isinstance(v, dict) else v for k, v in row.items()}


def read_rows(
    path: Path, *, lenient: bool = False, root: Path | None = None, form: FileForm = _USUAL
) -> Rows:
    """Return the rows of a file; raises UsageError or DataError. `lenient` reads NaN and infinity
    as null: other tools write them for a missing number. With a root, the file must lie in it."""
    file_format, name = read_format_of(path), str(path)
    require_file(path)
    if file_format == "parquet":
        require_duckdb("Parquet files")
    elif file_format == "xlsx":
        require_calamine()
    raw = read_file(path, root)
    if file_format == "parquet":
        found: Rows = _GridRows(name, read_parquet(raw, name, lenient=lenient))
    elif file_format == "xlsx":
        found = _GridRows(name, read_workbook(raw, name, form.sheet))
    else:
        text = decode(raw, form.encoding, name)
        del raw
        if file_format == "jsonl":
            found = _ObjectRows(name, *_read_lines(text, name, lenient))
        elif file_format == "json":
            found = _ObjectRows(name, *_read_array(text, name, lenient))
        else:
            found = _GridRows(name, read_csv(text, name, "\t" if file_format == "tsv" else None))
    if not len(found):
        raise NoRows("the file holds no rows", where=name, advice="is this the right file?")
    return found


def rows(
    path: Path,
    columns: Mapping[str, str] = _NO_COLUMNS,
    *,
    lenient: bool = False,
    root: Path | None = None,
    form: FileForm = _USUAL,
) -> list[Row]:
    """Return the rows of a file, with columns copied: `columns` maps a target name to the source
    that it is copied from, both dotted. A mapped value replaces a field that has the target's name;
    unmapped fields stay."""
    return copy_columns(read_rows(path, lenient=lenient, root=root, form=form), columns)


def copy_columns(
    found: Rows,
    columns: Mapping[str, str],
    complete: Callable[[dict[str, Any]], None] | None = None,
) -> list[Row]:
    """Return rows, completed where that is asked for, with columns copied; raises DataError for a
    source that no row has."""
    listed, copies = list(found), Copies(columns)
    if complete is not None:
        for row in listed:
            complete(row.value)
    copies.require_sources((row.value for row in listed), found.name)
    if columns:
        for row in listed:
            copies.apply(row.value, row.where)
    return listed


def grid_rows(name: str, grid: Grid) -> Rows:
    """Return the rows of a table of cells, dotted columns nested."""
    return _GridRows(name, grid)


def read_object(path: Path) -> dict[str, Any]:
    """Return the one object of a .json file, NaN and infinity as null; raises DataError."""
    found = list(read_rows(path, lenient=True).values())
    return found[0] if len(found) == 1 else {}


def other_sheets(path: Path) -> list[str]:
    """Return the sheets of a workbook beside the first one; none where the file is no workbook."""
    if read_format_of(path) != "xlsx":
        return []
    return sheet_names(read_file(path), str(path))[1:]


def objects_in(text: str, name: str) -> list[tuple[dict[str, Any], str]]:
    """Return the objects of a JSON text, of an array or one, each with its place."""
    lines, objects = _read_array(text, name, lenient=True)
    return [(value, f"{name}:{line}") for line, value in zip(lines, objects, strict=True)]


def _read_lines(text: str, name: str, lenient: bool) -> tuple[list[int], list[dict[str, Any]]]:
    lines: list[int] = []
    objects: list[dict[str, Any]] = []
    read = parse_lenient if lenient else parse
    for number, line in enumerate(_split_lines(text), 1):
        where = f"{name}:{number}"
        if not line or line.isspace():
            continue
        if len(line) > limits.LINE_BYTES:
            raise too_long(where)
        try:
            value = read(line, limits.JSON_DEPTH)
        except ValueError as error:
            is_cut = isinstance(error, Truncated) and text.endswith(line)
            raise _json_error(error, name, number, _CUT if is_cut else _NOT_A_LINE) from None
        lines.append(number)
        objects.append(_object(value, line, where, _NOT_A_LINE))
    return lines, objects


def _split_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text without their ends, and never all of them at once."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _read_array(text: str, name: str, lenient: bool) -> tuple[list[int], list[dict[str, Any]]]:
    lines: list[int] = []
    objects: list[dict[str, Any]] = []
    line = at = end = 0
    if not text.strip():
        return lines, objects
    if text.count(",") + text.count("[") + text.count("{") > limits.TABLE_ELEMENTS:
        raise _json_error(TooMany(limits.TABLE_ELEMENTS), name, 1, "")
    try:
        for value, start, end in parse_members(text, lenient=lenient):
            line, at = line + text.count("\n", at, start), start
            where = f"{name}:{line + 1}"
            if end - start > limits.LINE_BYTES:
                raise too_long(where)
            lines.append(line + 1)
            objects.append(_object(value, text[start:end], where, _NOT_AN_ARRAY))
    except ValueError as error:
        is_cut = isinstance(error, Truncated)
        # The error stands in the member after the last one that was read.
        line += text.count("\n", at, cast("re.Match[str]", _BETWEEN.match(text, end)).end())
        raise _json_error(error, name, line + 1, _CUT if is_cut else _NOT_AN_ARRAY) from None
    return lines, objects


def _object(value: Any, text: str, where: str, advice: str) -> dict[str, Any]:
    """Return a value if it may be a row; raises DataError."""
    if type(value) is not dict:
        shown = quoted(text[:1000].strip())
        raise DataError(f"a row must be an object, this is {shown}", where=where, advice=advice)
    row = cast("dict[str, Any]", value)
    # It is rare and costs a walk through the row: first the text is asked whether it can be.
    if "\\u" in text:
        refuse_surrogate(row, where)
    return row


def _json_error(error: ValueError, name: str, line: int, advice: str) -> DataError:
    if isinstance(error, TooDeep | TooMany):
        advice = "flatten or split the row"
        return DataError(str(error), where=f"{name}:{line}", advice=advice)
    if not isinstance(error, json.JSONDecodeError):
        return DataError(quoted(error)[1:-1], where=f"{name}:{line}", advice="mend the row")
    near = error.doc[error.pos : error.pos + 40].strip()
    at = f"at {quoted(near)}" if near else "at its end"
    # Of a line of its own the text is the line, of an array it is the file.
    line = line if "\n" not in error.doc.strip() else error.lineno
    return DataError(
        f"not JSON, column {error.colno}: {error.msg.removesuffix(' at')} {at}",
        where=f"{name}:{line}",
        advice=advice,
    )


def refuse_surrogate(row: Mapping[str, Any], where: str) -> None:
    """Raise DataError for a row that has no UTF-8."""
    if surrogate := _SURROGATE.search(dump(row)):
        raise DataError(
            f"half of a surrogate pair, \\u{ord(surrogate[0]):04x}, which no UTF-8 text can hold",
            where=where,
            advice="write the character itself, or both halves; an emoji may have been cut in two",
        )


# Rows in memory


def memory_rows(table: object, name: str = MEMORY) -> Rows:
    """Return the rows of a list of dicts or of a table of pandas, polars or Arrow, dotted columns
    nested; NaN is a missing value. None of these packages is imported: what a value can do says
    what it is. Raises UsageError for what is no table, DataError for a row that is none."""
    objects: list[dict[str, Any]] = []
    for number, row in enumerate(_records(table), 1):
        where = f"{name}:{number}"
        if not isinstance(row, Mapping):
            raise DataError(f"a row must be a dict, and is {type(row).__name__}", where=where)
        names = [str(name) for name in row]
        require_columns(names, where)
        paths = [parts_of(name) for name in names]
        values = [json_value(_plain(value), where, lenient=True) for value in row.values()]
        for path, value in zip(paths, values, strict=True):
            if isinstance(value, dict | list) and is_deeper(value, limits.JSON_DEPTH - len(path)):
                raise too_deep(where)
        objects.append(nested(paths, values))
        refuse_surrogate(objects[-1], where)
    if not objects:
        raise DataError("there are no rows", where=name)
    return _ObjectRows(name, range(1, len(objects) + 1), objects)


def _records(table: object) -> Iterable[Any]:
    frame = cast("Any", table)
    if hasattr(frame, "to_pylist"):  # Arrow
        return cast("Iterable[Any]", frame.to_pylist())
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):  # polars, lazy or not
        frame = frame.collect() if not hasattr(frame, "to_dicts") else frame
    if hasattr(frame, "to_dicts"):  # polars
        return cast("Iterable[Any]", frame.to_dicts())
    if hasattr(frame, "to_dict") and hasattr(frame, "columns"):  # pandas
        return cast("Iterable[Any]", frame.to_dict("records"))
    if isinstance(table, Iterable) and not isinstance(table, str | bytes | Mapping):
        return table
    raise UsageError(
        f"{type(table).__name__} is no table of rows",
        advice="Give a list of dicts, a DataFrame of pandas or polars, or an Arrow table.",
    )


def _plain(value: Any) -> Any:
    """Return numbers of numpy as Python's, and what pandas writes for nothing as None."""
    if value is None or isinstance(value, str | bool | int | float | dict | list | tuple):
        return value
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return value.tolist()
    # pandas.NA and NaT equal nothing, not even themselves.
    return None if type(value).__name__ in ("NAType", "NaTType") else value
