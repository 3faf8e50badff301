"""The server: it takes requests, and answers each as its behaviour says."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

from aiohttp import web

from tests.provider.answers import valid
from tests.provider.call import Behaviour, Call


class Provider:
    """The server. `calls` holds every request, `counts` how often each body was answered."""

    def __init__(self, script: Behaviour | Sequence[Behaviour] = (), *, keep: bool = True) -> None:
        self.script: list[Behaviour] = [script] if callable(script) else list(script) or [valid()]
        self.calls: list[Call] = []
        self.counts: Counter[str] = Counter()
        self.schema: dict[str, Any] | None = None
        self.stopping = asyncio.Event()
        self.url = ""
        self._keep, self._number = keep, 0
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/counts", self._counts)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        self.stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        peer = request.transport and request.transport.get_extra_info("peername")
        number, self._number = self._number, self._number + 1
        call = Call(self, number, request.headers, raw, json.loads(raw), request, peer)
        if self._keep:
            self.calls.append(call)
        response = await self.script[min(number, len(self.script) - 1)](call)
        self.counts[hashlib.blake2b(raw, digest_size=16).hexdigest()] += 1
        return response

    async def _counts(self, _: web.Request) -> web.Response:
        most = max(self.counts.values(), default=0)
        return web.json_response(
            {"calls": self._number, "answered": self.counts.total(), "most": most}
            | {"by_request": dict(self.counts)}
        )
