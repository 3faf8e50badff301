"""Workers at one PostgreSQL store: the port `Worker` in single statements.

A worker has one connection, and its statements follow each other. They are committed without
waiting for the disk, except for money: what a crash of the server takes back of leases, claims and
signs of life is the end of a history in which everything fits together, and another worker takes
over. A statement whose outcome was lost with the connection is made again.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from decimal import Decimal
from typing import Any, TypeVar

from evenhand.errors import StoreError, UsageError, quoted
from evenhand.ledger.codec import JUDGMENT_COLUMNS, judgment_row
from evenhand.ledger.coordination import (
    Admission,
    Grant,
    Lease,
    OpenRun,
    Rates,
    Slot,
    Work,
)
from evenhand.ledger.ports import StoredJudgment, StoredUnit
from evenhand.ledger.postgres.server import FAILED, LOST, Connection, Server, closed
from evenhand.limits import (
    LEASE_SECONDS,
    LEASE_SECONDS_MOST,
    PACE_AHEAD_SECONDS,
    SERVER_AWAY_SECONDS,
)

T = TypeVar("T")
VARIABLE = "EVENHAND_LEASE_SECONDS"
Statement = Callable[[Connection], Awaitable[T]]

_FORGOTTEN = "1 hour"
"""After so long nobody asks any more what became of a worker that was not heard of."""
_SETTINGS = (
    "SET synchronous_commit = off",
    # Every row is found by an index. A server that has not counted a new store's rows yet takes
    # its tables for small ones, and would read them whole for each page of units that is leased.
    "SET enable_seqscan = off",
)
_BEAT = "SELECT beat($1, $2, $3, $4, $5, $6, $7::bigint[])"
_FORGET = (
    "DELETE FROM claims WHERE NOT is_alive(worker)",
    f"DELETE FROM workers WHERE until < clock_timestamp() - interval '{_FORGOTTEN}'",
)
_LEAVE = (
    "UPDATE leases SET worker=NULL WHERE worker=$1",
    "DELETE FROM claims WHERE worker=$1",
    "DELETE FROM allotments WHERE worker=$1",
    "DELETE FROM workers WHERE id=$1",
)
_OPEN = (
    "INSERT INTO open_runs SELECT r.id, r.no, r.judging, (SELECT coalesce(max(position), 0)"
    " FROM run_units WHERE run=r.no), $2::bigint, $3, nextval('fences'), clock_timestamp(), ''"
    " FROM runs r WHERE r.id=$1 ON CONFLICT (run) DO UPDATE SET"
    " unit_limit=excluded.unit_limit, terms=excluded.terms, opening=excluded.opening,"
    " opened=excluded.opened, stopped=''"
)
_REOPENED = (
    "DELETE FROM walks WHERE run=$1",
    "DELETE FROM retries WHERE run=$1",
    "DELETE FROM budgets WHERE run=$1",
    "DELETE FROM shares WHERE run=$1 AND NOT is_alive(worker)",
)
_RETRIES = (
    "INSERT INTO retries SELECT o.run, j.judge, j.repeat, m.position, j.unit, j.reason"
    " FROM open_runs o CROSS JOIN LATERAL (SELECT unit, judge, repeat, reason FROM judgments"
    " WHERE judging=o.judging AND reason IS NOT NULL AND reason = ANY($2::text[]) OFFSET 0) j"
    " CROSS JOIN LATERAL"
    " (SELECT position FROM run_units WHERE run=o.number AND unit=j.unit OFFSET 0) m"
    " WHERE o.run=$1 AND m.position <= coalesce(o.unit_limit, o.size)"
)
_BUDGET = "INSERT INTO budgets VALUES ($1, $2, $3, $2)"
"""What was spent is counted when somebody first asks for money."""
_OPEN_RUNS = "SELECT run, unit_limit, terms, opening, stopped FROM open_runs ORDER BY opened, run"
_STOPPED = "SELECT stopped FROM open_runs WHERE run=$1"
_STOP = "UPDATE open_runs SET stopped=$2 WHERE run=$1"
_OPENING = "SELECT opening FROM open_runs WHERE run=$1"
_IN_RUN = (
    " FROM leases l JOIN open_runs o ON o.judging=l.judging JOIN run_units m ON m.run=o.number"
    " AND m.unit=l.unit WHERE o.run=$1 AND m.position <= coalesce(o.unit_limit, m.position)"
)
_CLOSE = (
    "DELETE FROM open_runs WHERE run=$1 AND opening=$2 AND stopped=''"
    " AND $3 = (SELECT count(*) FROM walks w WHERE w.run=$1 AND w.position >="
    " least(open_runs.size, coalesce(open_runs.unit_limit, open_runs.size))"
    " AND (SELECT TRUE FROM retries r WHERE r.run=$1 AND r.judge=w.judge AND r.repeat=w.repeat"
    " AND r.position > w.retried LIMIT 1) IS NULL)"
    f" AND NOT EXISTS (SELECT 1{_IN_RUN}) RETURNING TRUE"
)
_WITHDRAW = (
    "DELETE FROM open_runs o WHERE o.run=$1 AND NOT EXISTS"
    " (SELECT 1 FROM leases l WHERE l.judging=o.judging AND is_alive(l.worker))"
)
_LEFT_BEHIND = (
    "DELETE FROM leases l USING runs r WHERE r.id=$1 AND l.judging=r.judging"
    " AND (SELECT TRUE FROM run_units m WHERE m.run=r.no AND m.unit=l.unit)"
    " AND NOT EXISTS (SELECT 1 FROM open_runs o WHERE o.judging=r.judging)"
)
"""Who judges a run alone judges these too. Another run of its judging that is open needs them."""
_CLOSED = tuple(f"DELETE FROM {table} WHERE run=$1" for table in ("walks", "retries", "budgets"))
_COUNT = "ANALYZE judgments"
"""Or the server would read them all for each page of a report."""
_LEASE = (
    "SELECT l.unit, l.place, u.id, u.body, l.fence"
    " FROM lease_units($1, $2, $3, $4, $5, $6) l CROSS JOIN LATERAL"
    " (SELECT id, body FROM units WHERE no=l.unit OFFSET 0) u ORDER BY l.place"
)
_ELSEWHERE = f"SELECT EXISTS (SELECT 1{_IN_RUN} AND l.judge=$2 AND l.worker IS DISTINCT FROM $3)"
_HELD = "SELECT fence FROM leases WHERE worker=$1"
_DROP = "DELETE FROM leases WHERE worker=$1 AND fence = ANY($2::bigint[])"
_HAND_BACK = "UPDATE leases SET worker=NULL WHERE worker=$1 AND fence = ANY($2::bigint[])"
_UNHEARD = "UPDATE leases SET worker=NULL WHERE worker=$1 AND fence <> ALL($2::bigint[])"
_JUDGING = "SELECT judging FROM runs WHERE id=$1"
_NAMES = [*JUDGMENT_COLUMNS.split(", "), "digest"]
_PLACE = ("judging", "unit", "judge", "repeat")
_TYPES = ["bigint"] * 4 + ["text"] * 2 + ["bigint"] * 2 + ["text"] * 2
_ARRAYS = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(_TYPES, 3))
_SETTLE = (
    f"WITH incoming AS (SELECT * FROM unnest($2::bigint[], {_ARRAYS})"
    f" AS g (fence, {', '.join(_NAMES)})),"
    " ended AS (DELETE FROM leases l USING incoming g WHERE l.worker=$1 AND l.fence=g.fence"
    f" AND {' AND '.join(f'l.{name}=g.{name}' for name in _PLACE)} RETURNING l.fence),"
    f" kept AS (INSERT INTO judgments ({', '.join(_NAMES)})"
    f" SELECT {', '.join(f'g.{name}' for name in _NAMES)} FROM incoming g JOIN ended USING (fence)"
    f" ON CONFLICT ({', '.join(_PLACE)}) DO UPDATE SET"
    f" {', '.join(f'{name}=excluded.{name}' for name in _NAMES[4:])})"
    " SELECT fence FROM incoming WHERE fence NOT IN (SELECT fence FROM ended)"
)
_CLAIM = (
    "INSERT INTO claims SELECT k, $2 FROM unnest($1::text[]) k ORDER BY k"
    " ON CONFLICT (key) DO UPDATE SET worker=excluded.worker"
    " WHERE claims.worker=excluded.worker OR NOT is_alive(claims.worker) RETURNING key"
)
_RELEASE = (
    "DELETE FROM claims WHERE key IN"
    " (SELECT key FROM claims WHERE key = ANY($1::text[]) AND worker=$2 ORDER BY key FOR UPDATE)"
)
_ALLOT = "SELECT allot($1, $2, $3, $4, $5)"
_FORGO = "DELETE FROM allotments WHERE run=$1 AND worker=$2"
_RESERVE = "SELECT reserve_money($1, $2, $3::text[], $4::text[], $5::bigint[])"
_ADMIT = "SELECT waits, seconds, pause FROM admit($1, $2, $3, $4, $5::bigint[])"
_CORRECT = (
    "UPDATE pace_seconds SET requests=requests - $3, tokens=tokens - $4"
    " WHERE account=$1 AND second=$2"
)
_SHARES = "SELECT work FROM shares WHERE run=$1"
_NOTES = "SELECT DISTINCT note FROM shares WHERE run=$1 AND note <> '' ORDER BY note"
WORKERS = (
    "SELECT w.id, w.host, w.process, w.run,"
    " extract(epoch FROM clock_timestamp() - w.began)::float8,"
    " extract(epoch FROM clock_timestamp() - w.seen)::float8,"
    " coalesce(s.work[1] + s.work[2] + s.work[3], 0), coalesce(s.work[4], 0),"
    " coalesce(s.work[7], 0), (SELECT count(*) FROM leases l WHERE l.worker=w.id),"
    " w.until >= clock_timestamp(), w.note"
    " FROM workers w LEFT JOIN shares s ON s.worker=w.id AND s.run=w.run"
    " WHERE w.until >= clock_timestamp() OR EXISTS (SELECT 1 FROM leases l WHERE l.worker=w.id)"
    " ORDER BY w.began, w.id"
)
"""Those that are alive, and those that are not and have taken what nobody took over yet."""
_AT_WORK = "SELECT count(*) FROM workers WHERE run=$1 AND until >= clock_timestamp()"


def lease_seconds() -> float:
    """After how many seconds without a sign of life a worker of this process is given up by the
    others; raises UsageError."""
    setting = os.environ.get(VARIABLE, "")
    try:
        seconds = float(setting) if setting else LEASE_SECONDS
    except ValueError:
        seconds = 0.0
    if not 1.0 <= seconds <= LEASE_SECONDS_MOST:
        raise UsageError(
            f"{VARIABLE} is {quoted(setting)}, and no number of seconds from 1 to"
            f" {LEASE_SECONDS_MOST:.0f}",
            advice=f"Take it away, or set it to {LEASE_SECONDS:.0f}.",
        )
    return seconds


@asynccontextmanager
async def joined(server: Server, lease_seconds: float) -> AsyncIterator[PostgresWorker]:
    """A worker at a store; raises StoreError."""
    worker = PostgresWorker(server, lease_seconds)
    await worker.join()
    try:
        yield worker
    finally:
        await worker.leave()


class PostgresWorker:
    """One worker at a PostgreSQL store."""

    def __init__(self, server: Server, lease_seconds: float) -> None:
        self.id, self.lease_seconds = os.urandom(8).hex(), lease_seconds
        self._server, self._turn = server, asyncio.Lock()
        self._connection: Connection | None = None
        self._fences: set[int] = set()
        self._judgings: dict[str, int] = {}
        self._reservations = _Reservations(self)

    async def join(self) -> None:
        """Be there."""
        for statement in _FORGET:
            await self._execute(statement)
        await self.beat("", Work())

    async def leave(self) -> None:
        """Hand everything back; a store that is not there will find out by itself."""
        with suppress(StoreError):
            await asyncio.wait_for(self.do(self._left), SERVER_AWAY_SECONDS)
        if self._connection is not None:
            await closed(self._connection)

    async def _left(self, connection: Connection) -> None:
        async with connection.transaction():
            for statement in _LEAVE:
                await connection.execute(statement, self.id)

    async def do(self, statement: Statement[T]) -> T:
        """The outcome of a statement, which is made again where the connection was lost; raises
        StoreError where the server stays away."""
        end, pause = time.monotonic() + SERVER_AWAY_SECONDS, 0.05
        async with self._turn:
            while True:
                try:
                    return await statement(await self._connected())
                except LOST as error:
                    self._disconnect()
                    if time.monotonic() > end:
                        raise self._server.unusable(error) from None
                except FAILED as error:
                    raise self._server.unusable(error) from None
                await asyncio.sleep(pause)
                pause = min(2 * pause, 1.0)

    async def _connected(self) -> Connection:
        if self._connection is None:
            connection = await self._server.connect()
            for setting in _SETTINGS:
                await connection.execute(setting)
            self._connection = connection
            # Leases whose taking was not heard of would be waited for in vain.
            await connection.execute(_UNHEARD, self.id, list(self._fences))
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _execute(self, sql: str, *values: Any) -> None:
        await self.do(lambda connection: connection.execute(sql, *values))

    async def _fetch(self, sql: str, *values: Any) -> list[Any]:
        rows: list[Any] = await self.do(lambda connection: connection.fetch(sql, *values))
        return rows

    async def value(self, sql: str, *values: Any) -> Any:
        """The one value of a statement."""
        return await self.do(lambda connection: connection.fetchval(sql, *values))

    async def beat(self, run: str, work: Work, note: str = "") -> bool:
        host, seconds = socket.gethostname(), self.lease_seconds
        values = (self.id, host, os.getpid(), run, note, seconds, list(work))
        return bool(await self.value(_BEAT, *values))

    async def open_run(
        self,
        run: str,
        limit: int | None,
        terms: str,
        cap: int | None,
        unpriced: int = 0,
        again: Sequence[str] = (),
    ) -> None:
        async def opened(connection: Connection) -> None:
            async with connection.transaction():
                await connection.execute(_OPEN, run, limit, terms)
                for statement in _REOPENED:
                    await connection.execute(statement, run)
                await connection.execute(_RETRIES, run, list(again))
                if cap is not None:
                    await connection.execute(_BUDGET, run, Decimal(cap), Decimal(unpriced))

        await self.do(opened)

    async def open_runs(self) -> list[OpenRun]:
        return [OpenRun(*row) for row in await self._fetch(_OPEN_RUNS)]

    async def opening(self, run: str) -> int | None:
        opening: int | None = await self.value(_OPENING, run)
        return opening

    async def stopped(self, run: str) -> str:
        return await self.value(_STOPPED, run) or ""

    async def stop_run(self, run: str, reason: str) -> None:
        await self._execute(_STOP, run, reason)

    async def close_run(self, run: str, judgments_per_unit: int) -> bool:
        opening = await self.opening(run)
        if opening is None:
            return True
        if not await self.value(_CLOSE, run, opening, judgments_per_unit):
            return False
        for statement in _CLOSED:
            await self._execute(statement, run)
        await self._execute(_COUNT)
        return True

    async def withdraw_run(self, run: str) -> bool:
        await self._execute(_WITHDRAW, run)
        if await self.opening(run) is not None:
            return False
        for statement in (_LEFT_BEHIND, *_CLOSED):
            await self._execute(statement, run)
        return True

    async def lease(
        self, run: str, judge: int, repeat: int, most: int, *, again: bool = False
    ) -> list[Lease]:
        async def taken(connection: Connection) -> list[Lease]:
            values = (run, self.id, judge, repeat, again, most)
            rows = await connection.fetch(_LEASE, *values)
            leases = [Lease(StoredUnit(*row[:4]), judge, repeat, row[4]) for row in rows]
            self._fences.update(lease.fence for lease in leases)
            return leases

        return await self.do(taken)

    async def leased_elsewhere(self, run: str, judge: int) -> bool:
        return bool(await self.value(_ELSEWHERE, run, judge, self.id))

    async def held(self) -> frozenset[int]:
        rows = await self._fetch(_HELD, self.id)
        return frozenset(row[0] for row in rows)

    async def settle(
        self, run: str, judgments: Sequence[tuple[int, StoredJudgment]]
    ) -> frozenset[int]:
        if run not in self._judgings:
            self._judgings[run] = await self.value(_JUDGING, run)
        judging, fences = self._judgings[run], [fence for fence, _ in judgments]
        rows = [judgment_row(judging, judgment) for _, judgment in judgments]
        columns = [list(column) for column in zip(*rows, strict=True)]
        refused = await self._fetch(_SETTLE, self.id, fences, *columns)
        self._fences.difference_update(fences)
        return frozenset(row[0] for row in refused)

    async def drop(self, fences: Sequence[int]) -> None:
        await self._execute(_DROP, self.id, list(fences))
        self._fences.difference_update(fences)

    async def hand_back(self, fences: Sequence[int]) -> None:
        await self._execute(_HAND_BACK, self.id, list(fences))
        self._fences.difference_update(fences)

    async def claim(self, keys: Sequence[str]) -> frozenset[str]:
        rows = await self._fetch(_CLAIM, list(dict.fromkeys(keys)), self.id)
        return frozenset(row[0] for row in rows)

    async def release(self, keys: Sequence[str]) -> None:
        await self._execute(_RELEASE, list(keys), self.id)

    async def allot(self, run: str, granted: int, amount: int, spent: int) -> Grant:
        values = (run, self.id, *map(Decimal, (granted, amount, spent)))
        grant: Grant = await self.value(_ALLOT, *values)
        return grant

    async def forgo(self, run: str) -> None:
        await self._execute(_FORGO, run, self.id)

    async def reserve(self, run: str, key: str, attempt: str, amount: int) -> bool:
        return await self._reservations.note(run, key, attempt, amount)

    async def admit(self, account: str, rates: Rates, tokens: Sequence[int]) -> Admission:
        values = (account, rates.requests, rates.tokens, PACE_AHEAD_SECONDS, list(tokens))
        [(waits, seconds, pause)] = await self._fetch(_ADMIT, *values)
        slots = [Slot(*slot) for slot in zip(waits, seconds, strict=True)]
        return Admission(slots, pause)

    async def correct(self, account: str, second: int, requests: int, tokens: int) -> None:
        await self._execute(_CORRECT, account, second, requests, tokens)

    async def work_of_all(self, run: str) -> Work:
        shares = [row[0] for row in await self._fetch(_SHARES, run)]
        return Work(*map(sum, zip(*shares, strict=True))) if shares else Work()

    async def notes(self, run: str) -> list[str]:
        return [row[0] for row in await self._fetch(_NOTES, run)]

    async def workers_at(self, run: str) -> int:
        return int(await self.value(_AT_WORK, run))


class _Reservations:
    """Money to be noted: all of it that has gathered goes into one statement per run."""

    def __init__(self, worker: PostgresWorker) -> None:
        self._worker, self._waiting = worker, list[tuple[Any, ...]]()
        self._writing: asyncio.Task[None] | None = None

    async def note(self, run: str, key: str, attempt: str, amount: int) -> bool:
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((run, key, attempt, amount, done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        return await done

    async def _write(self) -> None:
        try:
            while self._waiting:
                rows, self._waiting = self._waiting, []
                for run in dict.fromkeys(row[0] for row in rows):
                    await self._noted(run, [row[1:] for row in rows if row[0] == run])
        finally:
            self._writing = None

    async def _noted(self, run: str, rows: Sequence[tuple[Any, ...]]) -> None:
        keys, attempts, amounts, futures = (list(column) for column in zip(*rows, strict=True))
        try:
            values = (run, self._worker.id, keys, attempts, amounts)
            is_noted = bool(await self._worker.value(_RESERVE, *values))
        except StoreError as error:
            for done in futures:
                if not done.done():
                    done.set_exception(error)
            return
        for done in futures:
            if not done.done():
                done.set_result(is_noted)
