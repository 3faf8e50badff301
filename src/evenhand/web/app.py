"""The application: pages, files of the package, errors as pages, and the guard before them all."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from evenhand.errors import EvenhandError, StoreBusy, StoreError, UsageError
from evenhand.report.html.page import static
from evenhand.store.ledger import Store
from evenhand.web.lists import ChangesPage, UnitList
from evenhand.web.matrix import MatrixPage
from evenhand.web.pages import Pages
from evenhand.web.render import Renderer
from evenhand.web.runs import RunList
from evenhand.web.security import Endpoint, Guard
from evenhand.web.service import NotFound, Timeouts, ViewService
from evenhand.web.trend import TrendPage
from evenhand.words import Sentence

STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (NotFound, 404),
    (StoreBusy, 409),
    (StoreError, 503),
    (UsageError, 400),
    (RequestValidationError, 422),
    (HTTPException, 404),
)


def make_app(
    open_one: Callable[[], Store], endpoint: Endpoint, store: str, timeouts: Timeouts | None = None
) -> FastAPI:
    """Return the whole site over the store that `open_one` opens; `store` is its name for
    people."""
    service = ViewService(open_one, timeouts or Timeouts())
    renderer = Renderer(has_trend=service.has_trend)

    @asynccontextmanager
    async def close_at_end(app: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.close)

    app = FastAPI(openapi_url=None, redirect_slashes=False, lifespan=close_at_end)
    for pages in (
        RunList(service, renderer, store),
        Pages(service, renderer),
        UnitList(service, renderer),
        ChangesPage(service, renderer),
        MatrixPage(service, renderer),
        TrendPage(service, renderer),
    ):
        app.include_router(pages.routes())
    _add_files(app)
    _add_error_pages(app, renderer)
    app.middleware("http")(Guard(endpoint, renderer.error))
    return app


def make_server(app: FastAPI) -> uvicorn.Server:
    """Return a quiet server that speaks HTTP alone."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            lifespan="on",
            http="h11",
            ws="none",
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=3,
        )
    )


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; port 0 takes a free one. Raise UsageError."""
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
            Sentence("web.cannot_listen", host=host, port=str(port), reason=error.strerror or error)
        ) from None
    return bound


def _add_files(app: FastAPI) -> None:
    """Serve the files of the package by name: no path of a request ever reaches the disk."""
    own: Any = resources.files("evenhand.web") / "static"
    texts = {"page.css": static("page.css")}
    texts |= {name: (own / name).read_text(encoding="utf-8") for name in ("view.css", "view.js")}

    @app.get("/static/{name}")
    def send_file(name: str) -> Response:
        if name not in texts:
            raise NotFound(Sentence("web.no_file"))
        media_type = "text/css" if name.endswith(".css") else "text/javascript"
        return Response(texts[name], media_type=f"{media_type}; charset=utf-8")


def _add_error_pages(app: FastAPI, renderer: Renderer) -> None:
    """Show expected errors as pages; the guard shows the unexpected ones."""

    async def show_error(request: Request, error: Any) -> Response:
        status = next((code for kind, code in STATUSES if isinstance(error, kind)), 500)
        match error:
            case RequestValidationError():
                error = UsageError(Sentence("web.bad_value", name=error.errors()[0]["loc"][-1]))
            case HTTPException():
                error = UsageError(Sentence("web.no_page"))
        return renderer.error(request, status, error)

    for kind in (EvenhandError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, show_error)
