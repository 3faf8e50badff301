"""One HTTP/1.1 connection: a request out, an answer in, and the next.

Invariants: one request at a time; what is held of an answer is bounded, its head and its body, from
the first bytes on; a connection is used again only after an answer that ended where it said it
would, and what comes unasked ends it. No message of a fault quotes what came over the connection:
it may repeat the key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

HEAD_BYTES = 1 << 16
"""The most that the names and values of an answer's headers may have together."""
NO_HTTP, UNASKED = "the answer is no valid HTTP", "it says what nobody asked"
_ENCODING = b"content-encoding"
_FRAMING = (b"content-length", b"transfer-encoding")


class BrokenError(Exception):
    """Why a connection gave no answer, in words."""


class OversizeError(Exception):
    """The body of an answer is larger than it may be."""


class Headers(Mapping[str, str]):
    """The headers of an answer, in whatever case; of one that stands twice the first counts. Few
    answers are asked for theirs: they are decoded when one is."""

    __slots__ = ("_decoded", "_raw")

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._raw = raw
        self._decoded: dict[str, str] | None = None

    def _values(self) -> dict[str, str]:
        if self._decoded is None:
            pairs = ((name.decode("latin-1"), value) for name, value in reversed(self._raw))
            self._decoded = {name.lower(): value.decode("latin-1") for name, value in pairs}
        return self._decoded

    def __getitem__(self, name: str) -> str:
        return self._values()[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())


class Response(Struct, frozen=True):
    """An answer as it came, its body packed as its encoding says."""

    status: int
    headers: Headers
    body: bytes
    encoding: str


class Owner(Protocol):
    """Whoever keeps connections."""

    def ended(self, connection: Connection) -> None:
        """A connection is closed."""
        ...


class Connection(asyncio.Protocol):
    """A connection that a transport serves; `request` sends, and the future it gives is done with
    the answer, or fails with BrokenError, OversizeError or an OSError."""

    def __init__(self, owner: Owner, most_bytes: int) -> None:
        self._owner, self._most_bytes = owner, most_bytes
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._is_tunnel = False
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.idle_since = 0.0
        self._begin()

    def _begin(self) -> None:
        """Be ready for an answer from its first byte."""
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._forget()

    def _forget(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []
        self._encoding, self._is_framed, self._has_head = b"", False, False
        self._status = self._received = self._head_size = self._size = 0

    # Used by a session

    @property
    def is_usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def request(self, data: bytes) -> asyncio.Future[Response]:
        """Send a whole request."""
        assert self._transport is not None and self._answer is None
        self._answer = self._loop.create_future()
        self._transport.write(data)
        return self._answer

    def tunnel(self, data: bytes) -> asyncio.Future[Response]:
        """Send the wish for a way through: its answer ends with its head where it is granted."""
        self._is_tunnel = True
        return self.request(data)

    def secured(self, transport: asyncio.Transport) -> None:
        """Go on over the transport that encrypts, as from the beginning."""
        self._transport, self._is_tunnel = transport, False
        self._begin()

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def fail(self, error: Exception) -> None:
        """End it; whoever waits for its answer hears why."""
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(error)
        self.abort()

    def abort(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End it in order."""
        if self._transport is not None:
            self._transport.close()

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._parser is None:
            return self.fail(BrokenError(UNASKED))
        size = self._size
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            # What a callback raises stands behind the parser's own error.
            is_large = isinstance(error.__context__, OversizeError)
            return self.fail(OversizeError() if is_large else BrokenError(NO_HTTP))
        if self._answer is not None:
            # What brings nothing of the body is bounded: a head, and what may follow the body.
            self._received = 0 if self._size > size else self._received + len(data)
            if self._received > HEAD_BYTES:
                self.fail(BrokenError(NO_HTTP))
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None:
            if exc is None and self._has_head and not self._is_framed:
                self._finish()  # a body of no stated length ends with its connection
            else:
                early = "the body ended early" if self._has_head else "it hung up without an answer"
                self.fail(exc if isinstance(exc, OSError) else BrokenError(early))
        self._transport = self._parser = None
        if not self.closed.done():
            self.closed.set_result(None)
        self._owner.ended(self)

    # Called by the parser

    def on_message_begin(self) -> None:
        if self._answer is None:
            raise BrokenError(UNASKED)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value)
        if self._head_size > HEAD_BYTES:
            raise BrokenError(NO_HTTP)
        if self._has_head:
            return  # what follows a body says nothing about it any more
        self._headers.append((name, value))
        lowered = name.lower()
        if lowered == _ENCODING:
            self._encoding = value
        elif lowered in _FRAMING:
            self._is_framed = True

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        self._has_head, self._status = True, self._parser.get_status_code()
        if self._is_tunnel and 200 <= self._status < 300:
            self._finish()

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > self._most_bytes:
            raise OversizeError
        self._parts.append(body)

    def on_message_complete(self) -> None:
        if 100 <= self._status < 200:
            self._forget()  # a word in advance: the answer is still to come
            return
        assert self._parser is not None
        is_kept = self._parser.should_keep_alive()
        self._finish()
        if not is_kept:
            self.close()

    def _finish(self) -> None:
        answer, self._answer = self._answer, None
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        encoding = self._encoding.decode("latin-1").strip()
        response = Response(self._status, Headers(self._headers), body, encoding)
        self._forget()
        if answer is not None and not answer.done():
            answer.set_result(response)
