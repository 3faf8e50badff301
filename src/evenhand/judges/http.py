"""The HTTP client of all remote judges: one POST, one bounded answer, on aiohttp.

Invariants: the key goes to one origin, in one header, and no redirect is followed; what is read
is bounded, before and after decompression; every error of the transport leaves as CallLost or
ProviderRefused without the cause, which would carry the request's headers.
"""

from __future__ import annotations

import ipaddress
import re
import urllib.request
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from evenhand import limits
from evenhand.errors import CallError, CallLost, ProviderRefused, UsageError, quoted
from evenhand.judges.secrets import Secret

CONNECT_SECONDS = 30.0
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
PLAIN = ("", "identity")
ENCODINGS = (*PLAIN, "gzip", "x-gzip", "deflate")


class Answered(NamedTuple):
    """A complete HTTP answer, its body decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        """Without what the provider sent, for that may repeat the key."""
        return f"Answered(status={self.status}, {len(self.body)} bytes)"


class HttpClient:
    """Posts JSON to one URL. The session is made by the first call, inside its loop."""

    def __init__(
        self,
        url: URL,
        *,
        secret: Secret | None,
        environment: Mapping[str, str],
        seconds: float,
        key_header: str = "Authorization",
        key_prefix: str = "Bearer ",
        headers: Mapping[str, str] | None = None,
        most_bytes: int = limits.BODY_BYTES,
    ) -> None:
        self._url, self._secret, self._seconds = url, secret, seconds
        self._key_header, self._key_prefix = key_header, key_prefix
        self._own_headers, self._most_bytes = headers or {}, most_bytes
        self._proxy = proxy_for(url, environment)
        self._session: aiohttp.ClientSession | None = None

    def scrub(self, text: str) -> str:
        """`text` without the key."""
        return text if self._secret is None else self._secret.scrub(text)

    async def post(self, body: bytes) -> Answered:
        """Send `body` once. Raises CallLost or ProviderRefused where no answer came."""
        session = self._session or self._open()
        try:
            return await self._exchange(session, body)
        except (aiohttp.ClientError, OSError, _UnreadableError) as error:
            lost = self._lost(error)
        # Here and not in the handler: even a suppressed context would carry headers along.
        raise lost

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers(),
            timeout=aiohttp.ClientTimeout(
                total=self._seconds, sock_connect=min(CONNECT_SECONDS, self._seconds)
            ),
            # Unpacked below, where the result is bounded.
            auto_decompress=False,
            proxy=self._proxy,
        )
        return self._session

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": "evenhand",
            **self._own_headers,
        }
        if self._secret is not None:
            origin = str(self._url.origin())
            headers[self._key_header] = self._secret.header(origin, self._key_prefix)
        return headers

    async def _exchange(self, session: aiohttp.ClientSession, body: bytes) -> Answered:
        response = await session.post(self._url, data=body, allow_redirects=False)
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
            return CallLost("timeout", f"no connection to {host} in time")
        if isinstance(error, TimeoutError):
            waited = f"{host} gave no complete answer within {self._seconds:g} s"
            return CallLost("timeout", waited, billed=True)
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return _untrusted(host, error)
        if isinstance(error, aiohttp.ClientConnectorError):
            return CallLost("transport", f"cannot connect to {host}: {quoted(error)}")
        if isinstance(error, _UnreadableError):
            return CallLost("transport", self.scrub(f"{host} answered with {error}"), billed=True)
        return CallLost("transport", f"the connection to {host} broke: {_why(error)}", billed=True)


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


def _untrusted(host: str, error: Exception) -> ProviderRefused:
    return ProviderRefused(
        f"the certificate of {host} is not trusted: {quoted(error)}",
        advice="Set SSL_CERT_FILE to the certificates of your network, or correct base_url.",
    )


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    content = response.content
    first = await content.readany()
    if content.at_eof():
        return first
    parts, size = [first], len(first)
    while part := await content.readany():
        parts.append(part)
        size += len(part)
        if size > most:
            raise _too_large(most)
    return b"".join(parts)


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


EXAMPLE = "It looks like https://host/v1; a key stands in the environment, not in the URL."


def base_url(text: str, *, where: str) -> URL:
    """A base URL as the user gave it, without the trailing slash. Raises UsageError."""
    try:
        url = URL(text.strip())
        fault = _fault(url)
    except ValueError:
        url, fault = URL(), "is not a URL"
    if fault:
        raise UsageError(f"{_without_secrets(text)} {fault}", where=where, advice=EXAMPLE)
    path = url.raw_path.rstrip("/")
    path = path.removesuffix("/chat/completions").removesuffix("/messages")
    return url.with_path(path, encoded=True)


def _without_secrets(text: str) -> str:
    """A URL without the parts that may hold a secret."""
    return quoted(re.split("[?#]", re.sub("//.*@", "//", text))[0])


def _fault(url: URL) -> str:
    if url.scheme not in ("http", "https") or not url.host:
        return "is not an http or https URL"
    # The resolver raises UnicodeError, a ValueError, for a label it cannot encode.
    url.host.encode("idna")
    if url.user is not None or url.password is not None:
        return "carries a user name or password"
    return "carries a query or fragment" if url.raw_query_string or url.raw_fragment else ""


def is_loopback(url: URL) -> bool:
    """Whether `url` leads to this machine."""
    host = url.host or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def proxy_for(url: URL, environment: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for `url`, found once and not at every call."""
    name = f"{url.scheme}_proxy"
    proxy = environment.get(name) or environment.get(name.upper())
    if not proxy or is_loopback(url):
        return None
    spared = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    # Not in the stubs of the standard library.
    bypassed: Any = getattr(urllib.request, "proxy_bypass_environment")  # noqa: B009
    if bypassed(f"{url.host}:{url.port}", {"no": spared}):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        raise UsageError(
            "only http and https proxies are supported",
            where=name,
            advice="Set it to http://host:port, or list the provider's host in no_proxy.",
        )
    return proxy
