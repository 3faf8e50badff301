"""`evenhand view`."""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import sys
import webbrowser
from contextlib import suppress
from typing import Any

import click

from evenhand.cli.common import notice, store_here, store_option
from evenhand.errors import UsageError
from evenhand.runs.stores import open_archive, open_store
from evenhand.store.address import shown_url
from evenhand.words import Code, Sentence

_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,}")
"""A token that stands in an address, a header and a cookie as it is, and is not guessed."""


@click.command("view")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Listen on this port; 0 takes a free one.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option(
    "--token",
    help="Require this token of every request. Needed when --host is not this machine alone.",
)
@store_option
@click.option(
    "--open/--no-open",
    "opens",
    default=None,
    help="Open the browser, or not. Default: open it where there is a screen.",
)
def view_command(
    port: int, host: str, token: str | None, store: str | None, opens: bool | None
) -> None:
    """Browse the runs of a store in the web browser.

    Serves only this machine unless --host says otherwise, and changes nothing. Ctrl-C stops it.

    \b
    evenhand view
    evenhand view --port 8000 --no-open
    """
    try:
        from evenhand.web.app import listening, make_app, make_server
        from evenhand.web.security import Endpoint
    except ModuleNotFoundError as error:
        if (error.name or "evenhand").partition(".")[0] == "evenhand":
            raise
        raise UsageError(Sentence("terminal.view_needs", package=error.name)) from None
    closed = not _is_loopback(host)
    _check_token(token, host, closed)
    url = store or store_here()
    open_archive(url).close()
    with listening(host, port) as bound:
        port = bound.getsockname()[1]
        endpoint = Endpoint(
            host=host, port=port, token=token or secrets.token_urlsafe(24), closed=closed
        )
        app = make_app(lambda: open_store(url, must_exist=True), endpoint, shown_url(url))
        address = _address(endpoint)
        notice(Sentence("terminal.view_shows", store=Code(shown_url(url)), address=Code(address)))
        notice(Sentence("terminal.view_stop"))
        if _has_display() if opens is None else opens:
            webbrowser.open(address)
        with suppress(KeyboardInterrupt):  # the way to stop it
            make_server(app).run(sockets=[bound])


def _check_token(token: str | None, host: str, closed: bool) -> None:
    """Raises UsageError for a token that will not do; the token itself is not repeated."""
    if closed and not token:
        raise UsageError(Sentence("terminal.view_reachable", host=host))
    if token is not None and not _TOKEN.fullmatch(token):
        raise UsageError(Sentence("terminal.view_token"))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(endpoint: Any) -> str:
    """Return the address to look at, with the token where it is needed."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    tail = f"?token={endpoint.token}" if endpoint.closed else ""
    return f"http://{host}:{endpoint.port}/{tail}"


def _has_display() -> bool:
    """Return True if a browser could be seen."""
    if sys.platform == "darwin":
        return sys.stderr.isatty()
    return sys.stderr.isatty() and bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
