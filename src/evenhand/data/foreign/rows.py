"""What every layout gives: a tidy row, of which shape it is, and where it stood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from evenhand.data.columns import remove
from evenhand.data.files import did_you_mean
from evenhand.data.foreign.second_table import SecondTable
from evenhand.data.foreign.shaping import Shaping
from evenhand.data.read import Row, rows
from evenhand.errors import DataError, UsageError, quoted
from evenhand.jsontext import parse_lenient

Shape = Literal["votes", "scores"]
NAMES_SHOWN = 20
ORDER_UNKNOWN = "order_unknown"
"""Of a verdict that does not say which candidate was shown first: it tells nothing of positions."""


class TidyRow(NamedTuple):
    """A tidy row. `flag` is what a layout says of the judgment beyond its columns."""

    shape: Shape
    value: Mapping[str, Any]
    where: str
    flag: str = ""


def table(path: Path, shaping: Shaping, said: str | None = None) -> Iterator[Row]:
    """The rows of a data file in our words; NaN is read as a missing number. `said` is the column
    that holds what was said, in a table of the user's own."""
    columns = shaping.columns
    unmet, moved = set(shaping.values), set(columns.values()) - columns.keys()
    second = None if shaping.second_table is None else SecondTable(shaping.second_table)
    has_read = False
    try:
        for number, row in enumerate(rows(path, columns, parse_lenient), 1):
            if not shaping.reads(row.value):
                continue
            has_read = True
            if second is not None:
                row.value.update(second.columns_for(row.value, row.where))
            for source in moved:
                remove(row.value, source)
            if shaping.is_plain:
                yield row
                continue
            for value in shaping.shaped(row.value, said, row.where, number):
                unmet -= value.keys()
                yield Row(value, row.where)
    except DataError as error:
        error.what = error.what.replace("that [columns] names", "that --map names")
        raise
    _require_met(path, shaping, second, has_read=has_read)
    if unmet and has_read:
        raise DataError(
            f"no row has a column {quoted(min(unmet))}, which --value names", where=str(path)
        )


def _require_met(
    path: Path, shaping: Shaping, second: SecondTable | None, *, has_read: bool
) -> None:
    """Refuse rows of which none is to be read, and a second table that says nothing of any."""
    if not has_read:
        wanted = " and ".join(f"{name}={'|'.join(of)}" for name, of in shaping.only.items())
        raise DataError(f"no row has {wanted}, which --where names", where=str(path))
    if second is not None and not second.matched:
        raise DataError(
            f"no row has a counterpart in {quoted(str(shaping.second_table))}",
            where=str(path),
            advice="They are joined by the columns that both have, which must hold the same.",
        )


def no_table(shaping: Shaping, kind: str) -> None:
    """Refuse to rename or read otherwise in a layout that is no table."""
    if shaping.columns or not shaping.is_plain:
        raise UsageError(
            f"a file of the kind {kind} has no columns to rename",
            advice="Leave out --map, --value, --set, --missing, --wide, --where, --failed and"
            " --join.",
        )


def require(row: Row, names: Iterable[str], kind: str) -> None:
    """Refuse a row without one of these columns."""
    for name in names:
        if name not in row.value:
            raise missing(name, row.value, row.where, kind)


def missing(name: str, there: Iterable[str], where: str, kind: str) -> DataError:
    """The error for a column that is not there, with the flag that would name it."""
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


def object_of(value: object) -> Mapping[str, Any]:
    """An object as it is, anything else as an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """A list as it is, anything else as an empty one."""
    return value if isinstance(value, list) else []


def non_null(**columns: Any) -> dict[str, Any]:
    """The columns that have a value."""
    return {name: value for name, value in columns.items() if value is not None}


def short_hash(text: str) -> str:
    """A name for a text that is too long to be one."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def begin(text: str, most: int = 80) -> str:
    """The start of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
