"""What a kind takes from a table that somebody else laid out: which fields it needs, how a row is
called, and what becomes of one row per answer where the kind compares answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class PlacedRow(NamedTuple):
    """A row, and where it stands."""

    value: dict[str, Any]
    where: str


class Gathered(NamedTuple):
    """The rows of a kind that rows of a long table make, and what a person should know of it."""

    rows: Sequence[PlacedRow]
    remarks: Sequence[str] = ()


Gather = Callable[[Iterable[PlacedRow]], Gathered]
"""From one row per answer to one row per question; raises RowError."""


class TableForm(NamedTuple):
    """The fields that a kind takes from the columns of a table."""

    question: str
    """The field of what was asked."""
    answer: str
    """The field of what was answered, where a row is one answer."""
    fields: tuple[str, ...]
    """All fields of a row of the contract."""
    id_of: Callable[[Mapping[str, Any]], str]
    """The id of a row, its own or made of what identifies it."""
    ids: tuple[str, ...] = ("id",)
    """The fields that hold a row's own id."""
    gather: Gather | None = None
    """For a kind whose rows hold several answers."""
    several: str = ""
    """The field that holds them: a table that has it is no long one."""
    unit_ids: Callable[[Mapping[str, Any]], Sequence[str]] | None = None
    """The ids of the units of such a row."""
    number: str = "id"
    """The field for what is called like another and is told apart by its row's number."""
    topic: str = "meta.question_id"
    """The field that tells questions apart, where a row has it."""
    row_noun: str = "sample"
    """A row, in English."""
    own_field: str = ""
    """A field that no other kind has: a table that has it is of this kind."""
