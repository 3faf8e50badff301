"""Files of judgments, and the tidy rows that every layout makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from evenhand.data.columns import Row, Rows, copy_fields, remove_field, require_sources
from evenhand.data.files import did_you_mean
from evenhand.data.read import read_rows
from evenhand.data.recognise import judgment_columns
from evenhand.errors import DataError, UsageError, quoted
from evenhand.jsontext import as_text

Shape = Literal["", "votes", "scores", "grades"]
NAMES_SHOWN = 20
ORDER_UNKNOWN = "order_unknown"
"""Of a verdict that does not say which candidate was shown first: it tells nothing of positions."""


class TidyRow(NamedTuple):
    """A tidy row. `flag` is what a layout says of the judgment beyond its columns."""

    shape: Shape
    value: Mapping[str, Any]
    where: str
    flag: str = ""


class NoScore(NamedTuple):
    """A missing score, where a layout knows the reason."""

    reason: Literal["schema", "out_of_range"]
    detail: str


@dataclass(kw_only=True)
class JudgmentFile:
    """A file of judgments, or rows that no file holds."""

    path: Path | None = None
    memory: Rows | None = None
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    """New names of columns to old ones."""
    recognised: dict[str, str] = field(default_factory=dict[str, str])
    """The columns that were found by their usual names, once rows were read: field to column."""

    @property
    def name(self) -> str:
        return str(self.path) if self.memory is None else self.memory.name

    def table(self, usual: Sequence[str] = ()) -> Iterator[Row]:
        """Yield the rows with columns renamed: as the user says, and those of the fields in `usual`
        that go by another usual name. NaN is a missing number. Raises DataError."""
        found = self.memory
        if found is None:
            assert self.path is not None
            found = read_rows(self.path, lenient=True)
        names = list(next(found.values()))
        there = {*names, *self.columns} - set(self.columns.values())
        self.recognised = judgment_columns(there, [name for name in usual if name not in there])
        columns = {**self.recognised, **self.columns}
        moved = set(columns.values()) - columns.keys()
        require_sources(columns, found.values(), found.name, "--map")
        for row in found:
            if columns:
                copy_fields(row.value, columns, row.where)
                for name in moved:
                    remove_field(row.value, name)
            yield row

    def require_path(self, kind: str) -> Path:
        """Return the path of a log; raises UsageError for rows that are no file, or columns that it
        does not have."""
        if self.path is None or self.columns:
            raise UsageError(
                f"a file of the kind {kind} has no columns to rename and is no table of rows",
                advice="Name the file, and leave out --map and --sql.",
            )
        return self.path


def require(row: Row, names: Iterable[str], kind: str) -> None:
    """Raise DataError for a row without one of these columns."""
    for name in names:
        if name not in row.value:
            raise missing(name, row.value, row.where, kind)


def missing(name: str, there: Iterable[str], where: str, kind: str) -> DataError:
    """Return the error for a column that is not there, with the flag that would name it."""
    columns = [str(column) for column in there]
    near = did_you_mean(name, columns)
    # The nearest in spelling is often not the one meant, so all of them are shown.
    listed = ", ".join(quoted(column) for column in columns[:NAMES_SHOWN])
    rest = f" and {len(columns) - NAMES_SHOWN} more" if len(columns) > NAMES_SHOWN else ""
    advice = f"the columns are: {listed}{rest}; rename one: --map {name}=COLUMN"
    return DataError(
        f"there is no column {quoted(name)}, which --kind {kind} needs",
        where=where,
        advice=f"{near} {advice}".strip(),
    )


def on_scale(score: Any, low: float, high: float, name: str) -> Any:
    """Return a score as it is, or a NoScore where it is a number off its scale."""
    try:
        number = float(score)
    except (TypeError, ValueError, OverflowError):
        return score
    if not (number < low or number > high):  # NaN is neither
        return score
    return NoScore("out_of_range", f"{name} {number:g} is off the scale from {low:g} to {high:g}")


def text_of(value: object) -> str:
    """Return a cell as text without white space around it; empty for null."""
    if isinstance(value, str):
        return value.strip()
    return "" if value is None else as_text(value)


def object_of(value: object) -> Mapping[str, Any]:
    """Return an object as it is, anything else as an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """Return a list as it is, anything else as an empty one."""
    return value if isinstance(value, list) else []


def non_null(**columns: Any) -> dict[str, Any]:
    """Return the columns that have a value."""
    return {name: value for name, value in columns.items() if value is not None}


def short_hash(text: str) -> str:
    """Return a name for a text that is too long to be one."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def begin(text: str, most: int = 80) -> str:
    """Return the start of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
