"""A real browser: chromium, driven by playwright. Where it is absent, tests skip and say so.

Every page is watched: an error in the console or a request to anywhere but the page's own server
fails the test.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("EVENHAND_CHROMIUM") or shutil.which("chromium") or ""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser without a window. Not for the whole session: while it is driven, this thread has a
    running event loop."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens an address or a file in a page of its own; what the page must never do is noted in
    `page.faults`, and fails the test at its end."""
    opened: list[Any] = []

    def open_(address: str | Path, *, wait: str = "load", **context: Any) -> Any:
        target = address.as_uri() if isinstance(address, Path) else address
        home = re.match(r"file:|https?://[^/]+", target)[0]  # type: ignore[index]
        made = chromium.new_context(**context)
        opened.append(made)
        page = made.new_page()
        page.faults = []
        page.struck = []
        made.expose_function("struck", lambda *said: page.struck.append(said))
        page.on("console", lambda said: _console(page, said))
        page.on("pageerror", lambda error: page.faults.append(f"error: {error}"))
        page.on("request", lambda asked: _request(page, home, asked.url))
        page.on("dialog", lambda dialog: _dialog(page, dialog))
        page.goto(target, wait_until=wait)
        return page

    yield open_
    faults = [fault for made in opened for page in made.pages for fault in page.faults]
    struck = [one for made in opened for page in made.pages for one in page.struck]
    for made in opened:
        made.close()
    assert not faults and not struck


def _console(page: Any, said: Any) -> None:
    if said.type in ("error", "warning"):
        page.faults.append(f"console: {said.text}")


def _request(page: Any, home: str, url: str) -> None:
    if not url.startswith((home, "data:")):
        page.faults.append(f"request: {url}")


def _dialog(page: Any, dialog: Any) -> None:
    page.faults.append(f"dialog: {dialog.message}")
    dialog.dismiss()


@pytest.fixture
def screenshot(tmp_path: Path) -> Callable[[Any, str], Path]:
    """Keeps a picture of a page in the folder that EVENHAND_SCREENSHOTS names, to be looked at."""
    folder = Path(os.environ.get("EVENHAND_SCREENSHOTS") or tmp_path)

    def take(page: Any, name: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        page.screenshot(path=path, full_page=True)
        return path

    return take
