"""The ledger in a SQLite file: one thread that writes in groups, and lookups beside it."""

from __future__ import annotations

import sqlite3
from asyncio import AbstractEventLoop, Future, get_running_loop
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from evenhand.ledger.codec import CALL_COLUMNS, call_row, judgment_row, row_call, row_judgment
from evenhand.ledger.keys import digest
from evenhand.ledger.ports import Call, IncomingUnit, Intake, Scope, StoredJudgment, StoredUnit
from evenhand.ledger.sqlite.archive import bound, in_scope, scope_values
from evenhand.ledger.sqlite.browse import JUDGMENT, UNIT
from evenhand.ledger.sqlite.connection import StoreFile, now, transaction
from evenhand.ledger.sqlite.intake import WaitingUnits
from evenhand.ledger.sqlite.lock import only_process
from evenhand.ledger.sqlite.writer import GroupWriter
from evenhand.limits import BUSY_MILLISECONDS, LOG_BYTES, LOOKS_PER_CHECK, PAGE_ROWS
from evenhand.manifest import JudgingRecord, Manifest, judging_json, manifest_json

_RUN = "SELECT no FROM runs WHERE id=?"
_RECORD = f"INSERT INTO calls ({CALL_COLUMNS}, digest, at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_FIND = f"SELECT {CALL_COLUMNS} FROM calls WHERE key=? AND aside IS NULL ORDER BY no LIMIT 1"
_SETTLE = "INSERT OR REPLACE INTO judgments VALUES (?,?,?,?,?,?,?,?,?)"
_RESERVE = "INSERT OR REPLACE INTO reservations VALUES (?,?,?,?)"
_RELEASE = "DELETE FROM reservations WHERE key=? AND attempt=?"
_FORGET = "DELETE FROM judgments WHERE judging=? AND unit=? AND judge=? AND repeat=?"
_SET_ASIDE = "UPDATE calls SET aside=? WHERE key=? AND aside IS NULL"
_FAILED = (
    f"SELECT {JUDGMENT} FROM run_units m CROSS JOIN judgments j"
    " ON j.judging=:judging AND j.unit=m.unit WHERE {} AND j.reason NOT IN ({})"
)
_OPEN = (
    f"SELECT {UNIT} FROM run_units m LEFT JOIN judgments j"
    " ON j.judging=:judging AND j.unit=m.unit AND j.judge=:judge AND j.repeat=:repeat"
    " CROSS JOIN units u ON u.no=m.unit"
    " WHERE {} AND m.position>:after AND (j.unit IS NULL OR j.reason IN ({}))"
    f" ORDER BY m.position LIMIT {PAGE_ROWS}"
)
_START = (
    "INSERT INTO runs (id, name, judging, manifest, created, started, starts)"
    " VALUES (?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET"
    " manifest=excluded.manifest, started=excluded.started, starts=excluded.starts"
)


