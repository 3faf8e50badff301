"""The rows of a data file, or of a table in memory, each with the place that it came from.

Whatever is wrong with a file is a `DataError` that says where and what to do, whatever is wrong
with its name a `UsageError`. Cells of a CSV file are strings, empty ones too; elsewhere values keep
their type and numbers their spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from evenhand import limits
from evenhand.data.cells import read_csv, too_long
from evenhand.data.columns import (
    Row,
    Rows,
    copy_fields,
    nest,
    parts_of,
    require_columns,
    require_sources,
)
from evenhand.data.files import decode, format_of, read_file, require_file
from evenhand.data.sql import json_value, read_parquet
from evenhand.data.workbook import read_workbook
from evenhand.errors import DataError, NoRows, UsageError
from evenhand.jsontext import (
    TooDeep,
    TooMany,
    Truncated,
    dump,
    parse,
    parse_lenient,
    parse_members,
)
from evenhand.words import Code, Sentence

_LINE = re.compile(r".+")
_BETWEEN = re.compile(r"[\s,\[]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
MEMORY = "rows"
"""What errors call a table that has no file."""


def read_rows(
    path: Path,
    *,
    lenient: bool = False,
    root: Path | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Rows:
    """Return the rows of a file; raises UsageError or DataError. `lenient` reads NaN and infinity
    as null: other tools write them for a missing number. With a root, the file must lie in it. The
    encoding is that of a text file, UTF-8 unless given; the sheet that of a workbook, the first one
    unless given."""
    file_format, name = format_of(path), str(path)
    require_file(path)
    if file_format == "eval":
        raise UsageError(Sentence("data.is_log", path=path))
    if file_format == "parquet":
        found = read_parquet(read_file(path, root), name, lenient=lenient)
    elif file_format == "xlsx":
        found = read_workbook(read_file(path, root), name, sheet)
    else:
        text = decode(read_file(path, root), encoding, name)
        if file_format == "jsonl":
            found = _read_objects(text, name, _parse_lines(text, lenient), "data.write_lines")
        elif file_format == "json":
            found = read_array(text, name, lenient=lenient)
        else:
            found = read_csv(text, name, "\t" if file_format == "tsv" else None)
    if not len(found):
        raise NoRows(Sentence("data.file_without_rows"), where=name)
    return found


def rows(path: Path, columns: Mapping[str, str] | None = None, **how: Any) -> list[Row]:
    """Return the rows of a file, read as `read_rows` does, with columns copied: `columns` maps a
    target name to the source that it is copied from, both dotted. A mapped value replaces a field
    that has the target's name; unmapped fields stay."""
    found = read_rows(path, **how)
    require_sources(columns or {}, found.values(), found.name)
    listed = list(found)
    for row in listed:
        copy_fields(row.value, columns or {}, row.where)
    return listed


def read_object(path: Path) -> dict[str, Any]:
    """Return the one object of a .json file, NaN and infinity as null; raises DataError."""
    found = list(read_rows(path, lenient=True).values())
    return found[0] if len(found) == 1 else {}


def _parse_lines(text: str, lenient: bool) -> Iterator[tuple[Any, int, int]]:
    """Yield the value of each line with the places where it begins and ends; of a line that is too
    long, none."""
    read = parse_lenient if lenient else parse
    for found in _LINE.finditer(text):
        if not found[0].isspace():
            is_long = len(found[0]) > limits.LINE_BYTES
            yield None if is_long else read(found[0], limits.JSON_DEPTH), *found.span()


def read_array(text: str, name: str, *, lenient: bool = True) -> Rows:
    """Return the objects of a JSON text, of an array or one; raises DataError."""
    if text.count(",") + text.count("[") + text.count("{") > limits.TABLE_ELEMENTS:
        raise _json_error(TooMany(limits.TABLE_ELEMENTS), f"{name}:1", "")
    members = parse_members(text, lenient=lenient) if text.strip() else iter(())
    return _read_objects(text, name, members, "data.write_array")


