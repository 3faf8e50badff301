"""A connection to a store's database, as all statements of the store use it.

Statements are written once, in the SQL that SQLite and PostgreSQL share: values are bound by name
(`:run`), in `write` and `commit` by position (`?`). A list is bound as a JSON array, and asked for
with `IN (SELECT value FROM json_each(:keys))`. Where the two differ, a statement is written as
SQLite has it, and `to_postgres` translates: `CROSS JOIN` (join in this order) and `INDEXED BY`
advise SQLite's planner alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from importlib.resources import files
from typing import Any, Protocol

VERSION = 3
"""Of the tables in `schema.sql`."""
Values = Mapping[str, Any]
Row = Sequence[Any]
Statements = Sequence[tuple[str, Sequence[Row]]]
"""Statements with the rows that each is run for."""


class Session(Protocol):
    """One connection, for one caller at a time. Errors of the database are raised as StoreError."""

    is_remote: bool
    """True if each statement takes a round trip through a network."""

    @property
    def where(self) -> str:
        """The store, for messages."""
        ...

    def rows(self, sql: str, values: Values | None = None) -> list[Any]:
        """Return all rows of a statement."""
        ...

    def stream(self, sql: str, values: Values | None = None) -> Iterator[Any]:
        """Yield the rows of a statement page by page; within a transaction or a frozen state."""
        ...

    def write(self, sql: str, rows: Sequence[Row]) -> None:
        """Run a statement for each row."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Commit everything written within or, on any error, nothing."""
        ...

    def commit(self, statements: Statements) -> None:
        """Run statements in one transaction, durable on return. Each must be such that running it
        twice is as good as once: after a lost connection nobody knows if it was committed."""
        ...

    def lock_table(self, name: str) -> None:
        """Within a transaction: keep others from writing to a table until it ends."""
        ...

    def require_writable(self) -> None:
        """Raise StoreError if the store can only be read."""
        ...

    def try_locks(self, names: Sequence[str]) -> set[str]:
        """Take the locks that nobody holds, and return their names. They end with the session, and
        with its process."""
        ...

    def unlock(self, names: Sequence[str]) -> None: ...

    def lock_holder(self, name: str) -> str | None:
        """Return who holds a lock, in words that may be empty; None if it is free."""
        ...

    def state(self) -> int | None:
        """Return a number that changes when another session commits; None if the store is gone."""
        ...

    def set_frozen(self, frozen: bool) -> None:
        """Read one state of the store from now on, or no longer."""
        ...

    def check_file(self) -> Iterator[str]:
        """Yield what the database itself finds damaged."""
        ...

    def close(self) -> None: ...


Connect = Callable[[], Session]


def schema() -> list[str]:
    """Return the statements that make the tables of a store."""
    text = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
    lines = (line.partition("--")[0].rstrip() for line in text.splitlines())
    statements = "\n".join(filter(None, lines)).split(";")
    return [*filter(None, map(str.strip, statements)), f"INSERT INTO store VALUES ({VERSION})"]


def schema_names() -> set[str]:
    """Return the names of all tables, indexes and views of a store."""
    words = (statement.replace("UNIQUE ", "").split() for statement in schema()[:-1])
    return {name for _, _, name, *_ in words}


def other_version(found: object) -> tuple[str, str]:
    """Return what to say of a store with another version of the schema, and what to advise."""
    return (
        f"the store was made by another version of evenhand (its tables have version {found}, this"
        f" evenhand reads version {VERSION})",
        "Read or export it with the version that made it; for new runs name another store with"
        " --store.",
    )


# PostgreSQL

_TYPES = {
    "INTEGER PRIMARY KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "INTEGER": "BIGINT",
    "REAL": "DOUBLE PRECISION",
    "WITHOUT ROWID": "",
    "ON units (id)": "ON units USING hash (id)",  # a tree takes no long keys
    "ON runs (name, starts)": "ON runs USING hash (name)",
    "json_each(j.observations)": "json_array_elements(j.observations::json)",
    "json_each(u.fields)": "json_each_text(u.fields::json)",
}
_REFERENCE = re.compile(r" REFERENCES \w+\(\w+\)")


def to_postgres_ddl(statement: str) -> str:
    """Return a statement of `schema.sql` in PostgreSQL's words."""
    for there, here in _TYPES.items():
        statement = statement.replace(there, here)
    return _REFERENCE.sub("", statement)


_WORDS = (
    (re.compile(r"CROSS JOIN"), "JOIN"),
    (re.compile(r" INDEXED BY \w+"), ""),
    (re.compile(r"\binstr\("), "strpos("),
    (re.compile(r"NOT IN \(SELECT value FROM json_each\((:\w+)\)\)"), r"<> ALL(\1)"),
    (re.compile(r"IN \(SELECT value FROM json_each\((:\w+)\)\)"), r"= ANY(\1)"),
)
_MARK = re.compile(r"\?|(?<!:):([a-z_][a-z_0-9]*)")


@lru_cache(maxsize=512)
def to_postgres(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a shared statement in PostgreSQL's words, and the names of its values in order."""
    for there, here in _WORDS:
        sql = there.sub(here, sql)
    names: dict[str, int] = {}

    def mark(match: re.Match[str]) -> str:
        name = match[1] or f"?{len(names)}"
        return f"${names.setdefault(name, len(names) + 1)}"

    return _MARK.sub(mark, sql), tuple(names)


_ESCAPE = "\x1a"


def escape_nul(text: str) -> str:
    """Return a text without NUL, from which `restore_nul` makes the same text again: NUL becomes
    SUB N, and SUB becomes SUB S."""
    if "\0" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, f"{_ESCAPE}S").replace("\0", f"{_ESCAPE}N")
    return text


def restore_nul(text: str) -> str:
    """Return the text that `escape_nul` was given."""
    if _ESCAPE in text:
        return text.replace(f"{_ESCAPE}N", "\0").replace(f"{_ESCAPE}S", _ESCAPE)
    return text
