"""What a store knows of batches, through a session of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from evenhand.store.batches import (
    FOUND,
    BatchItem,
    BatchRow,
    ItemOutcome,
    NewBatch,
    OpenBatch,
    OpenItem,
    Stage,
)
from evenhand.store.codec import CALL_COLUMNS, CallRow, call_row
from evenhand.store.ports import Call
from evenhand.store.sql.session import Row, Session

_PREPARE = (
    "INSERT INTO batches (name, run, judge, place, ident, stage, status, schemas, created)"
    " VALUES (?,?,?,?,'','prepared','',?,?)"
)
_ITEM = (
    "INSERT INTO batch_items (batch, line, key, tokens, schema, sampling, state)"
    " VALUES (?,?,?,?,?,?,'open')"
)
_RESERVE = "INSERT INTO reservations VALUES (?,?,?,?) ON CONFLICT (key, attempt) DO NOTHING"
_RELEASE = "DELETE FROM reservations WHERE key=? AND attempt=?"
_MARKS = ",".join("?" * (CALL_COLUMNS.count(",") + 3))
_RECORD = f"INSERT INTO calls ({CALL_COLUMNS}, digest, at) VALUES ({_MARKS}) ON CONFLICT DO NOTHING"
_RECORD_ASIDE = f"INSERT INTO calls ({CALL_COLUMNS}, digest, at, aside) VALUES ({_MARKS},?)"
_HOLD = "UPDATE batches SET status=status WHERE name=?"
_CLOSE_ITEM = "UPDATE batch_items SET state=?, detail=? WHERE batch=? AND key=?"
_OPEN_KEYS = "SELECT key FROM batch_items WHERE batch=:batch AND state='open'"
_OPEN = (
    "SELECT name, run, judge, place, ident, stage, created,"
    " (SELECT COUNT(*) FROM batch_items i WHERE i.batch=b.name), status FROM batches b"
    " WHERE stage IN ('prepared', 'waiting') ORDER BY created, name"
)
_OPEN_ITEMS = (
    "SELECT i.line, i.key, i.tokens, coalesce(r.amount, 0), i.schema, i.sampling"
    " FROM batch_items i LEFT JOIN reservations r ON r.key=i.key AND r.attempt=i.batch"
    " WHERE i.batch=:batch AND i.state='open' ORDER BY i.line"
)
_WAITING = (
    "SELECT i.batch FROM batch_items i JOIN batches b ON b.name=i.batch"
    " WHERE i.key=:key AND i.state='open' AND b.stage IN ('prepared', 'waiting')"
)
_LEFT = (
    "SELECT 1 FROM batch_items WHERE key=:key AND state='unanswered' AND detail IS NOT NULL LIMIT 1"
)
_ROWS = (
    "SELECT name, run, judge, ident, stage, status, created, ended,"
    " (SELECT COUNT(*) FROM batch_items i WHERE i.batch=b.name),"
    " (SELECT COUNT(*) FROM batch_items i WHERE i.batch=b.name AND i.state='answered'),"
    " (SELECT COUNT(*) FROM batch_items i WHERE i.batch=b.name AND i.state='refused'),"
    " (SELECT COUNT(*) FROM batch_items i WHERE i.batch=b.name AND i.state='unanswered'),"
    " (SELECT coalesce(SUM(r.amount), 0) FROM batch_items i JOIN reservations r"
    " ON r.key=i.key AND r.attempt=i.batch WHERE i.batch=b.name)"
    " FROM batches b {} ORDER BY created DESC, name"
)
T = TypeVar("T")


def batch_rows(session: Session, run: str = "") -> list[BatchRow]:
    """The batches of a run, or of all, the last first."""
    rows = session.rows(_ROWS.format("WHERE run=:run" if run else ""), {"run": run} if run else {})
    return [BatchRow._make([*row[:-1], int(row[-1])]) for row in rows]


class SqlBatches:
    """The batches of a store."""

    def __init__(self, session: Session, close: Callable[[], None]) -> None:
        self._session, self.close = session, close
        self._turn = asyncio.Lock()

    async def _work(self, work: Callable[[], T]) -> T:
        """Something long, beside the event loop, in one transaction."""

        def commit() -> T:
            with self._session.transaction():
                return work()

        async with self._turn:
            return await asyncio.to_thread(commit)

    async def _rows(self, sql: str, **values: Any) -> list[Any]:
        async with self._turn:
            return await asyncio.to_thread(self._session.rows, sql, values)

    async def prepare(self, batch: NewBatch) -> None:
        def work() -> None:
            schemas = json.dumps(list(batch.schemas))
            row = (batch.name, batch.run, batch.judge, batch.place, schemas, _now())
            self._session.write(_PREPARE, [row])
            items = [
                (batch.name, line, item.key, item.tokens, item.schema, item.sampling)
                for line, item in enumerate(batch.items, 1)
            ]
            self._session.write(_ITEM, items)
            held = [(i.key, batch.name, batch.run, i.amount) for i in batch.items if i.amount]
            self._session.write(_RESERVE, held)

        await self._work(work)

    async def attach(self, name: str, ident: str, status: str) -> None:
        stage = "waiting" if ident else "prepared"
        sql = "UPDATE batches SET ident=?, status=?, stage=? WHERE name=?"
        await self._work(lambda: self._session.write(sql, [(ident, status, stage, name)]))

    async def note(self, name: str, status: str) -> None:
        sql = "UPDATE batches SET status=? WHERE name=? AND status<>?"
        await self._work(lambda: self._session.write(sql, [(status, name, status)]))

    async def take(self, name: str, outcomes: Sequence[ItemOutcome]) -> list[Call]:
        def work() -> list[Call]:
            self._session.write(_HOLD, [(name,)])  # whoever else takes them waits for this
            left = self._open_keys(name)
            closed = [outcome for outcome in outcomes if outcome.key in left]
            states = [(it.state, it.detail or None, name, it.key) for it in closed]
            self._session.write(_CLOSE_ITEM, states)
            released = [(it.key, name) for it in closed if not it.may_be_billed]
            self._session.write(_RELEASE, released)
            calls = [it.call for it in closed if it.call is not None]
            self._record([call_row(call, _now()) for call in calls])
            return calls

        return await self._work(work)

    def _open_keys(self, name: str) -> set[str]:
        return {key for (key,) in self._session.rows(_OPEN_KEYS, {"batch": name})}

    def _record(self, rows: Sequence[CallRow]) -> None:
        """Record replies. Where a store has one answer to a question and there is one, the other is
        kept beside it: it is paid for."""
        self._session.write(_RECORD, rows)
        sql = f"SELECT digest FROM calls WHERE {self._session.among('key', 'keys')}"
        keys = self._session.several([row.key for row in rows])
        kept = {digest for (digest,) in self._session.rows(sql, {"keys": keys})} if rows else set()
        aside: list[Row] = [(*row, row.at) for row in rows if row.digest not in kept]
        self._session.write(_RECORD_ASIDE, aside)

    async def close_batch(self, name: str, stage: Stage, status: str) -> None:
        def work() -> None:
            self._session.write(_HOLD, [(name,)])
            sql = "SELECT ident FROM batches WHERE name=:name"
            [(ident,)] = self._session.rows(sql, {"name": name})
            if stage != "void" or not ident:
                left = sorted(self._open_keys(name))
                self._session.write(_RELEASE, [(key, name) for key in left])
            rest = "UPDATE batch_items SET state='unanswered' WHERE batch=? AND state='open'"
            self._session.write(rest, [(name,)])
            end = "UPDATE batches SET stage=?, status=?, ended=? WHERE name=?"
            self._session.write(end, [(stage, status, _now(), name)])

        await self._work(work)

    async def open_batches(self) -> list[OpenBatch]:
        return [
            OpenBatch._make((*row, _seconds(created), size, status != FOUND))
            for *row, created, size, status in await self._rows(_OPEN)
        ]

    async def open_items(self, name: str) -> list[OpenItem]:
        [(text,)] = await self._rows("SELECT schemas FROM batches WHERE name=:name", name=name)
        schemas: list[str] = json.loads(text)
        return [
            OpenItem(line, BatchItem(*item), None if item[3] is None else schemas[item[3]])
            for line, *item in await self._rows(_OPEN_ITEMS, batch=name)
        ]

    async def waiting_in(self, key: str) -> list[str]:
        # Asked for every question of a wave: too short for a thread.
        return [str(name) for (name,) in self._session.rows(_WAITING, {"key": key})]

    async def was_left(self, key: str) -> bool:
        return bool(self._session.rows(_LEFT, {"key": key}))

    async def is_known(self, ident: str) -> bool:
        return bool(await self._rows("SELECT 1 FROM batches WHERE ident=:ident", ident=ident))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
