"""What shared statements are run through, and how they are written.

A statement is in the SQL that SQLite and PostgreSQL share: values are bound by name (`:run`), in
`write` by place (`?`). Where they part, it is written as SQLite has it, and the other's session
says it in its own words: `CROSS JOIN` (tables joined in the order in which they stand) and
`INDEXED BY` are advice to SQLite's planner alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Values = Mapping[str, Any]
Row = Sequence[Any]


class Session(Protocol):
    """One connection to a store's database, for whoever waits for each answer. What the database
    says is wrong becomes a StoreError."""

    @property
    def where(self) -> str:
        """The store, for messages."""
        ...

    def rows(self, sql: str, values: Values | None = None) -> list[Any]:
        """All rows of a statement; none of one that writes."""
        ...

    def stream(self, sql: str, values: Values | None = None) -> Iterator[Any]:
        """The rows of a statement, some at a time; inside of a transaction or a frozen state."""
        ...

    def write(self, sql: str, rows: Sequence[Row]) -> None:
        """Run a statement once for each row."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """All that is written within is committed or, on any error, nothing."""
        ...

    def hold_table(self, name: str) -> None:
        """Inside of a transaction: let nobody else write to a table until it ends."""
        ...

    def hold_starts(self) -> None:
        """Inside of a transaction: let nobody else start a run until it ends."""
        ...

    def among(self, column: str, name: str) -> str:
        """The condition that a column is one of the values bound by a name."""
        ...

    def several(self, values: Sequence[int | str]) -> Any:
        """Values as they are bound for `among`."""
        ...


def bound(name: str, values: Sequence[object]) -> str:
    """Marks for a few values, bound as `name` and a number by `bindings`; for none a text that is
    nobody's."""
    return ",".join(f":{name}{place}" for place in range(len(values))) or "''"


def bindings(name: str, values: Sequence[object]) -> dict[str, Any]:
    """What `bound` names."""
    return {f"{name}{place}": value for place, value in enumerate(values)}
