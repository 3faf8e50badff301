"""A database on the disk in which rows wait until those of one unit are together.

It vanishes when it is closed; nothing in it need survive a crash.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from evenhand.errors import StoreError
from evenhand.limits import BATCH_ROWS, SPOOL_KILOBYTES

_NUMBER_JUDGES = "INSERT INTO judges (name) SELECT judge FROM rows GROUP BY judge ORDER BY min(no)"


class Spool:
    """One table `rows`, numbered as they came, and what is worked out from it."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="evenhand-import-")
        self._connection = sqlite3.connect(
            Path(self._folder.name, "rows.db"), isolation_level=None, check_same_thread=False
        )
        for name, value in (
            ("journal_mode", "OFF"),
            ("synchronous", "OFF"),
            ("cache_size", f"-{SPOOL_KILOBYTES}"),
        ):
            self._connection.execute(f"PRAGMA {name} = {value}")
        self.run(f"CREATE TABLE rows (no INTEGER PRIMARY KEY, {', '.join(columns)})")
        self._insert = f"INSERT INTO rows VALUES (NULL{',?' * len(columns)})"  # noqa: S608

    def fill(self, rows: Iterable[tuple[Any, ...]]) -> int:
        """Write the rows, and number the judges as they come; how many rows there were."""
        source, number = iter(rows), 0
        while batch := list(islice(source, BATCH_ROWS)):
            self.run("BEGIN")
            self._many(batch)
            self.run("COMMIT")
            number += len(batch)
        self.run("CREATE TABLE judges (place INTEGER PRIMARY KEY, name UNIQUE)")
        self.run(_NUMBER_JUDGES)
        return number

    def place(self, key: Sequence[str]) -> None:
        """Bring rows together that have the same values in these columns: `units` in the order of
        their first rows, and `placed`, where their rows stand by judge."""
        columns, same = ", ".join(key), " AND ".join(f"u.{name}=r.{name}" for name in key)
        self.run(
            f"CREATE TABLE units AS SELECT min(no) AS no, {columns}"  # noqa: S608
            f" FROM rows GROUP BY {columns}"
        )
        self.run(f"CREATE INDEX units_by_key ON units ({columns})")
        self.run("CREATE TABLE placed (place INTEGER PRIMARY KEY, unit, judge, row)")
        self.run(
            "INSERT INTO placed (unit, judge, row) SELECT u.no, j.place - 1, r.no"  # noqa: S608
            f" FROM rows r JOIN units u ON {same} JOIN judges j ON j.name=r.judge"
            " ORDER BY u.no, j.place, r.no"
        )

    def run(self, sql: str) -> None:
        """Carry out a statement."""
        self.rows(sql)

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, read as they are asked for."""
        try:
            return self._connection.execute(sql)
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def names(self, sql: str) -> list[Any]:
        """The values of a query with one column."""
        return [value for (value,) in self.rows(sql)]

    def _many(self, batch: list[tuple[Any, ...]]) -> None:
        try:
            self._connection.executemany(self._insert, batch)
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def _unusable(self, error: sqlite3.Error) -> StoreError:
        return StoreError(
            f"rows cannot be kept on the way: {error}",
            where=self._folder.name,
            advice="Free some space there, or name another folder in TMPDIR.",
        )

    def close(self) -> None:
        self._connection.close()
        self._folder.cleanup()
