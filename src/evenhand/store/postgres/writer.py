"""One task that writes: whatever has gathered since the last commit goes into the next.

A future handed out here is done only after the commit that holds its rows. A commit that was cut
off is made again when the server is back. One that cannot be made ends it: every later write fails
with the same error, and the replies among them are kept in a file, for the next to open the store.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any

from evenhand.errors import StoreError
from evenhand.limits import BATCH_ROWS, GATHER_SECONDS, HELD_UP_SECONDS, REPLIES_REMEMBERED
from evenhand.store.beside import Unrecorded
from evenhand.store.codec import CallRow
from evenhand.store.postgres.group import Group
from evenhand.store.postgres.link import Link
from evenhand.store.postgres.server import FAILED, MEND, Connection, Server, reason
from evenhand.store.soon import Soon


class GroupWriter:
    """Writes groups of rows through one link, in the event loop that it was made in."""

    def __init__(self, server: Server, link: Link, unrecorded: Unrecorded) -> None:
        self._server, self._link, self._unrecorded = server, link, unrecorded
        self.trouble: Callable[[], StoreError | None] = lambda: None
        """Why nothing more should be asked, though it can be written."""
        self._group, self._lazy = Group(), 0
        self._recent: deque[CallRow] = deque(maxlen=REPLIES_REMEMBERED)
        self._soon = Soon(self._awaken_for_lazy)
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._began: float | None = None
        self._broken: StoreError | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def group(self) -> Group:
        """What gathers now, to be added to."""
        return self._group

    def commit(self) -> asyncio.Future[None]:
        """Done when all that has gathered is durable."""
        done = asyncio.get_running_loop().create_future()
        self._group.waiting.append(done)
        self._awaken()
        return done

    def _awaken(self) -> None:
        self._wake.set()
        if self._task is None or self._task.done():  # or somebody ended it, and goes on
            self._is_stopping = False
            self._task = asyncio.create_task(self._work(), name="evenhand-ledger")

    def count_lazily(self) -> None:
        """Something was added that need not survive a crash: it goes with the next group, or when
        there is much of it, or soon."""
        self._soon.ask()
        self._lazy += 1
        if self._lazy >= BATCH_ROWS:
            self._awaken()

    def _awaken_for_lazy(self) -> None:
        if self._lazy:
            self._awaken()

    @property
    def is_held_up(self) -> bool:
        """Whether a commit takes so long that the server must be away."""
        began = self._began
        return began is not None and monotonic() - began > HELD_UP_SECONDS

    async def restore(self, connection: Connection) -> None:
        """Write the last replies once more, on a new connection: a standby that has taken over may
        not have had them yet. Those that are there stay as they are."""
        if self._recent:
            group = Group()
            group.calls.extend(self._recent)
            await group.write(connection)

    async def stop(self) -> None:
        """Write what is left and end the task."""
        self._soon.cancel()
        done = self.commit()
        self._is_stopping = True
        await asyncio.wait([done])
        if not done.cancelled():
            done.exception()  # whoever waits for its rows has heard it
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        while True:
            await self._next()
            group, self._group, self._lazy = self._group, Group(), 0
            self._began = monotonic()
            error = await self._commit(group)
            self._began = None
            _resolve(group, error)
            if self._is_stopping and self._group.is_empty() and not self._group.waiting:
                return

    async def _next(self) -> None:
        """Wait for something to write, and a moment for what joins it."""
        try:
            if not self._is_stopping:
                await self._wake.wait()
                await asyncio.sleep(GATHER_SECONDS)
        except asyncio.CancelledError:
            self._is_stopping = True  # what has gathered is written all the same
        self._wake.clear()

    async def _commit(self, group: Group) -> StoreError | None:
        if self._broken is None:
            try:
                await self._persist(lambda: self._link.do(group.write))
                self._recent.extend(group.calls)
                return self.trouble()
            except FAILED as error:
                what = f"the store cannot be written: {reason(error)}"
        else:
            what = self._broken.what
        advice = await self._keep(group)
        if self._broken is None or advice != MEND:
            self._broken = StoreError(what, where=self._server.where, advice=advice)
        return self._broken

    async def _persist(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do work that whoever ends this task cannot keep from being done."""
        while True:
            try:
                return await work()
            except asyncio.CancelledError:
                self._is_stopping = True

    async def _keep(self, group: Group) -> str:
        """Keep the replies of a group that could not be written in a file; what to do then."""
        rows = [("call", row) for row in group.calls]
        releases = [("release", attempt) for attempt in group.releases]
        if not rows and not releases:
            return MEND
        try:
            await asyncio.to_thread(_kept, self._unrecorded, [*rows, *releases])
        except OSError as error:
            return f"{MEND} Replies that came too late could not be kept: {error}."
        return (
            f"{MEND} Replies that came too late are kept in {self._unrecorded.path}: it takes them"
            " in, and pays for none of them again."
        )


def _kept(unrecorded: Unrecorded, rows: Sequence[tuple[str, Sequence[Any]]]) -> None:
    """Keep rows in a file, whose folder is made where there is none; raises OSError."""
    unrecorded.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unrecorded.keep(rows)


def _resolve(group: Group, error: StoreError | None) -> None:
    for done in group.waiting:
        if done.done():
            continue
        if error:
            done.set_exception(error)
        else:
            done.set_result(None)
