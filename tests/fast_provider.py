"""The provider's behaviour `fast`, which also answers what asks for no form. There is no web
framework, so that a bench measures its client.

One asyncio protocol: it knows POST (any path: a chat completion) and GET (any path: the counts),
bodies with a Content-Length, and connections that are kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
from collections import Counter
from typing import Any

from tests.provider import completion, valid_reply

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class FastProvider:
    """The server; `counts` tells how often each body was answered."""

    def __init__(self, *, delay: float = 0.0, certificate: str = "") -> None:
        """`certificate` is a file with a certificate and its key, for https."""
        self.counts: Counter[bytes] = Counter()
        self.delay, self.certificate = delay, certificate
        self.url = ""
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> None:
        loop = asyncio.get_running_loop()
        context = None
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
        self._server = await loop.create_server(
            lambda: Connection(self), "127.0.0.1", port, ssl=context
        )
        address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        self.url = f"{'https' if context else 'http'}://{address}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    def completed(self, raw: bytes) -> bytes:
        body = json.loads(raw)
        asked: Any = body.get("response_format", {}).get("json_schema", {}).get("schema")
        text = "You asked: " + str(body["messages"][-1]["content"])
        if asked:
            text = json.dumps(valid_reply(body, asked), ensure_ascii=False)
        self.counts[hashlib.blake2b(raw, digest_size=16).digest()] += 1
        return completion(text)

    def counted(self) -> bytes:
        calls = self.counts.total()
        by_request = {digest.hex(): count for digest, count in self.counts.items()}
        most = max(self.counts.values(), default=0)
        counts = {"calls": calls, "answered": calls, "most": most, "by_request": by_request}
        return json.dumps(counts).encode()


class Connection(asyncio.Protocol):
    """One client; requests come one after the other."""

    def __init__(self, provider: FastProvider) -> None:
        self.provider, self.buffer = provider, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        head = self.buffer[:end].lower()
        size = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
        after = end + int(size or 0)
        if len(self.buffer) < after:
            return
        raw, self.buffer = self.buffer[end:after], self.buffer[after:]
        if head.startswith(b"get "):
            self.send(self.provider.counted())
        else:
            self.answer(raw)

    def answer(self, raw: bytes) -> None:
        """Answer the request of a completion."""
        body = self.provider.completed(raw)
        if self.provider.delay:
            asyncio.get_running_loop().call_later(self.provider.delay, self.send, body)
        else:
            self.send(body)

    def send(self, body: bytes) -> None:
        self.transport.write(HEAD % len(body) + body)
