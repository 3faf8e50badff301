"""Batches as a store keeps them: the port, the records that pass through, and its statements.

A batch is noted with all its items before anybody is asked to make it, and the money that it may
cost with it; so a crash at any moment leaves a note to go on from. An item is open until its batch
has an answer to it, a refusal, or ends without either. What is answered is recorded as a call in
the same commit that closes the item: twice answered is once recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from evenhand.store.keys import CALL_TAG
from evenhand.store.ports import Call
from evenhand.store.rows import KEEP_CALL, call_row, now
from evenhand.store.session import Session

Stage = Literal["prepared", "waiting", "ended", "void"]
"""Noted, and perhaps made; made, and not ended; ended; never made, or given up."""
FOUND = "found by its size"
"""The status of a batch that may be another's, until it has ended."""
OPEN_STAGES: tuple[Stage, ...] = ("prepared", "waiting")


def item_id(key: str) -> str:
    """Return the name of a call in a batch: its key, in the letters that every provider takes."""
    return key.replace(":", "_")


def item_key(ident: str) -> str:
    """Return the key of the call with this name in a batch; empty if it is none of ours."""
    key = ident.replace("_", ":", 1)
    return key if key.startswith(CALL_TAG) else ""


class BatchItem(NamedTuple):
    """A question of a batch: its key, the most tokens that it can have, the money held for it, and
    its sampling as JSON, by which its answer is read."""

    key: str
    tokens: int
    amount: int
    sampling: str


class NewBatch(Struct, frozen=True, kw_only=True):
    """A batch that is about to be made; its items in their order."""

    name: str
    run: str
    judge: str
    place: str
    """Who answers, and where."""
    items: Sequence[BatchItem]


class OpenBatch(NamedTuple):
    """A batch that was noted and has not ended. `ident` is what the provider calls it; empty where
    nobody knows whether it was made. `created` is in seconds since the epoch."""

    name: str
    run: str
    judge: str
    place: str
    ident: str
    stage: Stage
    created: float
    size: int
    is_sure: bool = True
    """True if it is surely ours: the provider named it when it was made, or it carries our
    name."""


class OpenItem(NamedTuple):
    """An item without an answer, and its line in the batch."""

    line: int
    item: BatchItem


class ItemOutcome(NamedTuple):
    """The end of an item: the call that answers it; or, without one, why there is none, empty
    where a batch may be asked for it once more. Its money is given back unless it
    `may_be_billed`."""

    key: str
    call: Call | None = None
    state: Literal["answered", "refused", "unanswered"] = "answered"
    detail: str = ""
    may_be_billed: bool = False


class BatchRow(NamedTuple):
    """A batch as readers see it: in our words and in the provider's, and its items by what became
    of them. `reserved` is the money still held for it, in picodollars."""

    name: str
    run: str
    judge: str
    ident: str
    stage: Stage
    status: str
    created: str
    ended: str | None
    requests: int
    answered: int
    refused: int
    unanswered: int
    reserved: int

    @property
    def open(self) -> int:
        """Questions that wait for an answer."""
        return self.requests - self.answered - self.refused - self.unanswered

    @property
    def is_open(self) -> bool:
        return self.stage in OPEN_STAGES

    def json(self) -> dict[str, str | int | None]:
        """As `--json` prints it."""
        return {
            "batch": self.ident or self.name,
            "name": self.name,
            "run": self.run,
            "judge": self.judge,
            "stage": self.stage,
            "status": self.status,
            "created": self.created,
            "ended": self.ended,
            "requests": self.requests,
            "answered": self.answered,
            "refused": self.refused,
            "unanswered": self.unanswered,
            "open": self.open,
        }


class Batches(Protocol):
    """Where batches are noted. Everything is durable when it is done."""

    async def prepare(self, batch: NewBatch) -> None:
        """Note a batch with its items before it is made, and hold the money for each."""
        ...

    async def attach(self, name: str, ident: str, status: str) -> None:
        """Note that a batch was made, and what the provider calls it; an empty `ident`: that what
        was taken for it is another's."""
        ...

    async def note(self, name: str, status: str) -> None:
        """Note how a batch stands, in the provider's word."""
        ...

    async def take(self, name: str, outcomes: Sequence[ItemOutcome]) -> list[Call]:
        """Close open items: record their calls, and give back the money of those without. The calls
        that were recorded: none of an item that was closed before."""
        ...

    async def close_batch(self, name: str, stage: Stage, status: str) -> None:
        """End a batch. Items that are still open are unanswered, and their money is given back; of
        one that was given up (`void` after it was made) it stays held: it may be billed."""
        ...

    async def open_batches(self) -> list[OpenBatch]:
        """All that were noted and have not ended, of all runs, the oldest first."""
        ...

    async def open_items(self, name: str) -> list[OpenItem]:
        """The items of a batch that have no answer yet, in their order."""
        ...

    async def waiting_in(self, key: str) -> list[str]:
        """The names of open batches that hold a question without an answer."""
        ...

    async def was_left(self, key: str) -> bool:
        """Return True if a batch has ended and did not bring back an answer to a question."""
        ...

    async def is_known(self, ident: str) -> bool:
        """Return True if a batch that the provider calls so is noted."""
        ...


