"""What stands before every page: who may ask, in which way, and what every answer carries.

A page in somebody's browser is reached by every site that browser visits. So a request must name
this server as its Host (a foreign name that was made to lead here is refused), must not come from
another site's page, and may change nothing unless it carries the token in a header, which no
foreign page can send. What a request says never becomes a path on the disk.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
Refuse = Callable[[str, int, str, str], tuple[str, bytes]]
"""Path, status, what happened and what to do, as a content type and a body."""

TOKEN_HEADER = "x-evenhand-token"  # noqa: S105  the name of a header
BODY_BYTES = 64 * 1024
"""No action takes more than a few words."""
METHODS = ("GET", "HEAD", "POST")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the server stands: the host and port it is bound to, its token, and whether even
    reading needs it."""

    host: str
    port: int
    token: str
    closed: bool

    @property
    def cookie(self) -> str:
        """The cookie that carries the token of a closed endpoint; ports share cookies, so each has
        a name of its own."""
        return f"evenhand-{self.port}"

    def is_token(self, text: str) -> bool:
        """Whether the token is right; takes as long for a wrong one as for the right one."""
        return hmac.compare_digest(text.encode(), self.token.encode())

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server. At a closed endpoint any address of the machine
        will do: a foreign name still has no token."""
        name, port = _split(host)
        if port != self.port:
            return False
        if name in ("localhost", "127.0.0.1", "::1", self.host):
            return True
        return self.closed and _is_address(name)


_HOST = re.compile(
    r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9.-]{1,253}))(?::([0-9]{1,5}))?", re.IGNORECASE
)


def _split(host: str) -> tuple[str, int]:
    """Name and port of a Host header; without a port it means 80, and what is no host has none."""
    match = _HOST.fullmatch(host)
    if match is None:
        return "", 0
    return (match[1] or match[2]).lower(), int(match[3] or 80)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Refused(Exception):  # noqa: N818  as in errors.py
    """Why a request is turned away."""

    def __init__(self, status: int, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.status, self.what, self.advice = status, what, advice


class Guard:
    """Lets through what may come in, and sends every answer out with its headers."""

    def __init__(self, app: App, *, endpoint: Endpoint, refuse: Refuse) -> None:
        self._app, self._endpoint, self._refuse = app, endpoint, refuse

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["method"] == "HEAD":
            # Answered like GET; the server sends the head of the answer alone.
            scope = {**scope, "method": "GET"}
        answer = _Answer(send)
        try:
            headers = _headers(scope)
            self._check(scope, headers)
            if await self._enter(scope, headers, answer):
                return
            body = await _whole(receive, headers)
            await self._app(scope, _once(body, receive), answer.send)
        except Refused as error:
            await answer.end(error.status, *self._refusal(scope, error))
        except Exception as error:
            # The name of the fault is for the terminal; its text may hold anything.
            sys.stderr.write(f"evenhand view: {type(error).__name__} at {scope['path'][:200]!r}\n")
            if not answer.begun:
                what = Refused(500, "Something went wrong in the program.", "This is a bug.")
                await answer.end(500, *self._refusal(scope, what))

    def _refusal(self, scope: MutableMapping[str, Any], error: Refused) -> tuple[str, bytes]:
        return self._refuse(scope["path"], error.status, error.what, error.advice)

    def _check(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> None:
        """Raises Refused for a request that must not come in."""
        if not self._endpoint.knows(headers.get("host", "")):
            raise Refused(403, "This address is not known here.", "Use the one printed at start.")
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{headers['host'].lower()}":
            raise Refused(403, "Another site asked for this page.")
        if _is_foreign(scope, headers):
            raise Refused(403, "Another site asked for this page.")
        if scope["method"] not in METHODS:
            raise Refused(405, f"Only {', '.join(METHODS)} are known here.")
        if scope["method"] == "POST" and not self._endpoint.is_token(headers.get(TOKEN_HEADER, "")):
            raise Refused(
                401,
                "This changes the store, and needs the token.",
                f"It is printed at start; send it in the header {TOKEN_HEADER}.",
            )

    async def _enter(
        self, scope: MutableMapping[str, Any], headers: dict[str, str], answer: _Answer
    ) -> bool:
        """Into a closed endpoint only with the token: in the header, in the cookie, or once in the
        address, which is then left without it."""
        endpoint = self._endpoint
        if not endpoint.closed or endpoint.is_token(headers.get(TOKEN_HEADER, "")):
            return False
        if endpoint.is_token(_cookie(headers.get("cookie", ""), endpoint.cookie)):
            return False
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = dict(query).get("token", "")
        if scope["method"] != "GET" or not endpoint.is_token(token):
            raise Refused(401, "This needs the token.", "Open the whole address printed at start.")
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        # The path alone, one slash in front: it can lead nowhere else.
        path = "/" + scope["raw_path"].decode("latin-1").lstrip("/\\")
        cookie = f"{endpoint.cookie}={endpoint.token}; Path=/; HttpOnly; SameSite=Strict"
        more = {"location": f"{path}?{rest}" if rest else path, "set-cookie": cookie}
        await answer.end(303, "text/plain; charset=utf-8", b"", more)
        return True


def _headers(scope: MutableMapping[str, Any]) -> dict[str, str]:
    """Every header once; raises Refused where one that counts stands twice."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in headers and key in ("host", "origin", "content-length", TOKEN_HEADER):
            raise Refused(400, f"The header {key} stands twice.")
        headers[key] = value.decode("latin-1")
    return headers


def _is_foreign(scope: MutableMapping[str, Any], headers: dict[str, str]) -> bool:
    """Whether another site's page asks. Following a link to a page is allowed; nothing else is."""
    site = headers.get("sec-fetch-site", "none")
    if site in ("same-origin", "none"):
        return False
    is_link = (
        headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    )
    is_page = not scope["path"].startswith("/api/") and not scope["path"].endswith("/report")
    return not (is_link and is_page and scope["method"] == "GET")


def _cookie(header: str, name: str) -> str:
    try:
        morsel = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


async def _whole(receive: Receive, headers: dict[str, str]) -> bytes:
    """The body of a request; raises Refused if it is too long, or does not come to its end."""
    announced = headers.get("content-length", "0")
    if not (announced.isascii() and announced.isdigit()) or int(announced) > BODY_BYTES:
        raise Refused(413, "The request is too long.")
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "The request broke off.")
        body += message.get("body", b"")
        if len(body) > BODY_BYTES:
            raise Refused(413, "The request is too long.")
        if not message.get("more_body"):
            return bytes(body)


def _once(body: bytes, receive: Receive) -> Receive:
    """The body as the application expects to receive it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


class _Answer:
    """The answer on its way out."""

    def __init__(self, send: Send) -> None:
        self._send, self.begun = send, False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            names = {name.lower() for name, _ in message["headers"]}
            more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in names]
            message["headers"] = [*message["headers"], *more]
        await self._send(message)

    async def end(
        self, status: int, kind: str, body: bytes, more: dict[str, str] | None = None
    ) -> None:
        """Answer in one go."""
        headers = {"content-type": kind, "content-length": str(len(body)), **(more or {})}
        headers |= {"allow": ", ".join(METHODS)} if status == 405 else {}
        fields = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": fields})
        await self.send({"type": "http.response.body", "body": body})
