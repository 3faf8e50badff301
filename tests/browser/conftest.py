"""A real browser: chromium, driven by playwright. Where it is absent, tests skip and say so.

Every page is watched: an error in the console or a request to anywhere but the page's own server
fails the test. A page is waited for by its state, for minutes if need be.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

CHROMIUM = os.environ.get("EVENHAND_CHROMIUM") or shutil.which("chromium") or ""


@pytest.fixture(scope="module")
def chromium():
    """A browser without a window. Not for the whole session: while it is driven, this thread has a
    running event loop."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM:
        pytest.skip(
            "there is no chromium (scripts/browser installs it, EVENHAND_CHROMIUM names one)"
        )
    playwright.expect.set_options(timeout=1000 * PATIENCE)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=1000 * PATIENCE
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens an address or a file in a page of its own; what the page must never do is noted in
    `page.faults`, and fails the test at its end."""
    contexts = []

    def open_(address, *, wait="load", **options):
        target = address.as_uri() if isinstance(address, Path) else address
        home = re.match(r"file:|https?://[^/]+", target)[0]
        context = chromium.new_context(**options)
        context.set_default_timeout(1000 * PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.faults = []
        page.struck = []
        context.expose_function("struck", lambda *values: page.struck.append(values))
        page.on("console", lambda message: _console(page, message))
        page.on("pageerror", lambda error: page.faults.append(f"error: {error}"))
        page.on("request", lambda request: _request(page, home, request.url))
        page.on("dialog", lambda dialog: _dialog(page, dialog))
        page.goto(target, wait_until=wait)
        return page

    yield open_
    pages = [page for context in contexts for page in context.pages]
    faults = [fault for page in pages for fault in page.faults]
    struck = [values for page in pages for values in page.struck]
    for context in contexts:
        context.close()
    assert not faults and not struck


def _console(page, message):
    if message.type in ("error", "warning"):
        page.faults.append(f"console: {message.text}")


def _request(page, home, url):
    if not url.startswith((home, "data:")):
        page.faults.append(f"request: {url}")


def _dialog(page, dialog):
    page.faults.append(f"dialog: {dialog.message}")
    dialog.dismiss()


@pytest.fixture
def screenshot():
    """Keeps a picture of a page in the folder that EVENHAND_SCREENSHOTS names, to be looked at;
    takes none where it names none."""
    folder = os.environ.get("EVENHAND_SCREENSHOTS")

    def take(page, name):
        if folder:
            page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)

    return take
