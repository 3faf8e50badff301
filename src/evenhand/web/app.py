"""The application: pages, API, files of the package, and the guard before them all."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import resources
from importlib.metadata import version

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from evenhand import jsontext
from evenhand.errors import EvenhandError, StoreBusy, StoreError, UsageError, quoted
from evenhand.report.html.page import static
from evenhand.store.ports import Store
from evenhand.web.api import Json, routes
from evenhand.web.connections import ConnectionLimits, bounded_connections
from evenhand.web.desk import Desk, NotFound
from evenhand.web.guard import App, Endpoint, Guard
from evenhand.web.pages import Pages
from evenhand.web.render import Renderer
from evenhand.web.side_by_side import SideBySidePage
from evenhand.web.stores import Patience
from evenhand.web.unit_list import UnitList

STATIC = {
    "page.css": ("text/css", "evenhand.report.html"),
    "view.css": ("text/css", "evenhand.web"),
    "sort.js": ("text/javascript", "evenhand.report.html"),
    "view.js": ("text/javascript", "evenhand.web"),
}
"""All files that are served, by name: no path of a request ever reaches the disk."""
_STATUS: tuple[tuple[type[EvenhandError], int], ...] = (
    (NotFound, 404),
    (StoreBusy, 409),
    (StoreError, 503),
    (UsageError, 400),
)


def make_app(
    open_one: Callable[[], Store], endpoint: Endpoint, store: str, patience: Patience | None = None
) -> App:
    """The whole site over the store that `open_one` opens; `store` is its name for people."""
    desk, renderer = Desk(open_one, patience or Patience()), Renderer()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(desk.close)

    app = FastAPI(
        title="Evenhand",
        version=version("evenhand"),
        description="The runs of a store: judgments, calls, figures. Reading is free; POST needs"
        " the token in the header x-evenhand-token.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,
        lifespan=life,
    )
    app.include_router(routes(desk))
    app.include_router(Pages(desk, renderer, store).routes())
    app.include_router(UnitList(desk, renderer).routes())
    app.include_router(SideBySidePage(desk, renderer).routes())
    _files(app)
    _errors(app, renderer)

    def refuse(path: str, status: int, what: str, advice: str) -> tuple[str, bytes]:
        values = {"code": status, "what": what, "advice": advice}
        if _is_api(path):
            return "application/json", _problem(what, advice)
        return "text/html; charset=utf-8", renderer.plain("error.html", **values).encode()

    return Guard(app, endpoint=endpoint, refuse=refuse)


def make_server(app: App, limits: ConnectionLimits | None = None) -> uvicorn.Server:
    """What serves it: quiet, no other protocol than HTTP, no word about the program; nobody can
    keep it from others."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            lifespan="on",
            http=bounded_connections(limits or ConnectionLimits()),
            ws="none",
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=3,
        )
    )


def listening(host: str, port: int) -> socket.socket:
    """A socket for the server that listens there; port 0 takes a free one. Raises UsageError."""
    bound = None
    try:
        # With its protocol named: without it, asyncio leaves Nagle's algorithm on, and every
        # answer waits for an acknowledgement, 40 ms.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(128)
    except OSError as error:
        if bound is not None:
            bound.close()
        raise UsageError(
            f"cannot listen at {quoted(host)}, port {port}: {error.strerror or error}",
            advice="Name another port, or leave --port out for a free one.",
        ) from None
    return bound


def _is_api(path: str) -> bool:
    return path.startswith("/api/")


def _problem(what: str, advice: str) -> bytes:
    return jsontext.dump({"error": what, "advice": advice}).encode()


def _files(app: FastAPI) -> None:
    texts = {name: _static(name, package) for name, (_, package) in STATIC.items()}

    @app.get("/static/{name}", include_in_schema=False)
    def file(name: str) -> Response:
        if name not in texts:
            raise NotFound("there is no such file")
        return Response(texts[name], media_type=f"{STATIC[name][0]}; charset=utf-8")


def _static(name: str, package: str) -> str:
    if package == "evenhand.report.html":
        return static(name)
    return (resources.files(package) / "static" / name).read_text(encoding="utf-8")


def _errors(app: FastAPI, renderer: Renderer) -> None:
    """Every error as a page in words, or as JSON in one short form."""

    def answer(request: Request, status: int, what: str, advice: str = "") -> Response:
        if _is_api(request.url.path):
            return Json({"error": what, "advice": advice}, status_code=status)
        values = {"what": what, "advice": advice, "place": "", "code": status}
        return renderer(request, "error.html", status, **values)

    def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, EvenhandError)
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
        return answer(request, status, error.what, error.advice)

    def malformed(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        return answer(request, 422, f"{first['loc'][-1]}: {first['msg']}")

    def plain(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        what = "There is no such page." if error.status_code == 404 else str(error.detail)
        return answer(request, error.status_code, what)

    def fault(request: Request, error: Exception) -> Response:
        return answer(request, 500, "Something went wrong in the program.", "This is a bug.")

    handlers: dict[type[Exception], Callable[[Request, Exception], Response]] = {
        EvenhandError: ours,
        RequestValidationError: malformed,
        HTTPException: plain,
        Exception: fault,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, _awaited(handler))


def _awaited(
    handler: Callable[[Request, Exception], Response],
) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(request: Request, error: Exception) -> Response:
        return handler(request, error)

    return handle
