"""The ledger in a SQLite file: one thread that writes in groups, and lookups beside it."""

from __future__ import annotations

import sqlite3
from asyncio import AbstractEventLoop, Future, get_running_loop
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from pathlib import Path

from evenhand.limits import BUSY_MILLISECONDS, LOG_BYTES, LOOKS_PER_CHECK, WAITING_KILOBYTES
from evenhand.manifest import Manifest
from evenhand.store.beside import Unrecorded
from evenhand.store.codec import CALL_COLUMNS, call_row, judgment_row
from evenhand.store.ports import (
    Call,
    IncomingUnit,
    Intake,
    QuestionLocks,
    Scope,
    Sending,
    StoredJudgment,
    StoredUnit,
)
from evenhand.store.sql.browse import LEDGER_CALL, ledger_call
from evenhand.store.sql.intake import SETTLE, WaitingUnits, batches
from evenhand.store.sql.start import start
from evenhand.store.sql.work import FORGET, judging_number, open_units, set_aside
from evenhand.store.sqlite.connection import StoreFile, now, transaction
from evenhand.store.sqlite.recorded_keys import FINDS_BEFORE, RecordedKeys
from evenhand.store.sqlite.session import SqliteSession
from evenhand.store.sqlite.upkeep import Upkeep
from evenhand.store.sqlite.writer import GroupWriter

MARKS = ",".join("?" * (CALL_COLUMNS.count(",") + 3))
# A row that is refused ends its whole group anyway. Said so here, SQLite need not be ready to undo
# the rows of one statement, for which it would copy pages to a file of its own.
_RECORD = f"INSERT OR ROLLBACK INTO calls ({CALL_COLUMNS}, digest, at) VALUES ({MARKS})"
_FIND = f"SELECT {LEDGER_CALL} FROM calls WHERE key=? AND aside IS NULL ORDER BY no"
_RESERVE = "INSERT OR REPLACE INTO reservations VALUES (?,?,?,?)"
_NOTE_SENDING = "INSERT INTO sendings VALUES (?,?,?,?)"
_FORGET_SENDINGS = "DELETE FROM sendings WHERE abs(at - ?) > 60"
_CORRECT_SENDING = "UPDATE sendings SET tokens=? WHERE name=?"
_DROP_SENDING = "DELETE FROM sendings WHERE name=?"
_RELEASE = "DELETE FROM reservations WHERE key=? AND attempt=?"
_PAID = {_RECORD: "call", _RELEASE: "release"}
"""What is kept beside the store where it cannot be written."""
_IS_THERE = "SELECT 1 FROM calls WHERE key=? AND at=? AND digest=?"
# Units that wait for their run stay in memory, if they are not too many; and where SQLite is built
# to overwrite what is deleted, what lay in a table of the session's own need not be.
_ROOM_TO_WAIT = (
    f"PRAGMA temp.cache_size = -{WAITING_KILOBYTES}",
    "PRAGMA temp.secure_delete = OFF",
)


