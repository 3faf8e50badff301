"""The ledger in a PostgreSQL database: groups written by one task, lookups beside it, and what is
done rarely through a session in a thread of its own."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from evenhand.errors import StoreBusy, StoreError
from evenhand.manifest import Manifest
from evenhand.store.beside import Unrecorded
from evenhand.store.codec import CallRow, call_row, judgment_row
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
from evenhand.store.postgres.claims import HOLD, HOLDER, LET_GO, halves, lock_number
from evenhand.store.postgres.link import Link
from evenhand.store.postgres.lookups import Lookups
from evenhand.store.postgres.questions import PostgresQuestionLocks
from evenhand.store.postgres.server import PROGRAM, Connection, Server, now
from evenhand.store.postgres.session import PostgresSession, spoken
from evenhand.store.postgres.writer import GroupWriter
from evenhand.store.sql.intake import WaitingUnits, batches
from evenhand.store.sql.start import start
from evenhand.store.sql.work import judging_number, open_units, set_aside

T = TypeVar("T")
_READ_ONLY = "SHOW transaction_read_only"
_PAUSES = (0.1, 0.3, 0.6)
"""Between tries to hold a run, in seconds."""
_MANY = 1000
"""So many units, and the server counts what they added: it would read whole tables for each page of
them, and do so by itself only some minute later."""
_COUNT = "ANALYZE units, run_units, judgments"


class PostgresLedger:
    """A ledger in a schema of a database, for the event loop that opens it."""

    def __init__(self, server: Server, unrecorded: Unrecorded) -> None:
        self._server, self._unrecorded = server, unrecorded
        self._claims: set[str] = set()
        self._lost_claim: StoreBusy | None = None
        self._writing = Link(server, self._resume)
        self.questions: QuestionLocks | None = (questions := PostgresQuestionLocks(server))
        self._questions, self._reading = questions, questions.link
        self._lookups = Lookups(server, self._reading)
        self._judging_of: dict[str, int] = {}
        self._waiting: WaitingUnits | None = None
        self._turn = asyncio.Lock()
        self._session: PostgresSession | None = None

    async def open(self) -> None:
        """Connect, and take in the replies that wait in a file; raises StoreError."""
        async with AsyncExitStack() as undo:
            for link in (self._writing, self._reading):
                await link.open()
                undo.push_async_callback(link.close)
            await self._require_writable()
            self._writer = GroupWriter(self._server, self._writing, self._unrecorded)
            undo.push_async_callback(self._writer.stop)
            self._writer.trouble = lambda: self._lost_claim
            await self._take_in()
            undo.pop_all()

    async def _require_writable(self) -> None:
        """Refuse a server that takes nothing, before anything is asked; raises StoreError."""
        if await self._do(lambda connection: connection.fetchval(_READ_ONLY)) == "on":
            raise StoreError(
                "the store can be read, but not written: the server is read-only, or a standby",
                where=self._server.where,
                advice="Name the server that is written to, or several, of which it is one:"
                " postgresql://a,b/DATABASE?target_session_attrs=read-write",
            )

    async def _take_in(self) -> None:
        with self._unrecorded.waiting() as rows:
            for name, row in rows:
                if name == "call":
                    self._writer.group.calls.append(CallRow(*row))
                else:
                    self._writer.group.reservations[row[0], row[1]] = None
            if rows:
                await self._writer.commit()

    async def intake(self, units: Iterable[IncomingUnit]) -> Intake:
        await self._writer.commit()
        waiting = await self._in_thread(WaitingUnits)
        for batch in batches(units):
            await asyncio.to_thread(waiting.add, batch)
        await asyncio.to_thread(waiting.count_up)
        self._waiting = waiting
        return Intake(waiting.content)

    @asynccontextmanager
    async def begin(
        self, run: str, name: str, manifest: Manifest, intake: Intake | None
    ) -> AsyncIterator[None]:
        waiting = self._waiting if intake else None
        assert intake is None or (waiting is not None and waiting.content == intake.content)

        def noted(session: PostgresSession) -> None:
            with session.transaction():
                session.hold_starts()
                start(session, run, name, manifest, waiting, now())
            if waiting is not None:
                waiting.clear()
                if waiting.size >= _MANY:
                    session.rows(_COUNT)

        async with self.claim(run):
            await self._writer.commit()
            await self._in_thread(noted)
            yield

    @asynccontextmanager
    async def claim(self, run: str) -> AsyncIterator[None]:
        number = lock_number(self._server.address.schema, run)
        if run in self._claims or not await self._hold(number):
            raise self._busy(run, await self._holder(number))
        self._claims.add(run)
        try:
            yield
        finally:
            self._claims.discard(run)
            await self._do(lambda connection: connection.fetchval(LET_GO, number))

    async def _hold(self, number: int) -> bool:
        """Hold a lock. The session of a process that was killed takes a moment to end."""
        for pause in (*_PAUSES, None):
            if await self._do(lambda connection: connection.fetchval(HOLD, number)):
                return True
            if pause is not None:
                await asyncio.sleep(pause)
        return False

    async def _holder(self, number: int) -> str:
        """The process that holds a lock, where the server says so."""
        sql, names = spoken(HOLDER)
        arguments = [halves(number)[name] for name in names]
        session = await self._do(lambda connection: connection.fetchval(sql, *arguments))
        process = str(session or "").removeprefix(f"{PROGRAM} ")
        return f" ({process})" if process else ""

    def _busy(self, run: str, holder: str = "") -> StoreBusy:
        return StoreBusy(
            f"run {run} is being judged by another process{holder}",
            where=self._server.where,
            advice="Wait until it has ended, or stop it; then run this command again.",
        )

    async def _resume(self, connection: Connection) -> None:
        """Hold on a new connection what the lost one held, and see that nothing went with it."""
        await self._writer.restore(connection)
        for run in self._claims:
            number = lock_number(self._server.address.schema, run)
            if not await connection.fetchval(HOLD, number):
                self._lost_claim = self._busy(run)

    async def set_aside(
        self,
        scope: Scope,
        kept: Sequence[str],
        bad_tries: Callable[[StoredJudgment], Iterable[str]],
    ) -> None:
        await self._writer.commit()
        judging = await self._judging_number(scope.run)

        def work(session: PostgresSession) -> None:
            with session.transaction():
                set_aside(session, scope, judging, kept, bad_tries, now())

        await self._in_thread(work)

    async def open_work(
        self, scope: Scope, judge: int, repeat: int, again: Sequence[str], after: int = 0
    ) -> list[StoredUnit]:
        judging = await self._judging_number(scope.run)
        return await self._in_thread(
            lambda session: open_units(session, scope, judging, judge, repeat, again)(after)
        )

    async def _judging_number(self, run: str) -> int:
        if run not in self._judging_of:
            number = await self._in_thread(lambda session: judging_number(session, run))
            self._judging_of[run] = number
        return self._judging_of[run]

    async def find(self, key: str) -> Call | None:
        if self._writer.is_held_up:
            await self._writer.commit()  # what cannot be recorded must not be asked
        return await self._lookups.find(key)

    def record(self, call: Call, attempt: str = "") -> Future[None]:
        group = self._writer.group
        if attempt:
            group.reservations[call.key, attempt] = None
        group.calls.append(call_row(call, now()))
        return self._writer.commit()

    def reserve(self, run: str, key: str, attempt: str, amount: int) -> Future[None]:
        self._writer.group.reservations[key, attempt] = (run, amount)
        return self._writer.commit()

    async def release(self, key: str, attempt: str) -> None:
        self._writer.group.reservations[key, attempt] = None
        self._writer.count_lazily()

    def note_sending(self, sending: Sending) -> Future[None]:
        self._writer.group.note_sending(sending)
        return self._writer.commit()

    async def correct_sending(self, name: str, tokens: int | None) -> None:
        self._writer.group.correct_sending(name, tokens)
        self._writer.count_lazily()

    async def settle(self, run: str, judgment: StoredJudgment) -> None:
        row = judgment_row(await self._judging_number(run), judgment)
        self._writer.group.judgments[row[:4]] = row
        self._writer.count_lazily()

    async def forget(self, run: str, unit: int, judge: int, repeat: int) -> None:
        judging = await self._judging_number(run)
        self._writer.group.judgments[judging, unit, judge, repeat] = None
        self._writer.count_lazily()

    async def flush(self) -> None:
        await self._writer.commit()

    async def _do(self, work: Callable[[Connection], Any]) -> Any:
        """The result of work on the connection that writes; raises StoreError."""
        async with self._server.in_use():
            return await self._writing.do(work)

    async def _in_thread(self, work: Callable[[PostgresSession], T]) -> T:
        """The result of work on the session, which blocks no event loop."""
        async with self._turn:
            if self._session is None:
                self._session = await asyncio.to_thread(
                    PostgresSession, self._server, is_reader=False
                )
            return await asyncio.to_thread(work, self._session)

    async def close(self) -> None:
        """Write what is left, and let go of the connections."""
        try:
            await self._writer.stop()
        finally:
            await self._lookups.close()
            await self._questions.close()
            await self._writing.close()
            await self._reading.close()
            if self._session is not None:
                await asyncio.to_thread(self._session.close)
