"""The HTTP client of all remote judges: one request, one bounded answer.

Invariants: the key goes to one origin, in one header. What sends and reads stands in `session`,
which is loaded with the first request: whoever only looks at a suite sends none.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from yarl import URL

from evenhand import jsontext, limits
from evenhand.errors import UsageError, quoted
from evenhand.judges.secrets import Secret

if TYPE_CHECKING:
    from evenhand.judges.session import Session


class Answered(Struct, frozen=True):
    """A complete HTTP answer, its body decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        """Without what the provider sent, for that may repeat the key."""
        return f"Answered(status={self.status}, {len(self.body)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The same for `rich`, which may show a traceback."""
        return [("status", self.status)]


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
        self._proxy_secret = _proxy_secret(self._proxy)
        self._session: Session | None = None

    def scrub(self, text: str) -> str:
        """`text` without the key, and without the password of the proxy."""
        for secret in (self._secret, self._proxy_secret):
            text = text if secret is None else secret.scrub(text)
        return text

    def post(self, body: bytes) -> Awaitable[Answered]:
        """Send `body` once. Raises CallLost or ProviderRefused where no answer came."""
        return (self._session or self._open()).post(body)

    async def send(
        self, method: str, url: URL, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answered:
        """Send any request to the same origin once, with headers beside the client's own. Raises
        as `post` does, and UsageError for another origin: the key belongs to this one."""
        if url.origin() != self._url.origin():
            raise UsageError(f"{quoted(url.origin())} is not where the key may go")
        session = self._session or self._open()
        return await session.send(method, url, body, headers or {})

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> Session:
        from evenhand.judges.session import Session

        self._session = Session(
            self._url,
            headers=self._headers(),
            seconds=self._seconds,
            proxy=self._proxy,
            most_bytes=self._most_bytes,
            scrub=self.scrub,
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


def loaded(text: str) -> Any:
    """The value of a body that came from outside; raises ValueError, before anything is built of
    one that nests too deep or holds too many values."""
    jsontext.require_bounds(text, limits.STORED_DEPTH, limits.BODY_ELEMENTS)
    return json.loads(text)


EXAMPLE = "It looks like https://host/v1; a key stands in the environment, not in the URL."


_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+(%25\w+)?", re.IGNORECASE)


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
    if not _HOST.fullmatch(url.raw_host or ""):
        return "has a host with a character that no host has"
    if url.user is not None or url.password is not None:
        return "carries a user name or password"
    return "carries a query or fragment" if url.raw_query_string or url.raw_fragment else ""


def is_loopback(url: URL) -> bool:
    """Whether `url` leads to this machine, whatever a name server says."""
    host = url.host or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _proxy_secret(proxy: str | None) -> Secret | None:
    """The password of a proxy."""
    password = URL(proxy).password if proxy else None
    return Secret("the password of the proxy", password, "") if password else None


def proxy_for(url: URL, environment: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for `url`, found once and not at every call."""
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
    return _proxy_url(proxy.strip(), name)


def _proxy_url(text: str, name: str) -> str:
    """A proxy as a URL. Raises UsageError, which never shows it: it may hold a password."""
    text = text if "://" in text else f"http://{text}"
    try:
        is_usable = _is_proxy(URL(text))
    except ValueError:
        is_usable = False
    if not is_usable:
        raise UsageError(
            "this is no http or https proxy",
            where=name,
            advice="Set it to http://host:port or http://user:password@host:port (with % escapes"
            " where the password has signs), or list the provider's host in no_proxy.",
        )
    return text


def _is_proxy(url: URL) -> bool:
    has_host = url.scheme in ("http", "https") and _HOST.fullmatch(url.raw_host or "")
    return bool(has_host) and url.raw_path in ("", "/") and not url.raw_query_string
