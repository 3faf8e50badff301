"""Shared statements on a connection to a SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evenhand.limits import PAGE_ROWS
from evenhand.store.sql.session import Row, Values
from evenhand.store.sqlite.connection import StoreConnection, StoreFile, transaction


class SqliteSession:
    """A connection that speaks the shared SQL as it is written."""

    def __init__(self, file: StoreFile, connection: StoreConnection) -> None:
        self._file, self._connection = file, connection

    @property
    def where(self) -> str:
        return str(self._file.path)

    def rows(self, sql: str, values: Values | None = None) -> list[Any]:
        try:
            return self._connection.execute(sql, values or {}).fetchall()
        except sqlite3.Error as error:
            raise self._file.unusable(error) from None

    def stream(self, sql: str, values: Values | None = None) -> Iterator[Any]:
        with self._file.in_use():
            cursor = self._connection.execute(sql, values or {})
            while rows := cursor.fetchmany(PAGE_ROWS):
                yield from rows

    def write(self, sql: str, rows: Sequence[Row]) -> None:
        with self._file.in_use():
            self._connection.executemany(sql, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._file.in_use(), transaction(self._connection):
            yield

    def hold_table(self, name: str) -> None:
        """Nothing is to be done: whoever is in a transaction writes alone."""

    def hold_starts(self) -> None:
        """The same."""

    def among(self, column: str, name: str) -> str:
        return f"{column} IN (SELECT value FROM json_each(:{name}))"

    def several(self, values: Sequence[int | str]) -> str:
        return json.dumps(list(values))
