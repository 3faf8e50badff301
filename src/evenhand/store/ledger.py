"""The ledger of a store, the port that runs are written through: rows go through the group writer,
lookups and rare work through sessions of their own.

Everything is awaited: the database may stand at the other end of a network. When `record` or
`reserve` is done, the row survives a crash of the process and of the machine. Judgments are written
with the next such commit: they can always be recomputed from the calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Concatenate, ParamSpec, TypeVar

from evenhand.errors import StoreBusy
from evenhand.exchange import Usage
from evenhand.limits import BATCH_ROWS, CLAIM_PAUSES
from evenhand.manifest import Manifest
from evenhand.store.archive import Archive
from evenhand.store.batches import RELEASE, RESERVE, Batches
from evenhand.store.intake import (
    FORGET,
    WaitingUnits,
    judging_number,
    open_units,
    set_aside,
    start_run,
)
from evenhand.store.ports import (
    Call,
    IncomingUnit,
    Intake,
    Scope,
    SentRequest,
    StoredJudgment,
    StoredUnit,
)
from evenhand.store.rows import (
    KEEP_CALL,
    LEDGER_CALL,
    SETTLE,
    call_row,
    judgment_row,
    ledger_call,
    now,
)
from evenhand.store.session import Connect, GroupWriter, Session, Statement, Write
from evenhand.words import Sentence

P = ParamSpec("P")
T = TypeVar("T")
_FORGET_REQUESTS = Statement(0, "DELETE FROM sent_requests WHERE abs(at - ?) > 60")
_NOTE_REQUEST = Statement(1, "INSERT INTO sent_requests VALUES (?,?,?,?) ON CONFLICT DO NOTHING")
_CORRECT_REQUEST = Statement(2, "UPDATE sent_requests SET tokens=? WHERE name=?")
_DROP_REQUEST = Statement(3, "DELETE FROM sent_requests WHERE name=?")
_RESERVE = Statement(4, RESERVE)
_RELEASE = Statement(5, RELEASE)
_RECORD = Statement(6, KEEP_CALL)
_SETTLE = Statement(7, SETTLE)
_FORGET = Statement(7, FORGET)
_FIND = (
    f"SELECT {LEDGER_CALL} FROM calls WHERE key IN (SELECT value FROM json_each(:keys))"
    " AND aside IS NULL ORDER BY no DESC"
)
_ANALYZE = "ANALYZE units, run_units, judgments"
_MANY = 1000
"""Units after which a server is told to count its tables: by itself it would do so a minute later,
and read whole tables for each page until then."""
_FORGET_SECONDS = 10.0
"""Requests older than a minute are dropped so often."""


def _writable(connect: Connect) -> Session:
    session = connect()
    try:
        session.require_writable()
    except BaseException:
        session.close()
        raise
    return session


class Ledger:
    """Writes runs, one writer at a time per run, from one event loop."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        with ExitStack() as undo:
            self._writing = _writable(connect)
            undo.callback(self._writing.close)
            self._reading = connect()
            undo.callback(self._reading.close)
            self._bulk_session = connect()
            undo.pop_all()
        self._writer = GroupWriter(self._writing)
        # What takes long waits its turn in a thread, and the thread is waited for at the end.
        self._thread = ThreadPoolExecutor(1, "evenhand-store")
        self._asked: list[str] = []
        self._lookup: asyncio.Task[dict[str, Call]] | None = None
        self._looking = asyncio.Lock()
        self._judgings: dict[str, int] = {}
        self._waiting: WaitingUnits | None = None
        self._forgot_at = 0.0
        self.questions = QuestionLocks(self._reading) if self._reading.is_remote else None
        """None where equal questions of two processes are not worth a lock."""

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        """Write what is left, and close the sessions."""
        try:
            self._writer.stop()
        finally:
            if self.questions is not None:
                self.questions.close()
            self._thread.shutdown()
            for session in (self._writing, self._reading, self._bulk_session):
                session.close()

    async def _in_thread(self, work: Callable[P, T], *values: P.args, **named: P.kwargs) -> T:
        """Return the result of work that would hold the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(work, *values, **named))

    async def intake(self, units: Iterable[IncomingUnit]) -> Intake:
        """Read all units, which then wait for `begin`; raise DataError if an id repeats. What
        waits is dropped by the next intake."""
        waiting = await self._in_thread(WaitingUnits, self._bulk_session)
        source = iter(units)
        while batch := list(islice(source, BATCH_ROWS)):
            await self._in_thread(waiting.add, batch)
        await self._in_thread(waiting.finish)
        self._waiting = waiting
        return Intake(waiting.content)

    @asynccontextmanager
    async def begin(
        self, run: str, name: str, manifest: Manifest, intake: Intake | None
    ) -> AsyncIterator[None]:
        """Claim a run, and start it with the units of an intake and their judgments, all of them
        or, on any error, none. Without an intake, start a run again that has its units. Raises
        StoreBusy if another process judges the run."""
        waiting = self._waiting if intake else None
        assert intake is None or (waiting is not None and waiting.content == intake.content)
        async with self.claim(run):
            await self.flush()
            await self._in_thread(start_run, self._bulk_session, run, name, manifest, waiting)
            if waiting is not None:
                await self._in_thread(self._drop_waiting)
                if self._bulk_session.is_remote and waiting.size >= _MANY:
                    await self._in_thread(self._bulk_session.rows, _ANALYZE)
            yield

    def _drop_waiting(self) -> None:
        """End the session with the units that have joined their run: its temporary tables go with
        it, and no page of them is read again."""
        self._bulk_session.close()
        self._bulk_session, self._waiting = self._connect(), None

    @asynccontextmanager
    async def claim(self, run: str) -> AsyncIterator[None]:
        """Hold a run for this process; raises StoreBusy if another judges it."""
        # The session of a process that was killed takes a moment to end, and whoever looks if the
        # run is free may hold the lock for as long.
        pauses = iter(CLAIM_PAUSES)
        while not await asyncio.to_thread(self._writing.try_locks, [run]):
            if (pause := next(pauses, None)) is None:
                holder = await asyncio.to_thread(self._writing.lock_holder, run)
                raise busy(run, holder or "", self._writing.where)
            await asyncio.sleep(pause)
        try:
            yield
        finally:
            self._writing.unlock([run])

    async def set_aside(
        self,
        scope: Scope,
        kept: Sequence[str],
        bad_tries: Callable[[StoredJudgment], Iterable[str]],
    ) -> None:
        """Make failures pending, except those with a reason in `kept`. Those of their calls that
        `bad_tries` names stay recorded, but no longer answer: they can be asked again."""
        await self.flush()
        await self._in_thread(set_aside, self._bulk_session, scope, kept, bad_tries)

    async def open_work(
        self, scope: Scope, judge: int, repeat: int, again: Sequence[str], after: int = 0
    ) -> list[StoredUnit]:
        """Return a page of the units after a position that have no judgment by this judge, or a
        failure with a reason in `again`; none at the end."""
        return await self._read(open_units, scope, judge, repeat, again, after)

    async def _read(
        self, read: Callable[Concatenate[Session, P], T], *values: P.args, **named: P.kwargs
    ) -> T:
        """Return what is read through the session for reading: off the event loop if that takes a
        round trip, for a file is read faster than a thread is asked."""
        if self._reading.is_remote:
            return await asyncio.to_thread(read, self._reading, *values, **named)
        return read(self._reading, *values, **named)

    async def find(self, key: str) -> Call | None:
        """Return the first reply under a key that was not set aside, and is as it was recorded."""
        if self._writer.is_held_up:
            await self.flush()  # what cannot be recorded must not be asked
        self._asked.append(key)
        if self._lookup is None:
            self._lookup = asyncio.create_task(self._look_up(), name="evenhand-lookup")
        calls = await asyncio.shield(self._lookup)
        return calls.get(key)

    async def _look_up(self) -> dict[str, Call]:
        """Look up in one statement whatever was asked for since the last one."""
        async with self._looking:
            keys, self._asked, self._lookup = self._asked, [], None
            return await self._read(_first_answers, keys)

    def record(self, call: Call, attempt: str = "") -> Awaitable[None]:
        """Keep a reply and close its attempt's reservation; done when both are durable."""
        released = [Write(_RELEASE, (call.key, attempt))] if attempt else []
        return self._writer.put(*released, Write(_RECORD, call_row(call, now())))

    def reserve(
        self,
        run: str,
        key: str,
        attempt: str,
        amount: int,
        judge: str = "",
        most: Usage | None = None,
    ) -> Awaitable[None]:
        """Hold the money that a call may cost, before it is sent; of a call without a price, its
        judge and the most tokens that it can take. Done when it is durable."""
        tokens = (most.input_tokens or 0, most.output_tokens or 0) if most else (0, 0)
        return self._writer.put(Write(_RESERVE, (key, attempt, run, amount, judge, *tokens)))

    async def release(self, key: str, attempt: str) -> None:
        """Close a reservation that cost nothing."""
        self._writer.put_lazily(Write(_RELEASE, (key, attempt)))

    def note_request(self, request: SentRequest) -> Awaitable[None]:
        """Note a request before it is sent; done when it is durable. Those older than a minute are
        forgotten by and by."""
        if abs(request.at - self._forgot_at) > _FORGET_SECONDS:
            self._forgot_at = request.at
            self._writer.put_lazily(Write(_FORGET_REQUESTS, (request.at,)))
        return self._writer.put(Write(_NOTE_REQUEST, tuple(request)))

    async def correct_request(self, name: str, tokens: int | None) -> None:
        """Replace the bound of a request's tokens by their count; None if it was not sent."""
        if tokens is None:
            self._writer.put_lazily(Write(_DROP_REQUEST, (name,)))
        else:
            self._writer.put_lazily(Write(_CORRECT_REQUEST, (tokens, name)))

    async def store_judgment(self, run: str, judgment: StoredJudgment) -> None:
        """Keep a judgment under the run's judging, in place of the one before."""
        row = judgment_row(await self._judging(run), judgment)
        self._writer.put_lazily(Write(_SETTLE, row))

    async def forget(self, run: str, unit: int, judge: int, repeat: int) -> None:
        """Drop a judgment of the run's judging: the unit is pending again."""
        place = (await self._judging(run), unit, judge, repeat)
        self._writer.put_lazily(Write(_FORGET, place))

    async def _judging(self, run: str) -> int:
        if run not in self._judgings:
            self._judgings[run] = await self._read(judging_number, run)
        return self._judgings[run]

    async def flush(self) -> None:
        """Wait until everything handed over is durable."""
        await self._writer.put()


