"""One thread that writes: whatever has gathered since the last commit goes into the next.

Durability then costs one fsync for many replies. A future handed out here is done only after the
commit that holds its row. After a failed commit nothing more is taken: every later write fails
with the first error, so that no reply is ever used that was not kept; what is refused so is handed
to whoever can keep it elsewhere. A store that is not where it was takes what is still to come, and
every write is told.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, groupby
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

from evenhand.errors import StoreError
from evenhand.limits import BATCH_ROWS, GATHER_SECONDS, HELD_UP_SECONDS
from evenhand.store.soon import Soon

Row = tuple[Any, ...]


class Write(NamedTuple):
    """A row to be written by a statement, and who waits for it."""

    sql: str
    row: Row
    done: asyncio.Future[None] | None


_STOP: list[Write] = []


class Care(Protocol):
    """What is done about a store beside writing to it, in the thread that writes."""

    def after_commit(self) -> StoreError | None:
        """See to the store; why nothing more should be written, if there is a reason."""
        ...

    def refused(self, group: Sequence[Write], error: Exception) -> StoreError:
        """Keep elsewhere what could not be written, and say what is wrong."""
        ...

    def finish(self) -> None:
        """The last write is done."""
        ...


class GroupWriter:
    """Writes rows through one connection from one thread, in groups.

    What is put during one turn of the event loop is handed to the thread at its end, at once.
    """

    def __init__(self, connection: sqlite3.Connection, care: Care) -> None:
        self._connection, self._care = connection, care
        self._turn: list[Write] = []
        self._lazy: list[Write] = []
        self._soon = Soon(self._hand_over)
        self._queue: SimpleQueue[list[Write]] = SimpleQueue()
        self._broken: StoreError | None = None
        self._began: float | None = None
        self._thread = threading.Thread(target=self._work, name="evenhand-ledger", daemon=True)
        self._thread.start()

    def put(self, *rows: tuple[str, Row]) -> asyncio.Future[None]:
        """Write rows, each with its statement, in one commit; done when they are durable."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        if not self._turn:
            loop.call_soon(self._hand_over)
        *others, (sql, row) = rows
        for other, values in others:
            self._turn.append(Write(other, values, None))
        self._turn.append(Write(sql, row, done))
        return done

    def put_lazily(self, sql: str, row: Row) -> None:
        """Write a row with the next group, or soon: it need not survive a crash."""
        self._soon.ask()
        self._lazy.append(Write(sql, row, None))
        if len(self._lazy) >= BATCH_ROWS:
            self._hand_over()

    def _hand_over(self) -> None:
        # Lazy rows first: none of them rests on a row of this turn, which is not durable yet.
        group, self._lazy, self._turn = self._lazy + self._turn, [], []
        if group:
            self._queue.put(group)

    def flush(self) -> asyncio.Future[None]:
        """Done when everything put so far is durable."""
        return self.put(("", ()))

    @property
    def is_held_up(self) -> bool:
        """Whether a commit takes so long that somebody else must hold the store."""
        began = self._began
        return began is not None and time.monotonic() - began > HELD_UP_SECONDS

    def stop(self) -> None:
        """Write what is left and end the thread."""
        self._soon.cancel()
        self._hand_over()
        self._queue.put(_STOP)
        self._thread.join()

    def _work(self) -> None:
        stopping = False
        while not stopping:
            group, stopping = self._gather()
            self._began = time.monotonic()
            error = self._commit(group)
            self._began = None
            _finish(group, error)
        self._care.finish()

    def _gather(self) -> tuple[list[Write], bool]:
        """All that is waiting, and whether it was the last."""
        group: list[Write] = []
        handed = self._queue.get()
        if handed is not _STOP:
            time.sleep(GATHER_SECONDS)
        try:
            while handed is not _STOP:
                group += handed
                handed = self._queue.get_nowait()
        except Empty:
            return group, False
        return group, True

    def _commit(self, group: list[Write]) -> StoreError | None:
        try:
            if self._broken is None:
                self._write(group)
                return self._care.after_commit()
        except Exception as error:
            # Whatever it is: a thread that died would leave everyone waiting for ever.
            self._broken = self._refused(group, error)
        else:
            self._refused(group, self._broken)
        return self._broken

    def _refused(self, group: list[Write], error: Exception) -> StoreError:
        """Have a group kept elsewhere; what is wrong, also where that fails."""
        try:
            return self._care.refused(group, error)
        except Exception as reason:  # as above
            return StoreError(
                f"the store cannot be written: {error}; nor could the replies that came too late"
                f" be kept beside it: {reason}"
            )

    def _write(self, group: list[Write]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for sql, writes in groupby(group, key=attrgetter("sql")):
                for statement, values in _statements(sql, [write.row for write in writes]):
                    self._connection.execute(statement, values)
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


CHUNKS = (32, 4, 1)


def _statements(sql: str, rows: list[Row]) -> Iterator[tuple[str, Row]]:
    """As few statements as there can be: each costs the event loop's thread a change of threads.

    The sizes are few, so that SQLite finds its statements prepared.
    """
    at = 0
    while sql and at < len(rows):
        size = next(size for size in CHUNKS if size <= len(rows) - at and _repeats(sql, size))
        yield _repeated(sql, size), tuple(chain.from_iterable(rows[at : at + size]))
        at += size


def _repeats(sql: str, size: int) -> bool:
    return size == 1 or _VALUES.search(sql) is not None


@cache
def _repeated(sql: str, size: int) -> str:
    """The statement for so many rows at once."""
    if size == 1:
        return sql
    head, marks, tail = _VALUES.split(sql, maxsplit=1)
    return f"{head} VALUES {','.join([marks] * size)}{tail}"


_VALUES = re.compile(r" VALUES (\([^()]*\))")


def _finish(group: list[Write], error: Exception | None) -> None:
    """Tell the waiting, each loop once."""
    waiting = [write.done for write in group if write.done is not None]
    for loop in {done.get_loop() for done in waiting}:
        mine = [done for done in waiting if done.get_loop() is loop]
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, mine, error)


def _resolve(waiting: list[asyncio.Future[None]], error: Exception | None) -> None:
    for done in waiting:
        if done.done():
            continue
        if error:
            done.set_exception(error)
        else:
            done.set_result(None)
