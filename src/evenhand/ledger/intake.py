"""Units on their way into the store, and judgments that were made of them elsewhere.

They wait in tables of the connection's own, so that nobody waits for a slow reader; then they join
the run in one transaction, all of them or none.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from evenhand.errors import DataError, quoted
from evenhand.ledger.keys import digest
from evenhand.ledger.store import IncomingUnit, JudgedUnit, Scope
from evenhand.limits import BATCH_ROWS

_TABLES = {
    "incoming": "(no INTEGER PRIMARY KEY, id UNIQUE, origin, digest, body)",
    "elsewhere": "(unit INTEGER, judge, repeat, status, reason, body)",
}
_TAKE_IN = "INSERT OR IGNORE INTO incoming (id, origin, digest, body) VALUES (?,?,?,?)"
_PUT_ASIDE = "INSERT INTO elsewhere VALUES (?,?,?,?,?,?)"
_JOIN = (
    "INSERT INTO units (run, id, start, origin, digest, body)"
    " SELECT ?, id, ?, origin, digest, body FROM incoming WHERE true ORDER BY no"
    " ON CONFLICT (run, id) DO UPDATE SET start=excluded.start, origin=excluded.origin,"
    " digest=excluded.digest, body=excluded.body"
)
_EMPTY = (
    "DELETE FROM judgments WHERE unit IN (SELECT no FROM units WHERE run=?)",
    "DELETE FROM units WHERE run=?",
)
_JUDGE = (
    "INSERT INTO judgments SELECT u.no, e.judge, e.repeat, e.status, e.reason, ?||u.digest, 0, 0,"
    " e.body FROM elsewhere e JOIN incoming i ON i.no=e.unit JOIN units u ON u.run=? AND u.id=i.id"
    " ORDER BY e.rowid"
)


class Intake:
    """The waiting tables of one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._clear()
        for name, columns in _TABLES.items():
            connection.execute(f"CREATE TEMP TABLE {name} {columns}")

    def _clear(self) -> None:
        for name in _TABLES:
            self._connection.execute(f"DROP TABLE IF EXISTS temp.{name}")

    def fill(self, units: Iterable[IncomingUnit]) -> None:
        """Read all units; raises DataError on an id that repeats."""
        connection, source = self._connection, iter(units)
        while batch := list(islice(source, BATCH_ROWS)):
            before = connection.total_changes
            self._write(_TAKE_IN, [(u.id, u.origin, digest(u.body), u.body) for u in batch])
            if connection.total_changes - before < len(batch):
                raise self._repeated(batch)

    def put_aside(self, units: Iterable[JudgedUnit]) -> Iterator[IncomingUnit]:
        """The units, while their judgments are put aside."""
        rows: list[tuple[Any, ...]] = []
        for place, judged in enumerate(units, 1):
            for judge, repeat, text in judged.judgments:
                rows.append((place, judge, repeat, *text))
            if len(rows) >= BATCH_ROWS:
                self._write(_PUT_ASIDE, rows)
                rows.clear()
            yield judged.unit
        self._write(_PUT_ASIDE, rows)

    def join(self, scope: Scope) -> None:
        """Add the units to a run that has begun; one that it had is brought up to date."""
        self._connection.execute(_JOIN, (scope.run, scope.start))
        self._clear()

    def replace(self, scope: Scope, tag: str) -> None:
        """Let the run hold these units and judgments and no other."""
        for emptying in _EMPTY:
            self._connection.execute(emptying, (scope.run,))
        self._connection.execute(_JOIN, (scope.run, scope.start))
        self._connection.execute(_JUDGE, (tag, scope.run))
        self._clear()

    def _write(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany(sql, rows)
        self._connection.execute("COMMIT")

    def _repeated(self, batch: list[IncomingUnit]) -> DataError:
        """Which ids of a batch stand twice, and where."""
        twice: list[str] = []
        seen: set[str] = set()
        for unit in batch:
            (first,) = self._connection.execute(
                "SELECT origin FROM incoming WHERE id=?", (unit.id,)
            ).fetchone()
            if first != unit.origin or unit.id in seen:
                twice.append(f"{quoted(unit.id)} at {first} and {unit.origin}")
            seen.add(unit.id)
        if not twice:
            twice = [f"{quoted(batch[0].id)} at {batch[0].origin}, in a file that is named twice"]
        shown = "; ".join(twice[:5]) + (f"; and {len(twice) - 5} more" if len(twice) > 5 else "")
        return DataError(
            f"ids must be unique, but these repeat: {shown}",
            advice="Give each row an id of its own (`id`, for pairs `pair_id`, for answers"
            " `task_name`), or meta fields that tell it apart.",
        )
