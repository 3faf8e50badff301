"""HTTP for all remote judges: one request, one connection, one bounded response.

- Each request has a connection of its own. What a gateway sends unasked, such as its response a
  second time, can therefore reach no other question. A judge takes seconds; a handshake does not
  matter.
- A request is sent once. Redirects are not followed: a key goes to one origin.
- The response is bounded, before and after it is unpacked, and has two deadlines: one for all of
  it, one for each silence within its body.
- Errors leave as CallLost or ProviderRefused, without their cause, which would carry the request's
  headers, and without a word of what came over the connection, which may repeat the key. `billed`
  says if the provider may have worked on the request.

aiohttp takes a third of a second to load, so the first request loads it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yarl import URL

from evenhand import limits
from evenhand.errors import CallError, CallLost, ProviderRefused, UsageError, quote
from evenhand.judges.credentials import Secret
from evenhand.judges.trust import parse_proxy, proxy_for
from evenhand.words import Sentence

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS = 30.0
IDLE_SECONDS = 180.0
"""A body in which nothing comes for so long has broken off. A model that thinks may well be silent
for minutes, so this is long; the wait for the head is bounded by the time for the whole request
alone."""
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""In seconds, and tries. NATs forget connections that are silent for a minute or more;
TCP_KEEPALIVE is what macOS calls TCP_KEEPIDLE."""
GZIP = 16 + zlib.MAX_WBITS
PROXY_WANTS_PASSWORD = 407


