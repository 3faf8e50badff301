"""Which columns tell units apart.

A column such as `model` that differs within a unit is always one of them: else the scores of one
model would go under the name of another. Where rows of one unit, judge, dimension and repeat still
stand more than once, some other column may say what they are about; else they are repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from evenhand.data.files import did_you_mean
from evenhand.data.foreign.chunks import Chunk
from evenhand.data.foreign.tidy import judge_of, unit_of
from evenhand.errors import DataError, quoted
from evenhand.jsontext import as_text
from evenhand.units import joined_id

KNOWN = (
    *("model", "prompt_variant", "variant", "system", "run_id", "eval_set_variant", "candidate"),
    *("prompt", "turn"),
)
"""Columns that say what was judged, by their names."""
REPEATS = frozenset(
    {"take", "seed", "sample", "trial", "attempt", "epoch", "iteration", "rep", "run", "round"}
)
"""Columns that tell one repeat from the next."""
FEW, SHORT = 200, 64
"""Of a column that may be a variant's: how many values it has at most, and how long."""
_QUOTES = frozenset('"\\')
"""What cannot stand in a path into JSON."""
CROSSED = 0.5
"""A variant comes with most units; what is said about a single answer does not."""


_OPEN: set[str] = set()


class Columns:
    """The columns seen beside those that a shape names, and the values of those that have few."""

    def __init__(self) -> None:
        self._values: dict[str, set[str] | None] = {}

    def see(self, row: Mapping[str, Any]) -> None:
        """Note the columns of a row."""
        for name, value in row.items():
            values = self._values.setdefault(name, set())
            if values is None:
                continue
            text = value if isinstance(value, str) else as_text(value)
            if text not in values:
                values.add(text)
                if len(values) > FEW or len(text) > SHORT:
                    self._values[name] = None

    def is_open(self, name: str) -> bool:
        """Whether a column may yet have few values."""
        return self._values.get(name, _OPEN) is not None

    def require(self, key: Iterable[str]) -> None:
        """Refuse a key with a column that no row has."""
        for name in key:
            if name not in self._values:
                near, there = did_you_mean(name, self._values), ", ".join(map(quoted, self._values))
                raise DataError(
                    f"no row has the column {quoted(name)} that the key names",
                    advice=f"{near} there are: {there}".strip(),
                )

    def known(self) -> list[str]:
        """The columns whose names say that they are about what was judged."""
        return [name for name in KNOWN if name in self._values]

    def others(self) -> list[str]:
        """The other columns that may be part of the key, those with the fewest values first."""
        columns = [
            (len(values), name)
            for name, values in self._values.items()
            if values and 1 < len(values) <= FEW and not _QUOTES.intersection(name)
            if name not in KNOWN and name != "unit" and name not in REPEATS
        ]
        return [name for _, name in sorted(columns, key=lambda column: column[0])]


class Seen:
    """Who judged and what was judged, row by row: judges are numbered as they come."""

    def __init__(self, kind: str, judge: str, columns: Columns) -> None:
        self._kind, self._judge, self._columns = kind, judge, columns
        self._numbers: dict[str, int] = {}
        self._by_cell: dict[str, int] = {}
        self._is_open = True

    @property
    def judges(self) -> list[str]:
        return list(self._numbers)

    def judge(self, row: Mapping[str, Any], where: str) -> int:
        """The number of a row's judge; raises DataError."""
        name = judge_of(row, where, self._kind, self._judge)
        return self._numbers.setdefault(name, len(self._numbers))

    def judges_of(self, chunk: Chunk) -> list[int]:
        """The numbers of the judges of rows; raises DataError."""
        cells = chunk.columns.get("judge")
        if cells is None:
            return [self.judge(chunk.row(0), chunk.where(0))] * chunk.size
        numbers = [self._by_cell.get(cell) if type(cell) is str else None for cell in cells]
        if None in numbers:
            for place, cell in enumerate(cells):
                if numbers[place] is None:
                    number = self.judge(chunk.row(place), chunk.where(place))
                    numbers[place] = number
                    if type(cell) is str:
                        self._by_cell[cell] = number
        return cast("list[int]", numbers)

    def units_of(self, chunk: Chunk, key: Sequence[str]) -> list[str]:
        """The units of rows; raises DataError."""
        cells = chunk.columns.get("unit", [""] * chunk.size)
        units = [cell.strip() if type(cell) is str else "" for cell in cells]
        if "" in units:
            for place, unit in enumerate(units):
                if not unit:
                    row, where = chunk.row(place), chunk.where(place)
                    units[place] = unit_of(row, where, self._kind, key)
        if self._is_open:
            for unit in filter(None, dict.fromkeys(units)):
                self._columns.see({"unit": unit})
            self._is_open = self._columns.is_open("unit")
        return units


def find_key(
    columns: Columns,
    distinct: Callable[[Sequence[str]], int],
    doubles: Callable[[Sequence[str]], int],
    spread: Callable[[str], float],
    opening: Sequence[str] = ("unit",),
) -> list[str]:
    """The columns that a key opens with, the known columns that differ within them and, while rows
    stand double, other ones that make fewer of them do so.

    `distinct` says how many keys there are, `doubles` how many rows more than one have the same
    key; `spread` with what share of all units a column's values come on average.
    """
    key = list(opening)
    for name in columns.known():
        # One that goes along with a column of the key tells nothing further apart.
        if distinct([*key, name]) > distinct(key):
            key.append(name)
    left = doubles(key)
    for name in columns.others():
        if not left:
            break
        if name in key or spread(name) < CROSSED:
            continue
        fewer = doubles([*key, name])
        if fewer < left:
            key, left = [*key, name], fewer
    return key


def key_values(key: Sequence[str], unit: str, meta: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The id that a row's key makes, and its meta, which keeps the unit where the id is more."""
    if tuple(key) == ("unit",):
        return unit, meta
    fields = {"unit": unit, **meta} if unit else meta
    return joined_id(fields.get(name) for name in key), fields
