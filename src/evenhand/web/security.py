"""Access to the server: who may ask, in which way, and what every response carries.

A page in somebody's browser is reached by every site that browser visits. So a request must name
this server as its Host (DNS rebinding is refused), must not come from another site's page, and can
change nothing.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from evenhand.errors import EvenhandError
from evenhand.words import Sentence

TOKEN_HEADER = "x-evenhand-token"  # noqa: S105  the name of a header
BODY_BYTES = 64 * 1024
"""No request to read has more to say."""
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
_HOST = re.compile(
    r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9.-]{1,253}))(?::([0-9]{1,5}))?", re.IGNORECASE
)
Next = Callable[[Request], Awaitable[Response]]
ErrorPage = Callable[[Request, int, EvenhandError], Response]
"""The response to a request that goes wrong, with its status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The host and port that the server is bound to, its token, and whether even reading needs
    it."""

    host: str
    port: int
    token: str
    closed: bool

    @property
    def cookie(self) -> str:
        """Return the name of the cookie that carries the token of a closed endpoint; ports share
        cookies, so each has a name of its own."""
        return f"evenhand-{self.port}"

    def is_token(self, text: str) -> bool:
        """Return True for the right token, in constant time."""
        return hmac.compare_digest(text.encode(), self.token.encode())

    def is_own_host(self, host: str) -> bool:
        """Return True if a Host header names this server. At a closed endpoint any address of the
        machine will do: a foreign name still has no token."""
        match = _HOST.fullmatch(host)
        if match is None or int(match[3] or 80) != self.port:
            return False
        name = (match[1] or match[2]).lower()
        if name in ("localhost", "127.0.0.1", "::1", self.host):
            return True
        return self.closed and _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Refused(EvenhandError):  # noqa: N818  as in errors.py
    """A request that is turned away."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status


class Guard:
    """Middleware: lets in what may come in, and sends every response with its headers."""

    def __init__(self, endpoint: Endpoint, error_page: ErrorPage) -> None:
        self._endpoint, self._error_page = endpoint, error_page

    async def __call__(self, request: Request, call_next: Next) -> Response:
        try:
            check_request(request, self._endpoint)
            response = login(request, self._endpoint) or await self._forward(request, call_next)
        except Refused as error:
            response = self._error_page(request, error.status, error)
        except Exception as error:
            # The name of the error is for the terminal; its text may hold anything.
            where = request.url.path[:200]
            sys.stderr.write(f"evenhand view: {type(error).__name__} at {where!r}\n")
            response = self._error_page(request, 500, EvenhandError(Sentence("web.bug")))
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    async def _forward(self, request: Request, call_next: Next) -> Response:
        if request.method == "HEAD":
            # Answered like GET; the server leaves the body out.
            request.scope["method"] = "GET"
        return await call_next(request)


def check_request(request: Request, endpoint: Endpoint) -> None:
    """Raise Refused for a foreign Host or Origin, for what another site's page loads, for a long
    body, and for whatever does more than read."""
    headers = request.headers
    host = headers.get("host", "")
    if not endpoint.is_own_host(host):
        raise Refused(403, Sentence("web.unknown_host"))
    foreign = [o for o in headers.getlist("origin") if o.lower() != f"http://{host.lower()}"]
    if foreign or _is_cross_site(request):
        raise Refused(403, Sentence("web.other_site"))
    length = headers.get("content-length", "0")
    is_number = length.isascii() and length.isdigit()
    if not is_number or int(length) > BODY_BYTES or "transfer-encoding" in headers:
        raise Refused(413, Sentence("web.too_long"))
    if request.method not in ("GET", "HEAD"):
        raise Refused(405, Sentence("web.only_reading"))


def _is_cross_site(request: Request) -> bool:
    """Return True if another site's page asks for more than a link to a page."""
    headers = request.headers
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    is_link = (
        headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    )
    return not (is_link and request.method == "GET" and not request.url.path.endswith("/report"))


def login(request: Request, endpoint: Endpoint) -> Response | None:
    """Return None for whoever may read, and a redirect that sets the cookie for whoever brings the
    token in the address; raise Refused for all others."""
    known = (request.headers.get(TOKEN_HEADER, ""), request.cookies.get(endpoint.cookie, ""))
    if not endpoint.closed or any(map(endpoint.is_token, known)):
        return None
    query = request.query_params.multi_items()
    if request.method != "GET" or not endpoint.is_token(dict(query).get("token", "")):
        raise Refused(401, Sentence("web.token_needed"))
    rest = urlencode([pair for pair in query if pair[0] != "token"])
    # The path alone, one slash in front: it can lead nowhere else.
    path = "/" + request.scope["raw_path"].decode("latin-1").lstrip("/\\")
    response = RedirectResponse(f"{path}?{rest}" if rest else path, status_code=303)
    response.set_cookie(endpoint.cookie, endpoint.token, httponly=True, samesite="strict")
    return response
