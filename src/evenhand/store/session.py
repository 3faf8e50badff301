"""A connection to a store's database, as all statements of the store use it.

Statements are written once, in the SQL that SQLite and PostgreSQL share: values are bound by name
(`:run`), in `write` and `commit` by position (`?`). A list is bound as a JSON array, and asked for
with `IN (SELECT value FROM json_each(:keys))`. Where the two differ, a statement is written as
SQLite has it, and `to_postgres` translates: `CROSS JOIN` (join in this order) and `INDEXED BY`
advise SQLite's planner alone.

Runs write through a `GroupWriter`: one thread commits whatever has gathered since its last commit,
so that durability costs one fsync, or one round trip, for many replies. A future handed out here is
done only after the commit that holds its rows. After a failed commit nothing more is written: every
later write fails with the first error, so that no reply is ever used that was not kept.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

from evenhand.errors import StoreError
from evenhand.limits import BATCH_ROWS, GATHER_SECONDS, HELD_UP_SECONDS, JOIN_SECONDS
from evenhand.words import Sentence

VERSION = 4
"""Of the tables in `schema.sql`."""
Values = Mapping[str, Any]
Row = Sequence[Any]
Statements = Sequence[tuple[str, Sequence[Row]]]
"""Statements with the rows that each is run for."""


class Session(Protocol):
    """One connection, for one caller at a time. Errors of the database are raised as StoreError."""

    is_remote: bool
    """True if each statement takes a round trip through a network."""

    @property
    def where(self) -> str:
        """The store, for messages."""
        ...

    def rows(self, sql: str, values: Values | None = None) -> list[Any]:
        """Return all rows of a statement."""
        ...

    def stream(self, sql: str, values: Values | None = None) -> Iterator[Any]:
        """Yield the rows of a statement page by page; within a transaction or a frozen state."""
        ...

    def write(self, sql: str, rows: Sequence[Row]) -> None:
        """Run a statement for each row."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Commit everything written within or, on any error, nothing."""
        ...

    def commit(self, statements: Statements) -> None:
        """Run statements in one transaction, durable on return. Each must be such that running it
        twice is as good as once: after a lost connection nobody knows if it was committed."""
        ...

    def lock_table(self, name: str) -> None:
        """Within a transaction: keep others from writing to a table until it ends."""
        ...

    def require_writable(self) -> None:
        """Raise StoreError if the store can only be read."""
        ...

    def try_locks(self, names: Sequence[str]) -> set[str]:
        """Take the locks that nobody holds, and return their names. They end with the session, and
        with its process."""
        ...

    def unlock(self, names: Sequence[str]) -> None: ...

    def lock_holder(self, name: str) -> str | None:
        """Return who holds a lock, in words that may be empty; None if it is free."""
        ...

    def state(self) -> int | None:
        """Return a number that changes when another session commits; None if the store is gone."""
        ...

    def set_frozen(self, frozen: bool) -> None:
        """Read one state of the store from now on, or no longer."""
        ...

    def check_file(self) -> Iterator[str]:
        """Yield what the database itself finds damaged."""
        ...

    def close(self) -> None: ...


Connect = Callable[[], Session]


def schema() -> list[str]:
    """Return the statements that make the tables of a store."""
    text = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
    lines = (line.partition("--")[0].rstrip() for line in text.splitlines())
    statements = "\n".join(filter(None, lines)).split(";")
    return [*filter(None, map(str.strip, statements)), f"INSERT INTO store VALUES ({VERSION})"]


def schema_names() -> set[str]:
    """Return the names of all tables, indexes and views of a store."""
    words = (statement.replace("UNIQUE ", "").split() for statement in schema()[:-1])
    return {name for _, _, name, *_ in words}


def other_version(found: object) -> Sentence:
    """Return the message about a store with another version of the schema."""
    version = "?" if found is None else str(found)
    return Sentence("store.other_version", version=version, read=str(VERSION))


# PostgreSQL

_TYPES = {
    "INTEGER PRIMARY KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "INTEGER": "BIGINT",
    "REAL": "DOUBLE PRECISION",
    "WITHOUT ROWID": "",
    "ON units (id)": "ON units USING hash (id)",  # a tree takes no long keys
    "ON runs (name, starts)": "ON runs USING hash (name)",
    "json_each(j.observations)": "json_array_elements(j.observations::json)",
    "json_each(u.fields)": "json_each_text(u.fields::json)",
}
_REFERENCE = re.compile(r" REFERENCES \w+\(\w+\)")


def to_postgres_ddl(statement: str) -> str:
    """Return a statement of `schema.sql` in PostgreSQL's words."""
    for there, here in _TYPES.items():
        statement = statement.replace(there, here)
    return _REFERENCE.sub("", statement)


_WORDS = (
    (re.compile(r"CROSS JOIN"), "JOIN"),
    (re.compile(r" INDEXED BY \w+"), ""),
    (re.compile(r"\binstr\("), "strpos("),
    (re.compile(r"NOT IN \(SELECT value FROM json_each\((:\w+)\)\)"), r"<> ALL(\1)"),
    (re.compile(r"IN \(SELECT value FROM json_each\((:\w+)\)\)"), r"= ANY(\1)"),
)
_MARK = re.compile(r"\?|(?<!:):([a-z_][a-z_0-9]*)")


@lru_cache(maxsize=512)
def to_postgres(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a shared statement in PostgreSQL's words, and the names of its values in order."""
    for there, here in _WORDS:
        sql = there.sub(here, sql)
    names: dict[str, int] = {}

    def mark(match: re.Match[str]) -> str:
        name = match[1] or f"?{len(names)}"
        return f"${names.setdefault(name, len(names) + 1)}"

    return _MARK.sub(mark, sql), tuple(names)


_ESCAPE = "\x1a"


def escape_nul(text: str) -> str:
    """Return a text without NUL, from which `restore_nul` makes the same text again: NUL becomes
    SUB N, and SUB becomes SUB S."""
    if "\0" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, f"{_ESCAPE}S").replace("\0", f"{_ESCAPE}N")
    return text


def restore_nul(text: str) -> str:
    """Return the text that `escape_nul` was given."""
    if _ESCAPE in text:
        return text.replace(f"{_ESCAPE}N", "\0").replace(f"{_ESCAPE}S", _ESCAPE)
    return text


# The group writer


class Statement(NamedTuple):
    """A statement that is run for many rows. Within a commit those of a lower rank come first, so
    that rows of one statement are written together; those of one rank keep their order."""

    rank: int
    sql: str


class Write(NamedTuple):
    """A row to be written by a statement."""

    statement: Statement
    row: tuple[Any, ...]


class WriteGroup(NamedTuple):
    """Writes that belong into one commit, and the futures that wait for it."""

    writes: list[Write]
    waiting: list[asyncio.Future[None]]


_STOP = WriteGroup([], [])


class GroupWriter:
    """Writes rows through one session from one thread, in groups.

    Rows put during one turn of the event loop are handed to the thread together at its end.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = WriteGroup([], [])
        self._timer: asyncio.TimerHandle | None = None
        self._queue: SimpleQueue[WriteGroup] = SimpleQueue()
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
        group, self._next = self._next, WriteGroup([], [])
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

    def _gather(self) -> tuple[WriteGroup, bool]:
        """Return everything that waits, and True if it is the last."""
        group = WriteGroup([], [])
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
                what = Sentence("store.cannot_write", reason=str(error))
                self._broken = StoreError(what, where=self._session.where)
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
