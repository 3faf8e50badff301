"""The SQLite store: WAL, synchronous=FULL, one writing thread, readers beside it."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from asyncio import AbstractEventLoop, Future, get_running_loop
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenhand import jsontext
from evenhand.errors import StoreError
from evenhand.judgment import JudgmentText
from evenhand.ledger.browse import (
    call_page,
    judgment_page,
    ledger_call,
    prepare,
    unit_of_call,
)
from evenhand.ledger.codec import (
    CALL_COLUMNS,
    call_row,
    judgment_row,
    row_call,
    row_judgment,
)
from evenhand.ledger.intake import Intake
from evenhand.ledger.lock import is_held, only_process
from evenhand.ledger.schema import MIGRATIONS
from evenhand.ledger.store import (
    Browsed,
    Call,
    CallPage,
    Counts,
    IncomingUnit,
    JudgedUnit,
    JudgmentPage,
    LedgerCall,
    PageRequest,
    RunRow,
    Scope,
    Spent,
    StoredJudgment,
    StoredUnit,
)
from evenhand.ledger.verify import faults
from evenhand.ledger.writer import MEND, GroupWriter
from evenhand.limits import (
    BUSY_MILLISECONDS,
    CHECKPOINT_PAGES,
    LOG_BYTES,
    LOOKS_PER_CHECK,
    PAGE_ROWS,
)

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


class SqliteStore:
    """A store in one file; with `path` None, one that vanishes when it is closed."""

    def __init__(self, path: Path | None) -> None:
        self._temporary = tempfile.mkdtemp(prefix="evenhand-") if path is None else None
        self.path = Path(self._temporary, "store.db") if self._temporary else Path(path or "")
        self._writer: GroupWriter | None = None
        self._looking: AbstractEventLoop | None = None
        self._looks, self._log = 0, Path(f"{self.path}-wal")
        try:
            self._writing = self._connect()
            self._migrate()
            self._reading = self._connect()
            prepare(self._reading)
            self._inode = self.path.stat().st_ino
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
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA synchronous = {'OFF' if self._temporary else 'FULL'}")
        return connection

    def _migrate(self) -> None:
        """Apply the migrations that are missing; refuse a store from a newer version."""
        if self._is_current():
            return  # whoever only reads need not wait for a writer
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

    def _is_current(self) -> bool:
        """Whether the store has all migrations, and no other."""
        try:
            applied = self._writing.execute("SELECT name FROM migrations").fetchall()
        except sqlite3.OperationalError:
            return False  # a store that is just being made
        return {name for (name,) in applied} == {name for name, _ in MIGRATIONS}

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
            intake = Intake(self._writing)
            intake.fill(units)
        with self._transaction():
            scope = self._start(run, name, manifest)
            intake.join(scope)
        return scope

    def _start(self, run: str, name: str, manifest: Mapping[str, Any]) -> Scope:
        """Note that a run starts, or starts again."""
        (last,) = self._writing.execute("SELECT ifnull(MAX(starts), 0) FROM runs").fetchone()
        self._writing.execute(
            "INSERT INTO runs VALUES (?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET"
            " manifest=excluded.manifest, started=excluded.started, starts=excluded.starts",
            (run, name, jsontext.dump(manifest), _now(), _now(), last + 1),
        )
        return Scope(run, last + 1)

    def take_in(
        self,
        run: str,
        name: str,
        manifest: Callable[[], Mapping[str, Any]],
        units: Iterable[JudgedUnit],
        tag: str,
    ) -> Scope:
        with self._used():
            intake = Intake(self._writing)
            intake.fill(intake.put_aside(units))
        with self._transaction():
            scope = self._start(run, name, manifest())
            intake.replace(scope, tag)
        return scope

    def set_aside(
        self,
        scope: Scope,
        kept: Sequence[str],
        bad_tries: Callable[[StoredJudgment], Iterable[str]],
    ) -> None:
        marks = ",".join("?" * len(kept))
        failed = f"{_JUDGED.format(_JUDGMENT)} AND j.reason NOT IN ({marks})"
        with self._transaction() as connection:
            rows = connection.execute(failed, (scope.run, scope.start, *kept)).fetchall()
            failures = [row_judgment(row) for row in rows]
            keys = {key for failure in failures for key in bad_tries(failure)}
            connection.executemany(_SET_ASIDE, [(_now(), key) for key in keys])
            places = [(failure.unit, failure.judge, failure.repeat) for failure in failures]
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
                self._shorten_log()
                self._reading.execute("BEGIN")

    def _shorten_log(self) -> None:
        """Let a write-ahead log that has become long begin anew.

        While a run is judged somebody nearly always reads, and what is being read cannot be
        dropped: between two looks is the moment. If the writer is at work just then, a later one
        will do.
        """
        self._looks += 1
        if self._looks % LOOKS_PER_CHECK or self._log.stat().st_size < LOG_BYTES:
            return
        self._reading.execute("PRAGMA busy_timeout = 0")
        self._reading.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._reading.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")

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

    def judged(self, scope: Scope, tag: str) -> Iterator[tuple[int, int, int, JudgmentText]]:
        sql = _STANDING.format("j.unit, j.judge, j.repeat, j.status, j.reason, j.body")
        order = " ORDER BY j.unit, j.judge, j.repeat"
        with self._used():
            cursor = self._reading.execute(sql + order, (scope.run, scope.start, tag))
            while rows := cursor.fetchmany(PAGE_ROWS):
                for unit, judge, repeat, *text in rows:
                    yield unit, judge, repeat, JudgmentText._make(text)

    def judgment_page(
        self, run: str, tag: str, browsed: Browsed, request: PageRequest
    ) -> JudgmentPage:
        with self._used():
            return judgment_page(self._reading, run, tag, browsed, request)

    def call_page(
        self, run: str, request: PageRequest, judge: str = "", text: str = ""
    ) -> CallPage:
        with self._used():
            return call_page(self._reading, run, judge, text, request)

    def ledger_calls(self, keys: Sequence[str]) -> dict[str, LedgerCall]:
        marks = ",".join("?" * len(keys))
        order = "ORDER BY aside IS NOT NULL DESC, no DESC"  # the one that answers comes last
        sql = f"SELECT no, at, aside, {CALL_COLUMNS} FROM calls WHERE key IN ({marks}) {order}"
        found = map(ledger_call, self._rows(sql, tuple(keys)))
        return {one.call.key: one for one in found}

    def ledger_call(self, run: str, no: int) -> tuple[LedgerCall, str | None] | None:
        sql = f"SELECT no, at, aside, {CALL_COLUMNS} FROM calls WHERE no=? AND run=?"
        for row in self._rows(sql, (no, run)):
            found = ledger_call(row)
            with self._used():
                return found, unit_of_call(self._reading, run, found)
        return None

    def unit_named(self, run: str, name: str) -> StoredUnit | None:
        rows = self._rows(f"SELECT {_UNIT} FROM units u WHERE u.run=? AND u.id=?", (run, name))
        return StoredUnit(*rows[0]) if rows else None

    def units_of_both(
        self, one: str, other: str, after: int = 0
    ) -> Iterator[tuple[StoredUnit, StoredUnit]]:
        sql = (
            f"SELECT {_UNIT}, v.no, v.id, v.digest, v.body FROM units u"
            " CROSS JOIN units v ON v.run=? AND v.id=u.id"
            f" WHERE u.run=? AND u.no>? ORDER BY u.no LIMIT {PAGE_ROWS}"
        )
        while rows := self._rows(sql, (other, one, after)):
            yield from ((StoredUnit(*row[:4]), StoredUnit(*row[4:])) for row in rows)
            after = rows[-1][0]

    def of_unit(self, unit: StoredUnit, tag: str) -> list[StoredJudgment]:
        sql = f"SELECT {_JUDGMENT} FROM judgments j WHERE j.unit=? AND j.basis=?"
        order = " ORDER BY j.judge, j.repeat"
        return [row_judgment(row) for row in self._rows(sql + order, (unit.no, tag + unit.digest))]

    def recent_calls(self, run: str, most: int) -> list[str]:
        sql = "SELECT at FROM calls WHERE run=? ORDER BY no DESC LIMIT ?"
        return [at for (at,) in self._rows(sql, (run, most))]

    def is_claimed(self, run: str) -> bool:
        return is_held(Path(f"{self.path}-locks", run))

    def state(self) -> int:
        [(number,)] = self._rows("PRAGMA data_version")
        return int(number)

    def is_there(self) -> bool:
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