_PREPARE = (
    "INSERT INTO batches (name, run, judge, place, ident, stage, status, created)"
    " VALUES (?,?,?,?,'','prepared','',?)"
)
_ITEM = (
    "INSERT INTO batch_items (batch, line, key, tokens, sampling, state) VALUES (?,?,?,?,?,'open')"
)
RESERVE = (
    "INSERT INTO reservations (key, attempt, run, amount, judge, input_tokens, output_tokens)"
    " VALUES (?,?,?,?,?,?,?) ON CONFLICT (key, attempt) DO NOTHING"
)
RELEASE = "DELETE FROM reservations WHERE key=? AND attempt=?"
_HOLD = "UPDATE batches SET status=status WHERE name=?"
_CLOSE_ITEM = "UPDATE batch_items SET state=?, detail=? WHERE batch=? AND key=?"
_OPEN_KEYS = "SELECT key FROM batch_items WHERE batch=:batch AND state='open'"
_OPEN = (
    "SELECT name, run, judge, place, ident, stage, created,"
    " (SELECT COUNT(*) FROM batch_items i WHERE i.batch=b.name), status FROM batches b"
    " WHERE stage IN ('prepared', 'waiting') ORDER BY created, name"
)
_OPEN_ITEMS = (
    "SELECT i.line, i.key, i.tokens, coalesce(r.amount, 0), i.sampling"
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
    """Return the batches of a run, or all, the last first."""
    rows = session.rows(_ROWS.format("WHERE run=:run" if run else ""), {"run": run} if run else {})
    return [BatchRow._make([*row[:-1], int(row[-1])]) for row in rows]


class SqlBatches:
    """The batches of a store, through a session of their own."""

    def __init__(self, session: Session) -> None:
        self._session, self.close = session, session.close
        self._turn = asyncio.Lock()

    async def _work(self, work: Callable[[], T]) -> T:
        """Do something long off the event loop, in one transaction."""

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
            row = (batch.name, batch.run, batch.judge, batch.place, now())
            self._session.write(_PREPARE, [row])
            items = [
                (batch.name, line, item.key, item.tokens, item.sampling)
                for line, item in enumerate(batch.items, 1)
            ]
            self._session.write(_ITEM, items)
            held = [
                (item.key, batch.name, batch.run, item.amount, "", 0, 0)
                for item in batch.items
                if item.amount
            ]
            self._session.write(RESERVE, held)

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
            self._session.write(RELEASE, released)
            calls = [it.call for it in closed if it.call is not None]
            self._session.write(KEEP_CALL, [call_row(call, now()) for call in calls])
            return calls

        return await self._work(work)

    def _open_keys(self, name: str) -> set[str]:
        return {key for (key,) in self._session.rows(_OPEN_KEYS, {"batch": name})}

    async def close_batch(self, name: str, stage: Stage, status: str) -> None:
        def work() -> None:
            self._session.write(_HOLD, [(name,)])
            sql = "SELECT ident FROM batches WHERE name=:name"
            [(ident,)] = self._session.rows(sql, {"name": name})
            if stage != "void" or not ident:
                left = sorted(self._open_keys(name))
                self._session.write(RELEASE, [(key, name) for key in left])
            rest = "UPDATE batch_items SET state='unanswered' WHERE batch=? AND state='open'"
            self._session.write(rest, [(name,)])
            end = "UPDATE batches SET stage=?, status=?, ended=? WHERE name=?"
            self._session.write(end, [(stage, status, now(), name)])

        await self._work(work)

    async def open_batches(self) -> list[OpenBatch]:
        return [
            OpenBatch._make((*row, _seconds(created), size, status != FOUND))
            for *row, created, size, status in await self._rows(_OPEN)
        ]

    async def open_items(self, name: str) -> list[OpenItem]:
        rows = await self._rows(_OPEN_ITEMS, batch=name)
        return [OpenItem(line, BatchItem(*item)) for line, *item in rows]

    async def waiting_in(self, key: str) -> list[str]:
        # Asked for every question of a wave: too short for a thread.
        return [str(name) for (name,) in self._session.rows(_WAITING, {"key": key})]

    async def was_left(self, key: str) -> bool:
        return bool(self._session.rows(_LEFT, {"key": key}))

    async def is_known(self, ident: str) -> bool:
        return bool(await self._rows("SELECT 1 FROM batches WHERE ident=:ident", ident=ident))


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
