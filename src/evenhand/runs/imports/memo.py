"""What was worked out of the cells of a row, kept for rows that hold the same: tables repeat
themselves, and most of the time goes into reading the same words again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from pydantic_core import from_json

from evenhand.data.foreign.chunks import Chunk
from evenhand.errors import DataError
from evenhand.jsontext import dumps_lossy

MEMO_ENTRIES = 1 << 16
"""Results that are kept; then it begins anew."""
COLUMN_SETS = 64
"""Sets of columns that rows of one table have; then they are looked at anew."""
MEMO_CHARS = 256
"""Longer cells hardly come again."""
_EXACT: frozenset[type] = frozenset({str, int, bool, type(None)})
"""Types whose values are equal only if they are written alike."""

_ALIKE: tuple[frozenset[type], ...] = (
    frozenset({str, type(None), int}),
    frozenset({str, type(None), bool}),
)
"""Types of which no two values of different types are equal."""

T = TypeVar("T")


class Memo(Generic[T]):
    """The results of one function for rows with the same columns, by the cells in some of them."""

    def __init__(self, work: Callable[[Mapping[str, Any], str], T], names: Iterable[str]) -> None:
        self._work, self._names = work, tuple(names)
        self._results: dict[tuple[bool, ...], dict[tuple[Any, ...], T]] = {}
        """By which cells are true or false: 1 and true are the same key."""
        self._size = 0

    def of(self, chunk: Chunk, places: Sequence[int] | None = None) -> list[T]:
        """The results for the rows at some places of a chunk, or for all."""
        columns: list[Sequence[Any]] = [chunk.columns[name] for name in self._names]
        types = list(map(chunk.types, self._names))
        if places is None:
            places = range(chunk.size)
        else:
            columns = [[column[place] for place in places] for column in columns]
        if not columns or not all(any(kinds <= alike for alike in _ALIKE) for kinds in types):
            return [self._at(chunk, place) for place in places]
        are_bools = tuple([bool in kinds for kinds in types])
        keys = list(zip(*columns, strict=True))
        results: list[Any] = list(map(self._by_cells(are_bools).get, keys))
        if None in results:
            for at, result in enumerate(results):
                if result is None:
                    results[at] = self._result(are_bools, keys[at], chunk, places[at])
        return results

    def _at(self, chunk: Chunk, place: int) -> T:
        """The result for one row of a chunk."""
        cells = tuple([chunk.columns[name][place] for name in self._names])
        types = list(map(type, cells))
        if not _EXACT.issuperset(types):
            return self._work(chunk.row(place), chunk.where(place))
        return self._result(tuple([kind is bool for kind in types]), cells, chunk, place)

    def _by_cells(self, are_bools: tuple[bool, ...]) -> dict[tuple[Any, ...], T]:
        return self._results.setdefault(are_bools, {})

    def _result(
        self, are_bools: tuple[bool, ...], cells: tuple[Any, ...], chunk: Chunk, place: int
    ) -> T:
        result = self._by_cells(are_bools).get(cells)
        if result is None:
            result = self._work(chunk.row(place), chunk.where(place))
            if _size(cells) <= MEMO_CHARS:
                if self._size >= MEMO_ENTRIES:
                    self._results.clear()
                    self._size = 0
                self._by_cells(are_bools)[cells] = result
                self._size += 1
        return result


def in_turn(take: Callable[[Chunk], None], chunk: Chunk) -> None:
    """Take in a chunk; of several rows in which something is wrong the first is told."""
    try:
        take(chunk)
    except DataError:
        for place in range(chunk.size):
            take(chunk.alone(place))
        raise


class Vocabulary:
    """What is said in rows, numbered as it comes: most rows say what others said before. Where
    there is too much of it to be kept, the words wait themselves, as JSON."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._words: list[tuple[Any, ...]] = []

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """All words that have a number, in the order of these."""
        return iter(self._words)

    def number(self, words: tuple[Any, ...]) -> int | str:
        """What stands for these words in a row that waits."""
        # 1 and 1.0 are the same key.
        key = (words, tuple(map(type, words)))
        number = self._numbers.get(key)
        if number is not None:
            return number
        if len(self._words) >= MEMO_ENTRIES or _size(words) > MEMO_CHARS:
            return dumps_lossy(words)
        self._words.append(words)
        return self._numbers.setdefault(key, len(self._words) - 1)

    def words(self, said: int | str) -> tuple[Any, ...]:
        """The words that a number, or JSON, stands for."""
        return self._words[said] if isinstance(said, int) else tuple(from_json(said))


def _size(cells: tuple[Any, ...]) -> int:
    return sum(len(cell) for cell in cells if type(cell) is str)
