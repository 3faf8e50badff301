"""`evenhand view` as a user calls it."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.suites import evenhand, evenhand_here, judged, started, write_suite
from tests.waiting import PATIENCE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a judged suite; no test here changes what is in its store."""
    suite = write_suite(tmp_path_factory.mktemp("viewed"), 2)
    asyncio.run(judged(suite))
    return suite


def told(view: subprocess.Popen[str]) -> str:
    """The address that the command prints."""
    assert view.stderr is not None
    address = re.search(r"http://\S+", view.stderr.readline())
    assert address is not None
    return address[0]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_at_a_free_port_until_it_is_stopped(folder: Path, how: signal.Signals) -> None:
    view = started("view", "--no-open", cwd=folder)
    base = told(view)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", base)
    with httpx.Client(base_url=base, timeout=PATIENCE) as reader:
        assert reader.get("").status_code == 200
        assert reader.post("").status_code == 405
    view.send_signal(how)
    _, errors = view.communicate(timeout=PATIENCE)
    assert view.returncode == (0 if how is signal.SIGINT else -signal.SIGTERM)
    assert "Traceback" not in errors
    with pytest.raises(httpx.ConnectError):
        httpx.get(base)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_elsewhere_than_on_loopback_it_needs_a_token(folder: Path, host: str) -> None:
    done = evenhand_here("view", "--no-open", "--host", host, cwd=folder)
    assert done.returncode == 2
    assert "--token" in done.stderr


def test_bound_elsewhere_every_request_needs_the_token(folder: Path) -> None:
    view = started(
        "view", "--no-open", "--host", "0.0.0.0", "--token", "so-it-is-said-here", cwd=folder
    )
    address = told(view)
    assert address.endswith("?token=so-it-is-said-here")
    base = address.partition("?")[0].replace("0.0.0.0", "127.0.0.1")
    try:
        assert httpx.get(base, timeout=PATIENCE).status_code == 401
        with httpx.Client(follow_redirects=True, timeout=PATIENCE) as reader:
            assert reader.get(f"{base}?token=so-it-is-said-here").status_code == 200
            assert reader.get(base).status_code == 200
    finally:
        view.terminate()
        view.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize(
    "token",
    ["x", "ключ-ключ-ключ-ключ", "a;b" * 9, "a&b c" * 9, "fifteen-letters", "a" * 20 + "\n"],
)
def test_a_token_that_is_short_or_cannot_be_sent_is_refused(
    folder: Path, host: str, token: str
) -> None:
    done = evenhand_here("view", "--no-open", "--host", host, "--token", token, cwd=folder)
    assert done.returncode == 2
    assert "16 or more" in done.stderr
    assert ("leave it out and one is made" in " ".join(done.stderr.split())) == (host[0] == "1")


def test_without_a_store_it_says_so(tmp_path: Path) -> None:
    done = evenhand("view", "--no-open", cwd=tmp_path)
    assert done.returncode == 6
    assert "there is no such store" in done.stderr


def test_a_port_that_is_taken_is_said(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = evenhand_here("view", "--no-open", "--port", port, cwd=folder)
    assert done.returncode == 2
    assert f"port {port}" in done.stderr
    assert "Name another port" in done.stderr
