"""Units on their way into the store, and judgments that were made of them elsewhere.

They wait in tables of the connection's own, so that nobody waits for a slow reader; then they join
the run in one transaction, all of them or none. A unit that the store holds already waits without
its text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import islice
from typing import Any

from evenhand.errors import DataError, quoted
from evenhand.ledger.codec import JUDGMENT_COLUMNS
from evenhand.ledger.keys import content_of, row_digest, unit_digest
from evenhand.ledger.ports import IncomingUnit
from evenhand.limits import BATCH_ROWS

_TABLES = {
    "incoming": "(position INTEGER PRIMARY KEY, id UNIQUE, origin, digest, body)",
    "elsewhere": "(position INTEGER, judge, repeat, status, reason, body)",
}
_TAKE_IN = "INSERT OR IGNORE INTO incoming VALUES (?,?,?,?,?)"
_PUT_ASIDE = "INSERT INTO elsewhere VALUES (?,?,?,?,?,?)"
_KEEP = (
    "INSERT INTO units (digest, id, body)"
    " SELECT digest, id, body FROM incoming WHERE body IS NOT NULL ORDER BY position"
    " ON CONFLICT (digest) DO NOTHING"
)
_JOIN = (
    "INSERT INTO run_units SELECT ?, i.position, u.no FROM incoming i"
    " CROSS JOIN units u ON u.digest=i.digest ORDER BY i.position"
)
_COLUMNS = "r.judging, m.unit, e.judge, e.repeat, e.status, e.reason, 0, 0, e.body"
_JUDGE = (
    f"INSERT OR REPLACE INTO judgments ({JUDGMENT_COLUMNS}, digest) SELECT {_COLUMNS},"
    f" row_digest({_COLUMNS})"
    " FROM elsewhere e JOIN runs r ON r.no=? JOIN run_units m ON m.run=r.no"
    " AND m.position=e.position ORDER BY e.rowid"
)


class WaitingUnits:
    """The waiting tables of one connection."""

    def __init__(self, connection: sqlite3.Connection, units: Iterable[IncomingUnit]) -> None:
        """Read all units; raises DataError on an id that repeats."""
        self._connection = connection
        connection.create_function("row_digest", -1, row_digest, deterministic=True)
        self.clear()
        for name, columns in _TABLES.items():
            connection.execute(f"CREATE TEMP TABLE {name} {columns}")
        self._fill(units)
        digests = connection.execute("SELECT digest FROM incoming ORDER BY digest")
        self.content = content_of(digest for (digest,) in digests)

    def clear(self) -> None:
        """Drop what waits."""
        for name in _TABLES:
            self._connection.execute(f"DROP TABLE IF EXISTS temp.{name}")

    def _fill(self, units: Iterable[IncomingUnit]) -> None:
        source, position = iter(units), 0
        while batch := list(islice(source, BATCH_ROWS)):
            before = self._connection.total_changes
            self._write(_TAKE_IN, self._rows(batch, position))
            if self._connection.total_changes - before < len(batch):
                raise self._repeated(batch)
            self._write(_PUT_ASIDE, list(_judgments(batch, position)))
            position += len(batch)

    def _rows(self, batch: list[IncomingUnit], before: int) -> list[tuple[Any, ...]]:
        digests = [unit_digest(unit.id, unit.body) for unit in batch]
        marks = ",".join("?" * len(digests))
        sql = f"SELECT digest FROM units WHERE digest IN ({marks})"
        stored = {digest for (digest,) in self._connection.execute(sql, digests)}
        return [
            (position, unit.id, unit.origin, digest, None if digest in stored else unit.body)
            for position, (unit, digest) in enumerate(
                zip(batch, digests, strict=True), start=before + 1
            )
        ]

    def join(self, run: int) -> None:
        """Make these the units of a run, and what was judged of them elsewhere judgments of its
        judging, inside a transaction."""
        self._connection.execute(_KEEP)
        self._connection.execute(_JOIN, (run,))
        self._connection.execute(_JUDGE, (run,))

    def _write(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany(sql, rows)
        self._connection.execute("COMMIT")

    def _repeated(self, batch: list[IncomingUnit]) -> DataError:
        """Which ids of a batch stand twice, and where."""
        twice: list[str] = []
        ids: set[str] = set()
        for unit in batch:
            (first,) = self._connection.execute(
                "SELECT origin FROM incoming WHERE id=?", (unit.id,)
            ).fetchone()
            if first != unit.origin or unit.id in ids:
                twice.append(f"{quoted(unit.id)} at {first} and {unit.origin}")
            ids.add(unit.id)
        if not twice:
            twice = [f"{quoted(batch[0].id)} at {batch[0].origin}, in a file that is named twice"]
        listed = "; ".join(twice[:5]) + (f"; and {len(twice) - 5} more" if len(twice) > 5 else "")
        return DataError(
            f"ids must be unique, but these repeat: {listed}",
            advice="Give each row an id of its own (`id`, for pairs `pair_id`, for answers"
            " `task_name`), or meta fields that tell it apart; files that hold the same questions"
            ' are told apart so: data = [{ file = "v1.csv", prompt_variant = "v1" }, ...]',
        )


def _judgments(batch: list[IncomingUnit], before: int) -> Iterable[tuple[Any, ...]]:
    for position, unit in enumerate(batch, start=before + 1):
        for judge, repeat, text in unit.judgments:
            yield position, judge, repeat, *text
