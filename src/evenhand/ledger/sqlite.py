"""The SQLite store: WAL, synchronous=FULL, one writing thread, readers beside it."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from asyncio import AbstractEventLoop, Future, get_running_loop
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from evenhand import jsontext
from evenhand.errors import DataError, StoreError, quoted
from evenhand.ledger.codec import CALL_COLUMNS, call_row, judgment_row, row_call, row_judgment
from evenhand.ledger.keys import digest
from evenhand.ledger.lock import only_process
from evenhand.ledger.schema import MIGRATIONS
from evenhand.ledger.store import (
    Call,
    Counts,
    IncomingUnit,
    RunRow,
    Scope,
    Spent,
    StoredJudgment,
    StoredUnit,
)
from evenhand.ledger.verify import faults
from evenhand.ledger.writer import MEND, GroupWriter
from evenhand.limits import BATCH_ROWS, CHECKPOINT_PAGES, PAGE_ROWS

_UNIT = "u.no, u.id, u.digest, u.body"
_JUDGMENT = "j.unit, j.judge, j.repeat, j.status, j.reason, j.basis, j.reasks, j.body"
_IN_SCOPE = "u.run=? AND u.start=ifnull(?, u.start)"
_JUDGED = "SELECT {} FROM judgments j JOIN units u ON u.no=j.unit WHERE " + _IN_SCOPE
_STANDING = _JUDGED + " AND j.basis=?||u.digest"

_RECORD = f"INSERT INTO calls ({CALL_COLUMNS}, digest, at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_FIND = f"SELECT {CALL_COLUMNS} FROM calls WHERE key=? AND aside IS NULL ORDER BY no LIMIT 1"
_FIND_ANY = f"SELECT {CALL_COLUMNS} FROM calls WHERE key=? ORDER BY aside IS NOT NULL, no LIMIT 1"
_SETTLE = "INSERT OR REPLACE INTO judgments VALUES (?,?,?,?,?,?,?,?,?)"
_RESERVE = "INSERT OR REPLACE INTO reservations VALUES (?,?,?,?)"
_RELEASE = "DELETE FROM reservations WHERE key=? AND attempt=?"
_FORGET = "DELETE FROM judgments WHERE unit=? AND judge=? AND repeat=?"
_SET_ASIDE = "UPDATE calls SET aside=? WHERE key=? AND aside IS NULL"
_INCOMING = "CREATE TEMP TABLE incoming (no INTEGER PRIMARY KEY, id UNIQUE, origin, digest, body)"
_TAKE_IN = "INSERT OR IGNORE INTO incoming (id, origin, digest, body) VALUES (?,?,?,?)"
_INTAKE = (
    "INSERT INTO units (run, id, start, origin, digest, body)"
    " SELECT ?, id, ?, origin, digest, body FROM incoming WHERE true ORDER BY no"
    " ON CONFLICT (run, id) DO UPDATE SET start=excluded.start, origin=excluded.origin,"
    " digest=excluded.digest, body=excluded.body"
)


class SqliteStore:
    """A store in one file; with `path` None, one that vanishes when it is closed."""

    def __init__(self, path: Path | None) -> None:
        self._temporary = tempfile.mkdtemp(prefix="evenhand-") if path is None else None
        self.path = Path(self._temporary, "store.db") if self._temporary else Path(path or "")
        self._writer: GroupWriter | None = None
        self._looking: AbstractEventLoop | None = None
        try:
            self._writing = self._connect()
            self._migrate()
            self._reading = self._connect()
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"the store cannot be opened: {error}",
                where=str(self.path),
                advice="Name another one with --store sqlite:FILE",
            ) from None

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Whatever the database says is wrong becomes a StoreError."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def _unusable(self, error: sqlite3.Error) -> StoreError:
        return StoreError(f"the store cannot be used: {error}", where=str(self.path), advice=MEND)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA busy_timeout = 120000")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA synchronous = {'OFF' if self._temporary else 'FULL'}")
        return connection

    def _migrate(self) -> None:
        """Apply the migrations that are missing; refuse a store from a newer version."""
        with self._transaction() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at TEXT NOT NULL)"
            )
            applied = {name for (name,) in connection.execute("SELECT name FROM migrations")}
            if unknown := applied - {name for name, _ in MIGRATIONS}:
                raise StoreError(
                    f"the store was made by a newer evenhand (it has {max(unknown)})",
                    where=str(self.path),
                    advice="Upgrade evenhand, or name another store with --store sqlite:FILE",
                )
            for name, script in MIGRATIONS:
                if name not in applied:
                    for statement in filter(str.strip, script.split(";")):
                        connection.execute(statement)
                    connection.execute("INSERT INTO migrations VALUES (?, ?)", (name, _now()))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._used():
            self._writing.execute("BEGIN IMMEDIATE")
            try:
                yield self._writing
                self._writing.execute("COMMIT")
            finally:
                if self._writing.in_transaction:
                    self._writing.execute("ROLLBACK")

    def _rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            return self._reading.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def claim(self, run: str) -> AbstractContextManager[None]:
        return only_process(Path(f"{self.path}-locks", run), f"run {run}")

    def begin(
        self, run: str, name: str, manifest: Mapping[str, Any], units: Iterable[IncomingUnit]
    ) -> Scope:
        with self._used():
            self._take_in(units)
        with self._transaction() as connection:
            (last,) = connection.execute("SELECT ifnull(MAX(starts), 0) FROM runs").fetchone()
            scope = Scope(run, last + 1)
            connection.execute(
                "INSERT INTO runs VALUES (?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET"
                " manifest=excluded.manifest, started=excluded.started, starts=excluded.starts",
                (run, name, jsontext.dump(manifest), _now(), _now(), scope.start),
            )
            connection.execute(_INTAKE, (run, scope.start))
            connection.execute("DELETE FROM incoming")
        return scope

    def _take_in(self, units: Iterable[IncomingUnit]) -> None:
        """Read all units into a table of this connection's own: nobody waits for a slow reader."""
        connection, source = self._writing, iter(units)
        connection.execute("DROP TABLE IF EXISTS temp.incoming")
        connection.execute(_INCOMING)
        while batch := list(islice(source, BATCH_ROWS)):
            connection.execute("BEGIN")
            before = connection.total_changes
            connection.executemany(_TAKE_IN, map(_unit_row, batch))
            connection.execute("COMMIT")
            if connection.total_changes - before < len(batch):
                raise self._repeated(batch)

    def _repeated(self, batch: list[IncomingUnit]) -> DataError:
        """Which ids of a batch stand twice, and where."""
        twice: list[str] = []
        seen: set[str] = set()
        for unit in batch:
            (first,) = self._writing.execute(
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

    def set_aside(self, scope: Scope, kept: Sequence[str]) -> None:
        marks = ",".join("?" * len(kept))
        failed = f"{_JUDGED.format(_JUDGMENT)} AND j.reason NOT IN ({marks})"
        with self._transaction() as connection:
            rows = connection.execute(failed, (scope.run, scope.start, *kept)).fetchall()
            found = [row_judgment(row) for row in rows]
            keys = {key for one in found for key in one.bad_tries}
            connection.executemany(_SET_ASIDE, [(_now(), key) for key in keys])
            places = [(one.unit, one.judge, one.repeat) for one in found]
            connection.executemany(_FORGET, places)

    def open_work(
        self, scope: Scope, judge: int, repeat: int, tag: str, again: Sequence[str]
    ) -> Iterator[StoredUnit]:
        marks = ",".join("?" * len(again))
        sql = (
            f"SELECT {_UNIT} FROM units u LEFT JOIN judgments j"
            " ON j.unit=u.no AND j.judge=? AND j.repeat=?"
            f" WHERE {_IN_SCOPE} AND (j.unit IS NULL OR j.basis<>?||u.digest"
            f" OR j.reason IN ({marks}))"
        )
        return self._paged(sql, (judge, repeat, scope.run, scope.start, tag, *again))

    def units(self, scope: Scope) -> Iterator[StoredUnit]:
        sql = f"SELECT {_UNIT} FROM units u WHERE {_IN_SCOPE}"
        return self._paged(sql, (scope.run, scope.start))

    def _paged(self, sql: str, values: tuple[Any, ...]) -> Iterator[StoredUnit]:
        last = 0
        page = f"{sql} AND u.no>? ORDER BY u.no LIMIT {PAGE_ROWS}"
        while rows := self._rows(page, (*values, last)):
            yield from map(StoredUnit._make, rows)
            last = rows[-1][0]

    def find(self, key: str, *, aside: bool = False) -> Call | None:
        self._look()
        rows = self._rows(_FIND_ANY if aside else _FIND, (key,))
        return row_call(rows[0]) if rows else None

    def _look(self) -> None:
        """See the store as it is now for the rest of this turn of the event loop.

        All lookups of one turn share one snapshot, which saves most of their cost. A call that is
        committed meanwhile is still under way to whoever asks in this turn: its future is done in a
        later one, when there is a new snapshot.
        """
        loop = _running_loop()
        if loop is not self._looking:
            self._look_away()
            if loop is not None:
                self._looking = loop
                loop.call_soon(self._look_away)
                self._reading.execute("BEGIN")

    def _look_away(self) -> None:
        self._looking = None
        with suppress(sqlite3.ProgrammingError):  # the store was closed in between
            if self._reading.in_transaction:
                self._reading.execute("COMMIT")

    @property
    def _group(self) -> GroupWriter:
        if self._writer is None:
            self._writer = GroupWriter(self._writing)
        return self._writer

    def record(self, call: Call, attempt: str = "") -> Future[None]:
        released = [(_RELEASE, (call.key, attempt))] if attempt else []
        return self._group.put(*released, (_RECORD, call_row(call, _now())))

    def reserve(self, run: str, key: str, attempt: str, amount: int) -> Future[None]:
        return self._group.put((_RESERVE, (key, attempt, run, amount)))

    def release(self, key: str, attempt: str) -> None:
        self._group.put_lazily(_RELEASE, (key, attempt))

    def settle(self, judgment: StoredJudgment) -> None:
        self._group.put_lazily(_SETTLE, judgment_row(judgment))

    def forget(self, unit: int, judge: int, repeat: int) -> None:
        self._group.put_lazily(_FORGET, (unit, judge, repeat))

    async def flush(self) -> None:
        await self._group.flush()

    def counts(self, scope: Scope, judgments_per_unit: int, tag: str) -> Counts:
        place = (scope.run, scope.start)
        [(units,)] = self._rows(f"SELECT COUNT(*) FROM units u WHERE {_IN_SCOPE}", place)
        columns = "j.status, j.reason, COUNT(*), SUM(j.calls), SUM(j.reasks)"
        grouped = f"{_STANDING.format(columns)} GROUP BY j.status, j.reason"
        rows = self._rows(grouped, (*place, tag))
        left_out = sum(number for status, _, number, *_ in rows if status == "left_out")
        return Counts(
            planned=units * judgments_per_unit - left_out,
            verdicts=sum(number for status, _, number, *_ in rows if status == "verdict"),
            failures={reason: number for _, reason, number, *_ in rows if reason is not None},
            calls=sum(row[3] for row in rows),
            reasks=sum(row[4] for row in rows),
            left_out=left_out,
            failed_calls={reason: calls for _, reason, _, calls, _ in rows if reason is not None},
        )

    def spent(self, run: str) -> Spent:
        [(cost, unpriced, calls, input_tokens, output_tokens)] = self._rows(
            "SELECT ifnull(SUM(cost), 0), SUM(cost IS NULL), COUNT(*),"
            " ifnull(SUM(input_tokens), 0), ifnull(SUM(output_tokens), 0) FROM calls WHERE run=?",
            (run,),
        )
        [(reserved,)] = self._rows(
            "SELECT ifnull(SUM(amount), 0) FROM reservations WHERE run=?", (run,)
        )
        return Spent(cost, reserved, unpriced or 0, calls, input_tokens, output_tokens)

    def runs(self) -> list[RunRow]:
        rows = self._rows("SELECT * FROM runs ORDER BY starts DESC")
        return [RunRow(i, name, jsontext.parse(text), *rest) for i, name, text, *rest in rows]

    def judgments(
        self, scope: Scope, tag: str, unit: str | None = None
    ) -> Iterator[tuple[StoredUnit, StoredJudgment]]:
        # Only a plain comparison is looked up in the index of the ids.
        named = () if unit is None else (unit,)
        sql = _STANDING.format(f"{_UNIT}, {_JUDGMENT}") + " AND u.id=?" * len(named)
        order = " ORDER BY j.unit, j.judge, j.repeat"
        with self._used():
            cursor = self._reading.execute(sql + order, (scope.run, scope.start, tag, *named))
            while rows := cursor.fetchmany(PAGE_ROWS):
                for row in rows:
                    yield StoredUnit(*row[:4]), row_judgment(row[4:])

    def verify(self) -> list[str]:
        try:
            return list(faults(self._reading))
        except sqlite3.DatabaseError as error:
            return [f"the file is damaged: {error}"]

    def close(self) -> None:
        if self._writer:
            self._writer.stop()
        self._reading.close()
        self._writing.close()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)


def _running_loop() -> AbstractEventLoop | None:
    try:
        return get_running_loop()
    except RuntimeError:
        return None


def _unit_row(unit: IncomingUnit) -> tuple[Any, ...]:
    return (unit.id, unit.origin, digest(unit.body), unit.body)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
