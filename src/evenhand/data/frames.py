"""Rows in memory: lists of dicts, and the tables of pandas, polars and Arrow. None of these is
imported: what a value can do says what it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from evenhand.data.columns import parts_of, require_columns
from evenhand.data.jsonrows import SURROGATE, refuse_surrogate
from evenhand.data.parquet import flat_row, json_value
from evenhand.errors import DataError, UsageError

NAME = "rows"
"""What errors call a table that has no file."""


def memory_rows(table: object) -> list[dict[str, Any]]:
    """The rows of a table in memory, as JSON values, dotted columns nested; NaN is a missing value.
    Raises UsageError for what is no table, DataError for a row that is none."""
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(_records(table), 1):
        where = f"{NAME}:{number}"
        if not isinstance(row, Mapping):
            raise DataError(f"a row must be a dict, and is {type(row).__name__}", where=where)
        names = [str(name) for name in row]
        require_columns(names, where)
        values = [json_value(_plain(value), where, lenient=True) for value in row.values()]
        rows.append(flat_row([parts_of(name) for name in names], values, where))
        if not all(map(_has_utf8, (*names, *row.values()))):
            refuse_surrogate(rows[-1], where)
    if not rows:
        raise DataError("there are no rows", where=NAME)
    return rows


def _has_utf8(value: object) -> bool:
    """Whether a cell is surely free of halves of characters: what holds others is looked into."""
    if isinstance(value, str):
        return value.isascii() or SURROGATE.search(value) is None
    return not isinstance(value, Mapping | list | tuple)


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
    """Numbers of numpy as Python's, and what pandas writes for nothing as None."""
    if value is None or isinstance(value, str | bool | int | float | dict | list | tuple):
        return value
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return value.tolist()
    # pandas.NA and NaT equal nothing, not even themselves.
    return None if type(value).__name__ in ("NAType", "NaTType") else value
