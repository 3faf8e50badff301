"""The group writer: one thread commits whatever has gathered since its last commit.

Durability then costs one fsync, or one round trip, for many replies. A future handed out here is
done only after the commit that holds its rows. After a failed commit nothing more is written: every
later write fails with the first error, so that no reply is ever used that was not kept.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from evenhand.errors import StoreError
from evenhand.limits import BATCH_ROWS, GATHER_SECONDS, HELD_UP_SECONDS, JOIN_SECONDS
from evenhand.store.session import Session


class Statement(NamedTuple):
    """A statement that is run for many rows. Within a commit those of a lower rank come first, so
    that rows of one statement are written together; those of one rank keep their order."""

    rank: int
    sql: str


class Write(NamedTuple):
    """A row to be written by a statement."""

    statement: Statement
    row: tuple[Any, ...]


class Group(NamedTuple):
    """Writes that belong into one commit, and the futures that wait for it."""

    writes: list[Write]
    waiting: list[asyncio.Future[None]]


_STOP = Group([], [])


class GroupWriter:
    """Writes rows through one session from one thread, in groups.

    Rows put during one turn of the event loop are handed to the thread together at its end.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = Group([], [])
        self._timer: asyncio.TimerHandle | None = None
        self._queue: SimpleQueue[Group] = SimpleQueue()
        self._broken: StoreError | None = None
        self._began: float | None = None
        self._thread = threading.Thread(target=self._work, name="evenhand-ledger", daemon=True)
        self._thread.start()

    def put(self, *writes: Write) -> asyncio.Future[None]:
        """Write rows in one commit; done when they, and all rows put before, are durable."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        if not self._next.waiting:
            loop.call_soon(self._hand_over)
        self._next.writes.extend(writes)
        self._next.waiting.append(done)
        return done

    def put_lazily(self, write: Write) -> None:
        """Write a row that need not survive a crash with the next commit, or soon."""
        self._next.writes.append(write)
        if len(self._next.writes) >= BATCH_ROWS:
            self._hand_over()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(JOIN_SECONDS, self._hand_over)

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        group, self._next = self._next, Group([], [])
        if group.writes or group.waiting:
            self._queue.put(group)

    @property
    def is_held_up(self) -> bool:
        """True if a commit takes so long that somebody else must hold the store."""
        began = self._began
        return began is not None and time.monotonic() - began > HELD_UP_SECONDS

    def stop(self) -> None:
        """Write what is left and end the thread."""
        self._hand_over()
        self._queue.put(_STOP)
        self._thread.join()

    def _work(self) -> None:
        is_last = False
        while not is_last:
            group, is_last = self._gather()
            self._began = time.monotonic()
            error = self._commit(group.writes)
            self._began = None
            _resolve(group.waiting, error)

    def _gather(self) -> tuple[Group, bool]:
        """Return everything that waits, and True if it is the last."""
        group = Group([], [])
        handed = self._queue.get()
        if handed is not _STOP:
            time.sleep(GATHER_SECONDS)
        with suppress(Empty):
            while handed is not _STOP:
                group.writes.extend(handed.writes)
                group.waiting.extend(handed.waiting)
                handed = self._queue.get_nowait()
            return group, True
        return group, False

    def _commit(self, writes: list[Write]) -> StoreError | None:
        if self._broken is None and writes:
            try:
                self._session.commit(_statements(writes))
            except StoreError as error:
                self._broken = error
            except Exception as error:
                # Whatever it is: a thread that died would leave everyone waiting for ever.
                self._broken = StoreError(
                    f"the store cannot be written: {error}", where=self._session.where
                )
        return self._broken


def _statements(writes: list[Write]) -> list[tuple[str, list[tuple[Any, ...]]]]:
    writes.sort(key=attrgetter("statement.rank"))
    return [
        (statement.sql, [write.row for write in group])
        for statement, group in groupby(writes, key=attrgetter("statement"))
    ]


def _resolve(waiting: Sequence[asyncio.Future[None]], error: StoreError | None) -> None:
    """Tell those who wait, each event loop once."""
    for loop in {done.get_loop() for done in waiting}:
        mine = [done for done in waiting if done.get_loop() is loop]
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_finish, mine, error)


def _finish(waiting: Sequence[asyncio.Future[None]], error: StoreError | None) -> None:
    for done in waiting:
        if done.done():
            continue
        if error:
            done.set_exception(error)
        else:
            done.set_result(None)
