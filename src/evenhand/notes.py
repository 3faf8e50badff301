"""Notes for the reader beside figures: sentences in English that other languages can say too.

A `Note` is its English sentence, so that commands print it and JSON holds it as any text. A report
in another language has the sentence of the same key, and fills its places with the same values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evenhand.errors import quote


class Names(NamedTuple):
    """The first few of many names, and how many more there are."""

    names: Sequence[str]
    more: int = 0


def few(names: Sequence[str], most: int) -> Names:
    """Return the first names, at most `most`, and the number of the others."""
    return Names(names[:most], max(0, len(names) - most))


def join_few(names: Sequence[str], most: int) -> str:
    """Return the first names in quotes, at most `most`, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(quote, names[:most])) + more


class Place(NamedTuple):
    """A variant, with the dimensions of it that are spoken of."""

    variant: str
    dimensions: Sequence[str]


class Places(NamedTuple):
    """The first few of many places, and how many more variants there are."""

    places: Sequence[Place]
    more: int = 0


class Signed(float):
    """A number that is written with its sign."""


class Percent(float):
    """A share that is written in percent."""


Value = str | int | float | Names | Places
"""What fills a place of a sentence: the number as it is to be written, or names."""


class Note(str):
    """A sentence, with its key and the values of its places."""

    __slots__ = ("key", "values")
    key: str
    values: Mapping[str, Value]

    def __new__(cls, sentence: str, key: str, **values: Value) -> Note:
        note = super().__new__(cls, sentence)
        note.key, note.values = key, values
        return note

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (str(self), self.key, dict(self.values))


def _restore(sentence: str, key: str, values: Mapping[str, Value]) -> Note:
    return Note(sentence, key, **values)