def _first_answers(session: Session, keys: Sequence[str]) -> dict[str, Call]:
    """Return the first reply under each key that is as it was recorded."""
    found = map(ledger_call, session.rows(_FIND, {"keys": keys}))  # the first come last
    return {call.call.key: call.call for call in found if not call.altered}


def busy(run: str, holder: str, where: str) -> StoreBusy:
    """Return the error for a run that another process holds."""
    key = "store.busy_with" if holder else "store.busy"
    return StoreBusy(Sentence(key, run=run, holder=holder), where=where)


class QuestionLocks:
    """Locks on questions, so that of the processes that share a store one asks each: held by a
    session, taken and given back in one thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: set[str] = set()
        self._thread = ThreadPoolExecutor(1, "evenhand-questions")

    async def take(self, key: str) -> bool:
        """Lock a question before it is asked; return False if another process is asking it. The
        lock of a process that died is free."""
        if key in self._held:
            return False
        self._held.add(key)
        loop = asyncio.get_running_loop()
        try:
            taken = await loop.run_in_executor(self._thread, self._session.try_locks, [key])
        except BaseException:
            self.give_back(key)  # whoever asked has gone, and it may still be taken
            raise
        if not taken:
            self._held.discard(key)
        return bool(taken)

    def give_back(self, key: str) -> None:
        """Unlock a question, soon."""
        self._held.discard(key)
        self._thread.submit(self._session.unlock, [key])

    def close(self) -> None:
        """Do nothing more: the locks end with the session."""
        self._thread.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Store:
    """The ports of one store. A ledger is opened for the time of the work that writes."""

    archive: Archive
    connect: Connect
    end: Callable[[], None] = lambda: None
    """Called when the store is closed."""

    @asynccontextmanager
    async def ledger(self) -> AsyncIterator[Ledger]:
        """Open the ledger."""
        with await asyncio.to_thread(Ledger, self.connect) as opened:
            yield opened

    @asynccontextmanager
    async def batches(self) -> AsyncIterator[Batches]:
        """Open the port of batches."""
        with closing(await asyncio.to_thread(_writable, self.connect)) as session:
            yield Batches(session)

    def close(self) -> None:
        """Close the archive; no ledger may be open."""
        self.archive.close()
        self.end()
