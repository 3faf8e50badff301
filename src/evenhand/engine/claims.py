"""Who asks which question, where several workers share a ledger: each is paid for once.

A question is claimed before it is asked; whoever finds it claimed waits for the reply of the other,
or takes over where that one is no longer alive. All questions of a moment are claimed at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from evenhand.engine.stop import Stop
from evenhand.engine.tally import Tally
from evenhand.errors import StoreError
from evenhand.ledger.coordination import Worker
from evenhand.ledger.ports import Call, Ledger
from evenhand.limits import LOOK_AGAIN_FIRST, LOOK_AGAIN_MOST


class Claims:
    """The questions that one worker has claimed, or would."""

    def __init__(self, worker: Worker, ledger: Ledger, stop: Stop, tally: Tally) -> None:
        self._worker, self._ledger, self._stop, self._tally = worker, ledger, stop, tally
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._ended: list[str] = []
        self._exchange: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def claimed(self, key: str) -> AsyncIterator[Call | None]:
        """Have a question claimed. Gives the reply where another worker has it meanwhile, else the
        question is this worker's to ask; raises Stopped."""
        pause = LOOK_AGAIN_FIRST
        while not await self._claim(key):
            await self._stop.sleep(pause)
            pause = min(2 * pause, LOOK_AGAIN_MOST)
        try:
            # It may have been answered, and its claim ended, since the ledger was looked at.
            call = await self._ledger.find(key)
            self._tally.cached += call is not None
            yield call
        finally:
            self._ended.append(key)
            self._begin()

    async def _claim(self, key: str) -> bool:
        outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[key] = outcome
        self._begin()
        return await outcome

    def _begin(self) -> None:
        if self._exchange is None:
            self._exchange = asyncio.create_task(self._exchanged())

    async def _exchanged(self) -> None:
        """Tell the store what has gathered, until there is no more."""
        waiting: dict[str, asyncio.Future[bool]] = {}
        try:
            while self._waiting or self._ended:
                waiting, self._waiting = self._waiting, {}
                ended, self._ended = self._ended, []
                if ended:
                    await self._worker.release(ended)
                keys = await self._worker.claim(list(waiting)) if waiting else frozenset[str]()
                for key, outcome in waiting.items():
                    if not outcome.done():
                        outcome.set_result(key in keys)
        except StoreError as error:
            for outcome in (*waiting.values(), *self._waiting.values()):
                if not outcome.done():
                    outcome.set_exception(error)
            self._waiting = {}
        finally:
            self._exchange = None
