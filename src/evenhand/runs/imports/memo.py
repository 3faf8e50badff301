"""What was worked out of the cells of a row, kept for rows that hold the same: tables repeat
themselves, and most of the time goes into reading the same words again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, Generic, TypeVar

from pydantic_core import from_json

from evenhand.jsontext import swift

MEMO_ENTRIES = 1 << 16
"""Results that are kept; then it begins anew."""
COLUMN_SETS = 64
"""Sets of columns that rows of one table have; then they are looked at anew."""
MEMO_CHARS = 256
"""Longer cells hardly come again."""
_EXACT = frozenset({str, int, bool, type(None)})
"""Types whose values are equal only if they are written alike."""

T = TypeVar("T")
Cells = Callable[[Mapping[str, Any]], tuple[Any, ...]]


def cells_of(names: Iterable[str]) -> Cells:
    """The function from a row to its cells in these columns, all of which it has."""
    columns = tuple(names)
    if len(columns) > 1:
        return itemgetter(*columns)
    if columns:
        (name,) = columns
        return lambda row: (row[name],)
    return lambda row: ()


class Memo(Generic[T]):
    """The results of one function for rows with the same columns."""

    def __init__(self, work: Callable[[Mapping[str, Any], str], T], names: Iterable[str]) -> None:
        self._work, self._cells = work, cells_of(names)
        self._results: dict[tuple[tuple[Any, ...], tuple[type, ...]], T] = {}

    def __call__(self, row: Mapping[str, Any], where: str) -> T:
        cells = self._cells(row)
        # 1, 1.0 and true are the same key.
        key = (cells, tuple(map(type, cells)))
        try:
            result = self._results.get(key)
        except TypeError:  # a list or an object
            return self._work(row, where)
        if result is None:
            result = self._work(row, where)
            if _EXACT.issuperset(key[1]) and _size(cells) <= MEMO_CHARS:
                _put(self._results, key, result)
        return result


def keep(results: dict[Any, T], cells: str | tuple[str, ...], result: T) -> None:
    """Have a result at hand for records that hold the same cells: a text, or several."""
    if _size((cells,) if isinstance(cells, str) else cells) <= MEMO_CHARS:
        _put(results, cells, result)


def _put(results: dict[Any, T], key: Any, result: T) -> None:
    if len(results) >= MEMO_ENTRIES:
        results.clear()
    results[key] = result


class Vocabulary:
    """What is said in rows, numbered as it comes: most rows say what others said before. Where
    there is too much of it to be kept, the words wait themselves, as JSON."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._words: list[tuple[Any, ...]] = []

    def number(self, words: tuple[Any, ...]) -> int | str:
        """What stands for these words in a row that waits."""
        # 1 and 1.0 are the same key.
        key = (words, tuple(map(type, words)))
        number = self._numbers.get(key)
        if number is not None:
            return number
        if len(self._words) >= MEMO_ENTRIES or _size(words) > MEMO_CHARS:
            return swift(words)
        self._words.append(words)
        return self._numbers.setdefault(key, len(self._words) - 1)

    def words(self, said: int | str) -> tuple[Any, ...]:
        """The words that a number, or JSON, stands for."""
        return self._words[said] if isinstance(said, int) else tuple(from_json(said))


def _size(cells: tuple[Any, ...]) -> int:
    return sum(len(cell) for cell in cells if type(cell) is str)
