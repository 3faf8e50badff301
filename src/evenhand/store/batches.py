"""Batches as a store keeps them, and their statements.

A batch is noted with all its items before anybody is asked to make it, and the money that it may
cost with it; so a crash at any moment leaves a note to go on from. An item is open until its batch
has an answer to it, a refusal, or ends without either. What is answered is recorded as a call in
the same commit that closes the item: twice answered is once recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeVar

from msgspec import Struct

from evenhand.store.ports import Call
from evenhand.store.rows import CALL_TAG, KEEP_CALL, call_row, now
from evenhand.store.session import Session

Stage = Literal["prepared", "waiting", "ended", "void"]
"""Noted, and perhaps made; made, and not ended; ended; never made, or given up."""
T = TypeVar("T")


def item_id(key: str) -> str:
    """Return the name of a call in a batch: its key, in the letters that every provider takes."""
    return key.replace(":", "_")


def item_key(ident: str) -> str:
    """Return the key of the call with this name in a batch; empty if it is none of ours."""
    key = ident.replace("_", ":", 1)
    return key if key.startswith(CALL_TAG) else ""


class BatchItem(NamedTuple):
    """A question of a batch: its key, the most tokens that it can have, the money held for it, its
    sampling as JSON, by which its answer is read, and its line, from 1."""

    key: str
    tokens: int
    amount: int
    sampling: str
    line: int = 0


class NewBatch(Struct, frozen=True, kw_only=True):
    """A batch that is about to be made; its items in their order."""

    name: str
    run: str
    judge: str
    place: str
    """The provider and its address."""
    items: Sequence[BatchItem]


class ItemOutcome(NamedTuple):
    """The end of an item: the call that answers it; or, without one, the reason, empty where a
    batch may be asked for it once more. Its money is given back unless it `may_be_billed`."""

    key: str
    call: Call | None = None
    state: Literal["answered", "refused", "unanswered"] = "answered"
    detail: str = ""
    may_be_billed: bool = False


class BatchRow(NamedTuple):
    """A batch: in our words and in the provider's, and its items by their outcomes. `ident` is the
    provider's id, empty where nobody knows if it was made; `reserved` is the money still held for
    it, in picodollars."""

    name: str
    run: str
    judge: str
    place: str
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
        """Return the number of questions that wait for an answer."""
        return self.requests - self.answered - self.refused - self.unanswered

    @property
    def is_open(self) -> bool:
        return self.stage in ("prepared", "waiting")

    def json(self) -> dict[str, str | int | None]:
        """Return the fields that `--json` prints."""
        fields = self._asdict()
        del fields["place"], fields["reserved"]
        return {"batch": self.ident or self.name, **fields, "open": self.open}


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
_ATTACH = "UPDATE batches SET ident=?, status=?, stage='waiting' WHERE name=?"
_HOLD = "UPDATE batches SET status=status WHERE name=?"
_CLOSE_ITEM = "UPDATE batch_items SET state=?, detail=? WHERE batch=? AND key=?"
_CLOSE_REST = "UPDATE batch_items SET state='unanswered' WHERE batch=? AND state='open'"
_CLOSE = "UPDATE batches SET stage=?, status=?, ended=? WHERE name=?"
_OPEN_ITEMS = (
    "SELECT i.key, i.tokens, coalesce(r.amount, 0), i.sampling, i.line"
    " FROM batch_items i LEFT JOIN reservations r ON r.key=i.key AND r.attempt=i.batch"
    " WHERE i.batch=:batch AND i.state='open' ORDER BY i.line"
)
_WAITING = (
    "SELECT i.batch FROM batch_items i JOIN batches b ON b.name=i.batch"
    " WHERE i.key=:key AND i.state='open' AND b.stage IN ('prepared', 'waiting')"
)
_UNANSWERED = (
    "SELECT 1 FROM batch_items WHERE key=:key AND state='unanswered' AND detail IS NOT NULL LIMIT 1"
)
_ROWS = (
    "SELECT name, run, judge, place, ident, stage, status, created, ended,"
    " (SELECT COUNT(*) FROM batch_items i WHERE i.batch=b.name),"
    " (SELECT COUNT(*) FROM batch_items i WHERE i.batch=b.name AND i.state='answered'),"
    " (SELECT COUNT(*) FROM batch_items i WHERE i.batch=b.name AND i.state='refused'),"
    " (SELECT COUNT(*) FROM batch_items i WHERE i.batch=b.name AND i.state='unanswered'),"
    " (SELECT coalesce(SUM(r.amount), 0) FROM batch_items i JOIN reservations r"
    " ON r.key=i.key AND r.attempt=i.batch WHERE i.batch=b.name)"
    " FROM batches b WHERE {} ORDER BY created DESC, name"
)


def batch_rows(session: Session, condition: str = "true", **values: str) -> list[BatchRow]:
    """Return the batches that meet a condition, the last first."""
    rows = session.rows(_ROWS.format(condition), values)
    return [BatchRow._make([*row[:-1], int(row[-1])]) for row in rows]


class Batches:
    """The batches of a store, through a session of their own. Everything is durable when it is
    done."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turn = asyncio.Lock()

    async def _work(self, work: Callable[[], T]) -> T:
        """Return the result of work that is done off the event loop, in one transaction."""

        def commit() -> T:
            with self._session.transaction():
                return work()

        async with self._turn:
            return await asyncio.to_thread(commit)

    async def prepare(self, batch: NewBatch) -> None:
        """Note a batch with its items before it is made, and hold the money for each."""

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

    async def attach(self, name: str, ident: str, status: str) -> BatchRow:
        """Note that a batch was made, the provider's id of it, and its state in the provider's
        word; return it."""

        def work() -> BatchRow:
            self._session.write(_ATTACH, [(ident, status, name)])
            [row] = batch_rows(self._session, "name=:name", name=name)
            return row

        return await self._work(work)

    async def take(self, name: str, outcomes: Sequence[ItemOutcome]) -> list[Call]:
        """Close open items: record their calls, and give back the money of those without. Return
        the calls that were recorded: none of an item that was closed before."""

        def work() -> list[Call]:
            self._session.write(_HOLD, [(name,)])  # whoever else takes them waits for this
            left = {item.key for item in self._open_items(name)}
            closed = [outcome for outcome in outcomes if outcome.key in left]
            states = [(it.state, it.detail or None, name, it.key) for it in closed]
            self._session.write(_CLOSE_ITEM, states)
            released = [(it.key, name) for it in closed if not it.may_be_billed]
            self._session.write(RELEASE, released)
            calls = [it.call for it in closed if it.call is not None]
            self._session.write(KEEP_CALL, [call_row(call, now()) for call in calls])
            return calls

        return await self._work(work)

    async def close_batch(self, name: str, stage: Stage, status: str) -> None:
        """End a batch. Items that are still open are unanswered, and their money is given back; of
        one that was given up (`void` after it was made) it stays held: it may be billed."""

        def work() -> None:
            self._session.write(_HOLD, [(name,)])
            [batch] = batch_rows(self._session, "name=:name", name=name)
            if stage != "void" or not batch.ident:
                left = [(item.key, name) for item in self._open_items(name)]
                self._session.write(RELEASE, left)
            self._session.write(_CLOSE_REST, [(name,)])
            self._session.write(_CLOSE, [(stage, status, now(), name)])

        await self._work(work)

    def _open_items(self, name: str) -> list[BatchItem]:
        return [BatchItem(*row) for row in self._session.rows(_OPEN_ITEMS, {"batch": name})]

    async def open_items(self, name: str) -> list[BatchItem]:
        """Return the items of a batch that have no answer yet, in their order."""
        return await self._work(lambda: self._open_items(name))

    async def open_batches(self) -> list[BatchRow]:
        """Return all that were noted and have not ended, of all runs, the oldest first."""
        rows = await self._work(lambda: batch_rows(self._session))
        return [row for row in reversed(rows) if row.is_open]

    async def is_known(self, ident: str) -> bool:
        """Return True if a batch with this id of the provider's is noted."""
        found = await self._work(lambda: batch_rows(self._session, "ident=:ident", ident=ident))
        return bool(found)

    # Asked for every question of a wave: too short for a thread.

    async def waiting_in(self, key: str) -> list[str]:
        """Return the names of open batches that hold a question without an answer."""
        return [str(name) for (name,) in self._session.rows(_WAITING, {"key": key})]

    async def was_unanswered(self, key: str) -> bool:
        """Return True if a batch has ended and did not bring back an answer to a question."""
        return bool(self._session.rows(_UNANSWERED, {"key": key}))
