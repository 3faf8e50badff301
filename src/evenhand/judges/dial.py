"""Connections to one provider, opened straight or by way of a proxy.

Invariants: nothing of a request is sent before the way to the provider stands, and over https not
before its certificate was found good; a name that has several addresses is tried at all of them,
the next a moment after the one before. What fails here was not billed.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import Sequence

from aiohappyeyeballs import start_connection
from aiohappyeyeballs.types import AddrInfoType
from yarl import URL

from evenhand.errors import quoted
from evenhand.judges.connection import BrokenError, Connection, OversizeError, Owner, Response

NEXT_ADDRESS_SECONDS = 0.25
NAMES_SECONDS = 10.0
"""So long the addresses of a name are believed."""


class UnreachableError(Exception):
    """Why there is no connection, in words."""


class UntrustedError(Exception):
    """The certificate of the host is not good."""


class TunnelError(Exception):
    """A proxy opens no way: the status it answered with."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Dialer:
    """Opens connections to the host of one URL."""

    def __init__(self, url: URL, proxy: str | None, owner: Owner, most_bytes: int) -> None:
        self._url, self._proxy = url, URL(proxy) if proxy else None
        self._owner, self._most_bytes = owner, most_bytes
        self._peer = self._proxy or url
        self._loop = asyncio.get_running_loop()
        self._names = asyncio.Lock()
        self._addresses: Sequence[AddrInfoType] = ()
        self._believed_until = 0.0
        is_encrypted = "https" in (url.scheme, self._peer.scheme)
        self._encryption = _encryption() if is_encrypted else None

    @property
    def is_tunnelled(self) -> bool:
        """Whether a proxy passes on bytes, and not requests."""
        return self._proxy is not None and self._url.scheme == "https"

    async def open(self) -> Connection:
        """A new connection; raises UnreachableError, UntrustedError, TunnelError or
        TimeoutError."""
        try:
            return await self._opened()
        except ssl.SSLCertVerificationError as error:
            raise UntrustedError(error.verify_message or str(error)) from None
        except TimeoutError:
            raise
        except OSError as error:
            fault = self._fault(error)
        raise UnreachableError(fault)

    async def _opened(self) -> Connection:
        peer = self._peer
        line = await start_connection(
            await self._resolved(), happy_eyeballs_delay=NEXT_ADDRESS_SECONDS
        )
        try:
            _, connection = await self._loop.create_connection(
                lambda: Connection(self._owner, self._most_bytes),
                sock=line,
                ssl=self._encryption if peer.scheme == "https" else None,
                server_hostname=peer.raw_host if peer.scheme == "https" else None,
            )
        except BaseException:
            line.close()
            raise
        if self.is_tunnelled:
            await self._pass_through(connection)
        return connection

    async def _resolved(self) -> Sequence[AddrInfoType]:
        """The addresses of the peer, looked up once for all who ask at the same time."""
        async with self._names:
            if self._loop.time() >= self._believed_until:
                self._addresses = await self._loop.getaddrinfo(
                    self._peer.raw_host, self._peer.port, type=socket.SOCK_STREAM
                )
                self._believed_until = self._loop.time() + NAMES_SECONDS
            return self._addresses

    async def _pass_through(self, connection: Connection) -> None:
        """Have the proxy open a way to the provider, and encrypt what goes through it."""
        try:
            place = f"{self._url.host_subcomponent}:{self._url.port}"
            head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
            for name, value in self.proxy_headers().items():
                head += f"{name}: {value}\r\n"
            answer = connection.tunnel(f"{head}\r\n".encode())
            del head  # it may hold a password, and a frame is shown where something fails
            status = await _status(answer)
            if not 200 <= status < 300:
                raise TunnelError(status)
            assert self._encryption is not None
            transport = await self._loop.start_tls(
                connection.transport,
                connection,
                self._encryption,
                server_hostname=self._url.raw_host,
            )
            if transport is None:
                raise ConnectionResetError("it hung up")
            connection.secured(transport)
        except BaseException:
            connection.abort()
            raise

    def proxy_headers(self) -> dict[str, str]:
        """What a proxy is told beside the request."""
        if self._proxy is None or self._proxy.user is None:
            return {}
        word = f"{self._proxy.user}:{self._proxy.password or ''}"
        return {"Proxy-Authorization": f"Basic {base64.b64encode(word.encode()).decode()}"}

    def _fault(self, error: OSError) -> str:
        """Why there is no connection, and what to look at."""
        place = f"{self._peer.host}:{self._peer.port}"
        if self._proxy is not None:
            return f"cannot connect to the proxy {place}: {_cause(error)}"
        if isinstance(error, socket.gaierror):
            return f"cannot connect to {self._peer.host}: no such host is known"
        if isinstance(error, ConnectionRefusedError):
            return f"cannot connect to {place}: nothing listens there"
        return f"cannot connect to {place}: {_cause(error)}"


async def _status(answer: asyncio.Future[Response]) -> int:
    """What a proxy answered; raises ConnectionResetError where that was nothing."""
    try:
        return (await answer).status
    except (BrokenError, OversizeError) as error:
        fault = str(error)
    raise ConnectionResetError(fault)


def _cause(error: OSError) -> str:
    return quoted(error.strerror or error)[1:-1]


def _encryption() -> ssl.SSLContext:
    """Certificates as the system and SSL_CERT_FILE say."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
