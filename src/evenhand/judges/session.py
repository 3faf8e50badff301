"""A session of one HTTP client, on aiohttp: its connections, and what is read from them.

Invariants: no redirect is followed; what is read is bounded, before and after decompression; every
error of the transport leaves as CallLost or ProviderRefused without the cause, which would carry
the request's headers.

Why aiohttp: pyreqwest 0.15 takes less than half of its CPU, but in 4 of 80 runs over TLS the
process was aborted as it exited, which no exit code survives, and it refuses a self-signed
certificate that is its own authority, as servers in local networks have.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import aiohttp
from yarl import URL

from evenhand.errors import CallError, CallLost, ProviderRefused, quoted
from evenhand.judges.complaint import PROXY_WANTS_PASSWORD, proxy_refusal
from evenhand.judges.http import Answered

CONNECT_SECONDS = 30.0
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
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            timeout=aiohttp.ClientTimeout(
                total=seconds, sock_connect=min(CONNECT_SECONDS, seconds)
            ),
            # Unpacked below, where the result is bounded.
            auto_decompress=False,
            proxy=proxy,
        )

    async def post(self, body: bytes) -> Answered:
        """Send `body` once. Raises CallLost or ProviderRefused where no answer came."""
        try:
            return await self._exchange(body)
        except (aiohttp.ClientError, OSError, _UnreadableError) as error:
            lost = self._lost(error)
        # Here and not in the handler: even a suppressed context would carry headers along.
        raise lost

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def _exchange(self, body: bytes) -> Answered:
        response = await self._session.post(self._url, data=body, allow_redirects=False)
        try:
            data = await _read(response, self._most_bytes)
        except BaseException:
            response.close()
            raise
        encoding = response.headers.get("Content-Encoding")
        if encoding is not None:
            data = _unpacked(data, encoding.strip(), self._most_bytes)
        return Answered(response.status, response.headers, data)

    def _lost(self, error: Exception) -> CallError | ProviderRefused:
        host = self._url.host or ""
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return CallLost("timeout", f"no connection to {host} in time", is_unreachable=True)
        if isinstance(error, TimeoutError):
            waited = f"{host} gave no complete answer within {self._seconds:g} s"
            return CallLost("timeout", waited, billed=True)
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return _untrusted(host, error)
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return _not_let_through(error.status)
        if isinstance(error, aiohttp.ClientConnectorError):
            fault = self._scrub(_unreachable(error))
            return CallLost("transport", fault, is_unreachable=True)
        if isinstance(error, _UnreadableError):
            return CallLost("transport", self._scrub(f"{host} answered with {error}"), billed=True)
        fault = self._scrub(f"the connection to {host} broke: {_why(error)}")
        return CallLost("transport", fault, billed=True)


def _unreachable(error: aiohttp.ClientConnectorError) -> str:
    """Why there is no connection, and what to look at."""
    place = f"{error.host}:{error.port}"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"cannot connect to the proxy {place}: {_cause(error)}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"cannot connect to {error.host}: no such host is known"
    if isinstance(error.os_error, ConnectionRefusedError):
        return f"cannot connect to {place}: nothing listens there"
    return f"cannot connect to {place}: {_cause(error)}"


def _cause(error: aiohttp.ClientConnectorError) -> str:
    return quoted(error.os_error.strerror or error.os_error)[1:-1]


class _UnreadableError(Exception):
    """An answer that is too large or packed in an unknown way."""


def _why(error: Exception) -> str:
    """Why a connection broke, without the bytes that aiohttp quotes: they may repeat the key."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it hung up without an answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the body ended early"
    if isinstance(error, aiohttp.ClientResponseError):
        return "the answer is no valid HTTP"
    return quoted(error)


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


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    content = response.content
    parts: list[bytes] = []
    size = 0
    while part := await content.readany():
        parts.append(part)
        size += len(part)
        if size > most:
            raise _too_large(most)
    return parts[0] if len(parts) == 1 else b"".join(parts)


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
    return plain


def _too_large(most: int) -> _UnreadableError:
    return _UnreadableError(f"more than {most} bytes; the rest was not read")