class SqliteLedger:
    """A ledger in one file."""

    questions: QuestionLocks | None = None

    def __init__(self, file: StoreFile) -> None:
        file.require_writable()
        self._file = file
        self._writer: GroupWriter | None = None
        self._looking: AbstractEventLoop | None = None
        self._keys: RecordedKeys | None = None
        self._finds = 0
        self._looks, self._log = 0, Path(f"{file.place}-wal")
        self._judging_of: dict[str, int] = {}
        self._waiting: WaitingUnits | None = None
        with ExitStack() as undo, file.in_use():
            self._writing = file.connect()
            undo.callback(self._writing.close)
            self._reading = file.connect()
            undo.callback(self._reading.close)
            self._session = SqliteSession(file, self._writing)
            self._beside = SqliteSession(file, self._reading)
            self._upkeep = Upkeep(file, self._writing, _PAID)
            undo.callback(self._upkeep.finish)
            self._upkeep.require_whole()
            self._take_in()
            undo.pop_all()

    def _take_in(self) -> None:
        """Record the replies that wait beside the store."""
        statements = {name: sql for sql, name in _PAID.items()}
        with Unrecorded(self._file.place).waiting() as rows:
            if not rows:
                return
            with transaction(self._writing):
                for name, row in rows:
                    *_, hashed, at = row
                    if (
                        name == "release"
                        or not self._writing.execute(_IS_THERE, (row[0], at, hashed)).fetchone()
                    ):
                        self._writing.execute(statements[name], row)

    async def intake(self, units: Iterable[IncomingUnit]) -> Intake:
        await self._settle_down()
        with self._file.in_use():
            for setting in _ROOM_TO_WAIT:
                self._writing.execute(setting)
        self._waiting = WaitingUnits(self._session)
        for batch in batches(units):
            self._waiting.add(batch)
        self._waiting.count_up()
        return Intake(self._waiting.content)

    @asynccontextmanager
    async def begin(
        self, run: str, name: str, manifest: Manifest, intake: Intake | None
    ) -> AsyncIterator[None]:
        waiting = self._waiting if intake else None
        assert intake is None or (waiting is not None and waiting.content == intake.content)
        async with self.claim(run):
            await self._settle_down()
            is_import = waiting is not None and waiting.has_judgments
            cache = self._writing.larger_cache() if is_import else nullcontext()
            with self._file.in_use(), cache, self._session.transaction():
                start(self._session, run, name, manifest, waiting, now())
            if waiting is not None:
                waiting.clear()
            with self._file.in_use():
                self._require_present()
            yield

    def _require_present(self) -> None:
        """Refuse to go on where the store is not where it was; raises StoreError."""
        if error := self._upkeep.after_commit():
            raise error

    @asynccontextmanager
    async def claim(self, run: str) -> AsyncIterator[None]:
        with self._file.claimed(run, self._writing.inode):
            yield

    async def set_aside(
        self,
        scope: Scope,
        kept: Sequence[str],
        bad_tries: Callable[[StoredJudgment], Iterable[str]],
    ) -> None:
        await self._settle_down()
        judging = self._judging_number(scope.run)
        with self._session.transaction():
            set_aside(self._session, scope, judging, kept, bad_tries, now())

    async def open_work(
        self, scope: Scope, judge: int, repeat: int, again: Sequence[str], after: int = 0
    ) -> list[StoredUnit]:
        judging = self._judging_number(scope.run)
        return open_units(self._beside, scope, judging, judge, repeat, again)(after)

    def _judging_number(self, run: str) -> int:
        """The number of a run's judging."""
        if run not in self._judging_of:
            self._judging_of[run] = judging_number(self._session, run)
        return self._judging_of[run]

    async def find(self, key: str) -> Call | None:
        if self._writer is not None and self._writer.is_held_up:
            await self._writer.flush()  # what cannot be recorded must not be asked
        try:
            keys = self._look()
            if keys is not None and not keys.may_have(key):
                return None
            rows = self._reading.execute(_FIND, (key,)).fetchall()
        except sqlite3.Error as error:
            raise self._file.unusable(error) from None
        for row in rows:
            call = ledger_call(row)
            if not call.altered:
                return call.call
        return None

    def _look(self) -> RecordedKeys | None:
        """See the store as it is now for the rest of this turn of the event loop; the keys that it
        has, where they are known.

        All lookups of one turn share one look, or one snapshot, which saves most of their cost. A
        call that is committed meanwhile is still under way to whoever asks in this turn: its future
        is done in a later one, when there is a new look.
        """
        loop = get_running_loop()
        self._finds += 1
        if loop is not self._looking:
            self._look_away()
            self._shorten_log()
            if self._keys is None and self._finds > FINDS_BEFORE:
                self._keys = RecordedKeys(self._reading)
            if self._known_keys is not None:
                self._known_keys.look()
            if self._known_keys is None:
                self._reading.execute("BEGIN")
            # Not before the store was really seen: whoever asks next in this turn goes by it.
            self._looking = loop
            loop.call_soon(self._look_away)
        return self._known_keys

    @property
    def _known_keys(self) -> RecordedKeys | None:
        """The keys of the store, where all of them are known here."""
        return self._keys if self._keys is not None and self._keys.are_known else None

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
        except OSError:
            return  # nothing was written yet, or SQLite keeps no log here
        self._reading.execute("PRAGMA busy_timeout = 0")
        try:
            self._reading.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._reading.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")

    def _look_away(self) -> None:
        self._looking = None
        # The ledger was closed in between, or whoever looks next will hear what is wrong.
        with suppress(sqlite3.Error):
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
            self._writer = GroupWriter(self._writing, self._upkeep)
        return self._writer

    def record(self, call: Call, attempt: str = "") -> Future[None]:
        released = [(_RELEASE, (call.key, attempt))] if attempt else []
        return self._group.put(*released, (_RECORD, call_row(call, now())))

    def reserve(self, run: str, key: str, attempt: str, amount: int) -> Future[None]:
        return self._group.put((_RESERVE, (key, attempt, run, amount)))

    async def release(self, key: str, attempt: str) -> None:
        self._group.put_lazily(_RELEASE, (key, attempt))

    def note_sending(self, sending: Sending) -> Future[None]:
        return self._group.put((_FORGET_SENDINGS, (sending.at,)), (_NOTE_SENDING, sending))

    async def correct_sending(self, name: str, tokens: int | None) -> None:
        if tokens is None:
            self._group.put_lazily(_DROP_SENDING, (name,))
        else:
            self._group.put_lazily(_CORRECT_SENDING, (tokens, name))

    async def settle(self, run: str, judgment: StoredJudgment) -> None:
        row = judgment_row(self._judging_number(run), judgment)
        self._group.put_lazily(SETTLE, row)

    async def forget(self, run: str, unit: int, judge: int, repeat: int) -> None:
        self._group.put_lazily(FORGET, (self._judging_number(run), unit, judge, repeat))

    async def flush(self) -> None:
        await self._group.flush()

    def close(self) -> None:
        """Write what is left, and end the thread."""
        self._look_away()
        if self._writer is not None:
            self._writer.stop()
        else:
            self._upkeep.finish()
        self._reading.close()
        self._writing.close()
