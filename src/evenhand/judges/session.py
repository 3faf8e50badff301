"""A session of one HTTP client: its connections, and what is read from them.

Invariants: no redirect is followed; what is read is bounded, before and after decompression; a
request is sent once, on one connection, and a call that is cancelled or late ends its connection;
every error of the transport leaves as CallLost or ProviderRefused without the cause, which would
carry the request's headers.

Why a client of our own: docs/http-client.md.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping

from yarl import URL

from evenhand.errors import CallError, CallLost, ProviderRefused, quoted
from evenhand.judges.complaint import PROXY_WANTS_PASSWORD, proxy_refusal
from evenhand.judges.connection import BrokenError, Connection, OversizeError, Response
from evenhand.judges.dial import Dialer, TunnelError, UnreachableError, UntrustedError
from evenhand.judges.http import Answered

CONNECT_SECONDS = 30.0
IDLE_SECONDS = 15.0
"""After so long a connection that nobody used is not used any more: the other side may be closing
it just then."""
CLOSING_SECONDS = 0.5
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
PLAIN = ("", "identity")
ENCODINGS = (*PLAIN, "gzip", "x-gzip", "deflate")


class Session:
    """Posts to one URL; made inside the event loop that it is used in."""

    def __init__(
        self,
        url: URL,
        *,
        headers: Mapping[str, str],
        seconds: float,
        proxy: str | None,
        most_bytes: int,
        scrub: Callable[[str], str],
    ) -> None:
        self._url, self._seconds, self._most_bytes, self._scrub = url, seconds, most_bytes, scrub
        self._loop = asyncio.get_running_loop()
        self._dialer = Dialer(url, proxy, self, most_bytes)
        self._is_passed_on = proxy is not None and not self._dialer.is_tunnelled
        passed_on = self._dialer.proxy_headers() if self._is_passed_on else {}
        self._headers = {**headers, **passed_on}
        self._post = self._head("POST", url, {})
        self._connections: set[Connection] = set()
        self._idle: list[Connection] = []
        self._deadlines = Deadlines(self._loop)

    def post(self, body: bytes) -> Awaitable[Answered]:
        """Send `body` once. Raises CallLost or ProviderRefused where no answer came."""
        return self._sent(self._post, body)

    async def send(
        self, method: str, url: URL, body: bytes, headers: Mapping[str, str]
    ) -> Answered:
        """Send any request once, with headers beside the session's own. Raises as `post` does."""
        return await self._sent(self._head(method, url, headers), body)

    def _head(self, method: str, url: URL, headers: Mapping[str, str]) -> _Head:
        """The beginning of a request, up to the length of its body."""
        target = str(url) if self._is_passed_on else url.raw_path_qs
        more = {name.lower() for name in headers}
        own = {name: text for name, text in self._headers.items() if name.lower() not in more}
        named = {"Host": url.host_port_subcomponent or "", **own, **headers}
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {named[name]}" for name in named)]
        if any(ord(letter) < ord(" ") for line in lines for letter in line):
            raise ValueError("a header holds a character that none can have")
        return _Head("\r\n".join((*lines, "Content-Length: ")).encode("latin-1"))

    async def _sent(self, head: _Head, body: bytes) -> Answered:
        try:
            # In no variable of this frame, which an error shows: it may repeat the key.
            return self._answered(await self._exchange(head, body))
        except (OSError, *FAULTS) as error:
            lost = self._lost(error)
        # Here and not in the handler: even a suppressed context would carry headers along.
        raise lost

    async def close(self) -> None:
        """Close the connections."""
        self._deadlines.stop()
        connections = list(self._connections)
        for connection in connections:
            connection.close()
        if connections:
            await asyncio.wait([each.closed for each in connections], timeout=CLOSING_SECONDS)
        for connection in list(self._connections):
            connection.abort()
        # A transport lets go of its socket in the next turn.
        await asyncio.sleep(0)

    def ended(self, connection: Connection) -> None:
        """Forget a connection that is closed."""
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    async def _exchange(self, head: _Head, body: bytes) -> Response:
        now = self._loop.time()
        deadline = now + self._seconds
        connection = self._kept(now) or await self._connected()
        self._deadlines.add(connection, deadline)
        try:
            response = await connection.request(b"%b%d\r\n\r\n%b" % (head, len(body), body))
        except BaseException:
            connection.abort()
            raise
        finally:
            self._deadlines.remove(connection)
        # Not as soon as the answer is there: until this call goes on it may still be cancelled.
        if connection.is_usable:
            connection.idle_since = self._loop.time()
            self._idle.append(connection)
        return response

    def _answered(self, response: Response) -> Answered:
        body = response.body
        if response.encoding:
            body = _unpacked(body, response.encoding, self._most_bytes)
        return Answered(response.status, response.headers, body)

    def _kept(self, now: float) -> Connection | None:
        """A connection that can be used again, the one that was used last."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable and now - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.close()
        return None

    async def _connected(self) -> Connection:
        try:
            async with asyncio.timeout(min(CONNECT_SECONDS, self._seconds)):
                connection = await self._dialer.open()
        except TimeoutError:
            raise _LateError from None
        self._connections.add(connection)
        return connection

    def _lost(self, error: Exception) -> CallError | ProviderRefused:
        host = self._url.host or ""
        if isinstance(error, _LateError):
            return CallLost("timeout", f"no connection to {host} in time", is_unreachable=True)
        if isinstance(error, TimeoutError):
            waited = f"{host} gave no complete answer within {self._seconds:g} s"
            return CallLost("timeout", waited, billed=True)
        if isinstance(error, UntrustedError):
            return _untrusted(host, error)
        if isinstance(error, TunnelError):
            return _not_let_through(error.status)
        if isinstance(error, UnreachableError):
            return CallLost("transport", self._scrub(str(error)), is_unreachable=True)
        if isinstance(error, OversizeError):
            error = _too_large(self._most_bytes)
        if isinstance(error, _UnreadableError):
            return CallLost("transport", self._scrub(f"{host} answered with {error}"), billed=True)
        why = str(error) if isinstance(error, BrokenError) else quoted(error)
        fault = self._scrub(f"the connection to {host} broke: {why}")
        return CallLost("transport", fault, billed=True)


class Deadlines:
    """When connections that wait for an answer are given up: one timer for all of them, which goes
    off for the first that is due."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._due = loop, dict[Connection, float]()
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0

    def add(self, connection: Connection, deadline: float) -> None:
        """Give a connection up then, unless it is removed before."""
        self._due[connection] = deadline
        if self._timer is None or deadline < self._next:
            self._set(deadline)

    def remove(self, connection: Connection) -> None:
        self._due.pop(connection, None)

    def stop(self) -> None:
        """Give nothing up any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _set(self, moment: float) -> None:
        self.stop()
        self._next, self._timer = moment, self._loop.call_at(moment, self._ring)

    def _ring(self) -> None:
        now, self._timer = self._loop.time(), None
        for connection, deadline in list(self._due.items()):
            if deadline <= now:
                self.remove(connection)
                connection.fail(TimeoutError())
        if self._due:
            self._set(min(self._due.values()))


class _Head(bytes):
    """The beginning of a request, sent as it is and not shown: it holds the key."""

    def __repr__(self) -> str:
        return "Head()"


class _UnreadableError(Exception):
    """An answer that is too large or packed in an unknown way."""


class _LateError(Exception):
    """There was no connection in time."""


FAULTS = (
    *(BrokenError, OversizeError, UnreachableError, UntrustedError, TunnelError),
    *(_UnreadableError, _LateError),
)


def _not_let_through(status: int) -> CallError | ProviderRefused:
    """What it comes to that a proxy opens no way: nothing was sent to the provider."""
    if status == PROXY_WANTS_PASSWORD:
        return proxy_refusal()
    return CallLost("transport", f"the proxy opens no connection: HTTP {status}")


def _untrusted(host: str, error: Exception) -> ProviderRefused:
    return ProviderRefused(
        f"the certificate of {host} is not trusted: {quoted(error)}",
        advice="Set SSL_CERT_FILE to the certificates of your network, or correct base_url.",
    )


def _unpacked(data: bytes, encoding: str, most: int) -> bytes:
    """`data` without its Content-Encoding. Raises _UnreadableError."""
    if encoding.lower() not in ENCODINGS:
        raise _UnreadableError(f"the unknown Content-Encoding {quoted(encoding)}")
    if encoding.lower() in PLAIN or not data:
        return data
    unpacker = zlib.decompressobj(GZIP_OR_ZLIB)
    try:
        plain = unpacker.decompress(data, most + 1)
    except zlib.error:
        raise _UnreadableError(f"a body that is not {encoding}") from None
    if len(plain) > most:
        raise _too_large(most)
    if not unpacker.eof:
        raise _UnreadableError(f"a body whose {encoding} ends early")
    if unpacker.unused_data:
        raise _UnreadableError(f"a body that goes on after the end of its {encoding}")
    return plain


def _too_large(most: int) -> _UnreadableError:
    return _UnreadableError(f"more than {most} bytes; the rest was not read")
