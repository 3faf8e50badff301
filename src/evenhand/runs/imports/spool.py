"""A database on the disk in which rows wait until those of one unit are together.

Its file has no name, so that it is gone with the process, however that ends.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.errors import StoreError
from evenhand.limits import SPOOL_KILOBYTES


class Spool:
    """Tables by their names and columns, and what is worked out from them."""

    def __init__(self, tables: Mapping[str, Sequence[str]]) -> None:
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for name, value in (
            ("temp_store", "FILE"),
            ("journal_mode", "OFF"),
            ("synchronous", "OFF"),
            ("cache_size", f"-{SPOOL_KILOBYTES}"),
        ):
            self._connection.execute(f"PRAGMA {name} = {value}")
        self._insert: dict[str, str] = {}
        for name, columns in tables.items():
            self.run(f"CREATE TABLE {name} ({', '.join(columns)})")
            marks = ",".join("?" * len(columns))
            self._insert[name] = f"INSERT INTO {name} VALUES ({marks})"  # noqa: S608

    def write(self, rows: Mapping[str, list[tuple[Any, ...]]]) -> None:
        """Write what waits for each table, and empty the lists."""
        self.run("BEGIN")
        for name, waiting in rows.items():
            try:
                self._connection.executemany(self._insert[name], waiting)
            except sqlite3.Error as error:
                raise self._unusable(error) from None
            waiting.clear()
        self.run("COMMIT")

    def run(self, sql: str) -> None:
        """Carry out a statement."""
        self.rows(sql)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, read as they are asked for."""
        try:
            return self._connection.execute(sql, values)
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def row(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of a query."""
        return next(self.rows(sql, values), None)

    def names(self, sql: str) -> list[Any]:
        """The values of a query with one column."""
        return [value for (value,) in self.rows(sql)]

    def _unusable(self, error: sqlite3.Error) -> StoreError:
        return StoreError(
            f"rows cannot be kept on the way: {error}",
            advice="Free some space in the folder for temporary files (/var/tmp, else /tmp), or"
            " name another in TMPDIR.",
        )

    def close(self) -> None:
        self._connection.close()