def _read_objects(
    text: str, name: str, members: Iterator[tuple[Any, int, int]], advice: str
) -> Rows:
    """`advice` is a key."""
    lines: list[int] = []
    objects: list[dict[str, Any]] = []
    line, at, end = 1, 0, 0
    try:
        for value, start, end in members:
            line, at = line + text.count("\n", at, start), start
            where = f"{name}:{line}"
            if end - start > limits.LINE_BYTES:
                raise too_long(where)
            lines.append(line)
            objects.append(_require_row(value, text[start:end], where, advice))
    except ValueError as error:
        # The error stands in the member after the last one that was read.
        line += text.count("\n", at, cast("re.Match[str]", _BETWEEN.match(text, end)).end())
        if isinstance(error, json.JSONDecodeError) and error.doc == text:
            line = error.lineno
        if isinstance(error, Truncated) and text.endswith(error.doc):
            advice = "data.copy_again"
        raise _json_error(error, f"{name}:{line}", advice) from None
    return Rows(name, objects, lines=lines)


def _require_row(value: Any, text: str, where: str, advice: str) -> dict[str, Any]:
    """Return a value if it may be a row; raises DataError."""
    if type(value) is not dict:
        what = Sentence("data.row_not_object", start=text[:1000].strip())
        raise DataError(what, where=where, advice=Sentence(advice))
    row = cast("dict[str, Any]", value)
    # It is rare and costs a walk through the row: first the text is asked whether it can be.
    if "\\u" in text:
        _refuse_surrogate(row, where)
    return row


def _json_error(error: ValueError, where: str, advice: str) -> DataError:
    if not isinstance(error, json.JSONDecodeError):
        key = "data.row_too_large" if isinstance(error, TooDeep | TooMany) else "data.bad_row"
        return DataError(Sentence(key, problem=error.args[0]), where=where)
    near, problem = error.doc[error.pos : error.pos + 40].strip(), error.msg.removesuffix(" at")
    key = "data.not_json" if near else "data.not_json_at_end"
    what = Sentence(key, column=error.colno, problem=problem, near=near)
    return DataError(what, where=where, advice=Sentence(advice))


def _refuse_surrogate(row: Mapping[str, Any], where: str) -> None:
    """Raise DataError for a row that has no UTF-8."""
    if surrogate := _SURROGATE.search(dump(row)):
        raise DataError(
            Sentence("data.surrogate", code=Code(f"{ord(surrogate[0]):04x}")), where=where
        )


def memory_rows(table: object, name: str = MEMORY) -> Rows:
    """Return the rows of a list of dicts or of a table of pandas, polars or Arrow, dotted columns
    nested; NaN is a missing value. None of these packages is imported: what a value can do says
    what it is. Raises UsageError for what is no table, DataError for a row that is none."""
    objects: list[dict[str, Any]] = []
    for number, row in enumerate(_records(table), 1):
        where = f"{name}:{number}"
        if not isinstance(row, Mapping):
            raise DataError(Sentence("data.row_not_dict", type=type(row).__name__), where=where)
        names = [str(name) for name in row]
        require_columns(names, where)
        paths = [parts_of(name) for name in names]
        cells = zip(row.values(), paths, strict=True)
        values = [json_value(_plain(value), where, len(path)) for value, path in cells]
        objects.append(nest(paths, values))
        _refuse_surrogate(objects[-1], where)
    if not objects:
        raise DataError(Sentence("data.no_rows"), where=name)
    return Rows(name, objects)


def _records(table: Any) -> Iterable[Any]:
    for method in ("to_pylist", "to_dicts"):  # Arrow, polars
        if hasattr(table, method):
            return cast("Iterable[Any]", getattr(table, method)())
    if hasattr(table, "to_dict") and hasattr(table, "columns"):  # pandas
        return cast("Iterable[Any]", table.to_dict("records"))
    if isinstance(table, Iterable) and not isinstance(table, str | bytes | Mapping):
        return table
    raise UsageError(Sentence("data.not_rows", type=type(table).__name__))


def _plain(value: Any) -> Any:
    """Return numbers of numpy as Python's, and what pandas writes for nothing as None."""
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return value.tolist()
    # pandas.NA and NaT equal nothing, not even themselves.
    return None if type(value).__name__ in ("NAType", "NaTType") else value