@dataclass(frozen=True, slots=True, repr=False)
class HttpResponse:
    """A complete HTTP response, its body unpacked. It has no repr: what the provider sent may
    repeat the key."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """Sends requests to one origin. The first request opens the session, inside its event loop."""

    def __init__(
        self,
        url: URL,
        *,
        secret: Secret | None,
        environment: Mapping[str, str],
        seconds: float,
        idle_seconds: float = IDLE_SECONDS,
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
        most_bytes: int = limits.BODY_BYTES,
        proxy: str | None = None,
        ca_file: Path | None = None,
    ) -> None:
        self._url, self._secret = url, secret
        self._seconds, self._idle_seconds = seconds, idle_seconds
        self._most_bytes = most_bytes
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": "evenhand",
            **(headers or {}),
        }
        if secret is not None:
            scheme = "Bearer " if key_header == "Authorization" else ""
            self._headers[key_header] = secret.header(str(url.origin()), scheme)
        self._proxy = parse_proxy(proxy, "proxy") if proxy else proxy_for(url, environment)
        password = self._proxy.password if self._proxy else None
        self._password = Secret("the proxy's password", password, "") if password else None
        # The system's certificates take 60 ms to load: not before there is something to send.
        self._tls = _load_certificates(ca_file) if ca_file else None
        self._session: aiohttp.ClientSession | None = None

    def scrub(self, text: str) -> str:
        """Return `text` without the key and without the proxy's password."""
        for secret in (self._secret, self._password):
            text = text if secret is None else secret.scrub(text)
        return text

    async def send(
        self,
        method: str,
        url: URL,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        most_bytes: int = 0,
    ) -> HttpResponse:
        """Send a request once and return its response. Raises CallLost or ProviderRefused if none
        came, and UsageError for another origin: the key belongs to this one."""
        import aiohttp

        if url.origin() != self._url.origin():
            raise UsageError(Sentence("judges.key_not_for", origin=url.origin()))
        if self._session is None:
            self._session = self._open()  # takes longer than some deadlines
        progress, deadline = _Progress(), asyncio.timeout(self._seconds)
        request = {"method": method, "url": url, "headers": headers}
        try:
            async with deadline:
                # Held by no variable of this frame, which a traceback may show.
                return await self._exchange(
                    self._session, request, body, progress, most_bytes or self._most_bytes
                )
        except (aiohttp.ClientError, OSError, _BodyError) as error:
            lost = self._error(error, progress, is_late=deadline.expired())
        # Here and not in the handler: even a suppressed context would carry the headers along.
        raise lost

    async def close(self) -> None:
        """Close the session; a later request opens another."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            await asyncio.sleep(0)  # a transport lets go of its socket in the next turn

    async def _exchange(
        self,
        session: aiohttp.ClientSession,
        request: dict[str, Any],
        body: bytes,
        progress: _Progress,
        most: int,
    ) -> HttpResponse:
        exchange = session.request(
            **request,
            data=BytesIO(body) if body else None,
            proxy=self._proxy,
            allow_redirects=False,
            trace_request_ctx=progress,
        )
        async with exchange as response:
            received = bytearray()
            while True:
                async with asyncio.timeout(self._idle_seconds):
                    part = await response.content.readany()
                if not part:
                    break
                received += part
                if len(received) > most:
                    raise _too_large(most)
            encoding = response.headers.get("Content-Encoding", "").strip()
            unpacked = _unpack(bytes(received), encoding, most)
            return HttpResponse(response.status, response.headers, unpacked)

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        async def mark_connected(_: object, context: Any, __: object) -> None:
            context.trace_request_ctx.is_connected = True

        trace = aiohttp.TraceConfig()
        trace.on_connection_create_end.append(mark_connected)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                force_close=True,
                limit=0,
                ssl=self._tls or _load_certificates(),
                socket_factory=make_socket,
            ),
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            trace_configs=[trace],
        )
        # A GET that broke off would be sent again, and nobody would know.
        session._retry_connection = False
        return session

    def _error(
        self, error: Exception, progress: _Progress, *, is_late: bool
    ) -> CallError | ProviderRefused:
        """Return what an error of the transport means for the call."""
        import aiohttp

        host = self._url.host
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            reason = getattr(error.certificate_error, "verify_message", "certificate verify failed")
            return ProviderRefused(
                Sentence("judges.certificate_not_trusted", host=host, reason=reason)
            )
        if isinstance(error, aiohttp.ClientHttpProxyError):
            if error.status == PROXY_WANTS_PASSWORD:
                return proxy_wants_password()
            return CallLost("transport", f"the proxy opens no connection: HTTP {error.status}")
        if not progress.is_connected:
            peer, role = self._proxy or self._url, "the proxy " if self._proxy else ""
            return CallLost(
                "timeout" if isinstance(error, TimeoutError) else "transport",
                f"cannot connect to {role}{peer.host}:{peer.port}: {_describe(error)}",
                is_unreachable=True,
            )
        if isinstance(error, TimeoutError):
            whole = f"{host} gave no complete answer within {self._seconds:g} s"
            idle = f"{host} sent nothing for {self._idle_seconds:g} s in the middle of its answer"
            return CallLost("timeout", whole if is_late else idle, billed=True)
        broken = f"the connection to {host} broke: {_describe(error)}"
        if isinstance(error, _BodyError):
            broken = self.scrub(f"{host} answered with {error}")
        return CallLost("transport", broken, billed=True)


class _Progress:
    """The state of one request: nothing is sent before there is a connection."""

    is_connected = False


class _BodyError(Exception):
    """A body that is too large, or packed in an unknown way."""


def make_socket(info: Any) -> socket.socket:
    """Return a socket that asks a silent peer if it is still there."""
    line = socket.socket(*info[:3])
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        with suppress(OSError, AttributeError):  # not every system has all of them
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return line


def _load_certificates(ca_file: Path | None = None) -> ssl.SSLContext:
    """Trust what the system and SSL_CERT_FILE say, and the judge's own authority beside them.
    Raises UsageError for a file that holds no certificates."""
    context = ssl.create_default_context()
    try:
        if ca_file is not None:
            context.load_verify_locations(ca_file)
    except OSError as error:
        raise UsageError(
            Sentence("judges.ca_file_unusable", reason=error.strerror or error), where=str(ca_file)
        ) from None
    return context


def _describe(error: Exception) -> str:
    """Return the cause in words of our own: an error of aiohttp may quote the response."""
    import aiohttp

    cause = getattr(error, "os_error", error)
    match cause:
        case TimeoutError():
            return "it took too long"
        case socket.gaierror():
            return "no such host is known"
        case ConnectionRefusedError():
            return "nothing listens there"
        case OSError() if cause.strerror:
            return quote(cause.strerror)[1:-1]
        case aiohttp.ServerDisconnectedError():
            return "it hung up without an answer"
        case aiohttp.ClientPayloadError():
            return "the body ended early"
        case OSError():
            return "it was reset"
        case _:
            return "the answer is no valid HTTP"


def proxy_wants_password() -> ProviderRefused:
    """Return the error for a 407: nothing was sent further."""
    return ProviderRefused(Sentence("judges.proxy_wants_password"))


def _unpack(data: bytes, encoding: str, most: int) -> bytes:
    """Return `data` without its Content-Encoding; never unpacks more than `most` bytes. Raises
    _BodyError."""
    if encoding.lower() in ("", "identity") or not data:
        return data
    if encoding.lower() != "gzip":
        raise _BodyError(f"the unknown Content-Encoding {quote(encoding)}")
    unpacker = zlib.decompressobj(GZIP)
    try:
        plain = unpacker.decompress(data, most + 1)
    except zlib.error:
        raise _BodyError("a body that is not gzip") from None
    if len(plain) > most:
        raise _too_large(most)
    if not unpacker.eof or unpacker.unused_data:
        raise _BodyError("a body that does not end where its gzip does")
    return plain


def _too_large(most: int) -> _BodyError:
    return _BodyError(f"more than {most} bytes; the rest was not read")
