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
import ipaddress
import re
import socket
import ssl
import zlib
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from yarl import URL

from evenhand import limits
from evenhand.errors import CallError, CallLost, ProviderRefused, UsageError, quoted
from evenhand.judges.credentials import Secret

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver

CONNECT_SECONDS = 30.0
IDLE_SECONDS = 180.0
"""A body in which nothing comes for so long has broken off. A model that thinks may well be silent
for minutes, so this is long; the wait for the head is bounded by the time for the whole request
alone."""
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""In seconds, and tries. NATs forget connections that are silent for a minute or more;
TCP_KEEPALIVE is what macOS calls TCP_KEEPIDLE."""
LARGE_BODY = 1 << 20
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
PROXY_WANTS_PASSWORD = 407
HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|[0-9a-f:.]+(%25\w+)?", re.IGNORECASE)


class HttpResponse(Struct, frozen=True):
    """A complete HTTP response, its body unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        """Return it without what the provider sent, for that may repeat the key."""
        return f"HttpResponse(status={self.status}, {len(self.body)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return as little to `rich`, which may show a traceback."""
        return [("status", self.status)]


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
        key_prefix: str = "Bearer ",
        headers: Mapping[str, str] | None = None,
        most_bytes: int = limits.BODY_BYTES,
        proxy: str | None = None,
        ca_file: Path | None = None,
    ) -> None:
        self._url, self._secret, self._ca_file = url, secret, ca_file
        _check_ca_file(ca_file)
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
            self._headers[key_header] = secret.header(str(url.origin()), key_prefix)
        self._proxy = parse_proxy(proxy, "proxy") if proxy else proxy_for(url, environment)
        password = self._proxy.password if self._proxy else None
        self._password = Secret("the proxy's password", password, "") if password else None
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
        if url.origin() != self._url.origin():
            raise UsageError(f"{quoted(url.origin())} is not where the key may go")
        progress = _Progress(most_bytes or self._most_bytes)
        try:
            # Held by no variable of this frame, which a traceback may show.
            return await self._exchange(method, url, body, headers or {}, progress)
        except _errors() as error:
            lost = self._error(error, progress)
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
        method: str,
        url: URL,
        body: bytes,
        headers: Mapping[str, str],
        progress: _Progress,
    ) -> HttpResponse:
        session = self._session or self._open()
        async with (
            asyncio.timeout(self._seconds),
            session.request(
                method,
                url,
                # aiohttp warns of large bodies that are not sent in pieces.
                data=(body if len(body) < LARGE_BODY else BytesIO(body)) or None,
                headers=headers,
                proxy=self._proxy,
                allow_redirects=False,
                trace_request_ctx=progress,
            ) as response,
        ):
            packed = await self._read(response, progress.most_bytes)
            encoding = response.headers.get("Content-Encoding", "").strip()
            unpacked = _unpack(packed, encoding, progress.most_bytes)
            return HttpResponse(response.status, response.headers, unpacked)

    async def _read(self, response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
        """Return the body as it comes. Raises _BodyError beyond the bound, _SilentError after a
        silence."""
        parts: list[bytes] = []
        size = 0
        while True:
            try:
                async with asyncio.timeout(self._idle_seconds) as silence:
                    part = await response.content.readany()
            except TimeoutError:
                if silence.expired():
                    raise _SilentError from None
                raise
            if not part:
                return b"".join(parts)
            size += len(part)
            if size > most_bytes:
                raise _too_large(most_bytes)
            parts.append(part)

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
                ssl=_tls(self._ca_file),
                resolver=cast("AbstractResolver", _Resolver()),
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
        self._session = session
        return session

    def _error(self, error: Exception, progress: _Progress) -> CallError | ProviderRefused:
        """Return what an error of the transport means for the call."""
        import aiohttp

        host = self._url.host or ""
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return _certificate_error(host, error.certificate_error)
        if isinstance(error, aiohttp.ClientHttpProxyError):
            if error.status == PROXY_WANTS_PASSWORD:
                return proxy_wants_password()
            return CallLost("transport", f"the proxy opens no connection: HTTP {error.status}")
        if not progress.is_connected:
            if isinstance(error, TimeoutError):
                return CallLost("timeout", f"no connection to {host} in time", is_unreachable=True)
            return CallLost("transport", self.scrub(self._unreachable(error)), is_unreachable=True)
        if isinstance(error, _SilentError):
            silent = f"{host} sent nothing for {self._idle_seconds:g} s in the middle of its answer"
            return CallLost("timeout", silent, billed=True)
        if isinstance(error, TimeoutError):
            waited = f"{host} gave no complete answer within {self._seconds:g} s"
            return CallLost("timeout", waited, billed=True)
        broken = f"the connection to {host} broke: {_describe(error)}"
        if isinstance(error, _BodyError):
            broken = f"{host} answered with {error}"
        return CallLost("transport", self.scrub(broken), billed=True)

    def _unreachable(self, error: Exception) -> str:
        """Return why there is no connection, and what to look at."""
        peer = self._proxy or self._url
        place = f"{peer.host}:{peer.port}"
        if self._proxy is not None:
            return f"cannot connect to the proxy {place}: {_describe(error)}"
        cause = getattr(error, "os_error", error)
        if isinstance(cause, socket.gaierror):
            return f"cannot connect to {peer.host}: no such host is known"
        if isinstance(cause, ConnectionRefusedError):
            return f"cannot connect to {place}: nothing listens there"
        return f"cannot connect to {place}: {_describe(error)}"


class _Progress:
    """The state of one request: nothing is sent before there is a connection."""

    def __init__(self, most_bytes: int) -> None:
        self.is_connected, self.most_bytes = False, most_bytes


class _BodyError(Exception):
    """A body that is too large, or packed in an unknown way."""


class _SilentError(Exception):
    """Nothing more came of a body."""


class _Resolver:
    """Looks names up. `localhost` is this machine on both its addresses, whatever the hosts file
    says: a server may listen on one of them alone."""

    async def resolve(
        self, host: str, port: int = 0, family: int = socket.AF_UNSPEC
    ) -> list[dict[str, Any]]:
        """Return the addresses of a host, in the form that aiohttp takes."""
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        addresses: dict[Any, socket.AddressFamily] = {info[4][0]: info[0] for info in infos}
        if host == "localhost":
            addresses |= {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}
        return [
            {"hostname": host, "host": address, "port": port}
            | {"family": kind, "proto": 0, "flags": socket.AI_NUMERICHOST}
            for address, kind in addresses.items()
        ]

    async def close(self) -> None:
        """Nothing is held."""


def make_socket(info: Any) -> socket.socket:
    """Return a socket that asks a silent peer if it is still there."""
    line = socket.socket(*info[:3])
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        with suppress(OSError, AttributeError):  # not every system has all of them
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return line


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    """Trust what the system and SSL_CERT_FILE say, and the judge's own authority beside them."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


def _check_ca_file(ca_file: Path | None) -> None:
    """Raise UsageError for a file that holds no certificates, before anything is sent."""
    if ca_file is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(ca_file)
    except OSError as error:
        raise UsageError(
            f"ca_file cannot be used: {error.strerror or 'it holds no certificates in PEM form'}",
            where=str(ca_file),
        ) from None


def _errors() -> tuple[type[Exception], ...]:
    from aiohttp import ClientError
    from aiohttp.http import HttpProcessingError

    return (ClientError, HttpProcessingError, OSError, _BodyError, _SilentError)


def _describe(error: Exception) -> str:
    """Return the cause in words of our own: an error of aiohttp may quote the response."""
    import aiohttp

    cause = getattr(error, "os_error", error)
    if isinstance(cause, OSError) and cause.strerror:
        return quoted(cause.strerror)[1:-1]
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it hung up without an answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the body ended early"
    return "it was reset" if isinstance(error, OSError) else "the answer is no valid HTTP"


def _certificate_error(host: str, error: Exception) -> ProviderRefused:
    reason = getattr(error, "verify_message", "") or error
    return ProviderRefused(
        f"the certificate of {host} is not trusted: {quoted(reason)}",
        advice="Set ca_file in [[judges]], or SSL_CERT_FILE, to the certificates of your network;"
        " or correct base_url.",
    )


def proxy_wants_password() -> ProviderRefused:
    """Return the error for a 407: nothing was sent further."""
    return ProviderRefused(
        "the proxy wants a user name and a password: HTTP 407",
        advice="Set https_proxy (or http_proxy) to http://user:password@host:port.",
    )


def _unpack(data: bytes, encoding: str, most: int) -> bytes:
    """Return `data` without its Content-Encoding; never unpacks more than `most` bytes. Raises
    _BodyError."""
    if encoding.lower() in ("", "identity") or not data:
        return data
    if encoding.lower() not in ("gzip", "x-gzip", "deflate"):
        raise _BodyError(f"the unknown Content-Encoding {quoted(encoding)}")
    unpacker = zlib.decompressobj(GZIP_OR_ZLIB)
    try:
        plain = unpacker.decompress(data, most + 1)
    except zlib.error:
        raise _BodyError(f"a body that is not {encoding}") from None
    if len(plain) > most:
        raise _too_large(most)
    if not unpacker.eof or unpacker.unused_data:
        raise _BodyError(f"a body that does not end where its {encoding} does")
    return plain


def _too_large(most: int) -> _BodyError:
    return _BodyError(f"more than {most} bytes; the rest was not read")


def is_loopback(url: URL) -> bool:
    """Return True if `url` leads to this machine, whatever a name server says."""
    host = url.host or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def proxy_for(url: URL, environment: Mapping[str, str]) -> URL | None:
    """Return the proxy that the environment names for `url`."""
    name = f"{url.scheme}_proxy"
    proxy = environment.get(name) or environment.get(name.upper())
    if not proxy or is_loopback(url):
        return None
    import urllib.request  # spares every start without a proxy

    spared = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    # Not in the stubs of the standard library.
    bypassed: Any = getattr(urllib.request, "proxy_bypass_environment")  # noqa: B009
    if bypassed(f"{url.host}:{url.port}", {"no": spared}):
        return None
    return parse_proxy(proxy, name)


def parse_proxy(text: str, where: str) -> URL:
    """Return a proxy as a URL. Raises UsageError, which never shows it: it may hold a password."""
    text = text.strip()
    try:
        url = URL(text if "://" in text else f"http://{text}")
        has_host = url.scheme in ("http", "https") and HOST.fullmatch(url.raw_host or "")
    except ValueError:
        url, has_host = URL(), None
    if not has_host or url.raw_path not in ("", "/") or url.raw_query_string:
        raise UsageError(
            "this is no http or https proxy",
            where=where,
            advice="Set it to http://host:port or http://user:password@host:port (with % escapes"
            " where the password has signs), or list the provider's host in no_proxy.",
        )
    return url
