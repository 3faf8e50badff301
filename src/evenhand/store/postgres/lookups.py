"""Replies looked up by their keys: those that are asked for together in one query."""

from __future__ import annotations

import asyncio

from evenhand.errors import StoreError
from evenhand.store.ports import Call, LedgerCall
from evenhand.store.postgres.link import Link
from evenhand.store.postgres.server import FAILED, Server
from evenhand.store.sql.browse import LEDGER_CALL, ledger_call

_FIND = f"SELECT {LEDGER_CALL} FROM calls WHERE key = ANY($1) AND aside IS NULL"
_DROP = "UPDATE calls SET aside=at WHERE no = ANY($1) AND aside IS NULL"


class Lookups:
    """What is asked for while a query is under way goes into the next."""

    def __init__(self, server: Server, link: Link) -> None:
        self._server, self._link = server, link
        self._waiting: dict[str, asyncio.Future[Call | None]] = {}
        self._task: asyncio.Task[None] | None = None

    async def find(self, key: str) -> Call | None:
        """The reply that answers under a key, if there is one; raises StoreError."""
        answer = self._waiting.get(key)
        if answer is None:
            answer = self._waiting[key] = asyncio.get_running_loop().create_future()
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._work(), name="evenhand-lookups")
        return await asyncio.shield(answer)

    async def _work(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, {}
            try:
                calls = await self._calls(list(waiting))
            except FAILED as error:
                self._fail(waiting, self._server.unusable(error))
            except asyncio.CancelledError:
                for answer in waiting.values():
                    answer.cancel()
                raise
            else:
                for key, answer in waiting.items():
                    if not answer.done():
                        answer.set_result(calls.get(key))

    @staticmethod
    def _fail(waiting: dict[str, asyncio.Future[Call | None]], error: StoreError) -> None:
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(error)
                answer.exception()  # whoever asked may have gone

    async def _calls(self, keys: list[str]) -> dict[str, Call]:
        rows = await self._link.do(lambda connection: connection.fetch(_FIND, keys))
        calls = [ledger_call(tuple(row)) for row in rows]
        await self._put_away([call for call in calls if call.altered])
        return {call.call.key: call.call for call in calls if not call.altered}

    async def _put_away(self, altered: list[LedgerCall]) -> None:
        """Replies that are not what was recorded answer no more: another one may."""
        if altered:
            numbers = [call.no for call in altered]
            await self._link.do(lambda connection: connection.execute(_DROP, numbers))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