class SqliteLedger:
    """A ledger in one file."""

    def __init__(self, file: StoreFile) -> None:
        self._file = file
        self._writing, self._reading = file.connect(), file.connect()
        self._writer: GroupWriter | None = None
        self._looking: AbstractEventLoop | None = None
        self._looks, self._log = 0, Path(f"{file.path}-wal")
        self._judging_of: dict[str, int] = {}
        self._waiting: WaitingUnits | None = None

    async def intake(self, units: Iterable[IncomingUnit]) -> Intake:
        await self._settle_down()
        with self._file.in_use():
            self._waiting = WaitingUnits(self._writing, units)
        return Intake(self._waiting.content)

    @asynccontextmanager
    async def begin(
        self, run: str, name: str, manifest: Manifest, intake: Intake
    ) -> AsyncIterator[None]:
        waiting = self._waiting
        assert waiting is not None and waiting.content == intake.content
        async with self.claim(run):
            await self._settle_down()
            with self._file.in_use(), transaction(self._writing):
                is_known = self._writing.execute(_RUN, (run,)).fetchone() is not None
                self._start(run, name, manifest)
                if not is_known:
                    (number,) = self._writing.execute(_RUN, (run,)).fetchone()
                    waiting.join(number)
            with self._file.in_use():
                waiting.clear()
            yield

    def _start(self, run: str, name: str, manifest: Manifest) -> None:
        """Note that a run starts, or starts again."""
        (last,) = self._writing.execute("SELECT ifnull(MAX(starts), 0) FROM runs").fetchone()
        judging = self._judging(manifest.judging)
        record, at = manifest_json(manifest).decode(), now()
        self._writing.execute(_START, (run, name, judging, record, at, at, last + 1))

    def _judging(self, judging: JudgingRecord) -> int:
        """The number of a judging, which is kept with its texts unless it is there."""
        find, ident = "SELECT no FROM judgings WHERE id=?", judging.id
        row = self._writing.execute(find, (ident,)).fetchone()
        if row is None:
            digests = {name: digest(text) for name, text in judging.texts.items()}
            texts = [(digests[name], text) for name, text in judging.texts.items()]
            self._writing.executemany("INSERT OR IGNORE INTO texts VALUES (?,?)", texts)
            record = judging_json(judging, digests).decode()
            self._writing.execute("INSERT INTO judgings (id, record) VALUES (?,?)", (ident, record))
            row = self._writing.execute(find, (ident,)).fetchone()
        return int(row[0])

    @asynccontextmanager
    async def claim(self, run: str) -> AsyncIterator[None]:
        with only_process(self._file.lock_of(run), f"run {run}"):
            yield

    async def set_aside(
        self,
        scope: Scope,
        kept: Sequence[str],
        bad_tries: Callable[[StoredJudgment], Iterable[str]],
    ) -> None:
        await self._settle_down()
        sql = _FAILED.format(in_scope(scope), bound("kept", kept))
        values = self._values(scope) | _bindings("kept", kept)
        with self._file.in_use(), transaction(self._writing):
            rows = self._writing.execute(sql, values).fetchall()
            failures = [row_judgment(row) for row in rows]
            keys = {key for failure in failures for key in bad_tries(failure)}
            self._writing.executemany(_SET_ASIDE, [(now(), key) for key in keys])
            judging = values["judging"]
            places = [(judging, *failure[:3]) for failure in failures]
            self._writing.executemany(_FORGET, places)

    async def open_work(
        self, scope: Scope, judge: int, repeat: int, again: Sequence[str], after: int = 0
    ) -> list[StoredUnit]:
        sql = _OPEN.format(in_scope(scope), bound("again", again))
        values = self._values(scope) | _bindings("again", again)
        values |= {"judge": judge, "repeat": repeat, "after": after}
        with self._file.in_use():
            return [StoredUnit._make(row) for row in self._reading.execute(sql, values)]

    def _values(self, scope: Scope) -> dict[str, Any]:
        judging = self._judging_number(scope.run)
        return scope_values(scope) | {"judging": judging}

    def _judging_number(self, run: str) -> int:
        """The number of a run's judging."""
        if run not in self._judging_of:
            find = "SELECT judging FROM runs WHERE id=?"
            with self._file.in_use():
                (self._judging_of[run],) = self._writing.execute(find, (run,)).fetchone()
        return self._judging_of[run]

    async def find(self, key: str) -> Call | None:
        self._look()
        try:
            row = self._reading.execute(_FIND, (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._file.unusable(error) from None
        return None if row is None else row_call(row)

    def _look(self) -> None:
        """See the store as it is now for the rest of this turn of the event loop.

        All lookups of one turn share one snapshot, which saves most of their cost. A call that is
        committed meanwhile is still under way to whoever asks in this turn: its future is done in a
        later one, when there is a new snapshot.
        """
        loop = get_running_loop()
        if loop is not self._looking:
            self._look_away()
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
        if self._looks % LOOKS_PER_CHECK:
            return
        try:
            if self._log.stat().st_size < LOG_BYTES:
                return
        except FileNotFoundError:
            return  # nothing was written yet, or SQLite keeps no log here
        self._reading.execute("PRAGMA busy_timeout = 0")
        self._reading.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._reading.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")

    def _look_away(self) -> None:
        self._looking = None
        with suppress(sqlite3.ProgrammingError):  # the ledger was closed in between
            if self._reading.in_transaction:
                self._reading.execute("COMMIT")

    async def _settle_down(self) -> None:
        """Let go of the snapshot, and wait for what is being written: without a log a reader keeps
        the writer waiting, and the thread's connection is to be used here."""
        self._look_away()
        if self._writer is not None:
            await self._writer.flush()

    @property
    def _group(self) -> GroupWriter:
        if self._writer is None:
            self._writer = GroupWriter(self._writing)
        return self._writer

    def record(self, call: Call, attempt: str = "") -> Future[None]:
        released = [(_RELEASE, (call.key, attempt))] if attempt else []
        return self._group.put(*released, (_RECORD, call_row(call, now())))

    def reserve(self, run: str, key: str, attempt: str, amount: int) -> Future[None]:
        return self._group.put((_RESERVE, (key, attempt, run, amount)))

    async def release(self, key: str, attempt: str) -> None:
        self._group.put_lazily(_RELEASE, (key, attempt))

    async def settle(self, run: str, judgment: StoredJudgment) -> None:
        row = judgment_row(judgment)
        self._group.put_lazily(_SETTLE, (self._judging_number(run), *row))

    async def forget(self, run: str, unit: int, judge: int, repeat: int) -> None:
        self._group.put_lazily(_FORGET, (self._judging_number(run), unit, judge, repeat))

    async def flush(self) -> None:
        await self._group.flush()

    def close(self) -> None:
        """Write what is left, and end the thread."""
        if self._writer is not None:
            self._writer.stop()
        self._reading.close()
        self._writing.close()


def _bindings(name: str, values: Sequence[str]) -> dict[str, Any]:
    return {f"{name}{place}": value for place, value in enumerate(values)}
